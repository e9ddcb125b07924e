"""The examples, audited in one run: what their READMEs tell, on the terminal, by `show` and by `export`."""

import io
import json
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import eo_audit
from eo_audit import cli, pipeline
from eo_audit.pipeline import Options
from eo_audit.report.content import build_content
from eo_audit.report.results import Results
from eo_audit.report.terminal import console, show_result
from eo_audit.store.schemas import table_names
from tests.support.canaries import CANARY_TOPIC

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
NAMES = {
    "clean": "clean_tv2",
    "hanging-transaction": "hanging_txn_k39",
    "duplicates-and-gaps": "state_expired_k39",
    "blocking-transaction": "payments-prod",
}


@pytest.fixture(scope="module")
def results(all_examples: Path) -> Results:
    return eo_audit.open(all_examples)


def graver(results: Results, example: str) -> set[tuple[str, object, object]]:
    """Rule, partition and first offset of what is said above information."""
    own = [row for row in results.findings if row["cluster"] == NAMES[example] and row["severity"] != "info"]
    return {(str(row["rule"]), row["partition"], row["first_offset"]) for row in own}


def test_clean_is_clean(results: Results) -> None:
    assert graver(results, "clean") == set()


def test_the_hanging_transactions(results: Results) -> None:
    found = graver(results, "hanging-transaction")
    assert {("T01", 0, 6), ("T01", 1, 3)} <= found
    assert {rule for rule, _, _ in found} <= {"T01", "T02", "T07", "L01"}
    own = [row for row in results.findings if row["cluster"] == NAMES["hanging-transaction"] and row["topic"] != CANARY_TOPIC]
    assert {row["incident_id"] for row in own} == {row["finding_id"] for row in results.findings if row["rule"] == "T01"}


def test_duplicates_and_gaps(results: Results) -> None:
    found = graver(results, "duplicates-and-gaps")
    assert {("P04", 1, 4), ("P05", 2, 2), ("P06", 3, 2), ("P03", 4, 5)} <= found
    assert {rule for rule, partition, _ in found if partition == 0} <= {"P01", "P02"}
    assert not [rule for rule, partition, _ in found if partition == 5]
    assert len(found) == 5


