"""Facts to histories: which history is made from which, in order. Every step takes and returns rows; only the warehouse reads and writes.

sections, logs, clusters          what was dumped, and of what
batches in log order              one pass over the batches of each replica log
producer rows, spans, coverage    what each batch is to its producer
coordinator, instances            what the coordinator decided
assigned, visible rows            whose transaction each batch belongs to, and who may read it
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from eo_audit.history.aborted_index import aborted_index
from eo_audit.history.assignment import judged_events
from eo_audit.history.clock_offsets import clock_offsets
from eo_audit.history.clusters import clusters
from eo_audit.history.coordinator import coordinator_history
from eo_audit.history.coverage import coverage
from eo_audit.history.cut_logs import cut_logs
from eo_audit.history.edges import producer_edges
from eo_audit.history.group_offsets import group_offsets
from eo_audit.history.id_allocation import TOLD_BY_MANIFEST, id_allocation
from eo_audit.history.instance_partitions import instance_partitions
from eo_audit.history.instances import transaction_instances
from eo_audit.history.log_order import checked_batches, in_log_order
from eo_audit.history.marker_match import match_markers, with_markers_below_start
from eo_audit.history.open_transactions import open_transactions, unmatched
from eo_audit.history.overwritten_offsets import contested_sections, overwritten_offsets
from eo_audit.history.owners import assign_instances
from eo_audit.history.reach import reach, whole_logs
from eo_audit.history.repeated_records import repeated_records
from eo_audit.history.replica_logs import replica_logs
from eo_audit.history.sections import section_status
from eo_audit.history.sequences import producer_rows
from eo_audit.history.snapshot_states import snapshot_states
from eo_audit.history.spans import transaction_spans
from eo_audit.history.visibility import mark_visibility, visibility
from eo_audit.history.visible_ranges import visible_ranges
from eo_audit.rebuild.as_of import refuse_before_dumps
from eo_audit.rebuild.marker_keys import write_marker_keys
from eo_audit.rebuild.plain import OF_TRANSACTIONS, has_repeats, has_transactions, nobodys, write_none
from eo_audit.store.tables import Warehouse
from eo_audit.store.tasks import Progress, silent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Above 2 GiB of dump text one producer may have millions of batches: then logs are cut into chunks of 2**26 bytes of text, 200,000 batches
# at most. Each window of a task holds all rows that one producer has in a chunk, and gives none of that memory back to another operator
# (`UnsafeExternalSorter.spill`). Below, the second look at each chunk costs more than it saves: at 1 GB 15 s against 8 s (two cores).
CHUNKED_ABOVE_BYTES = 2**31
CHUNK_BITS = 26
# Offsets are put together in runs of 2**22 first: the same, for logs whose batches hold many records.
CHUNK_OFFSET_BITS = 22
# Of the progress only: what takes about equally long of a large input.
STAGES = 5


@dataclass(frozen=True)
class Frame:
    """What every later history needs: which sections are read, which logs there are, and what is known of their clusters."""

    sections: "DataFrame"
    logs: "DataFrame"
    clusters: "DataFrame"


@dataclass(frozen=True)
class Producers:
    """What each batch is to its producer: rows (up to the span, materialised), spans, and the offsets that were seen."""

    rows: "DataFrame"
    spans: "DataFrame"
    coverage: "DataFrame"


@dataclass(frozen=True)
class Judged:
    """Markers and spans beside the coordinator's decisions, how far the clocks lie apart, and how far the dumps reach."""

    events: "DataFrame"
    matched: "DataFrame"
    clocks: "DataFrame"
    reach: "DataFrame"


