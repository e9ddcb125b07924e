"""Short stories of one transactional id, and what the replay says of their last entry."""

import random
from dataclasses import replace
from functools import cache

import pytest

from eo_audit.model.coordinator import Step, replay
from eo_audit.model.entries import Entry
from eo_audit.model.instances import Instance, instances
from eo_audit.model.states import COMPLETE, ONGOING, PREPARED
from tests.support.coordinator_ghosts import ghost_life
from tests.support.coordinator_logs import CLUSTERS, Cluster

A, B, C = ("orders", 0), ("orders", 1), ("orders", 2)


def story(text: str, *, json: bool = True) -> list[Entry]:
    """Entries written as "state epoch", with a pid after @, partitions after a space, a start after ^; 10 ms apart."""
    entries = []
    for place, words in enumerate(text.split(", ")):
        state, *more = words.split(" ")
        fields: dict[str, object] = {"producer_id": 1, "timeout_ms": 1_000, "last_update_ms": place * 10, "batch_ms": place * 10 + 1}
        if json:
            fields["start_ms"] = -1 if state == "Empty" else 10
        for word in more:
            mark, value = word[0], word[1:]
            names = {"@": "producer_id", "^": "start_ms", "T": "timeout_ms", "v": "client_version", "u": "last_update_ms"}
            if mark in names:
                fields[names[mark]] = int(value)
            elif mark == "[":
                fields["partitions"] = frozenset({"A": A, "B": B, "C": C}[name] for name in value[:-1])
            else:
                fields["epoch"] = int(word)
        entries.append(Entry(place, state, **fields))  # type: ignore[arg-type]
    if not json:
        return entries
    return entries


def last(text: str, version: int | None = 0, *, json: bool = True, kafka: str | None = "3.9.1") -> Step:
    return replay(story(text, json=json), version, kafka_version=kafka)[-1]


STEPS = [
    # story, transaction.version, step and reason
    ("Empty 0", 0, "first", None),
    ("Empty 0, Ongoing 0 [A]", 0, "legal", None),
    ("Ongoing 0 [A], Ongoing 0 [AB]", 0, "legal", None),
    ("Empty 0, Ongoing 0 [AB], Ongoing 0 [A]", 0, "legal", None),  # same start: a shrunken list, which field_change reports
    ("Ongoing 0 [AB] ^10, Ongoing 0 [A] ^20", 0, "ghost", None),
    ("Ongoing 0 [A] ^10, Ongoing 0 [A] ^20", 0, "ghost", None),
    ("Ongoing 0 [A], PrepareCommit 0 [A]", 0, "legal", None),
    ("PrepareCommit 0 [A], CompleteCommit 0", 0, "legal", None),
    ("PrepareCommit 0 [A], PrepareCommit 0 [A]", 0, "ghost", None),
    ("PrepareCommit 0 [A], PrepareCommit 1 [A]", 0, "illegal", "not_in_table"),
    ("PrepareCommit 0 [A], PrepareAbort 1 [A]", 0, "ghost", None),
    ("PrepareAbort 0 [A], PrepareAbort 1 [A]", 0, "ghost", None),
    ("PrepareAbort 1 [A], PrepareAbort 1 [A]", 2, "ghost", None),
    ("CompleteAbort 0, PrepareAbort 0 [A], PrepareCommit 0 [A]", 0, "illegal", "not_in_table"),
    ("CompleteCommit 0 u5, CompleteCommit 0 u5", 0, "ghost", None),
    ("CompleteCommit 0, CompleteCommit 0", 0, "illegal", "double_complete"),
    ("Ongoing 0 [A], CompleteCommit 0", 0, "illegal", "not_in_table"),
    ("PrepareCommit 0 [A], CompleteAbort 0", 0, "illegal", "not_in_table"),
    ("Empty 0, PrepareCommit 0 [A]", 0, "illegal", "not_in_table"),
    ("Empty 0 v2, PrepareAbort 1 v2", 2, "legal", None),
    ("CompleteCommit 1 v2, PrepareAbort 2 v2", 2, "legal", None),
    ("CompleteCommit 1 v2, PrepareAbort 2 [A] v2", 2, "illegal", "not_in_table"),
    ("CompleteCommit 1, PrepareAbort 2 [A]", None, "illegal", "not_in_table"),
    ("Empty 0, PrepareAbort 1", 0, "illegal", "not_in_table"),
    ("Ongoing 0 [A], PrepareEpochFence 1 [A]", 0, "illegal", "transient_state"),
    ("Ongoing 0 [A], PrepareEpochFence 1 [A], PrepareAbort 1 [A]", 0, "legal", None),
    ("Empty 0, Dead 0", 0, "illegal", "transient_state"),
    ("Empty 0, Unknown(9) 0", 0, "illegal", "unknown_state"),
    ("Unknown(9) 0, Ongoing 0 [A]", 0, "first", None),
    ("CompleteCommit 0, Tombstone", 0, "legal", None),
    ("Ongoing 0 [A], Tombstone", 0, "illegal", "tombstone_while_open"),
    ("CompleteCommit 3, Tombstone, Empty 0 @2", 0, "legal", None),
    ("CompleteCommit 3, Tombstone, Ongoing 3 [A]", 0, "ghost", None),
    ("CompleteCommit 3, Tombstone, Empty 4", 0, "ghost", None),
    ("CompleteCommit 3, Tombstone, Ongoing 0 @2 [A]", 0, "illegal", "not_in_table"),
]


