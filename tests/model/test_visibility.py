"""The read_committed consumer: a correct index hides exactly the aborted data; a wrong one does what real brokers did."""

from collections.abc import Mapping, Sequence

import pytest

from eo_audit.model.batches import ABORT, COMMIT, Batch
from eo_audit.model.lso import replay
from eo_audit.model.visibility import (
    IndexedLog,
    IndexEntry,
    fetch,
    index_of,
    is_of_one_fetch,
    look_up,
    look_up_ends_before,
    read_committed,
    read_uncommitted,
)


def data(base: int, producer: int, last: int | None = None) -> Batch:
    return Batch(base, base if last is None else last, producer, 0, is_transactional=producer >= 0)


def abort(offset: int, producer: int) -> Batch:
    return Batch(offset, offset, producer, 0, is_transactional=True, is_control=True, marker_type=ABORT)


def commit(offset: int, producer: int) -> Batch:
    return Batch(offset, offset, producer, 0, is_transactional=True, is_control=True, marker_type=COMMIT)


LOG = [data(0, 1), data(1, 2), data(2, -1), abort(3, 1), commit(4, 2), data(5, 1), data(6, 1), abort(7, 1), data(8, 1), commit(9, 1)]
GOOD = {0: [IndexEntry(1, 0, 3, 1), IndexEntry(1, 5, 7, 8)]}


def offsets(
    index: Mapping[int, Sequence[IndexEntry]], *, batches: Sequence[Batch] = LOG, segments: Sequence[int] = (0,), lso: int = 10
) -> list[int]:
    return [batch.base_offset for batch in read_committed(IndexedLog(batches, segments, index), log_start=0, lso=lso)]


def test_the_index_of_a_correct_broker() -> None:
    assert index_of(replay(LOG).ended, [0]) == GOOD
    assert index_of(replay([abort(0, 1)]).ended, [0]) == {0: []}
    assert index_of(replay([abort(0, 1)]).ended, [0], empty_aborts=True) == {0: [IndexEntry(1, 0, 0, 1)]}


CASES = {
    "correct": (GOOD, [1, 2, 8]),
    "V1 entry missing": ({0: GOOD[0][:1]}, [1, 2, 5, 6, 8]),
    "V1 file missing": ({}, [0, 1, 2, 5, 6, 8]),
    "V2 first offset too high": ({0: [GOOD[0][0], IndexEntry(1, 6, 7, 8)]}, [1, 2, 5, 8]),
    "V3 lastStableOffset too high": ({0: [IndexEntry(1, 0, 3, 10), GOOD[0][1]]}, [1, 2, 5, 6, 8]),
    "extra entry": ({0: [GOOD[0][0], IndexEntry(2, 1, 4, 5), GOOD[0][1]]}, [2, 8]),
    "first offset too low is taken out by the earlier ABORT": ({0: [GOOD[0][0], IndexEntry(1, 2, 7, 8)]}, [1, 2, 5, 6, 8]),
}


@pytest.mark.parametrize("name", CASES)
def test_read_committed(name: str) -> None:
    index, expected = CASES[name]
    assert offsets(index) == expected


def test_an_entry_whose_marker_reads_commit_hides_the_next_transaction_too() -> None:
    """Confirmed on a broker: nothing takes the producer id out of the aborted set."""
    log = [data(0, 1), commit(1, 1), data(2, 1), commit(3, 1), data(4, 2), commit(5, 2)]
    assert offsets({0: [IndexEntry(1, 0, 1, 2)]}, batches=log, lso=6) == [4]
    assert offsets({0: [IndexEntry(1, 0, 1, 2)]}, batches=log, segments=(0, 2), lso=6) == [2, 4]  # the set is empty again in the next fetch


def test_a_transaction_over_three_segments_is_found_from_each() -> None:
    log = [data(0, 1), data(1, 2), data(2, 1), data(3, 2), data(4, 1), abort(5, 1), commit(6, 2)]
    index = index_of(replay(log).ended, [0, 2, 4])
    assert index == {0: [], 2: [], 4: [IndexEntry(1, 0, 5, 1)]}
    assert offsets(index, batches=log, segments=(0, 2, 4), lso=7) == [1, 3]


def test_look_up_takes_the_entry_it_stops_at() -> None:
    log = IndexedLog(LOG, [0], {0: [IndexEntry(1, 0, 3, 9), IndexEntry(1, 5, 7, 8)]})
    assert look_up(log, segment=0, fetch_offset=0, upper_bound=9) == log.index[0][:1]
    assert look_up(log, segment=0, fetch_offset=4, upper_bound=10) == log.index[0][1:]


def test_the_bound_of_the_look_up_matters_only_where_the_lso_lies() -> None:
    batches = [data(0, 1), abort(1, 1), data(2, 1), abort(3, 1), data(4, 2)]
    log = IndexedLog(batches, [0], {0: [IndexEntry(1, 0, 1, 4), IndexEntry(1, 2, 3, 4)]})
    assert [b.base_offset for b in fetch(log, segment=0, fetch_offset=0, lso=4)] == [2]
    assert [b.base_offset for b in fetch(log, segment=0, fetch_offset=0, lso=4, bounded=False)] == []


def test_a_consumer_starts_at_the_log_start_and_stops_at_its_bound() -> None:
    log = IndexedLog([data(0, -1, 2), data(3, -1, 5), data(6, 1), commit(7, 1), data(8, 2)], [0, 6], {})
    assert [b.base_offset for b in read_committed(log, log_start=4, lso=8)] == [3, 6]
    assert [b.base_offset for b in read_uncommitted(log, log_start=4, hw=9)] == [3, 6, 8]


@pytest.mark.parametrize(("beside", "said"), [(2, True), (1001, False)])
def test_before_2_8_a_marker_that_closes_nothing_begins_a_transaction(beside: int, said: bool) -> None:
    """As a follower of 2.3.1 wrote it, that had fetched all three markers at once: the last one's own beginning bounds the first one."""
    first, second, last = (IndexEntry(1001, 466, 466, 468), IndexEntry(1001, 467, 467, 468), IndexEntry(beside, 468, 468, 469))
    log = IndexedLog([abort(466, 1001), abort(467, 1001), abort(468, beside)], [466], {466: [first, second, last]})
    assert look_up_ends_before(log) == {second: first}
    assert is_of_one_fetch(log, second, first) is said


@pytest.mark.parametrize(("cleaned_below", "said"), [(10, True), (9, False), (0, False)])
def test_the_cleaner_takes_the_beginning_that_a_follower_named(cleaned_below: int, said: bool) -> None:
    """As a follower of 4.3.1 wrote it of a compacted topic: producer 1002 began at offset 9, and only its marker is left."""
    first, second = IndexEntry(1, 4, 6, 9), IndexEntry(1, 7, 8, 9)
    log = IndexedLog([abort(6, 1), abort(8, 1), commit(11, 1002)], [0], {0: [first, second]}, cleaned_below)
    assert look_up_ends_before(log) == {second: first}
    assert is_of_one_fetch(log, second, first) is said