def rebuild_histories(warehouse: Warehouse, *, as_of_ms: int | None, small: bool, progress: Progress = silent) -> None:
    """Make all history tables anew.

    Args:
        warehouse: being written, with the facts of a finished ingest.
        as_of_ms: the audit's now as the user gave it.
        small: work on each log in one piece.
        progress: hears which part is being worked on.

    Raises:
        ArgumentError: that now is before what the dumps show.
    """
    stages = iter(range(STAGES))

    def told() -> None:
        progress("rebuilding histories", next(stages), STAGES)

    told()
    frame = _frame(warehouse, as_of_ms)
    # What does not need each other is made side by side: planning keeps one core busy while the other one computes.
    with ThreadPoolExecutor(1) as beside:
        told()
        deciding = beside.submit(_coordinator, warehouse, frame)
        producers = _producers(warehouse, frame, chunked=not small and warehouse.text_bytes() > CHUNKED_ABOVE_BYTES)
        told()
        coordinator, instances = deciding.result()
        pending = [beside.submit(write_marker_keys, warehouse), beside.submit(_overwritten_offsets, warehouse, frame)]
        if has_transactions(warehouse):
            judged = _judged(warehouse, frame, producers, coordinator, instances)
            # The widest plan of all (112,000 characters at 1 GB): three tables are made from its rows, and none should plan it again.
            cleaned = bool(pc.any(warehouse.arrow("replica_logs")["compacted"]).as_py())
            assigned = warehouse.materialise(assign_instances(producers.rows, judged.events, instances, cleaned=cleaned))
            told()
            pending.append(beside.submit(_instance_partitions, warehouse, frame, instances, assigned, judged, producers.coverage))
            # Before the rows are marked: who may read a batch depends on the LSO of its log.
            seen = _visibility(warehouse, frame, producers, assigned, instances)
            pending.append(beside.submit(_open_transactions, warehouse, judged.events, seen))
            pending.append(beside.submit(_aborted_index, warehouse, frame, assigned, producers.spans, seen))
        else:
            told()
            write_none(warehouse, *OF_TRANSACTIONS)
            assigned = nobodys(producers.rows)
            seen = _visibility(warehouse, frame, producers, assigned, instances)
        told()
        marked = mark_visibility(assigned, seen, warehouse.read("aborted_transactions"), section_status=frame.sections)
        history = warehouse.overwrite("producer_history", marked)
        # After producer_history, whose columns say which records readers get.
        pending.append(beside.submit(_producer_edges, warehouse, frame, history, chunked=not small))
        pending.append(beside.submit(_repeated_records, warehouse, frame, history))
        pending.append(beside.submit(_snapshot_states, warehouse, frame, history, seen))
        pending.append(beside.submit(_group_offsets, warehouse, frame, history, seen))
        pending.append(beside.submit(_id_allocation, warehouse, frame, history, coordinator, producers.coverage))
        _visible_ranges(warehouse, frame, history, seen, chunk_bits=None if small else CHUNK_OFFSET_BITS)
        for part in pending:
            part.result()


def _frame(warehouse: Warehouse, as_of_ms: int | None) -> Frame:
    read = warehouse.read
    beside = {name: read(name) for name in ("dump_sightings", "tool_messages", "listed_files", "unread_spans")}
    if _is_of_nights(warehouse):
        beside |= {"checkpoints": read("checkpoints"), "night_listings": read("listed_files")}
    status = section_status(read("dump_sections"), read("dump_files"), read("batches"), **beside)
    # Each is written and read back before the next is planned: a plan over plans would be analysed again by every step that reads it, and
    # planning takes 42 % of the CPU time of a small rebuild.
    sections = warehouse.overwrite("section_status", status)
    logs = replica_logs(sections, read("checkpoints"), read("listed_files"), read("manifest_entries"))
    logs = warehouse.overwrite("replica_logs", logs)
    known = clusters(
        read("manifest_entries"),
        read("dump_files"),
        section_status=sections,
        replica_logs=logs,
        coordinator_entries=read("coordinator_entries"),
        as_of_ms=as_of_ms,
    )
    known = warehouse.overwrite("clusters", known)
    if as_of_ms is not None:
        refuse_before_dumps(as_of_ms, clusters=warehouse.arrow("clusters"), logs=warehouse.arrow("replica_logs"))
    return Frame(sections, logs, known)


def _is_of_nights(warehouse: Warehouse) -> bool:
    """Whether a broker, or a cluster, was collected twice: only then may one of its logs, or its end, have gone since (11 jobs)."""
    sections = warehouse.arrow("dump_sections").select(["cluster", "broker", "kind"])
    collections = sections.filter(pc.equal(sections["kind"], "manifest")).group_by(["cluster", "broker"]).aggregate([([], "count_all")])
    return bool(pc.any(pc.greater(collections["count_all"], 1)).as_py())


def _overwritten_offsets(warehouse: Warehouse, frame: Frame) -> None:
    sections = warehouse.arrow("section_status")
    replaced = pc.and_(pc.equal(sections["kind"], "log"), pc.equal(sections["supersession_reason"], "newer_dump"))
    if not pc.any(replaced).as_py():
        write_none(warehouse, "overwritten_offsets")  # most audits
        return
    checkpoints = warehouse.read("checkpoints")
    contested = warehouse.materialise(contested_sections(checkpoints, section_status=frame.sections))
    # As values, which Parquet can skip by.
    logs = [row.replica_log_id for row in contested.select("replica_log_id").distinct().collect()]
    if not logs:
        write_none(warehouse, "overwritten_offsets")
        return
    batches = warehouse.read("batches")
    batches = batches.where(batches.replica_log_id.isin(logs))
    known = overwritten_offsets(batches, checkpoints, contested=contested, section_status=frame.sections)
    warehouse.overwrite("overwritten_offsets", known)


