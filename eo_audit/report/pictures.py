"""Which pictures a report holds, and from which rows each is drawn.

Only partitions and transactional ids that a finding is about get a picture, the gravest first; a long history is drawn around its findings,
so the size of a report follows from its findings and never from the size of the logs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from eo_audit.report.charts import open_transactions_chart, partition_chart, transactional_id_chart, whole
from eo_audit.report.content import Content, Reader, rank
from eo_audit.report.html import anchor
from eo_audit.report.wording import Row, place

MAX_PARTITION_CHARTS = 24
MAX_ID_CHARTS = 16
MAX_BATCHES = 90  # batches that stay readable across one page
WINDOW_OFFSETS = 3_000  # looked at on either side of a finding in a long log


def with_pictures(content: Content, findings: Sequence[Row], reader: Reader) -> Content:
    """The same content with its charts drawn."""
    ordered = sorted(findings, key=rank)
    return replace(
        content,
        partition_charts=_partition_charts(ordered, reader),
        id_charts=_id_charts(ordered, reader),
        run_chart=_run_chart(content, reader),
    )


def _firsts(keys: Iterable[tuple[object, ...]], most: int) -> list[tuple[object, ...]]:
    return list(dict.fromkeys(keys))[:most]


def _partition_charts(ordered: Sequence[Row], reader: Reader) -> dict[str, tuple[str, str]]:
    charts = {}
    named = [f for f in ordered if f.get("topic") is not None and f.get("partition") is not None]
    for cluster, topic, partition in _firsts(((f["cluster"], f["topic"], f["partition"]) for f in named), MAX_PARTITION_CHARTS):
        here = [f for f in named if (f["cluster"], f["topic"], f["partition"]) == (cluster, topic, partition)]
        log = _shown_replica(reader.rows("visibility", cluster=cluster, topic=topic, partition=partition), here[0])
        if log and (svg := picture_of_partition(log, here, reader)):
            where = "" if log.get("broker") is None else f" on broker {log['broker']}"
            charts[anchor(cluster, topic, partition)] = (f"{place(log)}{where}, cluster {cluster}", svg)
    return charts


def picture_of_partition(log: Row, findings: Sequence[Row], reader: Reader) -> str:
    """One replica log around its gravest finding, as SVG; empty where it has no batches.

    Args:
        log: its row of `visibility`.
        findings: the findings about it, the gravest first.
        reader: where its history is read.
    """
    rows = _window(log, findings, reader)
    return partition_chart(rows, log, _ranges(findings)) if rows else ""


def _shown_replica(logs: Sequence[Row], finding: Row) -> Row | None:
    """The replica that the gravest finding names first, else the first one."""
    brokers = finding.get("brokers")
    wanted = brokers[0] if isinstance(brokers, list) and brokers else None
    return next((log for log in logs if log.get("broker") == wanted), logs[0] if logs else None)


def _ranges(findings: Sequence[Row]) -> list[tuple[int, int]]:
    return [
        (whole(f, "first_offset"), whole(f, "last_offset" if f.get("last_offset") is not None else "first_offset"))
        for f in findings
        if f.get("first_offset") is not None
    ]


def _window(log: Row, findings: Sequence[Row], reader: Reader) -> list[dict[str, object]]:
    """The batches to draw: all of a short log, else those around its gravest finding that has offsets."""
    ranges = _ranges(findings)
    first, last = ranges[0] if ranges else (whole(log, "log_start"), whole(log, "log_start"))
    rows = reader.window(whole(log, "replica_log_id"), first_offset=first - WINDOW_OFFSETS, last_offset=last + WINDOW_OFFSETS)
    if len(rows) <= MAX_BATCHES:
        return rows
    middle = next((at for at, row in enumerate(rows) if whole(row, "last_offset") >= first), 0)
    begin = max(0, min(middle - MAX_BATCHES // 3, len(rows) - MAX_BATCHES))
    return rows[begin : begin + MAX_BATCHES]


def _id_charts(ordered: Sequence[Row], reader: Reader) -> dict[str, tuple[str, str]]:
    charts = {}
    keys = _firsts(((f["cluster"], f["transactional_id"]) for f in ordered if f.get("transactional_id")), MAX_ID_CHARTS)
    for cluster, transactional_id in keys:
        entries = reader.rows("coordinator_history", cluster=cluster, transactional_id=transactional_id)[-MAX_BATCHES:]
        if entries:
            instances = reader.rows("transaction_instances", cluster=cluster, transactional_id=transactional_id)
            charts[anchor(cluster, transactional_id)] = (
                f"{transactional_id}, cluster {cluster}",
                transactional_id_chart(entries, instances),
            )
    return charts


def _run_chart(content: Content, reader: Reader) -> str | None:
    """Only for a run over one cluster: several have no common clock."""
    if len({str(partition["cluster"]) for partition in content.partitions}) != 1:
        return None
    begins, ends = reader.open_intervals(whole(content.verdict, "as_of_ms"))
    return open_transactions_chart(begins, ends) if len(begins) else None