@pytest.mark.parametrize(("text", "version", "step", "reason"), STEPS)
def test_steps(text: str, version: int, step: str, reason: str | None) -> None:
    found = last(text, version)
    assert (found.step, found.step_reason) == (step, reason)


# Story, protocol, where its last entry goes on, and what did not count. The second and the third were seen on real brokers.
GHOSTS = [
    ("Empty 0, Ongoing 0 [A], Ongoing 0 [AB], Ongoing 0 [AC]", 0, 1, (2,)),
    ("Empty 0, Ongoing 0 [A], Ongoing 0 [AB], Ongoing 0 [AC], PrepareAbort 1 [A]", 0, 1, (2, 3)),
    ("Empty 0, Ongoing 0 [A], PrepareAbort 1 [A], PrepareAbort 1 [A], PrepareCommit 0 [A]", 0, 1, (2, 3)),
    ("Empty 0 v2, Ongoing 0 [A] v2, PrepareAbort 1 [A] v2, PrepareCommit 1 [A] v2", 2, 1, (2,)),
    ("Empty 0, Ongoing 0 [A], PrepareCommit 0 [A], Ongoing 0 [AB]", 0, 1, (2,)),
    ("Empty 0, Ongoing 0 [A], Empty 1", 0, 0, (1,)),
    ("CompleteCommit 0, Ongoing 0 [A], Ongoing 0 [B] ^20, Empty 1, Ongoing 0 [A] ^40", 0, 0, (1, 2, 3)),
    ("Empty 0, Ongoing 0 [A] ^10, Ongoing 0 [B] ^20", 0, 0, (1,)),
    # The first entry in sight did not count, and what it went on from was compacted away.
    ("Ongoing 0 [AB], PrepareAbort 1 [A]", 0, None, (0,)),
    ("Ongoing 4 [A] ^0, Empty 5", 0, None, (0,)),
    ("PrepareAbort 1 [A], PrepareCommit 0 [A]", 0, None, (0,)),
]


@pytest.mark.parametrize(("text", "version", "origin", "uncounted"), GHOSTS)
def test_a_step_is_judged_from_the_entry_it_can_have_come_from(
    text: str, version: int, origin: int | None, uncounted: tuple[int, ...]
) -> None:
    found = last(text, version)
    assert (found.step, found.step_reason, found.epoch_step, found.field_change) == ("ghost", None, "ok", None)
    assert (found.origin and found.origin.offset, found.uncounted) == (origin, uncounted)


