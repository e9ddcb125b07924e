"""Lines of a partition's log: batches and markers, and what other histories tell of them."""

import re
from collections.abc import Iterator

from eo_audit.words import count, duration
from tests.rules.drawing.line import Line, Place, Row, at, clock, number, remarks, rest, text, whole

LABELS = {
    "duplicate": "the same sequences as at offset {same_identity_offset}",
    "gap": "sequence {expected_sequence} was due",
    "overlap": "repeats sequences that stand from offset {overlaps_offset} on",
    "after_hole": "behind a hole; sequence {expected_sequence} was due",
    "first_nonzero": "the first of its producer here",
    "epoch_regression": "an epoch below one that stands before it",
    "empty_marker": "ends nothing: no data of its producer is open",
}
ROLES = {
    "manual": "written by hand, not by the coordinator",
    "duplicate": "its transaction had this marker already",
    "contradictory": "the coordinator decided otherwise",
    "superseded": "its decision was lost, and taken again",
    "unexplained": "no decision of the coordinator fits it",
}
OPEN = "open: no marker follows"
LATE = {"proved": "written after the marker of its transaction", "suspected": "its time is from before the marker below it"}
REGISTERED = {
    "unregistered": "the coordinator does not list this partition for it",
    "unknown": "the coordinator's log no longer tells of it",
}
MATCHES = {
    "missing": "its marker should be here, and is not",
    "missing_among": "one of several transactions of which one lacks its marker",
    "pending": "its marker may come yet",
    "manual": "written by hand, not by the coordinator",
    "contradictory": "the coordinator decided otherwise",
}
BLIND = {"tail": "its marker may stand behind the end of the dump", "not_dumped": "of this partition nothing was dumped"}
FATES = {"running": "the coordinator still holds it", "decided": "the coordinator has decided it", "nobody": "nobody will end it"}
UNTOLD = {
    "live_tail": "it is younger than the dump of the coordinator's log",
    "clocks_apart": "the clocks tell its markers in two ways",
    "head_in_doubt": "what is left of the coordinator's log tells its markers in two ways",
    "dumped_apart": "the dump of the coordinator's log does not tell of it",
    "producer_forgotten": "the coordinator's log no longer names its producer",
}
# What is drawn by where it stands, follows from other columns, or is said by `_of_batch`.
_BATCH = (
    "label late registration marker_role span_outcome instance_decision judged idle_ms marker_coordinator_epoch max_timestamp_ms crc "
    "partition_leader_epoch predecessor previous_epoch max_epoch_before below_lso instance_id instance_source skipped_sequences "
    "base_offset last_offset is_transactional in_open_transaction span_id truth returned same_identity_timestamp_ms epoch_regression "
    "same_identity_leader_epoch data_batches_since_same same_identity_offset expected_sequence marker_type row_kind count producer_id "
    "producer_epoch overlaps_offset base_sequence last_sequence timestamp_type"
)
_SPAN = (
    "producer_id first_offset last_offset records span_id outcome first_epoch last_epoch first_timestamp_ms last_timestamp_ms "
    "epoch_changes_at records_from marker_offset marker_type"
)
_OF_TRANSACTION = (
    "producer_id data_first_offset data_last_offset data_records transactional_id instance_id marker_match coverage marker_offset "
    "marker_type marker_coordinator_epoch"
)


def batch(place: Place, row: Row) -> Iterator[Line]:
    """A row of producer_history; before it the batch that it repeats."""
    kind, first, last = row["row_kind"], row.get("base_offset"), row.get("last_offset")
    txn = "txn " if row.get("is_transactional") else ""
    plain = "entries" if place[0] == "__transaction_state" else "plain data"
    kinds = {"marker": str(row.get("marker_type") or "marker"), "data": f"{txn}data", "plain": plain}
    what = kinds.get(str(kind), "control batch")
    same = row.get("same_identity_offset")
    cells = {
        "what": what,
        "producer": number(row.get("producer_id")),
        "epoch": number(row.get("producer_epoch")),
        "sequence": at(row["base_sequence"], row["last_sequence"]) if number(row.get("base_sequence")) else "",
        "leader epoch": number(row.get("partition_leader_epoch")),
        "coordinator epoch": number(row.get("marker_coordinator_epoch")),
        "crc": number(row.get("crc")),
        "time": clock(row.get("max_timestamp_ms")),
    }
    if isinstance(same, int):
        length = int(str(last)) - int(str(first)) if last is not None else 0
        earlier = {"time": clock(row.get("same_identity_timestamp_ms")), "leader epoch": number(row.get("same_identity_leader_epoch"))}
        yield Line("log", place, same, same + length, {**cells, **earlier, "crc": ""})
    yield from _before(place, row)
    if (between := row.get("data_batches_since_same")) and isinstance(same, int):
        told = f"{count(int(str(between)), 'batch', 'batches')} of the producer between"
    else:
        told = ""
    yield Line("log", place, whole(first), whole(last), cells, remarks(*_of_batch(row), told, *rest(row, _BATCH)))


