"""What brokers accept, with the cases of Kafka's own ProducerStateManagerTest, and what each generation makes of an unknown producer."""

from dataclasses import replace

import pytest

from eo_audit.model.batches import ABORT, COMMIT, Batch
from eo_audit.model.producer_state import GENERATIONS, Answer, Partition
from eo_audit.model.sequences import CIRCLE, inc

PID = 7
APPENDED, DUPLICATE = Answer.APPENDED, Answer.DUPLICATE
UNORDERED = Answer.OUT_OF_ORDER_SEQUENCE


def data(base: int, records: int = 1, *, epoch: int = 0, transactional: bool = False, offset: int = 0) -> Batch:
    return Batch(
        base_offset=offset,
        last_offset=offset + records - 1,
        producer_id=PID,
        producer_epoch=epoch,
        base_sequence=base,
        last_sequence=inc(base, records - 1),
        is_transactional=transactional,
        count=records,
    )


def marker(kind: str = COMMIT, *, epoch: int = 0, coordinator_epoch: int = 0, offset: int = 0) -> Batch:
    shape = {"is_transactional": True, "is_control": True, "marker_type": kind, "coordinator_epoch": coordinator_epoch}
    return Batch(offset, offset, PID, epoch, **shape)  # type: ignore[arg-type]


def leader(release: str = "2.5", *appended: Batch) -> Partition:
    """A leader whose log holds some batches, whoever accepted them."""
    partition = Partition(GENERATIONS[release])
    for batch in appended:
        assert partition.replicate(batch) is APPENDED
    return partition


# Name of Kafka's test (or what it is about) -> what the log holds, what is sent, the leader's answer.
PRODUCE: dict[str, tuple[list[Batch], Batch, Answer]] = {
    "testBasicIdMapping: the next sequence": ([data(0)], data(1), APPENDED),
    "testBasicIdMapping: a gap": ([data(0)], data(2), UNORDERED),
    "testBasicIdMapping: a lower epoch": ([data(0, epoch=1)], data(1, epoch=0), Answer.INVALID_EPOCH),
    "testBasicIdMapping: a higher epoch from 0": ([data(0)], data(0, epoch=1), APPENDED),
    "a higher epoch not from 0": ([data(0)], data(1, epoch=1), UNORDERED),
    "testProducerSequenceWrapAround": ([data(CIRCLE - 1)], data(0), APPENDED),
    "testProducerSequenceWithWrapAroundBatchRecord": ([], data(CIRCLE - 10, 20), APPENDED),
    "testProducerSequenceInvalidWrapAround": ([data(CIRCLE - 1)], data(1), UNORDERED),
    "a batch that was cached": ([data(0, 2), data(2, 2)], data(0, 2), DUPLICATE),
    "part of a batch that was cached": ([data(0, 2), data(2, 2)], data(2, 1), UNORDERED),
    "testNoValidationOnFirstEntryWhenLoadingLog": ([], data(16), APPENDED),
    "testControlRecordBumpsProducerEpoch: from 0": ([data(0), marker(epoch=1)], data(0, epoch=1), APPENDED),
    "testControlRecordBumpsProducerEpoch: the old epoch": ([data(0), marker(epoch=1)], data(1), Answer.INVALID_EPOCH),
    "only a marker is known": ([marker()], data(3), UNORDERED),
    "a marker of the same epoch keeps the sequence": ([data(0, transactional=True), marker()], data(1, transactional=True), APPENDED),
    "testNonTransactionalAppendWithOngoingTransaction": ([data(0, transactional=True)], data(1), Answer.INVALID_TRANSACTION),
    "testAppendEmptyControlBatch": ([data(0), replace(marker(epoch=9), marker_type=None, count=0)], data(1), APPENDED),
}


@pytest.mark.parametrize("name", PRODUCE)
def test_a_leader_answers_a_producer(name: str) -> None:
    log, sent, answer = PRODUCE[name]
    assert leader("2.5", *log).produce(sent) is answer


@pytest.mark.parametrize(
    ("release", "plain", "transactional"),
    [
        ("0.11", UNORDERED, UNORDERED),
        ("1.0", Answer.UNKNOWN_PRODUCER, Answer.UNKNOWN_PRODUCER),
        ("2.5", APPENDED, APPENDED),
        ("4.0", APPENDED, UNORDERED),
    ],
)
def test_each_generation_has_its_way_with_unknown_producers(release: str, plain: Answer, transactional: Answer) -> None:
    assert leader(release).produce(data(5)) is plain
    assert leader(release).produce(data(5, transactional=True)) is transactional
    assert leader(release).produce(data(0)) is APPENDED


