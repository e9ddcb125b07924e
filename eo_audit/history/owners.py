"""Whose each row of data is, and what each marker did: the answers of `assignment`, brought to the rows of producer_history.

The client's time (CreateTime) proves nothing: it chooses between instances that order allows, and where it alone speaks the answer is
`suspected`.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from eo_audit.history.assignment import ENDS_CANDIDATE
from eo_audit.history.clock_offsets import NEVER_MS

_OWN_COLUMNS = ("instance_id", "instance_source", "instance_decision", "registration", "late", "marker_role")


def assign_instances(rows: DataFrame, events: DataFrame, instances: DataFrame) -> DataFrame:
    """The rows with instance_id, instance_source, instance_decision, registration, late and marker_role.

    Args:
        rows: what `sequences.producer_rows` returns.
        events: what `judged_events` returns.
        instances: the table transaction_instances.
    """
    owners = _with_unlisted(events, instances).transform(_for_rows)
    at = F.expr("IF(row_kind = 'data' AND span_id IS NOT NULL, span_id, base_offset) AS at_offset")
    joined = rows.select("*", at).join(owners, ["replica_log_id", "at_offset"], "left")
    return joined.selectExpr("*", *_answers()).select(*rows.columns, *_OWN_COLUMNS)


def _with_unlisted(judged: DataFrame, instances: DataFrame) -> DataFrame:
    """Adds `owner` to spans without a candidate: the instance of the producer that was running then, and whether it lists the partition.

    Under TV0 and TV1 an instance's time begins with the decision before it; such times of one producer do not overlap.
    """
    before = "lag(decided_at_ms) OVER (PARTITION BY cluster, producer_id ORDER BY first_entry_offset)"
    running = instances.selectExpr(
        *("cluster AS owner_cluster", "producer_id AS owner_producer", "instance_id", "protocol", "data_epoch", "decision", "start_ms"),
        *("decided_at_ms", f"coalesce(completed_at_ms, next_at_ms, {NEVER_MS}L) AS until_ms", "partitions", f"{before} AS free_from_ms"),
    )
    # Older than the marker before it, as its client says: then it is late data of that transaction, whoever was running.
    is_late = "coalesce(before.data_epoch = span.first_epoch AND span.first_ms <= marker_before.at_ms, false)"
    ownerless = f"span IS NOT NULL AND first_allowed IS NULL AND known AND NOT {is_late}"
    in_time = """coalesce(span.first_ms >= free_from_ms, true) AND coalesce(span.first_ms < decided_at_ms, true)
        AND span.first_ms >= start_ms - skew_ms AND coalesce(start_ms <= closer.at_ms - ahead_ms + tolerance_ms, true)"""
    # Producer ids are -1 or more: spans that need no owner get a key below, each another one, so that they match nothing and do not all end
    # up in one task.
    on = f"""owner_cluster = cluster AND owner_producer = IF({ownerless}, producer_id, -2 - place)
        AND data_epoch = span.first_epoch AND (protocol = 'tv2' OR ({in_time}))"""
    owner = """named_struct('instance_id', instance_id, 'protocol', protocol, 'data_epoch', data_epoch, 'decision', decision,
        'until_ms', until_ms, 'lists', array_contains(partitions, log))"""
    joined = judged.join(running, F.expr(on), "left")
    return joined.selectExpr(*judged.columns, f"IF(owner_producer IS NULL, NULL, {owner}) AS owner")


def _for_rows(owned: DataFrame) -> DataFrame:
    """What rows need, under the offset by which they find it."""
    return owned.selectExpr(
        *("replica_log_id", "IF(span IS NULL, place, span.span_id) AS at_offset", "skew_ms", "allowed", "before", "owner", "known"),
        # The least that the log's clock was ahead of the coordinator's, at the marker before the span and at the one that ended it: it may
        # have been set between. Null where one of them has no completion.
        f"""IF(match = 'closing' AND instance.until_ms < {NEVER_MS}L AND before.until_ms < {NEVER_MS}L,
            least(closer.at_ms - instance.until_ms, marker_before.at_ms - before.until_ms), NULL) AS least_ahead_ms""",
        *("clocklike", "marker_role", "marker_instance", f"{ENDS_CANDIDATE} AS by_marker", "size(candidates) AS listing"),
        "IF(end_is_told, NULL, closer.type) AS untold_end",
        "span.hole_at AS hole_at",
    )


def _answers() -> list[str]:
    """Choose the owner of each data row (`chosen`); `late` says that the owner's marker came before it."""
    # `ProducerStateEntry` knows one producer id, whatever the epoch: a span may hold a fenced producer's data beside its successor's.
    own = "filter(allowed, c -> coalesce(c.data_epoch = producer_epoch, true))"
    # Only the broker's time proves when a batch was written, by the clock that wrote the marker behind it.
    appended = "IF(timestamp_type = 'LogAppendTime', max_timestamp_ms - least_ahead_ms, NULL)"
    in_time = "max_timestamp_ms >= c.start_ms - skew_ms AND max_timestamp_ms < c.decided_at_ms"
    genuine = f"coalesce(try_element_at(filter(own, c -> coalesce({in_time}, c.decided_at_ms IS NULL)), 1), try_element_at(own, -1))"
    behind = "genuine IS NULL AND (owner.lists OR (owner IS NULL AND known AND before.data_epoch = producer_epoch))"
    of_earlier = "before.data_epoch = producer_epoch AND before.instance_id <> genuine.instance_id AND genuine.protocol <> 'tv2'"
    early = "timestamp_type <> 'LogAppendTime' AND max_timestamp_ms < genuine.start_ms - skew_ms"
    in_earlier = "clocklike AND max_timestamp_ms BETWEEN before.start_ms - skew_ms AND before.decided_at_ms"
    # Before a hole the producer's own marker may be missing; under TV2 the epoch tells all the same.
    cut = "coalesce(base_offset < hole_at AND try_element_at(allowed, 1).protocol <> 'tv2', false)"
    return [
        f"row_kind = 'data' AND is_transactional AND judged AND known IS NOT NULL AND NOT {cut} AS is_assigned",
        f"{own} AS own",
        f"IF(is_assigned, {genuine}, NULL) AS genuine",
        f"""CASE WHEN NOT is_assigned THEN NULL WHEN {behind} THEN 'proved'
            WHEN {of_earlier} AND coalesce({appended} < genuine.start_ms - skew_ms, false) THEN 'proved'
            WHEN {of_earlier} AND {early} AND {in_earlier} THEN 'suspected' ELSE 'no' END AS late""",
        f"{_chosen()} AS chosen",
        *_columns(),
    ]