def _before(place: Place, row: Row) -> Iterator[Line]:
    """What a row says of its producer's row before it; it is drawn where the case does not have that row."""
    is_open, epoch = row.get("in_open_transaction"), row.get("max_epoch_before", row.get("previous_epoch"))
    if is_open or epoch not in (None, row.get("producer_epoch")):
        what = "txn data" if is_open else "data or marker"
        yield Line("log", place, None, None, {"what": what, "producer": number(row.get("producer_id")), "epoch": number(epoch)})


def _of_batch(row: Row) -> Iterator[str]:
    """What a label, and what was found out about a batch, say in words."""
    marker, first, last = row["row_kind"] == "marker", row.get("base_offset"), row.get("last_offset")
    yield from _label(row)
    yield ROLES.get(str(row.get("marker_role")), "")
    yield LATE.get(str(row.get("late")), "") or REGISTERED.get(str(row.get("registration")), "")
    yield (
        "the transaction of its producer is open"
        if row.get("in_open_transaction") and not marker and not row.get("is_transactional")
        else ""
    )
    outcome, decision = row.get("span_outcome") or row.get("truth"), row.get("instance_decision")
    yield OPEN if outcome == "open" else str(outcome) if outcome and not marker else ""
    agrees = (outcome, decision) in (("committed", "COMMIT"), ("aborted", "ABORT"))
    yield f"the coordinator decided {decision}" if decision and not agrees else ""
    if row.get("below_lso") is False:
        yield "above the last stable offset: nobody reads it yet"
    elif "returned" in row:
        yield "read_committed consumers get it" if row["returned"] else "read_committed consumers do not get it"
    yield "not judged" if row.get("judged") is False else ""
    yield {"hole": "behind a hole", "compacted": "what was before it is compacted away"}.get(str(row.get("predecessor")), "")
    yield (
        f"{duration(abs(whole(row['idle_ms']) or 0))} {'after' if (whole(row['idle_ms']) or 0) > 0 else 'before'} the one before"
        if "idle_ms" in row
        else ""
    )
    yield str(row["timestamp_type"]) if "timestamp_type" in row else ""
    length = (whole(last) or 0) - (whole(first) or 0) + 1
    yield count(whole(row["count"]), "record") if row.get("count") not in (None, length) else ""


def _label(row: Row) -> Iterator[str]:
    """The words of a label, as far as the row names the numbers that they are about."""
    values = {name: text(value) for name, value in row.items()}
    for words in LABELS.get(str(row.get("label")), "").split("; "):
        if set(re.findall(r"{(\w+)}", words)) <= set(values):
            yield words.format_map(values)


def span(place: Place, row: Row) -> Iterator[Line]:
    """A row of transaction_spans: its data, and the marker that ends it."""
    cells = {"what": "txn data", "producer": number(row["producer_id"]), "epoch": at(row.get("first_epoch"), row.get("last_epoch"))}
    newest = row.get("last_timestamp_ms")
    told = remarks(
        OPEN if row.get("outcome") == "open" else "",
        f"records since {clock(row['first_timestamp_ms'])}" if "first_timestamp_ms" in row else "",
        f"of epoch {row.get('last_epoch')} from offset {row['epoch_changes_at']} on" if "epoch_changes_at" in row else "",
        f"its records begin at offset {row['records_from']}" if "records_from" in row else "",
    )
    yield Line(
        "log", place, whole(row["first_offset"]), whole(row["last_offset"]), {**cells, "time": clock(newest)}, told + rest(row, _SPAN)
    )
    if "marker_offset" in row:
        yield Line("log", place, whole(row["marker_offset"]), None, {"what": text(row.get("marker_type")), "producer": cells["producer"]})