NO_GHOSTS = [
    ("Empty 0, Ongoing 0 [A], CompleteCommit 0", "illegal", "ok", None),  # a skipped decision
    ("Empty 5, Ongoing 5 [A], PrepareCommit 5 [A], CompleteCommit 5, Empty 3", "legal", "regression", None),
    ("Empty 5, Ongoing 5 [A], PrepareCommit 4 [A]", "legal", "regression", None),
    ("Empty 0, Ongoing 0 [A], PrepareAbort 1 [A], PrepareCommit 0 [A] T5", "illegal", "regression", None),
    ("Empty 0, Ongoing 0 [AB], PrepareCommit 0 [A]", "legal", "ok", "prepare_partitions"),
    ("Empty 0, Ongoing 0 [AB], Ongoing 0 [ABC], PrepareCommit 0 [A]", "legal", "ok", "prepare_partitions"),
    ("Empty 0, Ongoing 0 [A], Ongoing 0 [AB], PrepareCommit 0 [A] ^11", "legal", "ok", "prepare_partitions"),
    # What went on from a later entry shows that this one counted: it is passed and cannot be gone on from.
    ("Empty 0, Ongoing 0 [A], PrepareCommit 0 [A], CompleteCommit 0, PrepareAbort 1 [A]", "illegal", "ok", None),
    (
        "Empty 0, Ongoing 0 [A], PrepareCommit 0 [A], CompleteCommit 0, Ongoing 0 [B] ^50, PrepareAbort 1 [A]",
        "legal",
        "ok",
        "prepare_partitions",
    ),
    ("Empty 0, Ongoing 0 [A], PrepareCommit 0 [A], PrepareAbort 1 [A], CompleteCommit 0", "illegal", "regression", None),
    ("Empty 0, Ongoing 0 [A], Tombstone", "illegal", "not_judged", None),
    ("Ongoing 0 [A], PrepareCommit 0 [A], CompleteCommit 0, PrepareCommit 0 [A]", "illegal", "ok", None),
]


@pytest.mark.parametrize(("text", "step", "epoch_step", "change"), NO_GHOSTS)
def test_what_no_earlier_entry_explains(text: str, step: str, epoch_step: str, change: str | None) -> None:
    found = last(text)
    assert (found.step, found.epoch_step, found.field_change) == (step, epoch_step, change)


def test_an_id_that_was_idle_for_long_may_expire_behind_a_ghost() -> None:
    entries = story("Empty 0, Ongoing 0 [A], Tombstone")
    late = replace(entries[-1], batch_ms=604_800_001)
    assert replay([*entries[:-1], late], 0)[-1].step == "ghost"
    sooner = [*entries[:-1], replace(entries[-1], batch_ms=3_600_001)]
    assert replay(sooner, 0)[-1].step == "illegal"
    assert replay(sooner, 0, id_expires_ms=3_600_000)[-1].step == "ghost"


def test_what_did_not_count_says_nothing_of_the_transaction() -> None:
    found = only("Empty 0, Ongoing 0 [A], PrepareAbort 1 [A], PrepareAbort 1 [A], PrepareCommit 0 [A], CompleteCommit 0")
    assert (found.decision, found.marker_epoch, found.prepare_offset, found.partitions) == ("COMMIT", 0, 4, frozenset({A}))
    found = only("Empty 0, Ongoing 0 [A], Ongoing 0 [AB], Ongoing 0 [AC], PrepareAbort 1 [A]", json=False)
    assert (found.decision, found.start_ms, found.partitions) == ("ABORT", 10, frozenset({A}))
    found = only("Empty 0, Ongoing 0 [A], PrepareCommit 0 [A], Ongoing 0 [AB], PrepareCommit 0 [AB]", json=False)
    assert (found.start_ms, found.partitions) == (10, frozenset({A, B}))


def replayed(cluster: Cluster, log: list[Entry]) -> list[Step]:
    """The replay of a log of one id, by one who knows all of its cluster."""
    return replay(log, cluster.transaction_version, kafka_version=cluster.kafka_version, id_expires_ms=cluster.id_expires_ms)


@cache
def lives(cluster: Cluster, count: int, failing: float) -> list[list[Entry]]:
    """The logs of so many random coordinators, each of one id and 25 entries: made once, for all that is tried on them."""
    return [ghost_life(random.Random(f"{seed}/{cluster.name}"), cluster, 25, failing=failing).log for seed in range(count)]


