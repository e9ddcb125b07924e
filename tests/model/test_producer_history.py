"""The labels of small histories: what is a fault, and the legal history that looks like it."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from eo_audit.model.batches import ABORT, COMMIT, Batch
from eo_audit.model.producer_history import HistoryRow, histories
from eo_audit.model.sequences import CIRCLE, inc

LAST = CIRCLE - 1
HOLE = 3  # offsets that are not there


def data(base: int, records: int = 1, *, pid: int = 1, epoch: int = 0, transactional: bool = False) -> Batch:
    return Batch(0, records - 1, pid, epoch, base, inc(base, records - 1), is_transactional=transactional, count=records)


def marker(kind: str | None = COMMIT, *, pid: int = 1, epoch: int = 0) -> Batch:
    return Batch(0, 0, pid, epoch, is_transactional=True, is_control=True, marker_type=kind, coordinator_epoch=0)


def log(*steps: Batch | int) -> list[Batch]:
    """Batches one behind the other; a number leaves so many offsets out."""
    placed: list[Batch] = []
    offset = 0
    for step in steps:
        if isinstance(step, int):
            offset += step
        else:
            placed.append(replace(step, base_offset=offset, last_offset=offset + step.last_offset))
            offset = placed[-1].last_offset + 1
    return placed


def labels(*steps: Batch | int, cleaned_below: int | None = None) -> list[str]:
    return [row.label for row in histories(log(*steps), cleaned_below=cleaned_below)]


CASES: dict[str, tuple[Sequence[Batch | int], list[str]]] = {
    "a clean producer": ([data(0, 2), data(2), data(3)], ["first_zero", "in_sequence", "in_sequence"]),
    "retention ate the past": ([data(40), data(41)], ["first_nonzero", "in_sequence"]),
    "the wrap between batches": ([data(LAST - 1, 2), data(0)], ["first_nonzero", "in_sequence"]),
    "the wrap inside a batch": ([data(LAST, 3), data(2)], ["first_nonzero", "in_sequence"]),
    "a gap": ([data(0), data(5)], ["first_zero", "gap"]),
    "a gap over the wrap": ([data(LAST), data(3)], ["first_nonzero", "gap"]),
    "the same batch twice": ([data(0), data(1), data(0)], ["first_zero", "in_sequence", "duplicate"]),
    # klog compares with the previous batch only: each repeat follows its own predecessor.
    "a run of repeats": (
        [data(0), data(1), data(2), data(0), data(1), data(2), data(3)],
        ["first_zero", "in_sequence", "in_sequence", "duplicate", "duplicate", "duplicate", "in_sequence"],
    ),
    "the producer goes on after an old repeat": (
        [data(0), data(1), data(2), data(0), data(3)],
        ["first_zero", "in_sequence", "in_sequence", "duplicate", "in_sequence"],
    ),
    "a repeat in another shape": ([data(0, 3), data(3, 2), data(2, 4)], ["first_zero", "in_sequence", "overlap"]),
    "parts of one batch again": ([data(0, 9), data(0, 3), data(3, 3)], ["first_zero", "overlap", "overlap"]),
    "what a gap left out comes late": ([data(0), data(5), data(2)], ["first_zero", "gap", "out_of_order"]),
    # klog keys by (pid, epoch): a marker of the next epoch belongs to the same producer.
    "a marker with the next epoch": (
        [data(0, transactional=True), marker(epoch=1), data(0, epoch=1, transactional=True)],
        ["first_zero", "marker", "new_epoch"],
    ),
    "an old producer after a marker fenced it": (
        [data(0), marker(ABORT, epoch=1), data(1)],
        ["first_zero", "empty_marker", "epoch_regression"],
    ),
    "the fenced producer disturbs nobody": (
        [data(0), data(0, epoch=1), data(1), data(1, epoch=1)],
        ["first_zero", "new_epoch", "epoch_regression", "in_sequence"],
    ),
    "a new epoch above 0": ([data(0), data(4, epoch=1)], ["first_zero", "new_epoch_nonzero"]),
    "a marker is no sequence": (
        [data(0, transactional=True), marker(), data(1, transactional=True)],
        ["first_zero", "marker", "in_sequence"],
    ),
    "testSkipEmptyTransactions": ([marker(), marker(ABORT)], ["empty_marker", "empty_marker"]),
    "testAppendEmptyControlBatch": ([data(0), replace(marker(None, epoch=5), count=0), data(1)], ["first_zero", "control", "in_sequence"]),
    "the log head cut off a transaction": ([marker(), data(12)], ["empty_marker", "first_nonzero"]),
    "a batch in the hole": ([data(0), HOLE, data(4)], ["first_zero", "after_hole"]),
    "an epoch began in the hole": ([data(0), HOLE, data(2, epoch=1)], ["first_zero", "after_hole"]),
    "nothing is missing after the hole": ([data(0), HOLE, data(1)], ["first_zero", "in_sequence"]),
    "the hole lies before the newest batch": ([data(0), HOLE, data(1), data(5)], ["first_zero", "in_sequence", "gap"]),
    "a repeat over a hole": ([data(0), data(1), HOLE, data(0)], ["first_zero", "in_sequence", "duplicate"]),
    "an emptied batch keeps its sequences": ([replace(data(0, 3), count=0), data(3)], ["first_zero", "in_sequence"]),
    "two producers": ([data(0), data(0, pid=2), data(1), data(3, pid=2)], ["first_zero", "first_zero", "in_sequence", "gap"]),
    "nobody": ([Batch(0, 0), Batch(0, 0, is_control=True)], ["plain", "control"]),
}


@pytest.mark.parametrize("name", CASES)
def test_labels(name: str) -> None:
    steps, expected = CASES[name]
    assert labels(*steps) == expected


# From a repartition topic of Kafka Streams on 2.3.1, which deletes what it has read: the leader forgets the producer, and it numbers anew.
FORGOTTEN: dict[str, tuple[Sequence[Batch | int], int | None, list[str]]] = {
    "forgotten with its last record": (
        [data(0, 2), data(2), data(0), data(1)],
        3,
        ["first_zero", "in_sequence", "first_zero", "in_sequence"],
    ),
    "forgotten twice, with one record each time": (
        [data(0), replace(data(0), max_timestamp_ms=5), replace(data(0), max_timestamp_ms=9), data(1)],
        2,
        ["first_zero", "first_zero", "first_zero", "in_sequence"],
    ),
    "its last record is still there": ([data(0, 2), data(2), data(0), data(1)], 2, ["first_zero", "in_sequence", "overlap", "overlap"]),
    "a broker that does not forget": ([data(0, 2), data(2), data(0)], None, ["first_zero", "in_sequence", "overlap"]),
    "the very same batch once more": ([data(0, 2), data(0, 2), data(2)], 9, ["first_zero", "duplicate", "in_sequence"]),
    "a repeat since then": ([data(0, 2), data(0), data(1), data(1)], 2, ["first_zero", "first_zero", "in_sequence", "duplicate"]),
    "a gap since then": ([data(0, 2), data(0), data(3)], 2, ["first_zero", "first_zero", "gap"]),
    "a client of old that goes on": ([data(0), data(1), data(4)], 2, ["first_zero", "in_sequence", "gap"]),
    "of an epoch that was fenced": ([data(0), data(0, epoch=1), data(0, 2)], 2, ["first_zero", "new_epoch", "epoch_regression"]),
}


@pytest.mark.parametrize("name", FORGOTTEN)
def test_labels_on_a_broker_that_forgets_producers_with_their_records(name: str) -> None:
    steps, forgets_below, expected = FORGOTTEN[name]
    assert [row.label for row in histories(log(*steps), forgets_below=forgets_below)] == expected


def test_sequence_not_validated_for_group_metadata_topic() -> None:
    """Kafka's test of this name: offset commits all carry sequence 0; their epochs and markers count."""
    batches = log(data(0, transactional=True), data(0, transactional=True), marker(epoch=2), data(0, epoch=1))
    rows = histories(batches, sequenced=False)
    assert [row.label for row in rows] == ["not_sequenced", "not_sequenced", "marker", "not_sequenced"]
    assert [row.epoch_regression for row in rows] == [False, False, False, True]


