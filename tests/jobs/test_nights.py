"""Several dumps of one broker in one --out: what retention deleted between them is no loss, whichever way they come in."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

import pytest

from eo_audit.report.results import Results
from eo_audit.report.show import show
from eo_audit.store.upkeep import superseded
from tests.support.nights import Night, make
from tests.support.together import Part, Together

LOG = "payments-0"
MONDAY, WEDNESDAY = 1795234567425, 1795234583156  # offsets 0 to 9 of the log are there, two transactions open; all 74
CUT_OFF = 1795234567440  # offset 10 is there, which ends one of them
MON = Night(MONDAY, {LOG: (0, 4)})
WED = Night(WEDNESDAY, {LOG: (18, 44)})
LACKS = Night(WEDNESDAY, {LOG: (0, 4, 18, 44)}, without={LOG: (4,)})
BROUGHT = replace(LACKS, at_ms=WEDNESDAY + 60_000, without={LOG: (0, 18, 44)})


@dataclass(frozen=True)
class Case:
    """Dumps of some nights, and what is known of the log after all of them.

    `order_needs`: nothing says which night came last, and what is said to tell; `in_folders`: they are folders of one input; `is_empty`:
    nothing is left of the log.
    """

    nights: tuple[Night, ...]
    log_start: int | None
    states: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    order_needs: str | None = None
    in_folders: bool = False
    is_empty: bool = False


def silent(night: Night) -> Night:
    return replace(night, says_when=False)


def with_listing(night: Night) -> Night:
    return replace(night, listed=True)


def cleaned(night: Night, below: int) -> Night:
    return replace(night, cleaned={LOG: below}, listed=True)


CASES = {
    "a night was missed": Case((MON, WED), 18, ("not_observed",)),
    "the same, with listings": Case((with_listing(MON), with_listing(WED)), 18, ("not_observed",)),
    "no time, a listing above": Case((silent(MON), with_listing(silent(WED))), 18, ("not_observed",)),
    "no time, a log start above": Case((silent(MON), replace(silent(WED), log_start={LOG: 18})), 18, ("not_observed",)),
    # Retention took all, and nothing was written since: the newest segment is empty.
    "all was deleted": Case((MON, replace(WED, bases={LOG: (74,)})), 74, ("not_observed",), is_empty=True),
    "all was deleted, and nobody says when": Case(
        (silent(MON), replace(silent(WED), bases={LOG: (74,)})), None, ("unordered",), order_needs="listing.txt", is_empty=True
    ),
    # Of a topic with cleanup.policy=compact,delete what lies below the newer log's start was deleted, whatever the cleaner did there.
    "a night was missed, of a compacted topic": Case(
        (cleaned(MON, 4), cleaned(WED, 18)), 18, ("not_observed",)
    ),
    "all was deleted, of a compacted topic": Case(
        (cleaned(MON, 4), cleaned(replace(WED, bases={LOG: (74,)}), 74)), 74, ("not_observed",), is_empty=True
    ),
    "no night was missed": Case((MON, replace(WED, bases={LOG: (4, 12, 18, 44)})), 4),
    "the head is still there": Case((MON, replace(WED, bases={LOG: (0, 4, 12, 18, 44)})), 0),
    "two nights were missed": Case(
        (replace(MON, at_ms=1795234567200, bases={LOG: (0,)}), Night(MONDAY, {LOG: (6,)}), WED), 18, ("not_observed",) * 2
    ),
    "the log start within a segment": Case((MON, replace(WED, log_start={LOG: 30})), 30, ("not_observed",)),
    "a segment that one dump lacked is brought later": Case((LACKS, BROUGHT), 0),
    # What no time, no listing and no log start tells may be lost, or deleted.
    "nobody says when": Case((silent(MON), silent(WED)), None, ("unordered",), order_needs="listing.txt"),
    "the newer came first": Case((silent(WED), silent(MON)), None, ("unordered",), order_needs="listing.txt"),
    "one of two says when": Case((MON, silent(WED)), None, ("unordered",), order_needs="listing.txt"),
    "listings that do not tell": Case(
        (with_listing(silent(MON)), with_listing(silent(WED))), None, ("unordered",), order_needs="dumped_at"
    ),
    "folders of one input": Case((silent(MON), silent(WED)), None, ("unordered",), order_needs="listing.txt", in_folders=True),
    "a log start below what is missing": Case(
        (silent(MON), replace(silent(WED), log_start={LOG: 6})), None, ("unordered",), order_needs="listing.txt"
    ),
    # What one dump lacks may be lost, whatever another one shows.
    "nobody says when, and one lacks a segment": Case((replace(silent(MON), bases={LOG: (4,)}), silent(LACKS)), 0, ("hole",), ("R04",)),
    "nobody says when, and the upper one has a hole": Case(
        (silent(MON), replace(silent(WED), bases={LOG: (18, 44, 59)}, without={LOG: (44,)})), None, ("hole", "unordered"), ("R04",)
    ),
    "one dump lacks a segment": Case((LACKS,), 0, ("hole",), ("R04",)),
    "the newer dump lacks a segment above": Case(
        (MON, replace(WED, bases={LOG: (18, 44, 59)}, without={LOG: (44,)})), 18, ("hole", "not_observed"), ("R04",)
    ),
    "still listed, and not dumped": Case(
        (MON, Night(WEDNESDAY, {LOG: (0, 4, 12, 18, 44)}, listed=True, without={LOG: (0, 4, 12)})), 0, ("segment_missing",)
    ),
}  # fmt: skip
AT_ONCE, BY_NIGHT = "in one run", "night by night"
HIDDEN = Night(CUT_OFF, {LOG: (8,)})  # its log begins behind an open transaction
TIERED = replace(HIDDEN, listed=True, log_start={LOG: 0})  # what lies before was moved to remote storage
PERHAPS_TIERED = replace(HIDDEN, log_start={LOG: 0})  # or the broker has it, and it was left out
# Offsets 6 and 7 are of a transaction that was open on both nights; 8 and 9 nobody dumped.
BEGUN = Night(1795234567415, {LOG: (0,)})
PINNED = replace(HIDDEN, bases={LOG: (10,)})
COORDINATORS = {f"__transaction_state-{n}": (0,) for n in range(3)}
# What the coordinator said on the first night need not be so on the second.
UNTOLD = replace(PINNED, without=COORDINATORS)


# Between the nights a leader was elected that had offsets 0 to 5 only.
REPLICATED = Night(MONDAY, {LOG: (0,)}, hw={LOG: 10}, is_timed=True)
LED_ANEW = Night(WEDNESDAY, {LOG: (0,)}, led_anew_from={LOG: 6}, is_timed=True)
FORKS = {
    "lost-since": (REPLICATED, LED_ANEW),
    "not-replicated": (replace(REPLICATED, hw={LOG: 6}), LED_ANEW),
    "led-on": (REPLICATED, replace(LED_ANEW, led_anew_from={LOG: 10})),
    "created-anew": (replace(REPLICATED, topic_id="A" * 22), replace(LED_ANEW, topic_id="B" + "A" * 21)),
    # Before 2.8 no topic has an id.
    "created-anew-without-id": (replace(REPLICATED, bases={LOG: (0, 4)}), replace(LED_ANEW, is_anew=True)),
    # That leader has written less than was lost; the listing shows no segment behind.
    "cut-off": (replace(REPLICATED, bases={LOG: (0, 8)}, listed=True), replace(LED_ANEW, ends={LOG: 8}, listed=True)),
}
# On the second night the broker has no such log, and says so in its listing and its checkpoint; or says nothing.
THERE = Night(MONDAY, {}, listed=True, hw={LOG: 10, "orders-0": 4})
REMOVALS = {
    "removed": (THERE, replace(THERE, at_ms=WEDNESDAY, hw={"orders-0": 4}, removed=(LOG,))),
    "left-out": (THERE, replace(THERE, at_ms=WEDNESDAY, hw={"orders-0": 4}, removed=(LOG,), listed=False)),
}


def cluster_of(how: str, name: str) -> str:
    return f"{name} {how}".replace(" ", "-").replace(",", "")


def dumps_of_tests(folder: Path) -> Part:
    """Two clusters for each case: the dumps of one come in together, those of the other night by night."""
    made = dict[str, list[list[Path]]]()
    for how in (AT_ONCE, BY_NIGHT):
        made[how] = [
            [
                make(night, folder / cluster_of(how, name) / f"night-{n}", cluster=cluster_of(how, name))
                for n, night in enumerate(case.nights)
            ]
            for name, case in CASES.items()
        ]
    cases = zip(CASES.values(), made[AT_ONCE], strict=True)
    inputs = [path for case, paths in cases for path in ([paths[0].parent] if case.in_folders else paths)]
    headless = {"hidden": HIDDEN, "tiered": TIERED, "perhaps-tiered": PERHAPS_TIERED}
    at_once = [*inputs, *(make(night, folder / name, cluster=name) for name, night in headless.items())]
    for name, nights in {"pinned": (BEGUN, PINNED), "pinned-untold": (BEGUN, UNTOLD), **FORKS, **REMOVALS}.items():
        at_once += [make(night, folder / name / f"night-{n}", cluster=name) for n, night in enumerate(nights)]
    by_night = [[path for path in night if path] for night in zip_longest(*made[BY_NIGHT])]
    return Part(at_once, later=by_night)


@pytest.fixture
def results(one_audit: Together) -> Results:
    return one_audit.results


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("how", [AT_ONCE, BY_NIGHT])
def test_what_is_known_of_a_log_after_some_nights(results: Results, how: str, name: str) -> None:
    cluster, case = cluster_of(how, name), CASES[name]
    of_log = {"cluster": cluster, "topic": "payments", "partition": 0}
    states = [row["state"] for row in results.rows("coverage", **of_log) if row["state"] != "covered"]
    assert sorted(states) == sorted(case.states)
    (seen,) = results.rows("visibility", **of_log)
    assert (seen["log_start"], seen["leo"]) == (case.log_start, 74)
    if case.order_needs:
        is_told_once(results, cluster, case.order_needs)
    failing = {f["rule"] for f in results.findings if f["cluster"] == cluster and f["severity"] in ("critical", "error")}
    if case.rules or "segment_missing" in states:
        assert set(case.rules) <= failing
        return
    assert not failing
    assert (seen["lso"], seen["coverage"]) == ((None, "partial") if case.order_needs else (74, "full"))
    ranges = results.rows("visible_ranges", **of_log)
    if case.is_empty:
        assert not ranges
        return
    # Without an LSO nobody knows what read_committed consumers get.
    views = {"read_uncommitted", "truth_committed"} | (set() if case.order_needs else {"read_committed"})
    assert {row["view"] for row in ranges} == views
    assert min(row["first_offset"] for row in ranges) >= (18 if case.log_start is None else case.log_start)


def is_told_once(results: Results, cluster: str, needs: str) -> None:
    """Nobody knows log start and LSO; what would tell is asked for, and nothing that the dumps hold already."""
    (log,) = [row for row in results.verdict["partitions"] if (row["cluster"], row["topic"], row["partition"]) == (cluster, "payments", 0)]
    assert (log["log_start"], log["lso"], log["blocker"]) == (None, None, None)
    assert "nothing says which one is newer" in log["lso_unknown_why"]
    found = [f["message"] for f in results.findings if (f["cluster"], f["rule"]) == (cluster, "R07")]
    (message,) = [str(message) for message in found if "between two dumps" in str(message)]
    assert "dumped_at" in message
    assert ("listing.txt" in message) is (needs == "listing.txt")


@pytest.mark.parametrize("how", [AT_ONCE, BY_NIGHT])
def test_a_missed_night_alone_passes(one_audit: Together, how: str) -> None:
    """No rule fails, none is unknown that the policy minds, and every LSO is known."""
    cluster = cluster_of(how, "a night was missed")
    assert one_audit.said[cluster].unknowns == []
    assert None not in [row["lso"] for row in one_audit.results.verdict["partitions"] if row["cluster"] == cluster]
    (found,) = [f for f in one_audit.results.findings if f["cluster"] == cluster]
    assert (found["rule"], found["severity"]) == ("R07", "info")
    assert "deleted before they were ever dumped" in str(found["message"])


def test_the_lso_of_a_log_whose_head_hides_an_open_transaction_is_null(results: Results) -> None:
    """Offsets 6 and 7 were written by a transaction that is still open; the dump begins at 8, with a transaction that ends at 10."""
    verdict = results.verdict
    (log,) = [row for row in verdict["partitions"] if (row["cluster"], row["topic"], row["partition"]) == ("hidden", "payments", 0)]
    assert (log["log_start"], log["leo"], log["lso"], log["lso_source"]) == (8, 11, None, None)
    assert "log start, 8" in log["lso_unknown_why"]
    assert not [f for f in results.findings if f["cluster"] == "hidden" and f["severity"] in ("critical", "error")]
    said = [item["why"] for item in verdict["unknowns"] if item["because"] == "lso_unknown"]
    assert sum(why.startswith("The coordinator holds transactions open on payments-0") for why in said) == 1


def of_log(results: Results, cluster: str) -> dict[str, object]:
    """What the verdict says of the log."""
    logs = results.verdict["partitions"]
    (log,) = [row for row in logs if (row["cluster"], row["topic"], row["partition"]) == (cluster, "payments", 0)]
    return log


def test_an_open_transaction_of_an_earlier_night_pins_the_lso_to_the_log_start(results: Results) -> None:
    """Its records were deleted, and the coordinator holds it open: nothing else of what is left shows it."""
    log = of_log(results, "pinned")
    assert (log["log_start"], log["leo"], log["lso"], log["lso_source"]) == (10, 11, 10, "coordinator")
    blocker = log["blocker"]
    assert isinstance(blocker, dict)
    assert (blocker["producer_id"], blocker["first_offset"], blocker["coordinator_status"]) == (1, 6, "Ongoing")
    (found,) = [f for f in results.findings if (f["cluster"], f["rule"], f["topic"]) == ("pinned", "L04", "payments")]
    assert (found["severity"], found["certainty"], found["producer_id"], found["first_offset"]) == ("error", "likely", 1, 6)
    assert len(found["evidence"]) == 1  # type: ignore[arg-type]


def test_what_the_coordinator_said_on_an_earlier_night_pins_nothing(results: Results) -> None:
    """Its marker may stand at offset 8 or 9."""
    log = of_log(results, "pinned-untold")
    assert (log["log_start"], log["lso"], log["lso_source"], log["blocker"]) == (10, None, None, None)
    assert not [f for f in results.findings if f["cluster"] == "pinned-untold" and f["severity"] in ("critical", "error")]


def test_without_a_listing_the_head_of_a_tiered_log_may_hide_one(results: Results) -> None:
    """The broker may have had offsets 6 and 7, and somebody left them out."""
    logs = results.verdict["partitions"]
    (log,) = [row for row in logs if (row["cluster"], row["topic"], row["partition"]) == ("perhaps-tiered", "payments", 0)]
    assert (log["log_start"], log["leo"], log["lso"], log["lso_source"]) == (0, 11, None, None)


def test_with_tiered_storage_no_head_hides_an_open_transaction(results: Results) -> None:
    """Brokers move nothing that is open: what the coordinator lists, and the dump does not show, has written nothing there yet."""
    logs = results.verdict["partitions"]
    (log,) = [row for row in logs if (row["cluster"], row["topic"], row["partition"]) == ("tiered", "payments", 0)]
    assert (log["log_start"], log["leo"], log["lso"], log["lso_source"], log["coverage"]) == (0, 11, 11, "replay", "partial")
    (found,) = [f["message"] for f in results.findings if (f["cluster"], f["rule"], f["topic"]) == ("tiered", "R07", "payments")]
    assert str(found).startswith("Older segments lie in remote storage (KIP-405), where kafka-dump-log does not look: offsets 0 to 7")


def test_what_was_replicated_on_an_earlier_night_and_is_no_more_was_lost(results: Results) -> None:
    """Both lines prove it: the last one of then, and the first one of another leader."""
    found, cut_off = sorted(
        (f for f in results.findings if f["cluster"] in FORKS and f["rule"] == "R01"), key=lambda f: f["cluster"] == "cut-off"
    )
    assert (found["cluster"], found["severity"], found["certainty"]) == ("lost-since", "critical", "definite")
    assert (cut_off["cluster"], cut_off["first_offset"], cut_off["last_offset"]) == ("cut-off", 6, 9)
    (log,) = results.rows("visibility", cluster="cut-off", topic="payments", partition=0)
    assert (log["leo"], log["coverage"]) == (8, "full")
    assert (found["topic"], found["partition"], found["first_offset"], found["last_offset"]) == ("payments", 0, 6, 9)
    assert "leader epoch 7 from offset 6 on" in str(found["message"])
    lines = {quoted.split(" partitionLeaderEpoch: ")[1][0]: quoted for quoted in evidence_of(results, found)}
    assert sorted(lines) == ["0", "7"]
    assert (lines["7"].startswith("baseOffset: 6 "), " lastOffset: 9 " in lines["0"]) == (True, True)


def evidence_of(results: Results, finding: Mapping[str, object]) -> list[str]:
    """The lines behind a finding, as the report quotes them and as `eo-audit show` does."""
    quoted = []
    for item in finding["evidence"]:  # type: ignore[attr-defined]
        said = show(f"{item['dump_file']}@{item['byte_offset']}", results.warehouse, cluster=str(finding["cluster"]))
        assert results.quote(str(finding["cluster"]), item) == "\n".join(said.lines)
        quoted.append(said.lines[0])
    return quoted


def test_of_a_topic_that_was_created_anew_nothing_older_is_read(results: Results) -> None:
    """Though its files say when each was dumped, after the time at which the collection began, which the ids have."""
    for cluster, older in (("created-anew", 1), ("created-anew-without-id", 2)):
        kept = results.rows("section_status", cluster=cluster, topic="payments", partition=0, kind="log")
        assert sorted((row["is_read"], row["supersession_reason"]) for row in kept) == [(False, "created_anew")] * older + [(True, None)]


def test_of_a_log_that_its_broker_no_longer_has_nothing_is_told(results: Results) -> None:
    """Its topic was deleted while a transaction was open there: nobody waits for it any more, and `prune` may take its facts."""
    (still,) = results.rows("visibility", cluster="left-out", topic="payments", partition=0)
    assert (still["lso"], still["leo"]) == (6, 10)
    assert results.rows("open_transactions", replica_log_id=still["replica_log_id"])
    for table in ("visibility", "coverage"):
        assert not results.rows(table, cluster="removed", topic="payments", partition=0)
    assert not [f for f in results.findings if f["cluster"] == "removed" and f["topic"] == "payments"]
    (status,) = results.rows("section_status", cluster="removed", topic="payments", partition=0, kind="log")
    for table in ("open_transactions", "transaction_spans"):
        assert not results.rows(table, replica_log_id=status["replica_log_id"])
    (listing,) = results.rows("section_status", section_id=status["superseded_by"])
    assert (status["supersession_reason"], listing["kind"], listing["is_read"]) == ("removed", "listing", True)


def test_prune_keeps_a_listing_as_long_as_a_segment_of_its_dump_is_read(results: Results) -> None:
    """It alone tells that a segment which retention took away since had no aborted index. That of a dump that is all replaced goes."""
    gone = {file.dump_file_id for file in superseded(results.warehouse, keep_ms=0)}
    older = {row["cluster"]: row for row in results.rows("section_status", kind="listing") if row["superseded_by"] is not None}
    assert older["removed"]["dump_file_id"] in gone
    for how in (AT_ONCE, BY_NIGHT):
        assert older[cluster_of(how, "the same, with listings")]["dump_file_id"] not in gone