@pytest.fixture(scope="module")
def blocking(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Results:
    out = tmp_path_factory.mktemp("blocking")
    pipeline.run(out, [EXAMPLES / "blocking-transaction" / "dumps"], Options(), spark=lambda: spark)
    return eo_audit.open(out)


def test_a_transaction_that_blocks_is_no_fault_and_comes_first(blocking: Results) -> None:
    stream = io.StringIO()
    show_result(build_content(blocking.verdict, blocking.findings, lambda *_: None), blocking.out, console(stream))
    words, told = " ".join(stream.getvalue().split()), blocking.verdict
    assert (told["verdict"], told["exit_code"]) == ("pass", 0)
    assert words.startswith(f"PASS, but {told['headline']}")
    readme = " ".join((EXAMPLES / "blocking-transaction" / "README.md").read_text(encoding="utf-8").split())
    assert str(told["headline"]) in readme
    assert "payments-0: read_committed consumers wait at offset 0 for settlement-7f3a (producer 0), open for" in str(told["headline"])
    assert "kafka-transactions.sh --bootstrap-server $BOOTSTRAP describe --transactional-id settlement-7f3a" in words
    assert " abort --" not in words
    assert "state=Ongoing,partitions=[payments-0]" in quoted(blocking, "__transaction_state-2", b"| offset: 1 ")
    committed = quoted(blocking, "__consumer_offsets-1", b"| offset: 0 ")
    assert '"group":"ledger","topic":"payments","partition":1' in committed and committed.endswith('"commitTimestamp":1795306484201}}')
    assert quoted(blocking, "payments-0", b"| offset: 0 ").endswith("headerKeys: [ ...")
    page = (blocking.out / "report.html").read_text(encoding="utf-8")
    assert "read_committed consumers wait at offset 0 for settlement-7f3a (producer 0)" in page


def quoted(audited: Results, partition: str, line: bytes) -> str:
    """What a report quotes of one line of the blocking example: all that a decoder printed, of others' records no key and no payload."""
    file = f"broker-1/{partition}/00000000000000000000.log.txt"
    text = (EXAMPLES / "blocking-transaction" / "dumps" / file).read_bytes()
    at = text.index(line)
    length = text.index(b"\n", at) - at
    return audited.quote("payments-prod", {"dump_file": file, "byte_offset": at, "length": length}) or ""


def test_a_policy_may_call_a_wait_a_failure(blocking: Results, spark: SparkSession, tmp_path: Path) -> None:
    ours = tmp_path / "policy.yaml"
    default = (EXAMPLES.parent / "conf" / "policy.yaml").read_text(encoding="utf-8")
    ours.write_text(default.replace("fail_after_minutes: null", "fail_after_minutes: 20"), encoding="utf-8")
    out = shutil.copytree(blocking.out, tmp_path / "out")
    with pipeline.writing(out, Options(), after="rebuild", spark=lambda: spark) as warehouse:
        pipeline.audit(warehouse, Options(policy=ours))
    told = eo_audit.open(out).verdict
    assert (told["verdict"], told["exit_code"]) == ("fail", 1)
    assert "longer than the policy allows (fail_after_minutes: 20)" in str(told["headline"])


def test_brokers_clocks_around_what_blocks(results: Results) -> None:
    """orders-0 of the hanging example: the ABORT at 5 lies below the blocker at 6, the COMMIT at 10 above it."""
    log = next(row for row in results.rows("visibility", cluster=NAMES["hanging-transaction"], topic="orders", partition=0))
    markers = {
        row["base_offset"]: row["max_timestamp_ms"]
        for row in results.rows("producer_history", replica_log_id=log["replica_log_id"])
        if row["row_kind"] == "marker"
    }
    assert log["blocker_first_offset"] == 6
    assert (log["blocker_began_after_ms"], log["blocker_open_by_ms"]) == (markers[5], markers[10])


def test_the_end_of_the_run_tells_it(results: Results) -> None:
    stream = io.StringIO()
    show_result(build_content(results.verdict, results.findings, lambda *_: None), results.out, console(stream))
    words = " ".join(stream.getvalue().split())
    assert words.startswith("FAIL ")
    assert "held back hanging_txn_k39:orders-0 6-13 LSO 6, HW 14: 3 committed records wait behind late-writer-0 (producer 1)" in words
    assert "kafka-transactions.sh --bootstrap-server $BOOTSTRAP abort --topic orders --partition 0 --start-offset 6 " in words


def test_the_pages_show_what_a_run_prints(hanging_example: Path) -> None:
    audited, stream = eo_audit.open(hanging_example), io.StringIO()
    show_result(build_content(audited.verdict, audited.findings, lambda *_: None), hanging_example, console(stream))
    shown = (EXAMPLES.parent / "docs" / "operate.md").read_text(encoding="utf-8").splitlines()
    printed = [line.rstrip() for line in stream.getvalue().strip().replace(str(hanging_example), "out/demo").splitlines()]
    begin = shown.index(printed[0])
    assert shown[begin : begin + len(printed)] == printed
    first_screen = (EXAMPLES.parent / "README.md").read_text(encoding="utf-8").splitlines()
    begin = first_screen.index(printed[0])
    assert first_screen[begin : begin + 8] == printed[:8] and begin < 30


def test_all_evidence_can_be_shown(results: Results, capsys: pytest.CaptureFixture[str]) -> None:
    for row in results.findings:
        for evidence in row["evidence"][:3]:  # type: ignore[index]
            address = f"{evidence['dump_file']}@{evidence['byte_offset']}"
            assert cli.run_command(["show", address, "--cluster", str(row["cluster"]), "--out", str(results.out)]) == 0
    shown = capsys.readouterr().out
    assert "a batch  broker-1/orders-0/" in shown
    assert "payload" not in shown.replace("payload_verified", "").replace("payload_printed", "")


def test_every_table_can_be_exported(results: Results, capsys: pytest.CaptureFixture[str]) -> None:
    for name in table_names():
        assert cli.run_command(["export", name, "--out", str(results.out)]) == 0
        rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        expected = len(results.warehouse.runs()) if name == "runs" else results.warehouse.arrow(name).num_rows
        assert len(rows) == expected


def test_exported_findings_are_the_file(results: Results, capsys: pytest.CaptureFixture[str]) -> None:
    cli.run_command(["export", "findings", "--out", str(results.out)])
    exported = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    written = [json.loads(line) for line in (results.out / "findings.jsonl").read_text().splitlines()]
    assert exported == written
