"""Why was a transaction aborted, as a column: the procedure of `model.abort_cause`, whose words these are."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from eo_audit.model import abort_cause as why
from eo_audit.model import states as law

ALTERNATIVES = {
    "any": (why.CLIENT_ABORT, why.FENCED_BY_INIT, why.COORDINATOR_TIMEOUT),
    "server": (why.FENCED_BY_INIT, why.COORDINATOR_TIMEOUT),
}


def abort_cause(abort: Column) -> Column:
    """Cause, certainty and alternatives of one abort, as a struct of `cause`, `certainty`, `alternatives`.

    `abort` is a struct with the fields of `model.abort_cause.Abort`.
    """
    raised = abort["prepare_epoch"].cast("long") - abort["ongoing_epoch"]
    over = _over_ms(abort)
    new = abort["protocol"] == law.TV2
    return (
        F.when(abort["prepared_ms"].isNull(), _cause(why.UNKNOWN_CAUSE, why.OPEN))
        .when(abort["nothing_open"] & (abort["protocol"] != law.TV0), _cause(why.EMPTY_CLIENT_ABORT, why.DEFINITE))
        .when(raised.isNull(), _cause(why.UNKNOWN_CAUSE, why.OPEN, *ALTERNATIVES["any"]))
        .when((abort["protocol"] == law.TV0) | (raised == 0), _old_protocol(abort, raised=raised, over=over))
        .when(new, _new_protocol(abort, raised=raised, over=over))
        .otherwise(_either_protocol(abort, over=over))
    )


def _cause(cause: str, certainty: str, *alternatives: str) -> Column:
    others = F.array(*(F.lit(other) for other in alternatives)).cast("array<string>")
    return F.struct(F.lit(cause).alias("cause"), F.lit(certainty).alias("certainty"), others.alias("alternatives"))


def _over_ms(abort: Column) -> Column:
    """How long after the deadline the abort was decided; null where that cannot be told."""
    over = abort["prepared_ms"] - abort["start_ms"] - abort["timeout_ms"]
    return F.when(~(abort["start_is_bound"] & (over < 0)), over)


def _restarted(abort: Column) -> Column:
    soon = abort["next_at_ms"] - abort["completed_batch_ms"] <= why.RESTART_WITHIN_MS
    return F.coalesce((abort["next_status"] == law.EMPTY) & soon, F.lit(False))


def _delayed_by_outage(abort: Column, over: Column) -> Column:
    moved = ~abort["ongoing_leader_epoch"].eqNullSafe(abort["prepare_leader_epoch"]) & abort["ongoing_leader_epoch"].isNotNull()
    quiet = abort["log_previous_batch_ms"] <= abort["prepared_ms"] - over
    return moved | F.coalesce(quiet, F.lit(False))


def _old_protocol(abort: Column, *, raised: Column, over: Column) -> Column:
    bumped = _restarted(abort) & (abort["next_epoch"] == abort["prepare_epoch"] + 1)
    return (
        F.when(
            raised == 0,
            F.when(bumped, _cause(why.CLIENT_ABORT_WITH_EPOCH_BUMP, why.LIKELY, why.CLIENT_ABORT)).otherwise(
                _cause(why.CLIENT_ABORT, why.DEFINITE)
            ),
        )
        .when(over.isNull(), _cause(why.TIMEOUT_OR_FENCE, why.OPEN, *ALTERNATIVES["server"]))
        .when(over < 0, _cause(why.FENCED_BY_INIT, why.DEFINITE))
        .otherwise(_after_deadline(abort, over, client_possible=False))
    )


def _new_protocol(abort: Column, *, raised: Column, over: Column) -> Column:
    by_server = raised == 2
    goes_on = (abort["next_status"] == law.ONGOING) & (abort["next_epoch"] == abort["prepare_epoch"])
    return (
        F.when(abort["server_adds_two"] & (raised == 1), _cause(why.CLIENT_ABORT, why.DEFINITE))
        .when(over.isNull() & by_server, _cause(why.TIMEOUT_OR_FENCE, why.OPEN, *ALTERNATIVES["server"]))
        .when(over.isNull(), _cause(why.UNKNOWN_CAUSE, why.OPEN, *ALTERNATIVES["any"]))
        .when((over >= 0) & by_server, _after_deadline(abort, over, client_possible=False))
        .when(over >= 0, _after_deadline(abort, over, client_possible=True))
        .when(by_server, _cause(why.FENCED_BY_INIT, why.DEFINITE))
        .when(_restarted(abort), _cause(why.FENCED_BY_INIT, why.LIKELY, why.CLIENT_ABORT))
        .when(goes_on, _cause(why.CLIENT_ABORT, why.DEFINITE))
        .otherwise(_cause(why.CLIENT_ABORT, why.LIKELY, why.FENCED_BY_INIT))
    )


def _either_protocol(abort: Column, *, over: Column) -> Column:
    return (
        F.when(over.isNull(), _cause(why.UNKNOWN_CAUSE, why.OPEN, *ALTERNATIVES["any"]))
        .when(over >= 0, _after_deadline(abort, over, client_possible=True))
        .when(_restarted(abort), _cause(why.FENCED_BY_INIT, why.LIKELY, why.CLIENT_ABORT))
        .otherwise(_cause(why.UNKNOWN_CAUSE, why.OPEN, why.CLIENT_ABORT, why.FENCED_BY_INIT))
    )


def _after_deadline(abort: Column, over: Column, *, client_possible: bool) -> Column:
    client = (why.CLIENT_ABORT,) if client_possible else ()
    either = _cause(why.TIMEOUT_OR_FENCE, why.OPEN, why.COORDINATOR_TIMEOUT, why.FENCED_BY_INIT, *client)
    in_time = _cause(why.COORDINATOR_TIMEOUT, why.LIKELY if client_possible else why.DEFINITE, *client)
    return (
        F.when(_restarted(abort), either)
        .when(over <= abort["scan_ms"], in_time)
        .when(_delayed_by_outage(abort, over), _cause(why.COORDINATOR_TIMEOUT, why.LIKELY, why.FENCED_BY_INIT, *client))
        .otherwise(either)
    )
