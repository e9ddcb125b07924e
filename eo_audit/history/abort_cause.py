"""Why was a transaction aborted, as a column: the procedure of `model.abort_cause`, whose words these are.

It reads the columns named like the fields of `model.abort_cause.Abort`, and two that `features` adds.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F

from eo_audit.model import abort_cause as why
from eo_audit.model import states as law

_ANYTHING = (why.CLIENT_ABORT, why.FENCED_BY_INIT, why.COORDINATOR_TIMEOUT)
_SERVER = (why.FENCED_BY_INIT, why.COORDINATOR_TIMEOUT)


def features() -> dict[str, Column]:
    """`epochs_raised`, `over_ms` (how long after the deadline; null where that cannot be told), `restarted`."""
    over = F.col("prepared_ms") - F.col("start_ms") - F.col("timeout_ms")
    soon = F.col("next_at_ms") - F.col("completed_at_ms") <= why.RESTART_WITHIN_MS
    return {
        "epochs_raised": F.col("prepare_epoch").cast("long") - F.col("ongoing_epoch"),
        "over_ms": F.when((F.col("start_source") != "upper_bound") | (over >= 0), over),
        "restarted": F.coalesce((F.col("next_status") == law.EMPTY) & soon, F.lit(False)),
    }


def abort_cause() -> Column:
    """Cause, certainty and alternatives of one abort, as words with blanks between."""
    raised, protocol = F.col("epochs_raised"), F.col("protocol")
    return (
        F.when(F.col("prepared_ms").isNull(), _cause(why.UNKNOWN_CAUSE, why.OPEN))
        .when(F.col("nothing_open") & (protocol != law.TV0), _cause(why.EMPTY_CLIENT_ABORT, why.DEFINITE))
        .when(raised.isNull(), _cause(why.UNKNOWN_CAUSE, why.OPEN, *_ANYTHING))
        .when((protocol == law.TV0) | (raised == 0), _old_protocol())
        .when(protocol == law.TV2, _new_protocol())
        .otherwise(_either_protocol())
    )


def _cause(*words: str) -> Column:
    return F.lit(" ".join(words))


def _old_protocol() -> Column:
    own = F.col("epochs_raised") == 0
    # KIP-360: a client that met an error it can recover from aborts, and asks for the next epoch at once.
    bumped = own & F.col("restarted") & (F.col("next_epoch") == F.col("prepare_epoch") + 1)
    return (
        F.when(bumped, _cause(why.CLIENT_ABORT_WITH_EPOCH_BUMP, why.LIKELY, why.CLIENT_ABORT))
        .when(own, _cause(why.CLIENT_ABORT, why.DEFINITE))
        .when(F.col("over_ms").isNull(), _cause(why.TIMEOUT_OR_FENCE, why.OPEN, *_SERVER))
        # Both times are the coordinator's, so no clocks are compared: before the deadline only InitProducerId raises the epoch.
        .when(F.col("over_ms") < 0, _cause(why.FENCED_BY_INIT, why.DEFINITE))
        .otherwise(_after_deadline())
    )


def _new_protocol() -> Column:
    over, raised = F.col("over_ms"), F.col("epochs_raised")
    by_server = raised == 2
    # A client that ended its transaction itself got the raised epoch with the answer, and begins the next with it.
    goes_on = (F.col("next_status") == law.ONGOING) & (F.col("next_epoch") == F.col("prepare_epoch"))
    return (
        F.when(F.col("server_adds_two") & (raised == 1), _cause(why.CLIENT_ABORT, why.DEFINITE))
        .when(over.isNull() & by_server, _cause(why.TIMEOUT_OR_FENCE, why.OPEN, *_SERVER))
        .when(over.isNull(), _cause(why.UNKNOWN_CAUSE, why.OPEN, *_ANYTHING))
        .when((over >= 0) & by_server, _after_deadline())
        .when(over >= 0, _after_deadline(why.CLIENT_ABORT))
        .when(by_server, _cause(why.FENCED_BY_INIT, why.DEFINITE))
        .when(F.col("restarted"), _cause(why.FENCED_BY_INIT, why.LIKELY, why.CLIENT_ABORT))
        .when(goes_on, _cause(why.CLIENT_ABORT, why.DEFINITE))
        .otherwise(_cause(why.CLIENT_ABORT, why.LIKELY, why.FENCED_BY_INIT))
    )


def _either_protocol() -> Column:
    over = F.col("over_ms")
    return (
        F.when(over.isNull(), _cause(why.UNKNOWN_CAUSE, why.OPEN, *_ANYTHING))
        .when(over >= 0, _after_deadline(why.CLIENT_ABORT))
        .when(F.col("restarted"), _cause(why.FENCED_BY_INIT, why.LIKELY, why.CLIENT_ABORT))
        .otherwise(_cause(why.UNKNOWN_CAUSE, why.OPEN, why.CLIENT_ABORT, why.FENCED_BY_INIT))
    )


def _after_deadline(*client: str) -> Column:
    """At or after the deadline; `client` names the client's abort where the epoch does not rule it out."""
    over = F.col("over_ms")
    # Timeouts are found by a scan: late only where nobody was there to scan. The id's partition had moved to another leader, or wrote
    # nothing since the deadline.
    moved = F.col("ongoing_leader_epoch") != F.coalesce("abort_leader_epoch", F.lit(-1))
    quiet = F.col("log_previous_batch_ms") <= F.col("prepared_ms") - over
    either = _cause(why.TIMEOUT_OR_FENCE, why.OPEN, why.COORDINATOR_TIMEOUT, why.FENCED_BY_INIT, *client)
    return (
        F.when(F.col("restarted"), either)
        # transaction.abort.timed.out.transaction.cleanup.interval.ms: the scan comes by within that time.
        .when(over <= F.col("abort_scan_interval_ms"), _cause(why.COORDINATOR_TIMEOUT, why.LIKELY if client else why.DEFINITE, *client))
        .when(moved | quiet, _cause(why.COORDINATOR_TIMEOUT, why.LIKELY, why.FENCED_BY_INIT, *client))
        .otherwise(either)
    )
