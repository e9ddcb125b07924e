"""Which clusters had stopped when they were dumped."""

import pyarrow as pa
import pytest

from eo_audit.audit.clocks import clocks

Log = dict[str, object]


def log(number: int, *, leo: int = 20, snapshot: int | None = 20, clean_end: bool = False, **more: object) -> Log:
    own: Log = {"replica_log_id": number, "cluster": "prod", "broker": 1, "leo": leo, "snapshot_offset": snapshot, "clean_end": clean_end}
    own |= {"newest_broker_clock_ms": None, "latest_broker_clock_ms": None}
    return own | {"listed": True, "tail_intact": True, "dumped_at_ms": None} | more


IDLE = log(1, clean_end=True)  # since the broker last started, or since it stopped


@pytest.mark.parametrize(
    ("logs", "stopped"),
    [
        ([IDLE, log(2, clean_end=True)], True),
        ([IDLE, log(2, leo=30)], False),
        ([log(2, leo=30)], False),
        ([IDLE, log(2, leo=30, broker=2)], True),
        ([IDLE, log(2, leo=30, tail_intact=False)], True),
        ([IDLE, log(2, leo=30, listed=False)], True),
        ([IDLE, log(2, leo=30, snapshot=None)], True),
    ],
    ids=[
        "all logs end at a snapshot",
        "another log of the broker goes on behind its snapshot",
        "no log ends at a snapshot",
        "another broker runs",
        "the end of the other log is not in the dump",
        "the other log may have newer snapshots",
        "the other log has no snapshot",
    ],
)
def test_a_log_that_nobody_wrote_to_is_no_stop(logs: list[Log], stopped: bool) -> None:
    tables = {"clusters": {"as_of_source": ["manifest"], "cluster": ["prod"]}, "clock_offsets": {"cluster": pa.array([], pa.string())}}
    found = clocks(lambda name: pa.Table.from_pylist(logs) if name == "replica_logs" else pa.table(tables[name]))
    assert found.stopped == ({"prod"} if stopped else set())
    assert found.clean_ends == {row["replica_log_id"] for row in logs if row["clean_end"]}


def test_how_much_earlier_a_log_ends_than_its_latest_time_is_known() -> None:
    logs = [
        log(1, newest_broker_clock_ms=1_000, latest_broker_clock_ms=5_000),
        log(2, newest_broker_clock_ms=7, latest_broker_clock_ms=7),
        log(3),
    ]
    tables = {"clusters": {"as_of_source": ["manifest"], "cluster": ["prod"]}, "clock_offsets": {"cluster": pa.array([], pa.string())}}
    found = clocks(lambda name: pa.Table.from_pylist(logs) if name == "replica_logs" else pa.table(tables[name]))
    assert found.set_back_ms == {1: 4_000, 2: 0}
