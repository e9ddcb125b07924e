"""Why was a transaction aborted? The decision procedure over the coordinator log (KIP-98, KIP-360, KIP-890).

O is the last Ongoing of the run, A its PrepareAbort, N the id's next entry after CompleteAbort. The deadline is start + timeout;
the coordinator looks for expired transactions once per scan interval. All times compared here are the coordinator's, so no
tolerance for clocks is needed. Under the new protocol every end of a transaction raises the epoch, so there the epoch alone
tells a client's abort from the coordinator's only on brokers that raise it twice (4.0, before KAFKA-19367).
"""

from dataclasses import dataclass

from eo_audit.model.states import EMPTY, ONGOING, TV0, TV2

RESTART_WITHIN_MS = 1_000  # an owner that fenced its predecessor retries InitProducerId and gets its Empty this soon

CLIENT_ABORT = "client_abort"
CLIENT_ABORT_WITH_EPOCH_BUMP = "client_abort_with_epoch_bump"
EMPTY_CLIENT_ABORT = "empty_client_abort"
FENCED_BY_INIT = "fenced_by_init"
COORDINATOR_TIMEOUT = "coordinator_timeout"
TIMEOUT_OR_FENCE = "timeout_or_fence"
UNKNOWN_CAUSE = "unknown"

DEFINITE, LIKELY, OPEN = "definite", "likely", "open"


@dataclass(frozen=True)
class Abort:
    """What the coordinator log says about one aborted run; times in ms, None where it does not say.

    `protocol` is that of the client, as O has it: where the coordinator aborts, A has the cluster's. `nothing_open` is true where A
    directly follows Empty or Complete. `start_is_bound` says that the head of the run was compacted away, so the true start is at or
    before `start_ms`. `log_previous_batch_ms` is the append time of the entry before A in its log, of whatever id. `server_adds_two` is
    true for brokers that raise the epoch twice when they abort.
    """

    protocol: str
    nothing_open: bool
    ongoing_epoch: int | None
    ongoing_leader_epoch: int | None
    start_ms: int | None
    start_is_bound: bool
    timeout_ms: int | None
    prepare_epoch: int | None
    prepared_ms: int | None
    prepare_leader_epoch: int | None
    log_previous_batch_ms: int | None
    completed_batch_ms: int | None
    next_status: str | None
    next_epoch: int | None
    next_at_ms: int | None
    scan_ms: int
    server_adds_two: bool

    @property
    def raised(self) -> int | None:
        """Epoch of A minus epoch of O."""
        known = self.ongoing_epoch is not None and self.prepare_epoch is not None
        return self.prepare_epoch - self.ongoing_epoch if known else None  # type: ignore[operator]

    @property
    def over_ms(self) -> int | None:
        """How long after the deadline A was decided; negative before it. None when that cannot be told."""
        if self.start_ms is None or self.timeout_ms is None or self.prepared_ms is None:
            return None
        over = self.prepared_ms - self.start_ms - self.timeout_ms
        # The true start is earlier: beyond the deadline it stays beyond it, and short of it nobody knows.
        return None if self.start_is_bound and over < 0 else over

    @property
    def restarted(self) -> bool:
        """The id was initialised again right after the abort completed."""
        if self.next_status != EMPTY or self.next_at_ms is None or self.completed_batch_ms is None:
            return False
        return self.next_at_ms - self.completed_batch_ms <= RESTART_WITHIN_MS

    @property
    def delayed_by_outage(self) -> bool:
        """Why a scan may come late: another leader, or nothing at all was appended to that log since the deadline."""
        # The leader epoch of `__transaction_state` rose between the two entries, so another broker loaded the id and only then looked at
        # its clock (TransactionStateManager.timedOutTransactions).
        if self.ongoing_leader_epoch is not None and self.ongoing_leader_epoch != self.prepare_leader_epoch:
            return True
        over = self.over_ms
        if over is None or self.log_previous_batch_ms is None or self.prepared_ms is None:
            return False
        return self.log_previous_batch_ms <= self.prepared_ms - over


@dataclass(frozen=True)
class Cause:
    """The cause of an abort, how sure it is, and what else it may have been."""

    cause: str
    certainty: str
    alternatives: tuple[str, ...] = ()