@pytest.mark.parametrize("cluster", CLUSTERS, ids=lambda cluster: cluster.name)
@pytest.mark.parametrize("head", [0, 7])
def test_no_failing_append_makes_a_fault(cluster: Cluster, head: int) -> None:
    """Whatever a coordinator logs while appends fail is legal, from its first entry on or from where the cleaner left it."""
    ghosts = 0
    for seed, life in enumerate(lives(cluster, 250, 0.3)):
        log = life[head:]
        if not head:
            log[0] = replace(log[0], nothing_before=True)
        for step in replayed(cluster, log):
            assert step.step in ("first", "legal", "ghost"), (seed, step)
            assert step.epoch_step in ("ok", "not_judged") and step.field_change is None, (seed, step)
            ghosts += step.step == "ghost"
    assert ghosts > 1_000


def prepared(log: list[Entry]) -> list[int]:
    """Places of decisions of two partitions or more, each behind an Ongoing and before its completion."""
    middle = range(2, len(log) - 1)
    decided = [at for at in middle if log[at].status in PREPARED and len(log[at].partitions) > 1]
    return [at for at in decided if log[at - 1].status == ONGOING and log[at + 1].status in COMPLETE]


def dropped(log: list[Entry], at: int) -> frozenset[tuple[str, int]]:
    """The decision's list without one partition, or with another one; never that of an Ongoing entry of its run, which a ghost would be."""
    begin = next(place for place in range(at, 0, -1) if log[place - 1].status not in (ONGOING, *PREPARED))
    listed = {entry.partitions for entry in log[begin:at]}
    without = (log[at].partitions - {place} for place in sorted(log[at].partitions))
    return next((fewer for fewer in without if fewer not in listed), frozenset({("late", 3)}))


PLANTED = {
    "skipped decision": lambda log, at: log[:at] + log[at + 1 :],
    "regressed epoch": lambda log, at: [*log[:at], *(replace(e, epoch=(e.epoch or 0) - 40) for e in log[at : at + 1]), *log[at + 1 :]],
    "changed timeout": lambda log, at: [*log[:at], replace(log[at], timeout_ms=17), *log[at + 1 :]],
    "dropped partitions": lambda log, at: [
        *log[:at],
        replace(log[at], partitions=dropped(log, at)),
        *log[at + 1 :],
    ],
    "changed start": lambda log, at: [*log[:at], replace(log[at], start_ms=17), *log[at + 1 :]],
}


@pytest.mark.parametrize("failing", [0.0, 0.1])
@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(fault: str, failing: float) -> None:
    """Also where other appends failed: no earlier entry explains it."""
    tried = 0
    told = ((cluster, seed, log) for cluster in CLUSTERS if cluster.json for seed, log in enumerate(lives(cluster, 150, failing)))
    for cluster, seed, log in told:
        for at in prepared(log)[:1]:
            wrong = PLANTED[fault](log, at)
            wrong[0] = replace(wrong[0], nothing_before=True)
            found = replayed(cluster, wrong)
            odd = [s for s in found if s.step == "illegal" or s.epoch_step not in ("ok", "not_judged") or s.field_change]
            assert odd and odd[0].entry.offset in (log[at].offset, log[at + 1].offset), (seed, cluster.name)
            tried += 1
    assert tried > 100


EPOCH_STEPS = [
    ("Empty 0, Empty 1", 0, "3.9.1", "ok"),
    ("Empty 0, Empty 0", 0, "3.9.1", "ok"),
    ("Empty 5, Empty 3", 0, "3.9.1", "regression"),
    ("CompleteCommit 1, Empty 6", 0, "3.9.1", "jump"),
    ("Ongoing 1 [A], PrepareAbort 3 [A]", 0, "3.9.1", "jump"),
    ("Ongoing 1 [A], PrepareAbort 3 [A]", 0, "2.3.1", "ok"),  # KAFKA-9666
    ("Ongoing 1 [A] v2, PrepareAbort 3 [A] v2", 2, "4.0.0", "ok"),  # KAFKA-19367
    ("Ongoing 1 [A] v2, PrepareAbort 4 [A] v2", 2, "4.0.0", "jump"),
    ("Ongoing 1 [A], PrepareCommit 1 [A], CompleteCommit 1, Ongoing 1 [A], PrepareAbort 3 [A]", 2, "4.0.0", "ok"),  # of an old client
    ("Ongoing 1 [A], PrepareCommit 1 [A], CompleteCommit 1, Ongoing 1 [A], PrepareAbort 4 [A]", 2, "4.0.0", "jump"),
    ("Ongoing 1 [A], PrepareCommit 1 [A], CompleteCommit 1, Ongoing 1 [A], PrepareAbort 3 [A]", 1, "4.0.0", "jump"),
    ("Ongoing 1 [A], PrepareCommit 2 [A]", 0, "3.9.1", "jump"),  # only a fence raises it
    ("Ongoing 1 [A] v2, PrepareCommit 2 [A] v2", 2, "4.0.0", "ok"),
    ("Ongoing 1 [A] v2, PrepareCommit 3 [A] v2", 2, "4.0.0", "jump"),
    ("CompleteAbort 32767, Empty 0 @2", 0, "3.9.1", "ok"),
    ("CompleteCommit 7, Empty 7 @2", 0, "3.9.1", "pid_change_epoch_not_zero"),
    ("CompleteCommit 7, Tombstone, Empty 0 @2", 0, "3.9.1", "not_judged"),
    ("Empty 7", 0, "3.9.1", "not_judged"),
]


