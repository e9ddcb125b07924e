"""`eo-audit why`: what is open, since when, whose it is, who waits for it, and what ended it. No Spark.

The offline twin of `kafka-transactions.sh describe`, `describe-producers` and `list`, and of `kafka-consumer-groups.sh --describe`: what a
broker would say, as far as the dumps tell, and what it no longer knows.
"""

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from eo_audit.audit.order import rows_of
from eo_audit.audit.sentences import GRAVEST_FIRST, copies_of, whose
from eo_audit.errors import ArgumentError
from eo_audit.report.results import Results
from eo_audit.report.subject import (
    MOST_ROWS,
    Subject,
    at,
    cause,
    cells,
    clusters_of,
    in_cluster,
    in_one,
    known,
    listed,
    of_broker,
    table_of,
    with_rest,
)
from eo_audit.report.terminal import STYLES, remedy_of, without_blanks
from eo_audit.report.values import maybe
from eo_audit.report.why_answers import of_id, of_producer
from eo_audit.report.why_console import printed_of_id, printed_of_producer
from eo_audit.report.why_partition import partition
from eo_audit.rules.commands import address_for
from eo_audit.words import Row, digits, duration, offset_range, place, some, timeout, visible

_EPOCHS = ("producer_epoch", "first_epoch", "last_epoch")


def why(subject: Subject, results: Results, screen: Console) -> None:
    """Print what is known of a subject, and the findings about it."""
    found = [row for row in results.findings if subject.is_about(row)]
    found.sort(key=lambda row: (GRAVEST_FIRST.index(str(row["severity"])), str(row["rule"]), str(row["finding_id"])))
    with without_blanks(screen):
        screen.print(Text(visible(subject.name), "bold"))
        for block in (*subject.blocks, *_findings(found, results)):
            screen.print(Padding(block, (0 if isinstance(block, Text) else 1, 0, 0, 2)))
        if found:
            screen.print(Text(f"\nwhat to do about {found[0]['rule']}", "bold"))
            remedy = str(found[0]["remedy"])
            for block in (*remedy_of(address_for([remedy]) or ""), *remedy_of(remedy)):
                screen.print(block, soft_wrap=isinstance(block, Text))


def transactional_id(name: str, results: Results, cluster: str | None = None) -> Subject:
    """A transactional id: its newest state, and its newest transactions with what ended them.

    Args:
        name: the id.
        results: of a finished audit.
        cluster: its name, where several have such an id.

    Raises:
        ArgumentError: the coordinator's log that was dumped knows no such id.
    """
    clusters: set[str] = set()
    blocks: list[RenderableType] = []
    for one in clusters_of(results, cluster):
        entries, _ = results.newest("coordinator_history", "entry_offset", 1, transactional_id=name, cluster=one)
        if entries:
            clusters.add(one)
            instances, number = results.newest("transaction_instances", "first_entry_offset", MOST_ROWS, transactional_id=name, cluster=one)
            blocks += [_state(entries[0], instances, results), *_transactions(instances, number, results)]
    answered = [*of_id(name, results, cluster), *printed_of_id(name, results, cluster)]
    if not (clusters or answered):
        raise ArgumentError(f"no dump of __transaction_state tells of the id {name}")
    blocks += answered
    return Subject(name, lambda row: row["transactional_id"] == name and row["cluster"] in clusters, blocks)


def partition_or_id(name: str, results: Results, cluster: str | None = None) -> Subject:
    """A partition, or the transactional id that is called so where no partition is: those of Flink and Kafka Connect end like one.

    Raises:
        ArgumentError: neither dumps nor answers tell of such a partition or id.
    """
    try:
        return partition(name, results, cluster)
    except ArgumentError as unknown:
        try:
            return transactional_id(name, results, cluster)
        except ArgumentError:
            raise unknown from None


def producer(number: int, results: Results, cluster: str | None = None) -> Subject:
    """A producer id: whose it is, and what it wrote and left open in each partition.

    Args:
        number: the producer id.
        results: of a finished audit.
        cluster: its name, where several have such a producer.

    Raises:
        ArgumentError: no dump tells of it.
    """
    logs = {row["replica_log_id"]: row for row in in_one(results.rows("visibility"), cluster)}
    wrote = [row for row in results.rows("producer_edges", producer_id=number) if row["replica_log_id"] in logs]
    spans = [row for row in results.rows("transaction_spans", producer_id=number) if row["replica_log_id"] in logs]
    ids = in_one(results.rows("transaction_instances", producer_id=number), cluster)
    answered = [*of_producer(number, results, cluster), *printed_of_producer(number, results, cluster)]
    if not (wrote or spans or ids or answered):
        raise ArgumentError(f"no dump tells of a producer {number}")
    names = sorted({visible(row["transactional_id"]) for row in ids})
    whose = f"the producer of {some(names)}" if names else "no transactional id in the dumps has this producer id"
    blocks: list[RenderableType] = [Text(whose), *([_wrote(wrote, spans, logs, results)] if wrote or spans else []), *answered]
    clusters = {row["cluster"] for row in (*logs.values(), *ids)}
    return Subject(f"producer {number}", lambda row: row["producer_id"] == number and row["cluster"] in clusters, blocks)