def test_compaction_explains_holes_below_the_cleaner_only() -> None:
    rows = histories(log(data(0), HOLE, data(4), HOLE, data(9)), cleaned_below=4)
    assert [row.predecessor for row in rows] == ["not_observed", "compacted", "hole"]
    assert [row.label for row in rows] == ["first_zero", "after_hole", "after_hole"]


def test_a_producer_that_appears_behind_a_hole_may_have_been_there_before() -> None:
    rows = histories(log(data(0), HOLE, data(0, pid=2), data(1, pid=2)))
    assert [row.predecessor for row in rows] == ["not_observed", "hole", "observed"]


def row_of(*steps: Batch | int) -> HistoryRow:
    return histories(log(*steps))[-1]


def test_a_duplicate_names_the_newest_copy_and_what_lies_between() -> None:
    row = row_of(data(0), data(1), data(2), data(0), data(3), marker(), data(0))
    assert (row.same_identity_offset, row.data_batches_since_same) == (3, 1)
    assert (row.max_unwrapped_last_before, row.expected_sequence, row.skipped_sequences) == (3, 4, -4)


def test_an_overlap_names_the_batch_that_first_carried_the_sequence() -> None:
    assert row_of(data(0, 3), data(3, 3), data(6), data(4, 2)).overlaps_offset == 3
    assert row_of(data(0, 3), data(3, 3), data(5, 9)).overlaps_offset == 3


def test_a_whole_circle_is_no_duplicate() -> None:
    third = CIRCLE // 3
    assert labels(data(0), data(third), data(2 * third), data(0)) == ["first_zero", "gap", "gap", "gap"]


@pytest.mark.parametrize(
    "broken",
    [
        lambda batch: replace(batch, crc_valid=False),
        lambda batch: replace(batch, base_offset=batch.base_offset - 1),
        lambda batch: replace(batch, last_offset=batch.base_offset - 1),
        lambda batch: replace(batch, segment_base_offset=batch.base_offset + 1),
    ],
    ids=["checksum", "offset goes back", "ends before it starts", "below its segment"],
)
def test_nothing_is_judged_from_the_first_broken_batch_on(broken: Callable[[Batch], Batch]) -> None:
    """klog's AssertBatchPositionMonotonic could never fire."""
    batches = log(data(0), data(1), data(2), data(3))
    batches[2] = broken(batches[2])
    assert [row.judged for row in histories(batches)] == [True, True, False, False]


def test_spans_open_and_close_whatever_the_epoch() -> None:
    write = data(0, transactional=True)
    rows = histories(
        log(write, data(1, transactional=True), marker(ABORT, epoch=3), data(0, epoch=3, transactional=True), marker(ABORT, pid=2))
    )
    assert [row.span_id for row in rows] == [0, 0, 0, 3, None]
    assert [row.span_outcome for row in rows] == ["aborted", "aborted", None, "open", None]
    assert [row.in_open_transaction for row in rows] == [False, True, True, False, False]


def test_a_shallow_dump_does_not_show_the_marker() -> None:
    rows = histories(log(data(0, transactional=True), marker(None)))
    assert [(row.row_kind, row.span_outcome) for row in rows] == [("data", "unknown"), ("marker", None)]
