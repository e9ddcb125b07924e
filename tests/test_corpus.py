"""One audit of every real dump that the tests hold, against what happened and what the brokers answered."""

import importlib.util
import json
import re
import shutil
from collections import Counter
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pyarrow.compute as pc
import pytest

from eo_audit import pipeline
from eo_audit.audit.outages import CAUSE
from eo_audit.cli import run_command
from eo_audit.report.export import export
from eo_audit.report.results import Results
from eo_audit.rules.catalogue import BY_CODE, RULES
from eo_audit.rules.needs import unknown
from eo_audit.rules.reasons import REASONS
from eo_audit.store.tables import Warehouse
from tests.jobs.test_ingest import no_spark
from tests.support import rulebook
from tests.support.together import Part, Together
from tests.support.without_payloads import copy_without_payloads
from tests.support.yaml_text import read_yaml


def rules_in(truth: object) -> set[str]:
    """All codes of rules that a truth names, wherever."""
    if isinstance(truth, list):
        return set().union(*map(rules_in, truth))
    if isinstance(truth, dict):
        # `P12>warning`: at no more than that severity.
        named = {str(code).partition(">")[0] for name in ("rules", "any_of") for code in truth.get(name) or ()}
        return {code for code in named if code != "*"}.union(*map(rules_in, truth.values()))
    return set()


CORPUS = Path(__file__).parent / "data" / "corpus"
INPUTS = sorted(path for path in (CORPUS / "dumps").iterdir() if path.is_dir())
PAYLOAD_RULES = ("P12", "P13", "I06")
# Two dumps hold a partition that their tool could not read at all: it knows no zstd.
TOO_OLD = ("compressed@0.11.0.3", "compressed@2.0.1")
OLD_TOOLS = ("@0.11.0.3", "@1.1.1", "@2.0.1")  # they print neither checksums nor leader epochs
OUTAGE = CORPUS / "dumps" / "power_outage_long_tv2"
POWER_WAS_OFF_MS = 12_000  # what that scenario did; brokers take their time to come back
# Of each input whose payloads tell something, and of a quarter of the others, the cluster in which they are not printed.
BARE = {
    path.name: f"{path.name}.bare"
    for number, path in enumerate(INPUTS)
    if number % 4 == 0 or rules_in(json.loads((CORPUS / "truth" / f"{path.name}.json").read_text())) & set(PAYLOAD_RULES)
}
SAME = ("found", "lso_equal", "hw_equal", "visible_equal", "causes_right")


def dumps_of_tests(folder: Path) -> Part:
    """All inputs, and some of them (`BARE`) as they are printed without keys and values."""
    for name, bare in BARE.items():
        copy_without_payloads(CORPUS / "dumps" / name, folder / bare)
        if (manifest := folder / bare / "manifest.yaml").exists():
            manifest.write_text(re.sub(r"(?m)^cluster: .*$", f'cluster: "{bare}"', manifest.read_text()))
    return Part([*INPUTS, *(folder / bare for bare in BARE.values())])


@pytest.fixture(scope="module")
def results(one_audit: Together) -> Results:
    """Of other clusters, too."""
    return one_audit.results


