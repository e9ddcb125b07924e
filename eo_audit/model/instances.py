"""Transaction instances: the begin-to-complete runs of one transactional id, put together from its replayed entries."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from eo_audit.model.abort_cause import Abort, Cause, abort_cause
from eo_audit.model.coordinator import Step
from eo_audit.model.entries import Entry, Partitions
from eo_audit.model.states import (
    ABORT,
    COMPLETE,
    COMPLETE_COMMIT,
    DECISION_OF,
    EXPIRABLE,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    PREPARED,
    TV0,
    TV2,
)


@dataclass(frozen=True)
class Instance:
    """One run; names and values as in the table `transaction_instances`."""

    first_entry_offset: int
    protocol: str
    producer_id: int | None
    ongoing_epoch: int | None
    data_epoch: int | None
    marker_epoch: int | None
    start_ms: int | None
    start_source: str | None
    timeout_ms: int | None
    partitions: Partitions
    partitions_complete: bool
    last_status: str
    decision: str | None
    decided_at_ms: int | None
    prepare_offset: int | None
    prepare_leader_epoch: int | None
    completed_at_ms: int | None
    complete_offset: int | None
    next_status: str | None
    next_epoch: int | None
    next_at_ms: int | None
    is_last: bool
    cause: Cause | None


def instances(steps: Sequence[Step], *, scan_ms: int, server_adds_two: bool = False) -> list[Instance]:
    """The instances among the replayed entries of one id, in order.

    `scan_ms` is how often the coordinator looks for expired transactions; `server_adds_two` is true for brokers that raise
    the epoch twice when they abort a transaction of the new protocol (4.0).
    """
    following = {id(step): after.entry for step, after in pairwise(steps)}
    runs = [list(run) for key, run in groupby(steps, key=lambda step: step.run) if key is not None]
    return [_instance(run, following.get(id(run[-1])), scan_ms=scan_ms, server_adds_two=server_adds_two) for run in runs]


def data_epoch_of(protocol: str, *, ended_in: str, end_epoch: int | None) -> int | None:
    """The epoch of a run's data where no Ongoing survived: read from the entry that ended it, None where that cannot tell."""
    if end_epoch is None:
        return None
    # Under transaction.version 2 EndTxn raises the epoch before its markers go out; at epoch 0 the producer id had just been replaced, and
    # the data's own id with it.
    if protocol == TV2:
        return end_epoch - 1 if end_epoch > 0 else None
    return end_epoch if protocol == TV0 and ended_in in (PREPARE_COMMIT, COMPLETE_COMMIT) else None


def _instance(run: list[Step], after: Entry | None, *, scan_ms: int, server_adds_two: bool) -> Instance:
    entries = [step.entry for step in run]
    ongoing = _last(entries, ONGOING)
    complete = next((entry for entry in entries if entry.status in COMPLETE), None)
    prepare, marker_epoch = _prepare(entries)
    # The client hears of the decision as soon as PrepareX is replicated, markers and CompleteX come later. Where the cleaner took it,
    # CompleteX stands for it.
    end = prepare or complete
    # CompleteX has no partitions any more (prepareComplete clears them): the list is that of PrepareX, which is the one that markers go to.
    listing = _last(entries, *PREPARED) or ongoing
    start_ms, start_source = _start(run)
    epoch = ongoing.epoch if ongoing else data_epoch_of(run[-1].protocol, ended_in=end.status, end_epoch=marker_epoch) if end else None
    return Instance(
        first_entry_offset=entries[0].offset,
        protocol=_protocol(run),
        producer_id=entries[0].producer_id,
        ongoing_epoch=ongoing.epoch if ongoing else None,
        data_epoch=epoch,
        marker_epoch=marker_epoch,
        start_ms=start_ms,
        start_source=start_source,
        timeout_ms=(ongoing or entries[-1]).timeout_ms,
        partitions=listing.partitions if listing else frozenset(),
        partitions_complete=listing is not None,
        last_status=entries[-1].status,
        decision=DECISION_OF[end.status] if end else None,
        decided_at_ms=end.last_update_ms if end else None,
        prepare_offset=prepare.offset if prepare else None,
        prepare_leader_epoch=prepare.leader_epoch if prepare else None,
        completed_at_ms=complete.batch_ms if complete else None,
        complete_offset=complete.offset if complete else None,
        next_status=after.status if after else None,
        next_epoch=after.epoch if after else None,
        next_at_ms=after.batch_ms if after else None,
        is_last=after is None,
        cause=_cause(run, after, scan_ms=scan_ms, server_adds_two=server_adds_two) if end and DECISION_OF[end.status] == ABORT else None,
    )