def of_transaction(place: Place, row: Row) -> Iterator[Line]:
    """A row of instance_partitions: what a transaction of the coordinator has in a partition, and its marker there."""
    cells, whose = {"what": "txn data", "producer": number(row["producer_id"])}, f"of {text(row['transactional_id'])}"
    first, has_marker, told = whole(row.get("data_first_offset")), "marker_offset" in row, MATCHES.get(str(row["marker_match"]), "")
    absent = BLIND.get(str(row.get("coverage")), told)
    if first is not None:
        said = remarks(whose, "" if has_marker else absent, *rest(row, _OF_TRANSACTION))
        yield Line("log", place, first, whole(row["data_last_offset"]), cells, said)
    elif not has_marker:
        yield Line("log", place, None, None, {**cells, "what": "nothing"}, remarks(whose, absent, *rest(row, _OF_TRANSACTION)))
    if has_marker:
        marker = {"what": text(row.get("marker_type")), "coordinator epoch": number(row.get("marker_coordinator_epoch"))}
        yield Line("log", place, whole(row["marker_offset"]), None, {**cells, **marker}, remarks(whose, told))


def fate(place: Place, row: Row) -> Iterator[Line]:
    """A row of open_transactions: who will end what is open, said of its data."""
    known = "fate why_unknown first_offset last_offset producer_id instance_id"
    told = FATES.get(str(row["fate"])) or UNTOLD.get(str(row.get("why_unknown")), "nobody knows who will end it")
    cells = {"what": "txn data", "producer": number(row["producer_id"])}
    yield Line("log", place, whole(row["first_offset"]), None, cells, remarks(told, *rest(row, known)))


def edge(place: Place, row: Row) -> Iterator[Line]:
    """A row of producer_edges: the first and the last records of a producer, equal ones by equal words."""
    known = (
        "first_offset last_offset producer_id producer_epoch is_transactional records head tail first_base_sequence first_timestamp_ms "
        "last_timestamp_ms"
    )
    producer = number(row.get("producer_id"))
    txn = "txn " if row.get("is_transactional") else ""
    cells = {"what": f"{txn}data" if producer else "plain data", "producer": producer, "epoch": number(row.get("producer_epoch"))}
    head, tail = _records(row.get("head")), _records(row.get("tail"))
    written = f"records {head}" if head == tail else f"first records {head}, last records {tail}"
    starts = f"begins at sequence {row['first_base_sequence']}" if "first_base_sequence" in row else ""
    begins, ends = row.get("first_timestamp_ms"), row.get("last_timestamp_ms")
    cells["time"] = " to ".join(dict.fromkeys(clock(ms) for ms in (begins, ends) if ms is not None))
    told = remarks(written, starts, *rest(row, known))
    yield Line("log", place, whole(row["first_offset"]), whole(row["last_offset"]), cells, told)


def _records(records: object) -> str:
    """`k1=v11 k2=v12`: what the hashes of keys and values stand for; `(aborted)` behind one that readers do not get."""
    return " ".join(_record(record) for record in records) if isinstance(records, list) else ""


def _record(record: Row) -> str:
    key = "" if not record["keyed"] else f"k{'?' if record['key_hash'] is None else record['key_hash']}="
    value = "?" if record["value_hash"] is None else record["value_hash"]
    return f"{key}v{value}{'' if record['returned'] else ' (aborted)'}"


def repeated(place: Place, row: Row) -> Iterator[Line]:
    """A row of repeated_records: the records, and the same ones again."""
    known = (
        "first_offset last_offset producer_id producer_epoch original_first_offset original_last_offset original_epoch first_sequence "
        "original_first_sequence records is_transactional timestamp_ms apart_ms log_repeats log_records"
    )
    cells = {"what": f"{'txn ' if row.get('is_transactional') else ''}data", "producer": number(row["producer_id"])}
    apart, epoch = whole(row.get("apart_ms")), row["producer_epoch"]
    later = "the same keys and values again" + ("" if apart is None else f", {duration(apart)} later")
    copies = ("original_", row.get("original_epoch", epoch), ()), ("", epoch, remarks(later, *rest(row, known)))
    for of, own_epoch, told in copies:
        sequence = f"from {row[f'{of}first_sequence']} on"
        numbers = {**cells, "epoch": number(own_epoch), "sequence": sequence}
        yield Line("log", place, whole(row[f"{of}first_offset"]), whole(row[f"{of}last_offset"]), numbers, told)


def marker_keys(place: Place, row: Row) -> Iterator[Line]:
    """A row of marker_keys: records whose key the cleaner takes for that of a marker."""
    known, many = "first_offset last_offset records", count(whole(row["records"]), "record")
    told = remarks(f"among them {many} with the key 0 or 1 in four bytes", *rest(row, known))
    yield Line("log", place, whole(row["first_offset"]), whole(row["last_offset"]), {"what": "data"}, told)
