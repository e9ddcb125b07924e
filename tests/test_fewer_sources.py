"""What was not dumped, or not printed, makes no accusation and acquits nobody: what the rest shows is found, what it hides is unknown."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from eo_audit.audit.findings import Finding
from eo_audit.rules.catalogue import BY_CODE
from eo_audit.rules.needs import UNREAD, unknown
from tests.cluster.audit import Said
from tests.support import listed, reshaped, together
from tests.support.reshaped import Kept
from tests.support.together import Part, Together
from tests.sweep.clusters import label_of
from tests.test_lost_lines import HELD as LOST_LINES

DUMPS = Path(__file__).parent / "data" / "corpus" / "dumps"
FEWER: Mapping[str, tuple[Callable[[Path], Kept], tuple[str, ...]]] = {
    "only_logs": (reshaped.only_logs, ("zombie_different_id_tv2", "state_expired_k39", "fence_same_id_k39", "syn_dup_batch")),
    "without_index": (reshaped.without_index, ("syn_txnindex_entry_removed",)),
    # What the aborted index and the snapshots tell of the lost lines accuses nobody.
    "without_first_lines": (reshaped.without_first_lines, ("clean_k39", "clean_tv2", "tid_expiration_k39", "timeout_comeback_tv2")),
    # Lost entries are no steps that a coordinator did not take, and a line that was cut is no producer that the broker forgot.
    "garbled": (reshaped.garbled, ("clean_k28", "clean_tv2", "fence_same_id_k39", "syn_gap", "idempotent_retry")),
    # A decoder that could not read a record hides what it was: no step that was not taken, and no commit that a group did not make.
    "other_decoder": (reshaped.other_decoder, ("clean_k28", "clean_tv2", "hanging_txn_k39")),
    "some_undecoded": (reshaped.some_undecoded, ("clean_k28", "clean_tv2", "hanging_txn_k39", "fence_same_id_k39")),
    # What the coordinator decided for a transaction of which entries are lost, another entry does not tell.
    "some_lines_lost": (
        reshaped.some_lines_lost,
        (
            "clean_k39",
            "clean_tv2",
            "synthetic_base_k39",
            "synthetic_base_tv2",
            "tid_expiration_k39",
            "fence_same_id_k39",
            "state_expired_k39",
            "dialects_tombstone_k23",
        ),
    ),
    # Nor is a marker missing whose record line was cut, nor data visible where the index of a segment without a name is not known.
    "some_lines_cut": (
        reshaped.some_lines_cut,
        ("clean_k40", "clean_tv2", "synthetic_base_tv2", "timeout_comeback_tv2", "state_expired_k39"),
    ),
    # An index or a snapshot that was longer on the disk is not known, and names no transaction and no producer that it does not show.
    "entries_lost": (listed.entries_lost, ("clean_k39", "clean_tv2", "timeout_comeback_tv2", "synthetic_base_tv2")),
    # Of a value that is no text nobody can tell whether another one is the same.
    "binary_values": (reshaped.binary_values, ("clean_tv2", "syn_dup_batch")),
    "without_records": (
        reshaped.without_records,
        # Of the second and the third the times, or the epochs, put markers to decisions that are not theirs.
        ("hanging_txn_k39", "repro_backdated_open_tv0", "syn_coord_epoch_back", "syn_txnindex_entry_removed"),
    ),
}
CASES = [(name, change) for change, (_, names) in FEWER.items() for name in names]


def dumps_of_tests(folder: Path) -> Part:
    """Each input as it is (`NAME.as_is`) and with fewer sources: folders and clusters so called."""
    for name, change in CASES:
        together.as_it_is(DUMPS / name, folder / f"{name}.as_is")
        reshaped.copied(DUMPS / name, folder / f"{name}.{change}")
        FEWER[change][0](folder / f"{name}.{change}")
    return Part([folder / f"{name}.{how}" for name, change in CASES for how in ("as_is", change)])


def told(found: list[Finding]) -> dict[tuple[object, ...], Finding]:
    """Findings above info, by what is told."""
    return {(f.rule, f.topic, f.partition, f.producer_id, f.first_offset, f.last_offset): f for f in found if f.severity != "info"}


@pytest.fixture(scope="module")
def said(one_audit: Together) -> Mapping[str, Said]:
    return one_audit.said


@pytest.mark.parametrize(("name", "change"), CASES)
def test_fewer_sources_accuse_nobody_and_acquit_nobody(said: Mapping[str, Said], name: str, change: str) -> None:
    fewer, whole = said[f"{name}.{change}"], said[f"{name}.as_is"]
    assert not fewer.crashed
    assert told(fewer.findings).keys() <= told(whole.findings).keys()
    lost = {rule for rule, *_ in told(whole.findings).keys() - told(fewer.findings).keys() if not BY_CODE[str(rule)].informs}
    assert lost <= {code for code, _, _ in fewer.unknowns}


def test_a_resend_is_found_without_any_index(said: Mapping[str, Said]) -> None:
    """Where nobody says which index files exist, nobody knows what consumers skip; what was written twice is written twice."""
    assert "P12" in {finding.rule for finding in said["zombie_different_id_tv2.only_logs"].findings}


def test_values_that_are_no_text_were_printed_all_the_same(one_audit: Together) -> None:
    logs = [log for log in one_audit.context.logs.values() if log.cluster == "clean_tv2.binary_values" and not log.topic.startswith("__")]
    lacks = [unknown(BY_CODE["P12"], log, one_audit.context) for log in logs]
    assert {item and item.because for item in lacks} == {"payload_no_text"}
    covered = one_audit.results.rows("coverage", cluster="clean_tv2.binary_values")
    assert covered and not [row for row in covered if str(row["reason"]).startswith(UNREAD)], "all of it was read"


def test_lines_that_are_missing_from_the_beginning_are_missed(one_audit: Together) -> None:
    """Of a text that was cut at its head, by `tail` or a log collector that keeps the newest lines."""
    cut = {f"{name}.without_first_lines" for name in FEWER["without_first_lines"][1]}
    found = {str(row["cluster"]) for row in one_audit.results.rows("coverage", state="lines_missing")}
    lossy = (".without_first_lines", ".some_lines_lost", ".some_lines_cut", *(f"-{label_of(how)}" for how, _ in LOST_LINES.values()))
    assert cut <= found and all(name.endswith(lossy) for name in found)
    why = {why for name in cut for _, why, _ in one_audit.said[str(name)].unknowns}
    assert "missing_segments" in why


def test_without_record_lines_nothing_is_said_of_what_consumers_get(said: Mapping[str, Said]) -> None:
    shallow = said["syn_txnindex_entry_removed.without_records"]
    assert not {finding.rule for finding in shallow.findings} & {"L02", "L03", "S02"}
    assert {("L02", "shallow"), ("L03", "shallow"), ("S02", "shallow")} <= {(code, why) for code, why, _ in shallow.unknowns}


def test_what_a_decoder_could_not_read_is_unknown_and_said(one_audit: Together) -> None:
    said = one_audit.said["clean_tv2.other_decoder"]
    assert {("C03", "no_coordinator"), ("T01", "no_coordinator"), ("O02", "offsets_not_decoded")} <= {
        (code, why) for code, why, _ in said.unknowns
    }
    assert "other_coordinator" not in {why for _, why, _ in said.unknowns}
    spans = one_audit.results.rows("unread_spans", reason="undecoded_record")
    sections = {row["section_id"]: str(row["cluster"]) for row in one_audit.results.rows("section_status")}
    changed_so = {f"{name}.{change}" for name, change in CASES if change in ("other_decoder", "some_undecoded")}
    assert {sections[row["section_id"]] for row in spans} == changed_so