def _state(newest: Row, instances: Sequence[Row], results: Results) -> Text:
    """What `kafka-transactions.sh describe` would say: the newest entry of an id."""
    status = "removed (a tombstone)" if newest["tombstone"] else visible(newest["status"])
    entry = f"entry {newest['entry_offset']} of __transaction_state-{newest['coordinator_partition']}"
    lines = [
        f"{status}{in_cluster(newest, results)}, by {entry} at {at(newest['batch_timestamp_ms'], results)}",
        f"producer {known(newest['producer_id'])}, epoch {known(newest['producer_epoch'])}, "
        f"transaction timeout {timeout(maybe(newest, 'timeout_ms'))}",
    ]
    last = next((row for row in instances if row["is_last"] and row["completed_at_ms"] is None), None)
    if last is not None:
        lines.append(f"open since {at(last['start_ms'], results)}, in {listed(last['partitions'], most=6) or 'no partition yet'}")
    return Text("\n".join(lines))


def _transactions(instances: Sequence[Row], number: int, results: Results) -> Iterator[RenderableType]:
    """The newest transactions of an id, and in which partitions their markers are not."""
    if not instances:
        yield Text("the dumps tell of no transaction of it")
        return
    table = table_of("its newest transactions", "began", "lasted", "producer", "epoch", "partitions", "how it ended", "markers that lack")
    lost = results.rows("instance_partitions", instance_id=[row["instance_id"] for row in instances], marker_match="missing")
    for row in instances:
        began, ended = maybe(row, "start_ms"), maybe(row, "completed_at_ms") or maybe(row, "decided_at_ms")
        lasted = duration(ended - began) if began is not None and ended is not None and ended >= began else "–"
        how = f"{str(row['decision']).lower()}{cause(row)}" if row["decision"] else f"open ({row['last_status']})"
        lacking = listed([one for one in lost if one["instance_id"] == row["instance_id"]], most=3)
        names = listed(row["partitions"], most=3)
        table.add_row(*cells(at(began, results), lasted, row["producer_id"], row["data_epoch"], names, how, lacking))
    yield from with_rest(table, number)


def _wrote(wrote: Sequence[Row], spans: Sequence[Row], logs: Mapping[object, Row], results: Results) -> RenderableType:
    """What `describe-producers` would say of a producer, in each partition; of copies that nothing tells apart, once."""
    columns = ("partition", "broker", "epochs", "offsets", "records", "last record", "open from", "newest marker")
    brokers: dict[tuple[object, ...], list[str]] = {}
    for log_id in sorted({row["replica_log_id"] for row in (*wrote, *spans)}, key=lambda one: (place(logs[one]), *of_broker(logs[one]))):
        own = [row for row in spans if row["replica_log_id"] == log_id]
        # Of internal topics, and of the middle of very many epochs, only the transactions are told.
        rows = [row for row in wrote if row["replica_log_id"] == log_id] or own
        log = logs[log_id]
        brokers.setdefault((log["cluster"], place(log), *_in_log(rows, own, results)), []).append(known(log["broker"]))
    table = table_of("in the partitions", *columns)
    for (_, where, *told), found in brokers.items():
        table.add_row(*cells(where, some(found), *told))
    return table


def _in_log(rows: Sequence[Row], spans: Sequence[Row], results: Results) -> Iterator[object]:
    """Epochs, offsets and records of a producer in a log, when it wrote last, what is open, and its newest marker."""
    epochs = sorted(epoch for row in rows for name in _EPOCHS if (epoch := maybe(row, name)) is not None)
    # kafka-dump-log 0.11.0.0 and 0.11.0.1 print no epochs.
    yield " to ".join(str(epoch) for epoch in sorted({epochs[0], epochs[-1]})) if epochs else None
    first, last = (min(maybe(row, "first_offset") or 0 for row in rows), max(maybe(row, "last_offset") or 0 for row in rows))
    yield offset_range({"first_offset": first, "last_offset": last})
    yield digits(sum(maybe(row, "records") or 0 for row in rows))
    yield at(max((maybe(row, "last_timestamp_ms") or -1 for row in rows), default=-1), results)
    yield next((row["first_offset"] for row in spans if row["outcome"] == "open"), None)
    ended = max(spans, key=lambda row: maybe(row, "marker_offset") or -1, default={})
    yield f"{ended['marker_type']} at {ended['marker_offset']}" if ended.get("marker_offset") is not None else None


def _findings(found: Sequence[Row], results: Results) -> Iterator[RenderableType]:
    """The findings about the subject, the gravest first."""
    if not found:
        yield Text("\nno finding about it")
        return
    table = table_of("findings", "rule", "severity", "what")
    copies = copies_of(rows_of(results.verdict, "partitions"))
    for row in found[:MOST_ROWS]:
        severity, on = str(row["severity"]), whose(row, copies)
        table.add_row(str(row["rule"]), Text(severity, STYLES.get(severity, "")), f"{on}{': ' * bool(on)}{visible(row['message'])}")
    yield from with_rest(table, len(found))
