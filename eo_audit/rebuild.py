"""Facts to histories: which history is made from which, in order. Every step takes and returns rows; only the warehouse reads and writes.

sections, logs, clusters          what was dumped, and of what
batches in log order              one pass over the batches of each replica log
producer rows, spans, coverage    what each batch is to its producer
coordinator, instances            what the coordinator decided
assigned, visible rows            whose transaction each batch belongs to, and who may read it
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from eo_audit.history.aborted_index import aborted_index
from eo_audit.history.assignment import assign_instances
from eo_audit.history.clusters import clusters
from eo_audit.history.coordinator import coordinator_history
from eo_audit.history.coverage import coverage
from eo_audit.history.edges import producer_edges
from eo_audit.history.instance_partitions import instance_partitions
from eo_audit.history.instances import transaction_instances
from eo_audit.history.log_order import in_log_order
from eo_audit.history.replica_logs import replica_logs
from eo_audit.history.sections import section_status
from eo_audit.history.sequences import producer_rows
from eo_audit.history.spans import transaction_spans
from eo_audit.history.visibility import mark_visibility, visibility
from eo_audit.history.visible_ranges import visible_ranges
from eo_audit.tables import Warehouse
from eo_audit.tasks import Progress, silent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Logs are cut into chunks of 2**28 bytes of dump text, about half a million batches: tasks of seconds, and many of them.
CHUNK_BITS = 28
# Offsets are put together in runs of 2**22 first: the same, for logs whose batches hold many records.
CHUNK_OFFSET_BITS = 22
STAGES = 5


@dataclass(frozen=True)
class Frame:
    """What every later history needs: which sections are read, which logs there are, and what is known of their clusters."""

    sections: "DataFrame"
    logs: "DataFrame"
    clusters: "DataFrame"


def rebuild_histories(warehouse: Warehouse, *, as_of_ms: int | None, small: bool, progress: Progress = silent) -> None:
    """Make all history tables anew.

    Args:
        warehouse: being written, with the facts of a finished ingest.
        as_of_ms: the audit's now as the user gave it.
        small: work on each log in one piece.
        progress: hears which part is being worked on.
    """
    stages = iter(range(STAGES))

    def told() -> None:
        progress("rebuilding histories", next(stages), STAGES)

    told()
    frame = _frame(warehouse, as_of_ms)
    told()
    ordered = warehouse.materialise(in_log_order(warehouse.read("batches"), frame.logs, chunk_bits=None if small else CHUNK_BITS))
    rows = warehouse.materialise(producer_rows(ordered, chunked=not small))
    covered = warehouse.overwrite("coverage", coverage(ordered, frame.sections, frame.logs))
    spans = warehouse.overwrite("transaction_spans", transaction_spans(rows))
    told()
    coordinator, instances = _coordinator(warehouse, frame)
    assigned = warehouse.materialise(
        assign_instances(rows, spans, instances, coordinator_history=coordinator, replica_logs=frame.logs, clusters=frame.clusters)
    )
    told()
    seen = _visibility(warehouse, frame, assigned=assigned, spans=spans, covered=covered)
    partitions = instance_partitions(instances, assigned, coverage=covered, replica_logs=frame.logs, clusters=frame.clusters)
    warehouse.overwrite("instance_partitions", partitions)
    told()
    history = mark_visibility(assigned, seen, warehouse.read("aborted_transactions"), section_status=frame.sections)
    _what_consumers_get(warehouse, frame, history=warehouse.overwrite("producer_history", history), seen=seen, small=small)


def _frame(warehouse: Warehouse, as_of_ms: int | None) -> Frame:
    read = warehouse.read
    sections = warehouse.overwrite("section_status", section_status(read("dump_sections"), read("dump_files"), read("batches")))
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
    return Frame(sections, logs, warehouse.overwrite("clusters", known))


def _coordinator(warehouse: Warehouse, frame: Frame) -> "tuple[DataFrame, DataFrame]":
    history = coordinator_history(warehouse.read("coordinator_entries"), frame.sections, frame.clusters)
    history = warehouse.overwrite("coordinator_history", history)
    return history, warehouse.overwrite("transaction_instances", transaction_instances(history, frame.clusters))


def _visibility(warehouse: Warehouse, frame: Frame, *, assigned: "DataFrame", spans: "DataFrame", covered: "DataFrame") -> "DataFrame":
    seen = visibility(
        assigned,
        spans,
        warehouse.read("producer_snapshots"),
        replica_logs=frame.logs,
        coverage=covered,
        clusters=frame.clusters,
    )
    index = aborted_index(
        assigned,
        spans,
        warehouse.read("aborted_transactions"),
        visibility=(written := warehouse.overwrite("visibility", seen)),
        section_status=frame.sections,
    )
    warehouse.overwrite("aborted_index", index)
    return written


def _what_consumers_get(warehouse: Warehouse, frame: Frame, *, history: "DataFrame", seen: "DataFrame", small: bool) -> None:
    records = warehouse.read("records")
    ranges = visible_ranges(
        history,
        records,
        seen,
        section_status=frame.sections,
        chunk_bits=None if small else CHUNK_OFFSET_BITS,
    )
    warehouse.overwrite("visible_ranges", ranges)
    warehouse.overwrite("producer_edges", producer_edges(history, records, frame.logs, chunked=not small))