@pytest.mark.parametrize(("release", "oldest"), [("0.11", 6), ("1.0", 2), ("2.5", 2)])
def test_the_window_holds_five_batches_and_one_in_0_11(release: str, oldest: int) -> None:
    partition = leader(release, *[data(base, offset=base) for base in range(7)])
    answers = {base: partition.produce(data(base)) for base in range(7)}
    assert answers == {base: DUPLICATE if base >= oldest else UNORDERED for base in range(7)}
    assert len(partition.log) == 7


def test_a_retry_outside_the_window_reaches_the_log_only_when_the_state_is_lost() -> None:
    partition = leader("2.5", *[data(base, offset=base) for base in range(7)])
    assert partition.produce(data(0)) is UNORDERED
    partition.forget(PID)
    assert partition.produce(data(0)) is APPENDED


MARKERS: dict[str, tuple[str, list[Batch], Batch, Answer]] = {
    "testLastStableOffsetCompletedTxn": ("2.5", [data(0, transactional=True)], marker(), APPENDED),
    "testSkipEmptyTransactions: nothing is open": ("2.5", [], marker(), APPENDED),
    "a higher epoch": ("2.5", [data(0, transactional=True)], marker(ABORT, epoch=1), APPENDED),
    "testOldEpochForControlRecord": ("2.5", [data(0, epoch=1)], marker(ABORT, epoch=0), Answer.INVALID_EPOCH),
    "testCoordinatorFencing": ("2.5", [marker(coordinator_epoch=2)], marker(coordinator_epoch=1), Answer.COORDINATOR_FENCED),
    "KIP-1228: the data's own epoch": ("4.2", [data(0, transactional=True)], marker(), Answer.INVALID_EPOCH),
    "KIP-1228: above it": ("4.2", [data(0, transactional=True)], marker(epoch=1), APPENDED),
    "KAFKA-19999: the same marker again": ("4.2", [marker(epoch=1)], marker(epoch=1), APPENDED),
}


@pytest.mark.parametrize("name", MARKERS)
def test_a_leader_answers_a_coordinator(name: str) -> None:
    release, log, sent, answer = MARKERS[name]
    assert leader(release, *log).produce(sent) is answer


def test_a_marker_closes_what_is_open_at_any_epoch() -> None:
    partition = leader("2.5", data(0, transactional=True, offset=4), data(0, epoch=2, transactional=True, offset=5))
    assert partition.entry(PID).open_since == 4
    partition.replicate(marker(ABORT, epoch=1, offset=6))
    assert partition.entry(PID).open_since is None
    assert partition.entry(PID).epoch == 1


def test_accept_append_with_sequence_gaps_on_replica() -> None:
    """Kafka's testAcceptAppendWithSequenceGapsOnReplica, and an epoch that falls: the leader has let them in."""
    partition = leader("2.5", data(0, epoch=1), data(7, epoch=1))
    assert partition.replicate(data(3, epoch=0)) is APPENDED
    assert partition.entry(PID).last_sequence == 3


def test_replicas_up_to_2_4_refuse_an_old_coordinator() -> None:
    fenced = marker(coordinator_epoch=1)
    assert leader("1.0", marker(coordinator_epoch=2)).replicate(fenced) is Answer.COORDINATOR_FENCED
    assert leader("2.5", marker(coordinator_epoch=2)).replicate(fenced) is APPENDED


def test_nobody_appends_a_plain_batch_inside_a_transaction() -> None:
    partition = leader("2.5", data(0, transactional=True))
    assert partition.replicate(data(1)) is Answer.INVALID_TRANSACTION
    assert len(partition.log) == 1


def test_batches_without_producer_have_no_state() -> None:
    partition = leader("2.5", Batch(0, 3), Batch(4, 4))
    assert partition.entry(-1).epoch == -1


def test_identity_survives_compaction_inside_a_batch() -> None:
    assert leader("2.5", replace(data(3, 5), count=1)).produce(data(3, 5)) is DUPLICATE
