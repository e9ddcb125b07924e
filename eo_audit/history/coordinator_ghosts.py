"""Entries whose append failed and which stayed in the coordinator log: where does one go on that its neighbour does not explain?

The law is that of `model.coordinator`: the newest entry from which this one and every entry between them can have come. Only ids with an
entry that its neighbour does not explain are looked at closer; all others carry nothing along.
"""

from collections.abc import Iterable, Mapping

from pyspark.sql import DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from eo_audit.history.coordinator_law import pairs
from eo_audit.model import states as law

_ENTRY = (
    *("state", "producer_id", "producer_epoch", "timeout_ms", "listed", "last_update_ms", "start_ms", "entry_offset", "protocol"),
    *("batch_timestamp_ms", "head_known", "stretch"),
)
_BESIDE = ("judged", "epoch_step", "field_change", "begins")


def with_origin(judged: DataFrame, in_id: WindowSpec) -> DataFrame:
    """Adds `origin` (the entry it goes on from, as a struct) and `uncounted` (offsets between), and judges ghosts as such.

    Args:
        judged: entries judged beside their neighbour: the columns of that step, `previous`, `protocol`, `head_known`, `may_jump`.
        in_id: the window of one id's entries in order.

    Returns:
        The same rows; `judged`, `epoch_step`, `field_change` and `begins` are those of the step from `origin` where there is one.
    """
    whole_id = in_id.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    fine = "judged = 'legal' AND epoch_step IN ('ok', 'not_judged') AND field_change IS NULL"
    entry = F.struct(*_ENTRY)
    odd = F.expr(f"previous IS NOT NULL AND NOT (judged = 'first' OR ({fine}))").alias("odd")
    # Arrays of entries only in ids that have an odd one: they would be the largest column of all.
    in_sight = F.collect_list(F.when(F.max("odd").over(whole_id), entry)).over(in_id.rowsBetween(-law.GHOSTS_IN_SIGHT, 0))
    found = f"IF(odd AND NOT {_written_again()}, {_origin()}, NULL) AS found"
    return (
        judged.select("*", odd)
        .select("*", in_sight.alias("in_sight"))
        # Behind a missing segment nothing is a neighbour, so what lies before it is no origin either.
        .selectExpr("*", "IF(odd, filter(in_sight, x -> x.stretch = stretch), NULL) AS chain")
        .selectExpr("*", found)
        .selectExpr("*", f"odd AND found IS NULL AND NOT {_written_again()} AND {_from_unseen()} AS from_unseen")
        .selectExpr(*(name for name in judged.columns if name not in _BESIDE), *_rejudged())
    )


def _rejudged() -> list[str]:
    ghost = "(found IS NOT NULL OR from_unseen)"
    between = "filter(chain, x -> x.entry_offset < entry_offset AND (from_unseen OR x.entry_offset > found.entry_offset))"
    # Judged anew with the entry it goes on from: it belongs to that one's transaction, not to one that the lost neighbour began.
    goes_on = _in("concat(found.state, '>', state)", pairs(law.CONTINUES_RUN))
    other_producer = f"NOT (found.producer_id <=> producer_id) AND NOT {_in('state', law.COMPLETE)}"
    previous = ", ".join(f"'{name}', previous.{name}" for name in ("entry_offset", "state", "listed"))
    origin = ", ".join(f"'{name}', found.{name}" for name in ("entry_offset", "state", "listed"))
    return [
        f"IF({ghost}, 'ghost', judged) AS judged",
        f"CASE WHEN NOT {ghost} THEN epoch_step WHEN producer_epoch IS NULL THEN 'not_judged' ELSE 'ok' END AS epoch_step",
        f"IF({ghost}, NULL, field_change) AS field_change",
        f"begins AND (found IS NULL OR NOT {goes_on} OR ({other_producer})) AS begins",
        f"CASE WHEN found IS NOT NULL THEN named_struct({origin}) WHEN NOT odd AND previous IS NOT NULL THEN named_struct({previous}) "
        "END AS origin",
        f"CASE WHEN {ghost} THEN transform({between}, x -> x.entry_offset) "
        "WHEN judged = 'ghost' THEN array(previous.entry_offset) END AS uncounted",
    ]


def _in(sql: str, values: Iterable[str]) -> str:
    """Whether a text is one of these; false for null."""
    return f"coalesce(contains('|{'|'.join(sorted(values))}|', concat('|', {sql}, '|')), false)"


def _written_again() -> str:
    """A completion behind a completion is written again unchanged, or wrong (KAFKA-10080): none is a step from before."""
    return f"({_in('state', law.COMPLETE)} AND {_in('previous.state', law.COMPLETE)})"


def _origin() -> str:
    """The newest entry in sight, the neighbour apart, from which all behind it can have come."""
    rest = "slice(chain, i + 2, size(chain))"
    # `TransactionStateManager.appendTransactionToLog` changes memory when the append was acknowledged. One that timed out, or had too few
    # replicas, leaves its record in the log, and the next record is made from the state before.
    follows = f"{_expired('c')} AND forall({rest}, x -> {_follows('c', 'x')})"
    # The newest of them: each append that failed is one more thing to believe.
    return f"try_element_at(filter(slice(chain, 1, size(chain) - 2), (c, i) -> {follows}), -1)"


