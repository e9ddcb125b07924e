"""One audit of a real incident and what follows: report, gate, acceptance, its end, history, and a run that died half-way."""

from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession

import eo_audit
from eo_audit import cli, pipeline
from eo_audit.config import conf_folder
from eo_audit.errors import WarehouseError
from eo_audit.pipeline import Options
from eo_audit.report.audits import audits_of
from eo_audit.report.gate import gate
from eo_audit.report.results import Results
from eo_audit.store.tables import Warehouse


@pytest.fixture(scope="module")
def audited(hanging_example: Path, tmp_path_factory: pytest.TempPathFactory) -> Results:
    return eo_audit.open(shutil.copytree(hanging_example, tmp_path_factory.mktemp("hanging") / "out"))


Again = Callable[..., Results]


@pytest.fixture
def again(spark: SparkSession, audited: Results) -> Again:
    """Audits the same histories once more."""

    def audit(options: Options) -> Results:
        with pipeline.writing(audited.out, options, spark=lambda: spark) as warehouse:
            pipeline.audit(warehouse, options)
        return eo_audit.open(audited.out)

    return audit


def told(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().out.split())


def test_run_writes_the_report(audited: Results) -> None:
    html = (audited.out / "report.html").read_text(encoding="utf-8")
    assert len(html) < 2_000_000
    assert "orders-0: read_committed consumers are stuck at offset 6 since" in html
    assert "kafka-transactions.sh --bootstrap-server $BOOTSTRAP abort --topic orders --partition 0 --start-offset 6" in html
    assert "baseOffset: 6 lastOffset: 8 count: 3" in html  # the line of the dump
    assert html.count("<svg") >= 6  # three partitions, two transactional ids, the run
    assert not [word for word in (" payload: ", " key: ") if word in html]


def test_report_from_a_warehouse_is_the_same(audited: Results, capsys: pytest.CaptureFixture[str]) -> None:
    path = audited.out / "report.html"
    before = path.read_bytes()
    assert cli.run_command(["report", "--out", str(audited.out)]) == 0
    assert told(capsys) == str(path)
    assert path.read_bytes() == before


def test_report_of_nothing_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("report", "gate", "history"):
        assert cli.run_command([command, "--out", str(tmp_path)]) == 11
        assert "holds no finished audit" in capsys.readouterr().err


def test_a_dump_that_has_gone_is_told(audited: Results) -> None:
    evidence = {"dump_file": "broker-1/gone.txt", "byte_offset": 0, "length": 10}
    assert audited.quote("hanging_txn_k39", evidence) is None


