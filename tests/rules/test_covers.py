"""From when to when the records of a verdict are, and by whose clocks that is said."""

from collections.abc import Mapping

import pytest
from pyspark.sql import SparkSession

from eo_audit.audit.collect import collect
from eo_audit.audit.covers import Times, covers, sentence
from eo_audit.rules.catalogue import BY_CODE
from eo_audit.rules.replica_log import Log
from eo_audit.rules.row import Row
from tests.rules.compact import Tables
from tests.rules.conftest import InMemory

DAY = 86_400_000
T0 = 1_795_234_567_000  # 2026-11-21 04:16:07 UTC


def a_log(log_id: int, *, topic: str = "orders", broker: int = 1, coverage: str = "full") -> Log:
    numbers = Row({"coverage": coverage, "is_internal": topic.startswith("__")})
    return Log(log_id, "prod", broker, topic, 0, numbers)


BY_BOTH = {1: Times((T0, T0 + 1_000), (T0 - 5, T0 + 900))}


@pytest.mark.parametrize(
    ("logs", "times", "said"),
    [
        pytest.param([a_log(1)], BY_BOTH, "1 partition, 2026-11-21 04:16:07 to 04:16:08 UTC by brokers' clocks", id="both agree"),
        pytest.param(
            [a_log(1), a_log(2, broker=2)],
            {**BY_BOTH, 2: Times((T0 + DAY, T0 + DAY), None)},
            "1 partition (2 logs), 2026-11-21 04:16 to 2026-11-22 04:16 UTC by brokers' clocks",
            id="two copies, two days",
        ),
        pytest.param(
            [a_log(1)],
            {1: Times((T0, T0), (0, 4_102_444_800_000))},
            "1 partition, 2026-11-21 04:16:07 UTC by brokers' clocks; as clients say, 1970-01-01 00:00:00 UTC to 2100-01-01 00:00:00 UTC",
            id="clients that lie",
        ),
        pytest.param(
            [a_log(1)],
            {1: Times(None, (T0, T0 + 1_000))},
            "1 partition, 2026-11-21 04:16:07 to 04:16:08 UTC as their clients say",
            id="clients",
        ),
        pytest.param([a_log(1)], {}, "1 partition, no batch with a time", id="no time at all"),
        pytest.param(
            [a_log(1), a_log(2, topic="__transaction_state"), a_log(3, topic="lost", coverage="none")],
            {**BY_BOTH, 2: Times(None, (T0 - 90 * DAY, T0)), 3: Times((0, 0), None)},
            "1 partition, 2026-11-21 04:16:07 to 04:16:08 UTC by brokers' clocks",
            id="neither witnesses nor what could not be read",
        ),
        pytest.param(
            [a_log(2, topic="__transaction_state")],
            {2: Times((T0, T0), (T0 - 1_000, T0))},
            "1 partition, 2026-11-21 04:16:06 to 04:16:07 UTC by brokers' clocks",
            id="brokers are the clients of Kafka's own topics",
        ),
    ],
)
def test_it_says_whose_clock_it_was(logs: list[Log], times: Mapping[int, Times], said: str) -> None:
    assert sentence(covers(logs, times)) == said


def test_it_fits_a_line() -> None:
    numbers = {"partitions": 1_200, "replica_logs": 3_600, "broker_first_ms": T0, "broker_last_ms": T0 + DAY}
    assert len(f"Covers {sentence({**numbers, 'client_first_ms': None, 'client_last_ms': None})}.") <= 100


def test_markers_and_log_append_time_are_the_brokers_word(spark: SparkSession) -> None:
    lines = [
        "orders-0 0-1 data pid=2 epoch=0 seq=0-1 max_timestamp_ms=5 timestamp_type=CreateTime",
        "orders-0 2-2 marker pid=2 epoch=0 max_timestamp_ms=100 timestamp_type=CreateTime",
        "orders-0 3-3 data pid=2 epoch=0 seq=2-2 max_timestamp_ms=300 timestamp_type=LogAppendTime",
        "orders-0 4-4 data pid=2 epoch=0 seq=3-3 max_timestamp_ms=-1 timestamp_type=NoTimestampType",
        "orders-0 5-5 data pid=2 epoch=0 seq=4-4 max_timestamp_ms=9000 timestamp_type=CreateTime judged=false",
        "orders-0 6-6 data pid=2 epoch=0 seq=5-5 max_timestamp_ms=7 timestamp_type=CreateTime",
    ]
    tables = Tables()
    tables.add_case("times", {"history": {"producer_history": lines}})
    assert list(collect(InMemory(spark, tables.rows), [BY_CODE["P04"]]).times.values()) == [Times((100, 300), (5, 7))]