def _chosen() -> str:
    """The owner of a data row, as (instance_id, protocol, decision, until_ms)."""
    fields = ("instance_id", "protocol", "decision", "until_ms")
    # Whole instances have lists and times of their own inside: a CASE takes only structs of one and the same type.
    of = {name: "struct(" + ", ".join(f"{name}.{field}" for field in fields) + ")" for name in ("genuine", "owner", "before")}
    return f"""CASE WHEN NOT is_assigned THEN NULL
        WHEN late = 'no' THEN CASE WHEN genuine IS NOT NULL THEN {of["genuine"]} WHEN owner IS NOT NULL THEN {of["owner"]} END
        WHEN owner IS NOT NULL THEN {of["owner"]} ELSE {of["before"]} END"""


def _columns() -> list[str]:
    # A PrepareX that was never acknowledged is no decision (C09): another leader goes on from the entry before it, and decides anew.
    overtaken = f"NOT by_marker AND chosen.until_ms >= {NEVER_MS}L AND coalesce(untold_end <> chosen.decision, false)"
    doubtful = f"(late = 'suspected' AND NOT genuine.decision <=> chosen.decision) OR ({overtaken})"
    nobody = "known AND coalesce(listing, 0) = 0 AND NOT epoch_regression"
    return [
        "CASE WHEN row_kind = 'marker' THEN marker_instance.instance_id ELSE chosen.instance_id END AS instance_id",
        f"""CASE WHEN row_kind = 'marker' THEN IF(marker_instance IS NULL, NULL, IF(marker_instance.protocol = 'tv2', 'epoch', 'marker'))
            WHEN NOT is_assigned THEN NULL WHEN late IN ('proved', 'suspected') THEN 'time'
            WHEN chosen.protocol = 'tv2' THEN 'epoch' WHEN genuine IS NOT NULL AND by_marker AND size(own) = 1 THEN 'marker'
            WHEN chosen IS NOT NULL THEN 'time' WHEN {nobody} THEN 'none' END AS instance_source""",
        f"""CASE WHEN row_kind = 'marker' THEN marker_instance.decision WHEN {doubtful} THEN NULL
            WHEN genuine IS NOT NULL OR late = 'proved' THEN chosen.decision END AS instance_decision""",
        f"""CASE WHEN NOT (row_kind = 'data' AND is_transactional) THEN NULL WHEN genuine IS NOT NULL OR late = 'proved' THEN 'registered'
            WHEN chosen IS NOT NULL OR {nobody} THEN 'unregistered' ELSE 'unknown' END AS registration""",
    ]