@pytest.mark.parametrize(("text", "version", "kafka", "epoch_step"), EPOCH_STEPS)
def test_epoch_steps(text: str, version: int, kafka: str, epoch_step: str) -> None:
    assert last(text, version, kafka=kafka).epoch_step == epoch_step


FIELD_CHANGES = [
    ("Ongoing 0 [A], PrepareCommit 0 [A]", None),
    ("Empty 0, Empty 1 T2000", None),
    ("Empty 0, Ongoing 0 [A] T2000", "timeout"),
    ("Empty 0, Ongoing 0 [AB], Ongoing 0 [A]", "partitions_shrank"),
    ("Ongoing 0 [A], PrepareCommit 0 [AB]", "prepare_partitions"),
    ("Ongoing 0 [A] ^10, PrepareCommit 0 [A] ^11", "start"),
    ("CompleteCommit 0, Empty 1 [A]", "empty_partitions"),
    ("PrepareCommit 0 [A], CompleteCommit 0 [A]", "complete_partitions"),
    ("PrepareCommit 0 [A], CompleteCommit 1", "epoch"),
    ("CompleteCommit 0, Ongoing 1 [A]", "epoch"),
    ("CompleteCommit 9, Ongoing 0 [A]", None),  # a regression says it already
    ("PrepareAbort 32767 [A], CompleteAbort 0 @2", None),  # overflow: the next producer id takes over
]


@pytest.mark.parametrize(("text", "change"), FIELD_CHANGES)
def test_field_changes(text: str, change: str | None) -> None:
    assert last(text).field_change == change


@pytest.mark.parametrize(
    ("text", "version", "json", "protocols"),
    [
        ("Empty 0, Ongoing 0 [A] v2, PrepareCommit 1 [A] v2, CompleteCommit 1 v2", 2, True, "tv2 tv2 tv2 tv2"),  # Empty does not say
        ("Empty 0, Ongoing 0 [A], PrepareCommit 0 [A]", 2, True, "tv0 tv0 tv0"),  # an old client on a new broker
        ("Empty 0, Ongoing 0 [A], PrepareCommit 1 [A]", None, False, "tv2 tv2 tv2"),
        ("Empty 0, Ongoing 0 [A], PrepareAbort 0 [A]", None, False, "tv0 tv0 tv0"),
        ("Empty 0, Ongoing 0 [A], PrepareAbort 1 [A]", None, False, "unknown unknown unknown"),
        ("Empty 0, Ongoing 0 [A], PrepareAbort 1 [A]", 2, False, "tv2 tv2 tv2"),
        ("Empty 0, Ongoing 0 [A], PrepareAbort 1 [A]", 1, False, "tv0 tv0 tv0"),
    ],
)
def test_protocols(text: str, version: int | None, json: bool, protocols: str) -> None:
    assert [step.protocol for step in replay(story(text, json=json), version)] == protocols.split()


def test_a_missing_segment_starts_afresh() -> None:
    entries = story("Ongoing 0 [A], CompleteCommit 0")
    jumped = Entry(**{**entries[1].__dict__, "after_gap": True})
    step = replay([entries[0], jumped], 0)[1]
    assert (step.step, step.epoch_step, step.previous, step.head_known) == ("first", "not_judged", None, False)
    assert step.run == 1