@pytest.fixture(scope="module")
def score() -> ModuleType:
    spec = importlib.util.spec_from_file_location("score", CORPUS / "score.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def truth_of(path: Path) -> dict[str, object]:
    """What is true of an input, less what is true of another one of that day (`dumps`: before a broker came back and cut its log, so that
    all replicas here agree), and less the brokers' answers about partitions of which the input holds no dump."""
    truth = json.loads((CORPUS / "truth" / f"{path.name}.json").read_text())
    truth["expected_findings"] = [wanted for wanted in truth["expected_findings"] if "dumps" not in wanted]
    for oracle in truth["oracles"].values():
        if isinstance(oracle, dict) and "partitions" in oracle:
            oracle["partitions"] = [p for p in oracle["partitions"] if any(path.rglob(f"{p['topic']}-{p['partition']}/*.log*"))]
    return truth


def of(rows: list[dict[str, object]], cluster: str) -> list[dict[str, object]]:
    return [row for row in rows if row["cluster"] == cluster]


def test_the_audit_says_what_happened(results: Results, score: ModuleType) -> None:
    visible = [json.loads(line) for line in export("visible_ranges", results.warehouse)]
    only = {rule.code for rule in RULES}
    total, notes = Counter(), []
    for path in INPUTS:
        if path.name not in TOO_OLD:
            findings = [f for f in of(results.findings, path.name) if f["rule"] in only]
            partitions, transactions = (of(results.verdict[name], path.name) for name in ("partitions", "transactions"))
            counts, said = score.score_input(truth_of(path), findings, partitions, transactions, of(visible, path.name), only)
            total.update(counts)
            notes += [f"{path.name}: {note}" for note in said]
    assert notes == []
    assert total["expected"] >= 43 and total["visible_asked"] >= 400 and total["causes_asked"] >= 17, "the corpus asks less than it did"
    assert [total[name] for name in SAME] == [total[n] for n in ("expected", "lso_asked", "hw_asked", "visible_asked", "causes_asked")]
    assert (total["false"], total["broken"]) == (0, 0)


def longest_silence_ms() -> int:
    """The longest stretch in which no coordinator wrote while the power was off, by the batch lines of all their logs."""
    texts = [path.read_text() for path in OUTAGE.glob("broker-1/__transaction_state-*/*.log.txt")]
    times = sorted({int(at) for text in texts for at in re.findall(r"^baseOffset: .*? CreateTime: (\d+)", text, re.MULTILINE)})
    return max(after - before for before, after in pairwise(times))


def test_the_length_of_the_longest_outage_is_told(results: Results) -> None:
    outage = longest_silence_ms()
    assert outage >= POWER_WAS_OFF_MS
    assert results.verdict["timeouts"]["outage_ms"] == outage
    aborted = [row for row in results.verdict["transactions"] if row["abort_cause"] == CAUSE]  # type: ignore[attr-defined]
    assert len(of(aborted, OUTAGE.name)) == 1
    assert not [finding for finding in of(results.findings, OUTAGE.name) if finding["severity"] in ("critical", "error")]


def test_what_old_tools_do_not_print_is_unknown_and_never_passes(results: Results) -> None:
    old = [path.name for path in INPUTS if path.name.endswith(OLD_TOOLS)]
    dialects = {row["dialect"] for row in results.rows("dump_sections", kind="log") if row["cluster"] in old}
    assert dialects == {"0.11", None}, "None: the tool died before its first line"
    assert not [f for f in results.findings if f["cluster"] in old and f["severity"] != "info"]
    silent = {str(row["cluster"]) for row in results.rows("coverage", state="no_checksums")}
    assert silent.intersection(path.name for path in INPUTS) == set(old)


def test_replicas_that_nothing_tells_apart_are_told_once(results: Results, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["why", "orders-0", "--cluster", "power_outage_k39", "--out", str(results.out)]) == 0
    assert re.findall("brokers? [0-9, ]+:", capsys.readouterr().out) == ["brokers 1, 2, 3:"]


def test_a_log_whose_tool_died_before_the_first_batch_has_no_numbers(results: Results) -> None:
    logs = [row for row in results.verdict["partitions"] if row["cluster"] in TOO_OLD and row["topic"] == "c-zstd"]  # type: ignore[attr-defined]
    assert [(row["lso"], row["hw"], row["leo"], row["coverage"]) for row in logs] == [(None, None, None, "none")] * len(TOO_OLD)


def test_each_rule_of_the_rulebook_is_broken_by_a_real_log_or_by_one_in_which_a_thing_was_changed(results: Results) -> None:
    names = {path.name for path in INPUTS}
    of_real = {finding["rule"] for finding in results.findings if finding["cluster"] in names}
    mutated = read_yaml(Path(__file__).parent / "rules" / "mutated.yaml")
    assert rulebook.codes() - of_real - {case["rule"] for case in mutated["cases"]} == mutated["without"].keys()
    assert all(len(why) > 30 for why in mutated["without"].values())


def test_no_truth_names_a_rule_that_the_catalogue_does_not_have() -> None:
    for path in sorted((CORPUS / "truth").glob("*.json")):
        assert rules_in(json.loads(path.read_text())) <= {rule.code for rule in RULES}, path.name


def test_every_byte_has_one_owner(results: Results) -> None:
    files = [row for row in results.rows("dump_files") if (CORPUS / "dumps").as_posix() in str(row["input_path"])]
    assert sum(row["text_bytes"] for row in files) == sum(p.stat().st_size for path in INPUTS for p in path.rglob("*") if p.is_file())
    owners = ("bytes_preamble", "bytes_facts", "bytes_tool_messages", "bytes_unread")
    assert [row["path"] for row in files if sum(row[owner] for owner in owners) != row["text_bytes"]] == []


def test_the_same_dumps_again_add_no_facts(results: Results, tmp_path: Path) -> None:
    """Equal facts give equal results: `bare` below, and byte for byte in jobs/test_pipeline."""
    out = shutil.copytree(results.out, tmp_path / "out")
    before = Warehouse(out).pinned()
    with pipeline.writing(out, pipeline.Options(), spark=no_spark) as warehouse:
        pipeline.ingest(warehouse, pipeline.discover(INPUTS, pipeline.Options()), pipeline.Options())
    assert Warehouse(out).pinned() == before


def test_without_payloads_all_is_said_but_who_sent_the_same_record_twice(one_audit: Together) -> None:
    results = one_audit.results
    whole = {row["cluster"] for row in results.findings if row["rule"] in PAYLOAD_RULES}
    assert whole.intersection(path.name for path in INPUTS) <= BARE.keys() and len(BARE) >= 20
    assert {row["cluster"] for row in results.rows("clusters")} >= set(BARE.values())
    sections = [row["section_id"] for row in results.rows("dump_sections") if row["cluster"] in BARE.values()]
    hashed = pc.field("value_hash").is_valid() & pc.field("section_id").isin(sections)
    assert sections and results.warehouse.arrow("records").filter(hashed).num_rows == 0
    for name, bare in BARE.items():
        same = [said(row, results) for row in of(results.findings, name) if row["rule"] not in PAYLOAD_RULES]
        assert sorted(said(row, results) for row in of(results.findings, bare)) == sorted(same)
        for table in ("partitions", "transactions"):
            assert of(results.verdict[table], bare) == [{**row, "cluster": bare} for row in of(results.verdict[table], name)]
    context = one_audit.context
    logs = [log for log in context.logs.values() if log.cluster in BARE.values() and not log.topic.startswith("__")]
    for code in PAYLOAD_RULES:
        assert {item and item.because for item in (unknown(BY_CODE[code], log, context) for log in logs)} == {"payload_not_printed"}
    assert "not printed" in REASONS["payload_not_printed"].why and "--payloads" in REASONS["payload_not_printed"].bring


def said(finding: dict[str, object], results: Results) -> str:
    """A finding less its cluster, which its id is made of, and less where its evidence stands: other text, other bytes."""
    (head,) = [row for row in results.findings if row["finding_id"] == finding["incident_id"]]
    own = {name: value for name, value in finding.items() if name not in ("evidence", "cluster", "finding_id", "incident_id")}
    return json.dumps([own, head["rule"], head["message"]])