def _last(entries: Iterable[Entry], *statuses: str) -> Entry | None:
    return next((entry for entry in reversed(list(entries)) if entry.status in statuses), None)


def _protocol(run: list[Step]) -> str:
    """The protocol of the client that wrote a run: that of its Ongoing, where the form of the entries prints it.

    Where the coordinator itself aborts, PrepareAbort and CompleteAbort have the cluster's transaction.version
    (`TransactionCoordinator.abortTimedOutTransactions`), whatever the client spoke.
    """
    ongoing = next((step for step in reversed(run) if step.entry.status == ONGOING), run[-1])
    return (ongoing if ongoing.entry.start_ms is not None else run[-1]).protocol


def _prepare(entries: list[Entry]) -> tuple[Entry | None, int | None]:
    """The first PrepareX of the kind that counted, which is the last one's, and the epoch its markers carry."""
    last = _last(entries, *PREPARED)
    if last is None:
        complete = _last(entries, *COMPLETE)
        return None, complete.epoch if complete else None
    # A fence that failed may write PrepareAbort more than once with rising epochs: it was decided with the first, and the markers carry the
    # epoch of the last.
    return next(entry for entry in entries if entry.status == last.status), last.epoch


def _start(run: list[Step]) -> tuple[int | None, str | None]:
    # Only the JSON decoder (4.1 and later) prints the start; the text form leaves the first Ongoing's own update time.
    printed = [step.entry.start_ms for step in run if step.entry.start_ms is not None and step.entry.start_ms >= 0]
    if printed:
        return printed[-1], "start_ms"
    opening = [step.entry for step in run if _opens(step)]
    if not opening:
        return None, None
    return opening[-1].last_update_ms, "first_ongoing" if run[0].head_known else "upper_bound"


def _opens(step: Step) -> bool:
    """An Ongoing from which the transaction's time counts: not one that only adds partitions to the one before."""
    if step.entry.status != ONGOING:
        return False
    # prepareAddPartitions adds to the list in memory: one that is no longer was made from another memory, without the entry before,
    # whose append failed.
    before = step.origin or step.previous
    return before is None or before.status != ONGOING or not step.entry.partitions > before.partitions


def _cause(run: list[Step], after: Entry | None, *, scan_ms: int, server_adds_two: bool) -> Cause:
    entries = [step.entry for step in run]
    ongoing, aborted = _last(entries, ONGOING), next((step for step in run if step.entry.status == PREPARE_ABORT), None)
    complete = next((entry for entry in entries if entry.status in COMPLETE), None)
    start_ms, start_source = _start(run)
    before = aborted.origin or aborted.previous if aborted else None
    return abort_cause(
        Abort(
            protocol=_protocol(run),
            nothing_open=before is not None and before.status in EXPIRABLE,
            ongoing_epoch=ongoing.epoch if ongoing else None,
            ongoing_leader_epoch=ongoing.leader_epoch if ongoing else None,
            start_ms=start_ms,
            start_is_bound=start_source == "upper_bound",
            timeout_ms=(ongoing or entries[-1]).timeout_ms,
            prepare_epoch=aborted.entry.epoch if aborted else None,
            prepared_ms=aborted.entry.last_update_ms if aborted else None,
            prepare_leader_epoch=aborted.entry.leader_epoch if aborted else None,
            log_previous_batch_ms=aborted.entry.log_previous_batch_ms if aborted else None,
            completed_batch_ms=complete.batch_ms if complete else None,
            next_status=after.status if after else None,
            next_epoch=after.epoch if after else None,
            next_at_ms=after.batch_ms if after else None,
            scan_ms=scan_ms,
            server_adds_two=server_adds_two,
        )
    )