def test_gate(audited: Results, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The suites that come with the package, in one checkpoint each; then those of a team that asks for less."""
    arguments = ["gate", "--out", str(audited.out), "--docs", str(tmp_path / "docs")]
    assert cli.run_command(arguments) == 1
    seen = capsys.readouterr()
    assert "No finding that the policy fails on" in seen.err
    assert "Expectations not met" in seen.out
    assert "failing_findings" in "".join(page.read_text(encoding="utf-8") for page in (tmp_path / "docs").rglob("*.html"))
    lenient = tmp_path / "expectations"
    lenient.mkdir()
    suite = json.loads((conf_folder() / "expectations" / "run.json").read_text(encoding="utf-8"))
    suite["expectations"][0]["kwargs"]["max_value"] = 6
    (lenient / "run.json").write_text(json.dumps(suite), encoding="utf-8")
    assert gate(str(audited.out), expectations=str(lenient), docs=str(tmp_path / "docs")).exit_code == 0
    (tmp_path / "taken").touch()  # as on a file system that is read-only: no folder can be made
    with pytest.raises(WarehouseError, match=r"cannot be written into .*/taken/docs .*: name another folder with --docs"):
        gate(audited.out, expectations=lenient, docs=tmp_path / "taken" / "docs")
    unknown = audited.verdict | {"verdict": "unknown"}
    (tmp_path / "warehouse").symlink_to(audited.out / "warehouse")
    (tmp_path / "verdict.json").write_text(json.dumps(unknown), encoding="utf-8")
    assert gate(tmp_path, expectations=lenient).exit_code == 2


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("{", "is not JSON"),
        ("[]", "a list named expectations"),
        ('{"expectations": [{"type": "expect_nonsense", "kwargs": {}}]}', "cannot be used: expect_nonsense"),
        ('{"expectations": [{"type": "expect_column_values_to_be_between", "kwargs": {"colunm": "x"}}]}', "cannot be used"),
    ],
)
def test_a_bad_suite_is_one_sentence(audited: Results, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, why: str) -> None:
    (tmp_path / "run.json").write_text(content, encoding="utf-8")
    assert cli.run_command(["gate", "--out", str(audited.out), "--expectations", str(tmp_path), "--docs", str(tmp_path)]) == 12
    assert why in capsys.readouterr().err


def test_accepted_findings_fail_nothing_until_they_expire(
    audited: Results, again: Again, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "accepted.yaml"
    failing = [str(row["finding_id"]) for row in audited.findings]
    command = ["accept", "--who", "ana", "--why", "ticket 4711", "--until", "2026-12-31", "--out", str(audited.out), "--file", str(file)]
    assert cli.run_command([*command, failing[0][:10]]) == 0
    assert "is accepted until 2026-12-31" in (said := told(capsys))
    assert "Of the same incident, and still counting:" in said
    assert cli.run_command([*command, *failing]) == 0
    assert "still counting" not in told(capsys)
    assert len(yaml.safe_load(file.read_text(encoding="utf-8"))["accepted"]) == len(failing)

    held = file.read_bytes()
    assert cli.run_command([*command, failing[0], "no-such-id"]) == 10
    assert "no finding has an id that begins with no-such-id" in capsys.readouterr().err
    assert file.read_bytes() == held

    muted = again(Options(accepted=file)).verdict
    rules = muted["rules"]
    assert isinstance(rules, dict)
    assert (muted["verdict"], muted["exit_code"]) == ("pass", 0)
    assert (rules["T01"]["verdict"], rules["T01"]["findings"], rules["T01"]["failing"], rules["T01"]["accepted"]) == ("pass", 2, 0, 2)
    assert f"{len(failing)} accepted by ana until 2026-12-31: ticket 4711" in (audited.out / "report.html").read_text(encoding="utf-8")
    cli._show_result(audited.out)
    assert f"accepted {len(failing)} accepted by ana until 2026-12-31: ticket 4711" in told(capsys)

    file.write_text(file.read_text(encoding="utf-8").replace("2026-12-31", "2026-11-20"), encoding="utf-8")  # the day before the dump
    spent = again(Options(accepted=file)).verdict
    assert spent["verdict"] == "fail"
    assert isinstance(spent["rules"], dict)
    assert not spent["rules"]["T01"].get("accepted")
    assert "expired on 2026-11-20 and count again" in (audited.out / "report.html").read_text(encoding="utf-8")
    assert again(Options(accepted=tmp_path / "nothing.yaml")).verdict.get("accepted", []) == []
    assert list(audited.frame("runs", step="audit")["verdict"]) == ["fail", "pass", "fail"]


def test_a_run_that_died_is_told_at_the_next_start(audited: Results, again: Again) -> None:
    warehouse = Warehouse(audited.out)
    before = warehouse.runs()
    (warehouse.folder / "_lock").write_text(json.dumps({"pid": 4, "host": socket.gethostname()}))
    assert eo_audit.open(audited.out).findings == audited.findings  # readable all the while
    held = (audited.out / "verdict.json").replace(audited.out / "held.json")
    with pytest.raises(WarehouseError, match=r"run it again \(report\.html and the tables still show the one before\)"):
        _ = eo_audit.open(audited.out).verdict
    held.replace(audited.out / "verdict.json")
    heard: list[str] = []
    again(Options(notice=heard.append))
    assert any("died before it had finished" in sentence for sentence in heard)
    assert len(warehouse.runs()) == len(before)
    heard.clear()
    with pipeline.writing(audited.out, Options(notice=heard.append), keeps_verdict=True):
        assert not heard


def test_history_tells_what_came_and_went(audited: Results, again: Again, capsys: pytest.CaptureFixture[str]) -> None:
    heard, before = list[str](), len(Warehouse(audited.out).runs())
    again(Options(notice=heard.append))
    # Nothing is told twice of the run that died before the last audit (the test above), and the same audit again adds no row.
    assert (heard, len(Warehouse(audited.out).runs())) == ([], before)
    assert cli.run_command(["history", "--out", str(audited.out)]) == 0
    said = told(capsys)
    assert "fail 6 new, 0 still there, 0 gone" in said
    assert "critical T01 hanging-txn orders-0 6-8: The transaction of late-writer-0 (producer 1, epoch 0)" in said
    newest = audits_of(Warehouse(audited.out))[-1]
    assert {"finished_at_ms", "inputs", "code_version", "rule_set", "verdict"} <= {name for name, value in newest.run.items() if value}