def _expired(start: str) -> str:
    """A tombstone needs an id that was idle for transactional.id.expiration.ms."""
    idle = f"coalesce(batch_timestamp_ms - {start}.last_update_ms >= {law.EXPIRES_AFTER_MS}L, false)"
    return f"(state <> '{law.TOMBSTONE}' OR {idle})"


def _from_unseen() -> str:
    """All in sight can have come from one entry that was compacted away: an open transaction, or none."""
    one = f"coalesce(get(filter(chain, x -> {_in('x.state', (law.ONGOING, *law.PREPARED))}), 0), get(chain, 0))"
    lowest = "coalesce(array_min(transform(chain, x -> x.producer_epoch)), 0)"
    # AddPartitionsToTxn only adds, so what they all went on from listed no more than all of them have.
    common = "aggregate(chain, get(chain, 0).listed, (kept, x) -> array_intersect(kept, x.listed))"
    raised = f"filter(sequence(0, {max(law.LARGEST_EPOCH_STEP.values())}), r -> r <= {lowest})"
    kept = ", ".join(f"'{name}', one.{name}" for name in ("producer_id", "timeout_ms", "start_ms"))
    starts = [
        f"transform({raised}, r -> named_struct('state', '{state}', 'producer_epoch', {lowest} - r, 'listed', {listed}, {kept}))"
        for state, listed in ((law.ONGOING, common), (law.COMPLETE_COMMIT, f"slice({common}, 1, 0)"))
    ]
    of_one = f"flatten(transform(array({one}), one -> concat({', '.join(starts)})))"
    every = f"exists({of_one}, s -> forall(chain, x -> {_follows('s', 'x')}))"
    return f"(NOT get(chain, 0).head_known AND {_expired('get(chain, 0)')} AND {every})"


def _follows(start: str, entry: str) -> str:
    """Whether a coordinator that remembers one entry writes the other; names of two structs."""
    pair, raised = f"concat({start}.state, '>', {entry}.state)", f"({entry}.producer_epoch - {start}.producer_epoch)"
    same = f"({start}.producer_id <=> {entry}.producer_id)"
    keyed = f"concat({entry}.protocol, '>', {raised})"
    burned = f"may_jump AND {entry}.protocol <> '{law.TV2}' AND {entry}.state = '{law.PREPARE_ABORT}'"
    allowed = _in(keyed, _by_protocol({name: range(most + 1) for name, most in law.LARGEST_EPOCH_STEP.items()}))
    of_one = f"{raised} >= 0 AND ({burned} OR {allowed})"
    epoch = f"CASE WHEN {raised} IS NULL THEN true WHEN NOT {same} THEN {entry}.producer_epoch = 0 ELSE {of_one} END"
    legal = [f"{protocol}>{pair}" for protocol, table in law.VALID_PREVIOUS.items() for pair in pairs(table)]
    # `TransactionMetadata.prepareAddPartitions`: the entry that begins a transaction has one time as its start and its last update.
    begins = f"{_in(f'{start}.state', law.EXPIRABLE)} AND {_in(f'{entry}.state', (law.ONGOING, law.PREPARE_ABORT))}"
    return " AND ".join(
        [
            _in(f"concat({entry}.protocol, '>', {pair})", legal),
            # A producer id changes with Empty, and with CompleteX where the epochs ran out (KIP-890), never inside a transaction.
            f"({same} OR NOT {_in(f'{entry}.state', (law.ONGOING, *law.PREPARED))})",
            f"NOT coalesce({begins} AND {entry}.start_ms <> {entry}.last_update_ms, false)",
            f"({entry}.state <> '{law.PREPARE_COMMIT}' OR {raised} IS NULL OR {_in(keyed, _by_protocol(law.COMMIT_EPOCH_STEPS))})",
            f"({epoch})",
            _keeps_fields(start, entry, pair),
        ]
    )


def _by_protocol(steps: Mapping[str, Iterable[int]]) -> list[str]:
    return [f"{protocol}>{raised}" for protocol, all_raised in steps.items() for raised in all_raised]


def _keeps_fields(start: str, entry: str, pair: str) -> str:
    """No field changed that may not."""
    added, removed = (f"size(array_except({a}.listed, {b}.listed))" for a, b in ((entry, start), (start, entry)))
    complete, continues = _in(f"{entry}.state", law.COMPLETE), _in(pair, pairs(law.CONTINUES_RUN))
    keeps_epoch = f"({entry}.state = '{law.ONGOING}' OR {complete}) AND {start}.producer_id <=> {entry}.producer_id"
    # What `TransactionMetadata.completeTransitionTo` refuses.
    kept = [
        f"{start}.timeout_ms <=> {entry}.timeout_ms",
        f"({pair} <> '{law.ONGOING}>{law.ONGOING}' OR {removed} = 0)",
        f"NOT ({_in(f'{entry}.state', law.PREPARED)} AND {continues} AND {added} + {removed} > 0)",
        f"NOT coalesce({continues} AND {start}.start_ms <> {entry}.start_ms, false)",
        f"NOT ({complete} AND size({entry}.listed) > 0)",
        f"NOT ({keeps_epoch} AND NOT ({start}.producer_epoch <=> {entry}.producer_epoch))",
    ]
    free = f"{_in(f'{entry}.state', (law.EMPTY, law.TOMBSTONE))} OR {start}.state = '{law.TOMBSTONE}'"
    return f"({free} OR ({' AND '.join(kept)}))"
