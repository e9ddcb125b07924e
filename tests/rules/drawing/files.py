"""Lines of what lies beside a log: its aborted index, its snapshots, its files, and which part of it was dumped."""

from collections.abc import Iterator

from tests.rules.drawing.line import Line, Place, Row, at, clock, number, remarks, rest, text, whole

PARTS = {
    "covered": "dumped",
    "head_missing": "not dumped: below the first segment in the dumps",
    "truncated": "not dumped: the text stops here",
    "unexplained": "missing: a hole that compaction may have made, or not",
    "crc_invalid": "isvalid: false",
    "hole": "missing: a hole",
    "compacted": "compacted away",
    "disorder": "a batch that starts at or below an offset that is there already",
}
STATES = {
    "missing": "no entry",
    "extra": "no such ABORT is in the log",
    "wrong_first": "its firstOffset is not where the transaction begins",
    "marker_is_commit": "what it calls aborted was committed",
    "not_judged": "not judged",
}
FAULTS = {
    "order": "not above the entry before it",
    "below_base": "below the segment of the index",
    "version": "of a version that nobody writes",
}
REASONS = {
    "compacted": "compaction took it",
    "empty_abort": "its ABORT ends nothing",
    "expired": "the broker may have forgotten it by then",
}
DAMAGES = {
    "snapshot_corrupt": "the dump tool says that it is corrupt",
    "index_size": "its size is no whole number of entries",
    "index_version": "an entry of a version that nobody writes",
}
_INDEX = (
    "span_first_offset span_last_offset producer_id marker_offset state records entry_first_offset entry_last_stable_offset ends_at_offset "
    "ends_at_stable_offset ends_in_one_fetch entry_fault reason expected_stable_offset"
)


def index_entry(place: Place, row: Row) -> Iterator[Line]:
    """A row of aborted_index: the aborted transaction in the log, and what the index says of it."""
    producer, marker = number(row.get("producer_id")), whole(row.get("marker_offset"))
    state, first = str(row.get("state", "match")), row.get("span_first_offset")
    if first is not None:
        data = {"what": "txn data", "producer": producer}
        yield Line("log", place, whole(first), whole(row.get("span_last_offset")), data)
    if first is not None or state == "marker_is_commit":
        yield Line("log", place, marker, None, {"what": "COMMIT" if state == "marker_is_commit" else "ABORT", "producer": producer})
    is_there = state != "missing" and not (state == "not_judged" and "entry_first_offset" not in row)
    cells = {
        "producer": producer,
        "firstOffset": text(row.get("entry_first_offset", first)) if is_there else "-",
        "lastOffset": text(marker) if is_there else "-",
        "lastStableOffset": text(row.get("entry_last_stable_offset")),
    }
    due = row.get("expected_stable_offset")
    told = remarks(
        STATES.get(state, "") if is_there or state == "missing" else "no entry",
        REASONS.get(str(row.get("reason")), ""),
        FAULTS.get(str(row.get("entry_fault")), ""),
        f"lastStableOffset {due} was due" if due is not None else "",
        f"not found: a look-up ends at lastOffset {row['ends_at_offset']} (lastStableOffset {row.get('ends_at_stable_offset')})"
        if "ends_at_offset" in row
        else "",
        "another producer begins there, and both were fetched at once" if row.get("ends_in_one_fetch") else "",
    )
    yield Line("index", place, marker, None, cells, told + rest(row, _INDEX))


def snapshot(place: Place, row: Row) -> Iterator[Line]:
    """A row of snapshot_states: what a snapshot says of a producer, beside what the log says."""
    said = {name.removeprefix("said_") for name in row if name.startswith("said_")}
    fields = sorted(said | {name.removeprefix("replayed_") for name in row if name.startswith("replayed_")})
    cells = {
        "producer": number(row["producer_id"]) or "all",
        "the snapshot says": _fields(row, fields, "said_"),
        "the log says": _fields(row, fields, "replayed_"),
    }
    known = "snapshot_offset producer_id state differences producers reason " + " ".join(f"said_{f} replayed_{f}" for f in fields)
    states = {"missing": "not in the snapshot", "extra": "not in the log", "empty": "the snapshot is empty", "not_judged": "not judged"}
    told = remarks(states.get(str(row.get("state")), ""), REASONS.get(str(row.get("reason")), ""), *rest(row, known))
    yield Line("snapshot", place, whole(row["snapshot_offset"]), None, cells, told)


def _fields(row: Row, fields: list[str], prefix: str) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {_or_none(row.get(prefix + name))}" for name in fields)


def _or_none(value: object) -> str:
    return "none" if value is None else str(value)


def part(place: Place, row: Row) -> Iterator[Line]:
    """A row of coverage: what of the log the dumps show."""
    known = "first_offset last_offset state records"
    told = remarks(PARTS.get(str(row["state"]), str(row["state"])), *rest(row, known))
    yield Line("log", place, whole(row["first_offset"]), whole(row["last_offset"]), {}, told)


def segment(place: Place, row: Row) -> Iterator[Line]:
    """A row of section_status: a dumped file and its fault."""
    known, base, kind = (
        "segment_base_offset last_offset kind fault is_read invalid_tail_bytes next_segment_base",
        row["segment_base_offset"],
        row["kind"],
    )
    told = remarks(
        DAMAGES.get(str(row.get("fault")), ""),
        f"{row['invalid_tail_bytes']} invalid bytes at its end" if "invalid_tail_bytes" in row else "",
        f"the next segment begins at {row['next_segment_base']}" if "next_segment_base" in row else "",
        "a newer dump of it is read instead" if row.get("is_read") is False else "",
    )
    held = at(base, row["last_offset"]) if kind == "log" else ""
    yield Line("file", place, whole(base), None, {"file": f"{base}.{kind}", "offsets": held}, told + rest(row, known))


def overwritten(place: Place, row: Row) -> Iterator[Line]:
    """A row of overwritten_offsets: what an older dump of the log had, and the newer one has."""
    known = "first_offset last_offset dumped_at_ms_then dumped_at_ms leader_epoch_then leader_epoch hw_then replicas records"
    told = remarks(
        f"in the dump of {clock(row['dumped_at_ms_then'])}, below the high watermark {row['hw_then']}",
        f"leader epoch {row['leader_epoch']} in the dump of {clock(row['dumped_at_ms'])}",
    )
    cells = {"leader epoch": number(row["leader_epoch_then"])}
    yield Line("log", place, whole(row["first_offset"]), whole(row["last_offset"]), cells, told + rest(row, known))


def allocation(place: Place, row: Row) -> Iterator[Line]:
    """A row of id_allocation: a block of producer ids that was given out, or the first use of an id beside the blocks that are known."""
    known = "first_offset row_kind producer_id next_producer_id used_by_ms known_until_ms source is_beyond is_proved broker_id"
    if row.get("row_kind") == "block":
        cells = {"what": "block", "next producer id": number(row["next_producer_id"]), "given to broker": number(row.get("broker_id"))}
        yield Line("log", place, whole(row["first_offset"]), None, cells, rest(row, f"{known} highest_before previous_offset"))
        return
    until = f", as the {row.get('source', 'metadata')} says up to {clock(row['known_until_ms'])}"
    told = remarks(
        f"first use, {_by(row)}",
        f"ids below {row['next_producer_id']} were given out{until}",
    )
    yield Line("log", place, whole(row["first_offset"]), None, {"producer": number(row["producer_id"])}, told + rest(row, known))


def _by(row: Row) -> str:
    return f"by {clock(row['used_by_ms'])}" if "used_by_ms" in row else "nobody knows when"