def abort_cause(abort: Abort) -> Cause:
    """The cause of one abort.

    `manual` is never among them: an abort by tool writes a marker and leaves no trace in the coordinator log.
    """
    if abort.prepared_ms is None:
        return Cause(UNKNOWN_CAUSE, OPEN)
    # KIP-890: EndTxn(ABORT) with nothing open is legal under transaction.version 2 only, and only a client sends one.
    if abort.nothing_open and abort.protocol != TV0:
        return Cause(EMPTY_CLIENT_ABORT, DEFINITE)
    if abort.raised is None:
        return Cause(UNKNOWN_CAUSE, OPEN, (CLIENT_ABORT, FENCED_BY_INIT, COORDINATOR_TIMEOUT))
    # An epoch that did not rise is the old protocol's own mark: the new one raises it at every end of a transaction.
    if abort.protocol == TV0 or abort.raised == 0:
        return _old_protocol(abort)
    if abort.protocol == TV2:
        return _new_protocol(abort)
    return _either_protocol(abort)


def _old_protocol(abort: Abort) -> Cause:
    if abort.raised == 0:
        # KIP-360: a client that cannot go on aborts and asks for a new epoch. A restart of the application writes the same, so it stays
        # likely.
        restarted = abort.restarted and abort.next_epoch == (abort.prepare_epoch or 0) + 1
        return Cause(CLIENT_ABORT_WITH_EPOCH_BUMP, LIKELY, (CLIENT_ABORT,)) if restarted else Cause(CLIENT_ABORT, DEFINITE)
    if abort.over_ms is None:
        return Cause(TIMEOUT_OR_FENCE, OPEN, (FENCED_BY_INIT, COORDINATOR_TIMEOUT))
    # Before the deadline no scan of the coordinator aborts: what raised the epoch was another InitProducerId.
    if abort.over_ms < 0:
        return Cause(FENCED_BY_INIT, DEFINITE)
    return _after_deadline(abort, abort.over_ms, client_possible=False)


def _new_protocol(abort: Abort) -> Cause:
    by_server = abort.raised == 2
    # On 4.0.0 the server's own aborts raise the epoch by two (KAFKA-19367), so one alone came from the client.
    if abort.server_adds_two and abort.raised == 1:
        return Cause(CLIENT_ABORT, DEFINITE)
    if abort.over_ms is None:
        alternatives = (FENCED_BY_INIT, COORDINATOR_TIMEOUT) if by_server else (CLIENT_ABORT, FENCED_BY_INIT, COORDINATOR_TIMEOUT)
        return Cause(TIMEOUT_OR_FENCE if by_server else UNKNOWN_CAUSE, OPEN, alternatives)
    if abort.over_ms >= 0:
        return _after_deadline(abort, abort.over_ms, client_possible=not by_server)
    if by_server:
        return Cause(FENCED_BY_INIT, DEFINITE)
    # Under the new protocol a client's abort and a take-over both raise the epoch by one: only what follows tells, and it may have been a
    # restart.
    if abort.restarted:
        return Cause(FENCED_BY_INIT, LIKELY, (CLIENT_ABORT,))
    # It went on at once with the epoch that EndTxn answered, and no Empty of another owner came between.
    if abort.next_status == ONGOING and abort.next_epoch == abort.prepare_epoch:
        return Cause(CLIENT_ABORT, DEFINITE)
    return Cause(CLIENT_ABORT, LIKELY, (FENCED_BY_INIT,))


def _either_protocol(abort: Abort) -> Cause:
    """The epoch rose and the protocol is not known: a client's abort under the new one, the coordinator's under the old one."""
    if abort.over_ms is None:
        return Cause(UNKNOWN_CAUSE, OPEN, (CLIENT_ABORT, FENCED_BY_INIT, COORDINATOR_TIMEOUT))
    if abort.over_ms >= 0:
        return _after_deadline(abort, abort.over_ms, client_possible=True)
    if abort.restarted:
        return Cause(FENCED_BY_INIT, LIKELY, (CLIENT_ABORT,))
    return Cause(UNKNOWN_CAUSE, OPEN, (CLIENT_ABORT, FENCED_BY_INIT))


def _after_deadline(abort: Abort, over_ms: int, *, client_possible: bool) -> Cause:
    client = (CLIENT_ABORT,) if client_possible else ()
    if abort.restarted:
        return Cause(TIMEOUT_OR_FENCE, OPEN, (COORDINATOR_TIMEOUT, FENCED_BY_INIT, *client))
    # abortTimedOutTransactions runs once per transaction.abort.timed.out.transaction.cleanup.interval.ms: later than that it did not come
    # by itself.
    if over_ms <= abort.scan_ms:
        return Cause(COORDINATOR_TIMEOUT, LIKELY if client_possible else DEFINITE, client)
    if abort.delayed_by_outage:
        return Cause(COORDINATOR_TIMEOUT, LIKELY, (FENCED_BY_INIT, *client))
    return Cause(TIMEOUT_OR_FENCE, OPEN, (COORDINATOR_TIMEOUT, FENCED_BY_INIT, *client))
