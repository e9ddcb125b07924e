"""The coordinator's law as column expressions: the tables of `model.states` turned into literals.

They read the columns that `features` adds: an entry beside its predecessor. The words that come out are those of
`model.coordinator`, and a test holds both against each other row by row.
"""

from collections.abc import Iterable, Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from eo_audit.model import states as law

PREVIOUS = (
    *("state", "producer_id", "producer_epoch", "timeout_ms", "listed", "last_update_ms", "start_ms", "entry_offset"),
    *("stretch", "section_id", "byte_offset", "length"),
)
_FIRST, _GHOST, _LEGAL, _ILLEGAL = ("first", "ghost", "legal", "illegal")


def among(column: Column, values: Iterable[str]) -> Column:
    """Whether a text is one of these; null stays null. One literal instead of one per value: plans stay small."""
    return F.lit(f"|{'|'.join(sorted(values))}|").contains(F.concat(F.lit("|"), column, F.lit("|")))


def features() -> dict[str, Column]:
    """What the law asks about an entry and its predecessor `previous` (a struct of PREVIOUS, or null)."""
    entry, before = F.col("listed"), F.col("previous.listed")
    return {
        "pair": F.concat(F.col("previous.state"), F.lit(">"), F.col("state")),
        "raised": F.col("producer_epoch").cast("long") - F.col("previous.producer_epoch"),
        "added": F.size(F.array_except(entry, before)),
        "removed": F.size(F.array_except(before, entry)),
        "same_producer": F.col("producer_id").eqNullSafe(F.col("previous.producer_id")),
        "new_start": F.col("start_ms") != F.col("previous.start_ms"),  # null where one of them is not printed
    }


def protocol_evidence() -> Column:
    """What an entry itself tells about its protocol: tv0, tv2 or null."""
    state, version = F.col("state"), F.col("transaction_version")
    # A tool that prints the start prints every field: without clientTransactionVersion the value is of version 0, which no TV2 client gets.
    printed = F.col("start_ms").isNotNull() & ~state.isin(law.EMPTY, law.TOMBSTONE)
    ended = (F.col("previous.state") == law.ONGOING) & among(state, law.PREPARED)
    return (
        F.when(F.col("client_transaction_version") >= 2, law.TV2)
        .when((version < 2) | printed, law.TV0)
        .when(ended & (F.col("raised") == 0), law.TV0)
        # An abort with one more may be a fence or a timeout of the old protocol, a commit is KIP-890.
        .when(ended & (F.col("raised") == 1) & (state == law.PREPARE_COMMIT), law.TV2)
    )


def pairs(table: Mapping[str, Iterable[str]]) -> list[str]:
    """`before>after` for each pair of a table from a state to those that may precede it."""
    return [f"{before}>{after}" for after, all_before in table.items() for before in all_before]


def begins_run() -> Column:
    """Whether a transaction begins with this entry."""
    continues = F.coalesce(among(F.col("pair"), pairs(law.CONTINUES_RUN)), F.lit(False))
    return in_run() & (~continues | (~F.col("same_producer") & ~among(F.col("state"), law.COMPLETE)))


def in_run() -> Column:
    """Whether entries of this state belong to a transaction."""
    return among(F.col("state"), law.CONTINUES_RUN)


def step() -> Column:
    """The step and, where it is illegal, the reason behind a blank. `alive` is the id's newest earlier entry with a value."""
    state, before = F.col("state"), F.col("previous.state")
    known = {*law.KNOWN, law.TOMBSTONE}
    return (
        F.when(among(state, law.TRANSIENT), f"{_ILLEGAL} transient_state")
        .when(~among(state, known), f"{_ILLEGAL} unknown_state")
        .when(before.isNull() | ~among(before, known), _FIRST)
        .when((before == law.TOMBSTONE) & (state != law.TOMBSTONE), _after_tombstone())
        .when(_is_ghost(), _GHOST)
        .when(_is_legal(F.col("pair")), _LEGAL)
        # `TransactionState.isExpirationAllowed`: only Empty, CompleteCommit and CompleteAbort expire.
        .when(state == law.TOMBSTONE, f"{_ILLEGAL} tombstone_while_open")
        # KAFKA-10080 wrote a completion twice; written again unchanged it is a retry, and was a ghost above.
        .when(among(F.col("pair"), [f"{name}>{name}" for name in law.COMPLETE]), f"{_ILLEGAL} double_complete")
        .otherwise(f"{_ILLEGAL} not_in_table")
    )


def _is_legal(pair: Column) -> Column:
    legal = [f"{protocol}>{pair}" for protocol, table in law.VALID_PREVIOUS.items() for pair in pairs(table)]
    return among(F.concat(F.col("protocol"), F.lit(">"), pair), legal)


