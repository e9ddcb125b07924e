"""Lines of the logs of Kafka's two coordinators: entries of __transaction_state, commits in __consumer_offsets."""

from collections.abc import Iterator

from eo_audit.words import timeout
from tests.rules.drawing.line import Line, Place, Row, clock, number, remarks, rest, text, whole

CAUSES = {
    "coordinator_timeout": "aborted by the coordinator, after its timeout",
    "client_abort": "aborted by its client",
    "fenced_by_init": "aborted by the next initTransactions()",
}
# What is drawn by where it stands, or said by `_of_entry`.
_ENTRY = (
    "entry_offset transactional_id producer_id producer_epoch tombstone status timeout_ms partitions partition_leader_epoch instance_id "
    "batch_timestamp_ms last_update_ms step step_reason epoch_step previous_status previous_pid previous_offset previous_epoch "
    "previous_leader_epoch previous_last_update_ms previous_timeout_ms previous_partitions previous_start_ms start_ms origin_offset "
    "origin_status uncounted home_partition protocol is_last field_change log_previous_leader_epoch"
)
_INSTANCE = (
    "first_entry_offset complete_offset transactional_id producer_id instance_id last_status decision data_epoch timeout_ms partitions "
    "start_ms decided_at_ms completed_at_ms abort_cause abort_cause_certainty next_producer_id protocol is_last prepare_leader_epoch "
    "complete_leader_epoch"
)
_COMMIT = (
    "record_offset group topic partition committed_offset producer_id producer_epoch marker_offset effective_offset instance_id "
    "instance_decision outcome wins is_transactional kind_changes goes_back commit_timestamp_ms is_unfenced counted_offset "
    "counted_committed_offset counted_producer_id counted_producer_epoch counted_is_transactional parked_offset parked_producer_id "
    "parked_committed_offset parked_marker_offset"
)


def entry(place: Place, row: Row) -> Iterator[Line]:
    """A row of coordinator_history; before it the entry that it goes on from."""
    name, status = text(row["transactional_id"]), "tombstone" if row.get("tombstone") else text(row.get("status"))
    own = {
        "transactional id": name,
        "state": status,
        "producer": number(row.get("producer_id")),
        "epoch": number(row.get("producer_epoch")),
        "leader epoch": number(row.get("partition_leader_epoch")),
        "lastUpdate": clock(row.get("last_update_ms")),
        "appended": clock(row.get("batch_timestamp_ms")),
        "timeout": timeout(whole(row["timeout_ms"])) if "timeout_ms" in row else "",
        "partitions": text(row.get("partitions")),
    }
    if "previous_status" in row:
        before = {
            "transactional id": name,
            "state": "tombstone" if row["previous_status"] == "Tombstone" else text(row["previous_status"]),
            "producer": number(row.get("previous_pid", row.get("producer_id"))),
            "epoch": number(row.get("previous_epoch")),
            "leader epoch": number(row.get("previous_leader_epoch")),
            "lastUpdate": clock(row.get("previous_last_update_ms")),
            "timeout": timeout(whole(row["previous_timeout_ms"])) if "previous_timeout_ms" in row else "",
            "partitions": text(row.get("previous_partitions")),
        }
        yield Line("coordinator", place, whole(row.get("previous_offset")), None, before)
    yield Line("coordinator", place, whole(row["entry_offset"]), None, own, remarks(*_of_entry(place, row), *rest(row, _ENTRY)))


def _of_entry(place: Place, row: Row) -> Iterator[str]:
    yield "the first of its id here" if row.get("step") == "first" and row.get("status") != "Empty" else ""
    yield f"started {clock(row['start_ms'])}" if "start_ms" in row else ""
    yield f"changed: {str(row['field_change']).replace('_', ' ')}" if "field_change" in row else ""
    before = row.get("previous_start_ms", row.get("start_ms"))
    yield f"the entry before says it started {clock(before)}" if before != row.get("start_ms") else ""
    uncounted = row.get("uncounted")
    yield f"goes on from offset {row['origin_offset']}, {row.get('origin_status')}" if "origin_offset" in row else ""
    if isinstance(uncounted, list):
        yield f"never acknowledged: offset{'s' if len(uncounted) > 1 else ''} {text(uncounted)}"
    home = row.get("home_partition")
    if home is not None:
        yield "its hash puts it here" if home == place[1] else f"its hash puts it into {place[0]}-{home}"
    yield "transaction.version 2" if row.get("protocol") == "tv2" else ""
    yield f"the log's entry before it has leader epoch {row['log_previous_leader_epoch']}" if "log_previous_leader_epoch" in row else ""


