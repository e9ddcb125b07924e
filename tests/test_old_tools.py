"""What a tool older than 2.2 prints of a log says what a newer one says of it, or that is unknown: no old text accuses anybody.

Real dumps, some with a thing changed, and model clusters with and without a planted fault, each printed by three tools.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from eo_audit.audit.findings import Finding
from eo_audit.rules.catalogue import BY_CODE
from tests.cluster.audit import Said
from tests.cluster.properties import Case, make
from tests.cluster.shape import SCRIPT, STOPPED, draw
from tests.support import reshaped
from tests.support.together import Part, Together

DUMPS = Path(__file__).parent / "data" / "corpus" / "dumps"
REAL = (
    *("hanging_txn_k39", "clean_tv2", "fence_same_id_k39", "seq_wrap", "retention_head_k39", "syn_dup_batch", "syn_gap"),
    *("syn_abort_to_commit", "syn_txnindex_entry_removed", "syn_snapshot_disagrees", "syn_marker_epoch", "syn_data_epoch_back"),
    *("syn_abort_marker_lost_middle", "syn_plain_in_open", "compaction_k39"),
)
MODEL = [Case(draw(seed, features=("aborts", "fences"), dumps=(STOPPED,))) for seed in (300_002, 300_013)]
# Of running brokers, by collect-dumps.sh, which lists how large a segment is right before it dumps it.
BY_SCRIPT = [Case(draw(seed, features=("aborts", "fences"), dumps=(SCRIPT,))) for seed in (300_000, 300_004)]
CASES = (*MODEL, *BY_SCRIPT)
TOOLS = ("1.1", "0.11.0.0")
BOTH_WAYS, BAD_CHECKSUM = "dialects_tv2@2.0.1", "bad_checksum"  # each segment with --deep-iteration and without


def dumps_of_tests(folder: Path) -> Part:
    """Each input as it is (`NAME.as_is`) and as each of the tools would have printed it (`NAME.1.1`): folders and clusters so called."""
    sources = {name: DUMPS / name for name in REAL}
    for case in CASES:
        sources[case.name] = folder / "lived" / case.name
        assert make(case, sources[case.name]) is not None
    scripted = {case.name for case in BY_SCRIPT}
    for name, source in sources.items():
        for tool in ("as_is", *TOOLS):
            if not (folder / f"{name}.{tool}").is_dir():
                reshaped.copied(source, folder / f"{name}.{tool}", listed=name in scripted)
                if tool != "as_is":
                    reshaped.printed_before(folder / f"{name}.{tool}", tool)
    shutil.copytree(DUMPS / BOTH_WAYS, folder / BAD_CHECKSUM)
    (shallow,) = (folder / BAD_CHECKSUM / "orders-1").glob("*.shallow.txt")
    shallow.write_text(shallow.read_text().replace("isvalid: true size: 303", "isvalid: false size: 303"))
    return Part([*(folder / f"{name}.{tool}" for name in sources for tool in ("as_is", *TOOLS)), folder / BAD_CHECKSUM])


@pytest.fixture(scope="module")
def said(one_audit: Together) -> Mapping[str, Said]:
    return one_audit.said


def told(finding: Finding) -> tuple[object, ...]:
    """What is found; the epoch of a producer is not asked for."""
    names = ("rule", "severity", "topic", "partition", "producer_id", "transactional_id", "first_offset", "last_offset", "record_count")
    return tuple(getattr(finding, name) for name in names)


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("name", [*REAL, *(case.name for case in CASES)])
def test_an_old_text_accuses_nobody_else_and_says_what_it_does_not_know(said: Mapping[str, Said], name: str, tool: str) -> None:
    old, new = said[f"{name}.{tool}"], said[f"{name}.as_is"]
    assert not old.crashed
    found = {told(finding) for finding in old.findings if finding.rule != "R07"}
    assert found <= {told(finding) for finding in new.findings}
    unknown = {code for code, _, _ in old.unknowns}
    lost = {f.rule for f in new.findings if told(f) not in found and not BY_CODE[f.rule].informs}
    assert lost <= unknown


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("case", BY_SCRIPT, ids=lambda case: case.name)
def test_a_whole_text_is_whole_though_its_last_batch_has_no_size(said: Mapping[str, Said], case: Case, tool: str) -> None:
    """Beside a listing that has the size of the segment."""
    old, new = said[f"{case.name}.{tool}"], said[f"{case.name}.as_is"]
    assert not new.unknowns
    assert {why for _, why, _ in old.unknowns} <= {"no_checksums", "no_producer_epochs"}


def test_what_the_cleaner_emptied_is_not_missed_where_no_line_shows_it(said: Mapping[str, Said]) -> None:
    """The beginnings of producers in a log that is cleaned: of its batches without records a text up to 2.1 has no line."""
    first = [(finding.topic, finding.first_offset) for finding in said["compaction_k39.as_is"].findings if finding.rule == "P07"]
    assert not [finding for finding in said["compaction_k39.1.1"].findings if finding.rule == "P07"]
    assert {why for _, why, _ in said["compaction_k39.1.1"].unknowns} == {"no_checksums"}, "nothing else of it is unread"
    assert first == [("customers", 75)]


def test_epochs_are_asked_for_by_name(said: Mapping[str, Said]) -> None:
    """Of logs whose records show none: what needs epochs is unknown for that reason alone, and what needs none is found."""
    old = said["syn_dup_batch.0.11.0.0"]
    assert {why for _, why, _ in old.unknowns} == {"no_producer_epochs", "no_checksums"}
    assert {"P01", "P04", "T01", "T10", "S01"} <= {code for code, why, _ in old.unknowns if why == "no_producer_epochs"}
    assert "P08" in {finding.rule for finding in said["syn_plain_in_open.0.11.0.0"].findings}
    assert "S02" in {finding.rule for finding in said["syn_txnindex_entry_removed.0.11.0.0"].findings}
    assert not [why for _, why, _ in said["syn_dup_batch.1.1"].unknowns if why == "no_producer_epochs"]


def test_a_bad_checksum_is_told_where_only_the_dump_without_deep_iteration_shows_it(said: Mapping[str, Said]) -> None:
    """The deep one, which is read, prints none."""
    (finding,) = (one for one in said[BAD_CHECKSUM].findings if one.rule == "R02")
    assert (finding.topic, finding.partition, finding.first_offset, finding.last_offset) == ("orders", 1, 0, 1)
    assert "without --deep-iteration" in finding.message