def _after_tombstone() -> Column:
    alive = F.col("alive.state")
    # `writeTombstonesForExpiredTransactionalIds` takes an id out of memory when its tombstone was acknowledged; else it stays there, and
    # goes on under its old producer id.
    survived = F.col("alive.producer_id").eqNullSafe(F.col("producer_id")) & _is_legal(F.concat(alive, F.lit(">"), F.col("state")))
    born = F.col("state") == law.EMPTY
    return F.when(survived | (alive.isNull() & ~born), _GHOST).when(born, _LEGAL).otherwise(f"{_ILLEGAL} not_in_table")


def _is_ghost() -> Column:
    both_print = F.col("new_start").isNotNull()
    extends, shrinks = (F.col("added") > 0) & (F.col("removed") == 0), (F.col("removed") > 0) & (F.col("added") == 0)
    unchanged = [F.col(f"previous.{name}").eqNullSafe(F.col(name)) for name in ("timeout_ms", "last_update_ms", "start_ms")]
    conditions = {
        "any": F.lit(True),
        # No mere extension; and a shorter list with the very same start has no failed append behind it.
        "restarted": F.coalesce(F.col("new_start"), F.lit(False)) | (~extends & ~(shrinks & both_print)),
        "same_payload": (F.col("added") + F.col("removed") == 0) & unchanged[0] & unchanged[1] & unchanged[2],
        "forgotten": F.size("listed") == 0,
    }
    key = F.concat_ws(">", "pair", "protocol", F.col("raised").cast("string"))
    fits = F.lit(False)
    for name, condition in conditions.items():
        keys = [
            f"{ghost.previous}>{ghost.current}>{protocol}>{raised}"
            for ghost in law.GHOSTS
            for protocol in ghost.protocols
            for raised in ghost.epoch_steps
            if ghost.condition == name
        ]
        fits = fits | (among(key, keys) & condition)
    return F.col("same_producer") & fits


def epoch_step() -> Column:
    """The step of the epoch: ok, regression, jump, pid_change_epoch_not_zero or not_judged."""
    protocol, raised = F.col("protocol"), F.col("raised")
    # KAFKA-9666 (before 2.6): every fence that failed raised the epoch in memory once more.
    burned = F.col("may_jump") & (protocol != law.TV2) & (F.col("state") == law.PREPARE_ABORT)
    step = F.concat(protocol, F.lit(">"), raised.cast("string"))
    allowed = [f"{name}>{raised}" for name, most in law.LARGEST_EPOCH_STEP.items() for raised in range(most + 1)]
    # A commit keeps the epoch, or raises it by one (KIP-890): only a fence raises it further.
    of_commit = [f"{name}>{raised}" for name, steps in law.COMMIT_EPOCH_STEPS.items() for raised in range(max(steps) + 1)]
    committed = F.col("state") == law.PREPARE_COMMIT
    return (
        F.when(raised.isNull(), "not_judged")
        .when(F.col("same_producer") & (raised < 0), "regression")
        .when(F.col("same_producer") & committed & ~among(step, of_commit), "jump")
        .when(F.col("same_producer") & (burned | among(step, allowed)), "ok")
        .when(F.col("same_producer"), "jump")
        # Another producer id, by rotation or a second birth, begins at epoch 0.
        .when(F.col("producer_epoch") == 0, "ok")
        .otherwise("pid_change_epoch_not_zero")
    )


def field_change() -> Column:
    """The first field that changed and may not, for a step that is legal by its states; else null."""
    state, pair = F.col("state"), F.col("pair")
    continues = among(pair, pairs(law.CONTINUES_RUN))
    complete = among(state, law.COMPLETE)
    other_epoch = F.col("same_producer") & ~F.col("previous.producer_epoch").eqNullSafe(F.col("producer_epoch"))
    return (
        # What `TransactionMetadata.completeTransitionTo` refuses; InitProducerId, which writes Empty, may change all of it.
        F.when(pair.isNull() | state.isin(law.EMPTY, law.TOMBSTONE) | (F.col("previous.state") == law.TOMBSTONE), F.lit(None))
        .when(~F.col("previous.timeout_ms").eqNullSafe(F.col("timeout_ms")), "timeout")
        .when((pair == f"{law.ONGOING}>{law.ONGOING}") & (F.col("removed") > 0), "partitions_shrank")
        .when(among(state, law.PREPARED) & continues & (F.col("added") + F.col("removed") > 0), "prepare_partitions")
        .when(continues & F.col("new_start"), "start")
        .when(complete & (F.size("listed") > 0), "complete_partitions")
        .when(((state == law.ONGOING) | complete) & other_epoch, "epoch")
    )