def _producers(warehouse: Warehouse, frame: Frame, *, chunked: bool) -> Producers:
    # Read by the producer rows and by the coverage: computed twice, the largest shuffle would run twice.
    known, unread = (frame.logs, frame.clusters), warehouse.read("unread_spans")
    bits = CHUNK_BITS if chunked else None
    ordered = warehouse.materialise(in_log_order(_batches(warehouse, frame), *known, unread_spans=unread, chunk_bits=bits))
    rows = warehouse.materialise(producer_rows(ordered, chunked=chunked))
    covered = warehouse.overwrite("coverage", coverage(ordered, frame.sections, frame.logs, unread_spans=unread))
    return Producers(rows, warehouse.overwrite("transaction_spans", transaction_spans(rows)), covered)


def _batches(warehouse: Warehouse, frame: Frame) -> "DataFrame":
    """The batches; only of segments that a tool before 2.2 printed both ways is anything to add to them."""
    sections = warehouse.arrow("section_status")
    replaced = sections.filter(pc.equal(sections["supersession_reason"], "deep_beats_shallow"))["superseded_by"]
    blind = sections.filter(pc.and_(sections["is_read"], sections["lacks_checksums"]))["section_id"]
    batches = warehouse.read("batches")
    return checked_batches(batches, frame.sections) if pc.any(pc.is_in(blind, value_set=replaced)).as_py() else batches


def _coordinator(warehouse: Warehouse, frame: Frame) -> "tuple[DataFrame, DataFrame]":
    if warehouse.is_empty("coordinator_entries"):
        write_none(warehouse, "coordinator_history", "transaction_instances")
        return warehouse.read("coordinator_history"), warehouse.read("transaction_instances")
    unread, logs = warehouse.read("unread_spans"), warehouse.arrow("replica_logs")
    history = coordinator_history(warehouse.read("coordinator_entries"), frame.sections, frame.clusters, unread, logs)
    history = warehouse.overwrite("coordinator_history", history)
    return history, warehouse.overwrite("transaction_instances", transaction_instances(history, frame.clusters))


def _judged(warehouse: Warehouse, frame: Frame, producers: Producers, coordinator: "DataFrame", instances: "DataFrame") -> Judged:
    """Markers beside decisions first: they tell the clocks, and the clocks tell how far each log's dump reaches."""
    known = {"replica_logs": _with_epochs(warehouse, frame.logs), "clusters": frame.clusters}
    # How far each dump reaches, before anything is called missing: files of a broker at work are copied one after another.
    cut = warehouse.materialise(cut_logs(producers.rows, instances, coordinator_history=coordinator, replica_logs=frame.logs))
    story = reach(coordinator, frame.logs, frame.clusters, cut)
    covered = producers.coverage
    matched = match_markers(producers.rows, producers.spans, instances, reach=story, coverage=covered, keep=warehouse.materialise, **known)
    matched = warehouse.materialise(matched)
    clocks = warehouse.overwrite("clock_offsets", clock_offsets(matched))
    if _may_have_markers_below(warehouse):
        beside = {"section_status": frame.sections, "producer_snapshots": warehouse.read("producer_snapshots"), "coverage": covered}
        matched = with_markers_below_start(
            matched, rows=producers.rows, reach=story, clock_offsets=clocks, replica_logs=frame.logs, clusters=frame.clusters, **beside
        )
        matched = warehouse.materialise(matched)
    whole = whole_logs(coordinator, frame.logs, frame.clusters, cut)
    events = judged_events(producers.rows, producers.spans, matched, reach=story, whole_logs=whole, clock_offsets=clocks, **known)
    events = warehouse.materialise(events)
    warehouse.overwrite("unmatched", unmatched(events))
    return Judged(events, matched, clocks, story)


def _may_have_markers_below(warehouse: Warehouse) -> bool:
    """Whether a log begins behind offset 0 and snapshots were dumped: of most dumps one look tells that there is nothing to ask."""
    return not warehouse.is_empty("producer_snapshots") and _lacks_heads(warehouse)


def _lacks_heads(warehouse: Warehouse) -> bool:
    return bool(pc.any(pc.greater(warehouse.arrow("replica_logs")["first_offset"], 0)).as_py())


def _with_epochs(warehouse: Warehouse, logs: "DataFrame") -> "DataFrame":
    """The logs whose dumps show the epochs of producers: of no other is it told whose a marker is."""
    sections = warehouse.arrow("section_status")
    blind = sections.filter(pc.and_(sections["is_read"], sections["lacks_epochs"]))["replica_log_id"].to_pylist()
    return logs.where(~logs.replica_log_id.isin(blind)) if blind else logs


