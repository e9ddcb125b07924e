"""The three examples, audited in one run: what their READMEs tell, on the terminal, by `show` and by `export`."""

import io
import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import eo_audit
from eo_audit import cli, pipeline
from eo_audit.pipeline import Options
from eo_audit.report.content import build_content
from eo_audit.report.terminal import console, show_result
from eo_audit.results import Results
from eo_audit.schemas import table_names

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
NAMES = {"clean": "clean_tv2", "hanging-transaction": "hanging_txn_k39", "duplicates-and-gaps": "state_expired_k39"}


@pytest.fixture(scope="module")
def results(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Results:
    out = tmp_path_factory.mktemp("examples")
    pipeline.run(out, [EXAMPLES / name / "dumps" for name in NAMES], Options(), spark=lambda: spark)
    return eo_audit.open(out)


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
    assert {row["incident_id"] for row in results.findings if row["cluster"] == NAMES["hanging-transaction"]} == {
        row["finding_id"] for row in results.findings if row["rule"] == "T01"
    }


def test_duplicates_and_gaps(results: Results) -> None:
    found = graver(results, "duplicates-and-gaps")
    assert {("P04", 1, 4), ("P05", 2, 2), ("P06", 3, 2), ("P03", 4, 5)} <= found
    assert {rule for rule, partition, _ in found if partition == 0} <= {"P01", "P02"}
    assert not [rule for rule, partition, _ in found if partition == 5]
    assert len(found) == 5


def test_the_end_of_the_run_tells_it(results: Results) -> None:
    stream = io.StringIO()
    show_result(build_content(results.verdict, results.findings, lambda *_: None), results.out, console(stream))
    words = " ".join(stream.getvalue().split())
    assert words.startswith("FAIL ")
    assert "held back hanging_txn_k39:orders-0 6-13 LSO 6, HW 14: 3 committed records wait behind producer 1" in words
    assert "kafka-transactions.sh --bootstrap-server $BOOTSTRAP abort --topic orders --partition 0 --start-offset 6 " in words


def test_the_readme_shows_what_a_run_prints(spark: SparkSession, tmp_path: Path) -> None:
    pipeline.run(tmp_path, [EXAMPLES / "hanging-transaction" / "dumps"], Options(), spark=lambda: spark)
    audited, stream = eo_audit.open(tmp_path), io.StringIO()
    show_result(build_content(audited.verdict, audited.findings, lambda *_: None), tmp_path, console(stream))
    shown = (EXAMPLES.parent / "README.md").read_text(encoding="utf-8").splitlines()
    printed = [line.rstrip() for line in stream.getvalue().strip().replace(str(tmp_path), "out/demo").splitlines()]
    begin = shown.index(printed[0])
    assert shown[begin : begin + len(printed)] == printed


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
