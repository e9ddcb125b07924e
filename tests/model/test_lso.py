"""The LSO by hand-made histories; names in comments are Kafka's own tests or runs of real brokers."""

import pytest

from eo_audit.model.batches import ABORT, COMMIT, Batch
from eo_audit.model.lso import OpenTransaction, Snapshot, replay, state_at_end


def data(base: int, producer: int, *, last: int | None = None, epoch: int = 0, transactional: bool = True) -> Batch:
    return Batch(base, base if last is None else last, producer, epoch, is_transactional=transactional)


def marker(offset: int, producer: int, kind: str | None, *, epoch: int = 0) -> Batch:
    return Batch(offset, offset, producer, epoch, is_transactional=True, is_control=True, marker_type=kind, count=int(kind is not None))


CASES = {
    "nothing transactional": ([data(0, -1, last=4, transactional=False)], 5, 0, 5),
    "idempotent only": ([data(0, 7, last=4, transactional=False)], 5, 0, 5),
    "open transaction": ([data(0, 1), data(1, 2), marker(2, 2, COMMIT)], 3, 0, 0),
    "oldest open one counts": ([data(0, 1), data(1, 2), marker(2, 1, ABORT), data(3, 3)], 4, 0, 1),
    "an epoch change does not close": ([data(0, 1, epoch=0), data(1, 1, epoch=1)], 2, 0, 0),
    "a marker of another epoch closes": ([data(0, 1, epoch=0), marker(1, 1, COMMIT, epoch=1)], 2, 0, 2),
    "emptied marker closes nothing": ([data(0, 1), marker(1, 1, None)], 2, 0, 0),
    "marker not yet replicated": ([data(0, 1), data(1, -1, transactional=False), marker(2, 1, COMMIT)], 2, 0, 0),
    "high watermark below the open transaction": ([data(0, -1, transactional=False), data(5, 1)], 3, 0, 3),
    "pinned to the log start": ([data(0, 1), data(1, 2, transactional=False)], 2, 1, 1),
    "empty log": ([], 0, 0, 0),
}


@pytest.mark.parametrize("name", CASES)
def test_last_stable_offset(name: str) -> None:
    batches, hw, log_start, expected = CASES[name]
    assert replay(batches).last_stable_offset(hw=hw, log_start=log_start) == expected


def test_a_snapshot_knows_what_lies_before_the_log() -> None:
    before = Snapshot(7, (OpenTransaction(4, 0, 2, 3),))
    plain = [data(7, 5, transactional=False)]
    assert state_at_end(plain, end_offset=8, snapshot=before).last_stable_offset(hw=8, log_start=0) == 2
    assert state_at_end([marker(7, 4, ABORT)], end_offset=8, snapshot=before).last_stable_offset(hw=8, log_start=0) == 8


def test_a_snapshot_at_the_end_knows_better_than_the_log() -> None:
    forgotten = [data(0, 1), data(1, -1, transactional=False)]
    assert state_at_end(forgotten, end_offset=2, snapshot=Snapshot(2)).last_stable_offset(hw=2, log_start=1) == 2
    assert state_at_end(forgotten, end_offset=2, snapshot=Snapshot(1)).last_stable_offset(hw=2, log_start=1) == 1


def test_up_to_2_3_a_moving_log_start_forgets_open_transactions() -> None:
    state = replay([data(0, 1), data(1, 2), data(2, 1), data(3, -1, transactional=False)])
    state.forget_below(2)
    assert state.last_stable_offset(hw=4, log_start=2) == 2
    assert set(state.open) == {1}


def test_stable_offset_of_an_ended_transaction_is_the_oldest_other_open_one() -> None:
    ended = replay([data(0, 1), data(1, 2), marker(2, 2, ABORT), marker(3, 1, ABORT), marker(4, 9, ABORT)]).ended
    assert [(txn.first_offset, txn.marker_offset, txn.stable_offset) for txn in ended] == [(1, 2, 0), (0, 3, 4), (4, 4, 5)]
