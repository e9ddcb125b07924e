"""The benchmark's dump text is what it claims to be: a real grammar, and a cluster where nothing went wrong."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

from benchmarks.dump_text import VARIANTS, Written, java_hash, write_dumps
from eo_audit.dump.files.discovery import discover
from eo_audit.dump.log.state import FileContext, Ledger, State
from eo_audit.dump.parse import parse_range

Rows = dict[str, list[dict[str, object]]]


def written(folder: Path, variant: str = "clean", seed: int = 1) -> Written:
    return write_dumps(folder, text_bytes=400_000, variant=variant, seed=seed, segment_bytes=50_000)


def facts(folder: Path) -> tuple[Rows, Ledger]:
    rows, ledger = defaultdict(list), Ledger()
    for number, file in enumerate(discover([folder])):
        text = file.absolute.read_bytes()
        context = FileContext.of(file, dump_file_id=number, salt=bytes(16), ingest_id="")
        read = parse_range(text, context=context, base=0, start=0, stop=len(text), state=State.initial(), final=True)
        ledger += read.ledger
        for table, found in read.facts.items():
            rows[table] += found.to_pylist()
    return rows, ledger


@pytest.fixture(scope="module", params=VARIANTS)
def dumped(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Written, Rows, Ledger]:
    folder = tmp_path_factory.mktemp(request.param)
    return written(folder, request.param), *facts(folder)


def logs(rows: list[dict[str, object]]) -> Iterator[list[dict[str, object]]]:
    """Batches of each log in offset order."""
    ordered = sorted(rows, key=lambda row: (row["replica_log_id"], row["base_offset"]))
    return (list(group) for _, group in groupby(ordered, key=lambda row: row["replica_log_id"]))


def test_the_same_arguments_give_the_same_bytes(tmp_path: Path) -> None:
    assert written(tmp_path / "a", "hostile") == written(tmp_path / "b", "hostile")
    names = [path.relative_to(tmp_path / "a") for path in sorted((tmp_path / "a").rglob("*")) if path.is_file()]
    assert len(names) > 20
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in names)
    written(tmp_path / "c", "hostile", seed=2)
    log = "broker-1/orders-0/00000000000000000000.log.txt"
    assert (tmp_path / "c" / log).read_bytes() != (tmp_path / "a" / log).read_bytes()


def test_every_byte_is_understood(dumped: tuple[Written, Rows, Ledger]) -> None:
    said, rows, ledger = dumped
    assert ledger.unread == ledger.tool_messages == 0
    assert 400_000 <= said.text_bytes < 500_000
    assert (len(rows["batches"]), len(rows["records"]) - len(rows["coordinator_entries"])) == (said.batches, said.records)
    assert all(entry["size_identity_ok"] for entry in rows["coordinator_entries"])


def test_offsets_positions_and_sequences_are_those_of_a_broker(dumped: tuple[Written, Rows, Ledger]) -> None:
    for log in logs(dumped[1]["batches"]):
        producers: dict[object, tuple[int, int]] = {}
        for before, batch in zip([None, *log], log, strict=False):
            if before:
                assert batch["base_offset"] == int(str(before["last_offset"])) + 1
                assert batch["position"] in (0, int(str(before["position"])) + int(str(before["size_bytes"])))
            if batch["is_control"] or batch["producer_id"] == -1:
                continue
            epoch, expected = producers.get(batch["producer_id"], (-1, 0))
            assert batch["base_sequence"] == (expected if batch["producer_epoch"] == epoch else 0)
            producers[batch["producer_id"]] = int(str(batch["producer_epoch"])), int(str(batch["last_sequence"])) + 1


def test_every_transaction_ends_as_its_coordinator_decided(dumped: tuple[Written, Rows, Ledger]) -> None:
    said, rows, _ = dumped
    decided = {}
    for entry in sorted(rows["coordinator_entries"], key=lambda entry: entry["last_update_ms"]):  # type: ignore[arg-type,return-value]
        if str(entry["status"]).startswith("Prepare"):
            decided[entry["producer_id"], entry["producer_epoch"]] = entry
    markers = [batch for batch in rows["batches"] if batch["is_control"]]
    assert len(decided) == said.transactions
    assert len(markers) == sum(len(entry["partitions"]) for entry in decided.values())  # type: ignore[arg-type]
    for marker in markers:
        entry = decided[marker["producer_id"], marker["producer_epoch"]]
        assert entry["status"] == f"Prepare{str(marker['marker_type']).capitalize()}"
    aborts = sorted((m["producer_id"], m["base_offset"]) for m in markers if m["marker_type"] == "ABORT")
    assert aborts == sorted((row["producer_id"], row["last_offset"]) for row in rows["aborted_transactions"])


def test_ids_are_hashed_as_java_does() -> None:
    assert [java_hash(name) % 50 for name in ("kafka-txn-0", "my-group", "anyValue", "polygenelubricants")] == [30, 12, 23, 0]