def _instance_partitions(
    warehouse: Warehouse, frame: Frame, instances: "DataFrame", assigned: "DataFrame", judged: Judged, covered: "DataFrame"
) -> None:
    if warehouse.is_empty("transaction_instances"):
        write_none(warehouse, "instance_partitions")
        return
    partitions = instance_partitions(
        instances,
        assigned,
        events=judged.events,
        matched=judged.matched,
        reach=judged.reach,
        coverage=covered,
        replica_logs=frame.logs,
        clock_offsets=judged.clocks,
        clusters=frame.clusters,
    )
    warehouse.overwrite("instance_partitions", partitions)


def _visibility(warehouse: Warehouse, frame: Frame, producers: Producers, assigned: "DataFrame", instances: "DataFrame") -> "DataFrame":
    snapshots = warehouse.read("producer_snapshots")
    known = {"replica_logs": frame.logs, "coverage": producers.coverage, "clusters": frame.clusters, "instances": instances}
    return warehouse.overwrite("visibility", visibility(assigned, producers.spans, snapshots, section_status=frame.sections, **known))


def _open_transactions(warehouse: Warehouse, events: "DataFrame", seen: "DataFrame") -> None:
    # Below offset 0 nothing began: of most dumps one look spares a join.
    warehouse.overwrite("open_transactions", open_transactions(events, seen if _lacks_heads(warehouse) else seen.where("false")))


def _aborted_index(warehouse: Warehouse, frame: Frame, assigned: "DataFrame", spans: "DataFrame", seen: "DataFrame") -> None:
    printed = warehouse.read("aborted_transactions")
    warehouse.overwrite("aborted_index", aborted_index(assigned, spans, printed, visibility=seen, section_status=frame.sections))


def _snapshot_states(warehouse: Warehouse, frame: Frame, history: "DataFrame", seen: "DataFrame") -> None:
    known = {"section_status": frame.sections, "replica_logs": frame.logs, "visibility": seen, "clusters": frame.clusters}
    warehouse.overwrite("snapshot_states", snapshot_states(history, warehouse.read("producer_snapshots"), **known))


def _group_offsets(warehouse: Warehouse, frame: Frame, history: "DataFrame", seen: "DataFrame") -> None:
    if warehouse.is_empty("offset_commits"):
        write_none(warehouse, "group_offsets")  # most dumps
        return
    logs = warehouse.arrow("replica_logs")
    # As values, which Parquet can skip by: of a large history only the logs of group offsets are read.
    own = logs.filter(pc.equal(logs["topic"], "__consumer_offsets"))["replica_log_id"].to_pylist()
    rows = history.where(history.replica_log_id.isin(own))
    offsets = group_offsets(warehouse.read("offset_commits"), rows, section_status=frame.sections, visibility=seen)
    warehouse.overwrite("group_offsets", offsets)


def _id_allocation(warehouse: Warehouse, frame: Frame, history: "DataFrame", coordinator: "DataFrame", covered: "DataFrame") -> None:
    told = {row["name"] for row in warehouse.arrow("manifest_entries").to_pylist()} & TOLD_BY_MANIFEST
    if not told and warehouse.is_empty("producer_id_blocks"):
        write_none(warehouse, "id_allocation")  # most dumps
        return
    allocated = id_allocation(
        warehouse.read("producer_id_blocks"),
        warehouse.read("manifest_entries"),
        producer_history=history,
        coordinator_history=coordinator,
        section_status=frame.sections,
        replica_logs=frame.logs,
        coverage=covered,
        clusters=frame.clusters,
    )
    warehouse.overwrite("id_allocation", allocated)


def _visible_ranges(warehouse: Warehouse, frame: Frame, history: "DataFrame", seen: "DataFrame", *, chunk_bits: int | None) -> None:
    ranges = visible_ranges(history, warehouse.read("records"), seen, section_status=frame.sections, chunk_bits=chunk_bits)
    warehouse.overwrite("visible_ranges", ranges)


def _producer_edges(warehouse: Warehouse, frame: Frame, history: "DataFrame", *, chunked: bool) -> None:
    warehouse.overwrite("producer_edges", producer_edges(history, warehouse.read("records"), frame.logs, chunked=chunked))


def _repeated_records(warehouse: Warehouse, frame: Frame, history: "DataFrame") -> None:
    if has_repeats(warehouse):
        warehouse.overwrite("repeated_records", repeated_records(history, warehouse.read("records"), frame.sections, frame.logs))
    else:
        write_none(warehouse, "repeated_records")