def instance(place: Place, row: Row) -> Iterator[Line]:
    """A row of transaction_instances: a transaction from its first entry to its last."""
    first, last, status = whole(row["first_entry_offset"]), whole(row["complete_offset"]), text(row["last_status"])
    leaders = [str(row[name]) for name in ("prepare_leader_epoch", "complete_leader_epoch") if name in row]
    cells = {
        "transactional id": text(row["transactional_id"]),
        "state": status if first == last or status == "Ongoing" else f"Ongoing .. {status}",
        "producer": number(row.get("producer_id")),
        "epoch": number(row.get("data_epoch")),
        "leader epoch": " .. ".join(dict.fromkeys(leaders)),
        "timeout": timeout(whole(row["timeout_ms"])) if "timeout_ms" in row else "",
        "partitions": text(row.get("partitions")),
    }
    times = {"started": "start_ms", "decided": "decided_at_ms", "completed": "completed_at_ms"}
    told = remarks(
        ", ".join(f"{word} {clock(row[name])}" for word, name in times.items() if name in row),
        CAUSES.get(str(row.get("abort_cause")), "") + (" (likely)" if row.get("abort_cause_certainty") == "likely" else ""),
        f"the id goes on as producer {row['next_producer_id']}" if "next_producer_id" in row else "",
        "transaction.version 2" if row.get("protocol") == "tv2" else "",
    )
    yield Line("coordinator", place, first, last, cells, told + rest(row, _INSTANCE))


def commit(place: Place, row: Row) -> Iterator[Line]:
    """A row of group_offsets: a commit, its marker, and the commit that it is laid beside."""
    producer, outcome = number(row["producer_id"]), row.get("outcome", "applied")
    cells = {
        "what": "commit",
        "group": text(row["group"]),
        "input": f"{text(row['topic'])}-{row['partition']}",
        "next offset": text(row["committed_offset"]),
        "producer": producer or "none",
        "epoch": number(row.get("producer_epoch")),
        "time": clock(row.get("commit_timestamp_ms")),
    }
    for kind in ("counted", "parked"):
        if f"{kind}_offset" in row:
            own = {"next offset": f"{kind}_committed_offset", "producer": f"{kind}_producer_id", "epoch": f"{kind}_producer_epoch"}
            other = {**cells, "time": "", **{heading: number(row.get(name)) for heading, name in own.items()}}
            yield Line("offsets", place, whole(row[f"{kind}_offset"]), None, {**other, "producer": other["producer"] or "none"})
            if f"{kind}_marker_offset" in row:
                yield _end(place, row[f"{kind}_marker_offset"], "COMMIT", other["producer"])
    told = remarks(
        "" if row.get("is_transactional", True) else "outside of transactions",
        "in an open transaction" if outcome == "pending" else "",
        "" if row.get("wins", True) else "a newer commit counts instead",
        "lower than the one that counted before" if row.get("goes_back") else "",
        "while the other producer's commit was not ended" if row.get("is_unfenced") else "",
        f"the coordinator decided {row['instance_decision']}" if "instance_decision" in row else "",
        f"the group changed its way {row['kind_changes']} times" if row.get("kind_changes") not in (None, 1) else "",
    )
    yield Line("offsets", place, whole(row["record_offset"]), None, cells, told + rest(row, _COMMIT))
    if "marker_offset" in row:
        yield _end(place, row["marker_offset"], "ABORT" if outcome == "dropped" else "COMMIT", producer)


def _end(place: Place, offset: object, what: str, producer: str) -> Line:
    return Line("offsets", place, whole(offset), None, {"what": what, "producer": producer})