def only(text: str, version: int | None = 0, *, json: bool = True) -> Instance:
    (found,) = instances(replay(story(text, json=json), version), scan_ms=1_000)
    return found


def test_an_instance_runs_from_ongoing_to_complete() -> None:
    found = only("Empty 3, Ongoing 3 [A], Ongoing 3 [AB], PrepareCommit 3 [AB], CompleteCommit 3, Empty 4")
    assert (found.first_entry_offset, found.data_epoch, found.marker_epoch, found.decision) == (1, 3, 3, "COMMIT")
    assert (found.partitions, found.partitions_complete, found.prepare_offset, found.complete_offset) == ({A, B}, True, 3, 4)
    assert (found.next_status, found.next_epoch, found.is_last) == ("Empty", 4, False)


def test_only_the_last_of_two_decisions_counts() -> None:
    found = only("Empty 0, Ongoing 0 [A], PrepareCommit 0 [A], PrepareAbort 1 [A], CompleteAbort 1")
    assert (found.decision, found.marker_epoch, found.prepare_offset) == ("ABORT", 1, 3)


@pytest.mark.parametrize(
    ("text", "json", "protocol", "cause"),
    [
        # What the coordinator writes as it aborts has the cluster's version; of an old client one epoch more is never its own work.
        ("Empty 0, Ongoing 0 [A], PrepareAbort 1 [A] v2, CompleteAbort 1 v2", True, "tv0", "fenced_by_init definite"),
        ("Empty 0, Ongoing 0 [A], PrepareAbort 2 [A] v2, CompleteAbort 2 v2", True, "tv0", "fenced_by_init definite"),
        ("Empty 0, Ongoing 0 [A], PrepareAbort 1 [A] v2 u1500", True, "tv0", "coordinator_timeout definite"),
        ("Empty 0, Ongoing 0 [A], PrepareAbort 0 [A], CompleteAbort 0", True, "tv0", "client_abort definite"),
        ("Empty 0, Ongoing 0 [A] v2, PrepareAbort 1 [A] v2, CompleteAbort 1 v2", True, "tv2", "client_abort likely"),
        # A client may abort what it has not begun under transaction.version 2 only: there is no Ongoing to ask.
        ("Empty 0, PrepareAbort 1 v2, CompleteAbort 1 v2", True, "tv2", "empty_client_abort definite"),
        # The text prints no version: what ends a transaction tells as much as what begins it.
        ("Empty 0, Ongoing 0 [A], PrepareAbort 1 [A], CompleteAbort 1", False, "tv2", "client_abort likely"),
    ],
)
def test_an_abort_is_judged_by_the_protocol_of_the_client(text: str, json: bool, protocol: str, cause: str) -> None:
    found = only(text, 2, json=json)
    assert found.cause is not None
    assert (found.protocol, f"{found.cause.cause} {found.cause.certainty}") == (protocol, cause)


def test_the_start_of_the_text_form_is_the_first_ongoing() -> None:
    found = only("Empty 0, Ongoing 0 [A], Ongoing 0 [AB], PrepareCommit 0 [AB]", json=False)
    assert (found.start_ms, found.start_source) == (10, "first_ongoing")


def test_an_ongoing_that_does_not_extend_restarts_the_clock() -> None:
    found = only("Empty 0, Ongoing 0 [A], Ongoing 0 [B], PrepareCommit 0 [B]", json=False)
    assert (found.start_ms, found.partitions) == (20, {B})


def test_without_a_head_the_start_is_a_bound_and_the_list_may_be_unknown() -> None:
    found = only("Ongoing 5 [AB], PrepareCommit 5 [AB]", json=False)
    assert (found.start_ms, found.start_source, found.partitions_complete) == (0, "upper_bound", True)
    rest = only("CompleteCommit 5", json=False)
    assert (rest.start_source, rest.partitions_complete, rest.data_epoch, rest.decision) == (None, False, 5, "COMMIT")
    assert only("PrepareAbort 5 [A]", json=False).data_epoch is None  # a client's abort, or a fence of epoch 4
