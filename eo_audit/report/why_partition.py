"""`eo-audit why orders-0`: where consumers of a partition stand, what is open there and since when, what ended last."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from eo_audit.audit.sentences import held_back_sentence
from eo_audit.audit.unknown_lso import is_at_least
from eo_audit.errors import ArgumentError
from eo_audit.report.results import Results
from eo_audit.report.subject import MOST_ROWS, Copy, Subject, at, cause, cells, instances_of, of_broker, table_of, told_once, with_rest
from eo_audit.report.values import maybe
from eo_audit.report.why_answers import of_partition
from eo_audit.report.why_console import printed_of_partition
from eo_audit.words import NEVER_TIMES_OUT, Row, digits, offset_range, place, some, visible

_FATES = {
    "running": "its coordinator will end it",
    "decided": "decided; its marker is missing here, or came to this replica behind the dump",
    "nobody": "nobody will end it",
    "unknown": "the dumps do not tell whether anybody will end it",
}


def partition(name: str, results: Results, cluster: str | None = None) -> Subject:
    """A partition, on each broker whose copy was dumped: where consumers stand, what is open there, what ended last.

    Args:
        name: topic-partition, such as orders-0.
        results: of a finished audit.
        cluster: its name, where several have such a partition.

    Raises:
        ArgumentError: neither dumps nor answers tell of such a partition.
    """
    topic, _, number = name.rpartition("-")
    of_cluster = {} if cluster is None else {"cluster": cluster}
    logs = results.rows("visibility", topic=topic, partition=int(number), **of_cluster) if number.isdecimal() else []
    told = [*of_partition(name, results, cluster), *printed_of_partition(name, results, cluster)]
    if not (logs or told):
        held = sorted({place(row) for row in results.rows("visibility", **of_cluster) if not row["is_internal"]})
        raise ArgumentError(f"the dumps hold no partition {name}; they hold {some(held, most=12) or 'none'}")
    copies = [Copy(log, how_far(log), list(_below(log, results))) for log in sorted(logs, key=of_broker)]
    blocks = list(told_once(copies, results)) or [Text("no replica of it was dumped")]
    blocks += told
    clusters = {log["cluster"] for log in logs}
    return Subject(name, lambda row: place(row) == name and row["cluster"] in clusters, blocks)


def how_far(log: Row) -> Text:
    """How far a log reaches, and where its consumers stand."""
    hw, lso = digits(log["hw"]), digits(log["lso"])
    if is_at_least(log["hw"], log["hw_source"], tail_intact=bool(log["tail_intact"])):
        hw, lso = f"at least {hw}", f"at least {lso}" if log["lso"] == log["hw"] else lso
    offsets = f"offsets {digits(log['log_start'])} to {digits(log['leo'])}, high watermark {hw}"
    return Text(f"{offsets}, last stable offset {lso}, coverage {log['coverage']}")


def _below(log: Row, results: Results) -> Iterator[RenderableType]:
    """Why its consumers stand there, what is open, and what ended last."""
    told = _told_of(log, results)
    if told is not None and told.get("lso_unknown_why"):
        yield Text(visible(told["lso_unknown_why"]))
    if told is not None and told["blocker"] and told["lso"] != told["hw"]:
        yield Text(visible(held_back_sentence(told, results.findings)), "yellow")
    yield from _open(log, results)
    yield from _ended(log, results)


def _told_of(log: Row, results: Results) -> Row | None:
    """The row of a log in verdict.json."""
    same = ("cluster", "broker", "topic", "partition")
    rows = results.verdict["partitions"]
    assert isinstance(rows, list)
    return next((row for row in rows if all(row[name] == log[name] for name in same)), None)


def _open(log: Row, results: Results) -> Iterator[RenderableType]:
    """What is open at the end of a log, the oldest first: that one holds consumers back."""
    found = sorted(results.rows("open_transactions", replica_log_id=log["replica_log_id"]), key=lambda row: maybe(row, "began_at") or 0)
    if not found:
        yield Text("no transaction is open here")
        return
    instances = instances_of([row["instance_id"] for row in found], results)
    spans = {row["producer_id"]: row for row in results.rows("transaction_spans", replica_log_id=log["replica_log_id"], outcome="open")}
    table = table_of("open here", "transactional id", "producer", "epoch", "from offset", "records", "since", "who ends it")
    for row in found[:MOST_ROWS]:
        instance, span = instances.get(row["instance_id"], {}), spans.get(row["producer_id"], {})
        since = maybe(instance, "start_ms") or maybe(row, "sealed_ms") or maybe(span, "first_timestamp_ms")
        fate = f"unknown ({str(row['why_unknown']).replace('_', ' ')})" if row["why_unknown"] else _fate(row, instance)
        name = instance["transactional_id"] if instance else _owner(row, results)
        epoch, records = span.get("last_epoch"), digits(span.get("records"))
        table.add_row(*cells(name, row["producer_id"], epoch, row["began_at"], records, at(since, results), fate))
    yield from with_rest(table, len(found))


def _fate(row: Row, instance: Row) -> str:
    """Who ends what is open: its coordinator at the latest when the timeout is over, if there is one."""
    runs = row["fate"] == "running"
    return "its owner will end it, no timeout does" if runs and instance.get("timeout_ms") == NEVER_TIMES_OUT else _FATES[str(row["fate"])]


def _owner(row: Row, results: Results) -> object:
    """The id that has a producer id; None where the coordinator's log knows none."""
    same = {"producer_id": row["producer_id"], "cluster": row["cluster"]}
    found, _ = results.newest("transaction_instances", "first_entry_offset", 1, **same)
    return found[0]["transactional_id"] if found else None


def _ended(log: Row, results: Results) -> Iterator[RenderableType]:
    """The newest transactions that a marker of the log ended."""
    of_log = {"replica_log_id": log["replica_log_id"]}
    spans, number = results.newest("transaction_spans", "marker_offset", MOST_ROWS, **of_log)
    if not spans:
        return
    markers = [row["marker_offset"] for row in spans]
    matched = {row["marker_offset"]: row for row in results.rows("instance_partitions", marker_offset=markers, **of_log)}
    instances = instances_of([row["instance_id"] for row in matched.values()], results)
    table = table_of("ended last", "transactional id", "producer", "epoch", "offsets", "records", "marker", "how it ended")
    for row in spans:
        instance = instances.get(matched.get(row["marker_offset"], {}).get("instance_id"), {})
        how = f"{row['outcome']} at {at(row['marker_timestamp_ms'], results)}{cause(instance)}"
        who = (instance.get("transactional_id"), row["producer_id"], row["last_epoch"])
        table.add_row(*cells(*who, offset_range(row), digits(row["records"]), row["marker_offset"], how))
    yield from with_rest(table, number)
