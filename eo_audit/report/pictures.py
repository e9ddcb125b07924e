"""Which pictures a report holds, and from which rows each is drawn.

Partitions and transactional ids that findings are about come first, the gravest first, then the partitions that are held back or of which
there are few. A short log is drawn whole; of a long one there is a strip of the whole, and the batches around each finding.
The size of a report follows from its findings, never from the size of the logs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from eo_audit.audit.order import rank
from eo_audit.report.charts import Concern, overview_chart, partition_chart
from eo_audit.report.content import Content, Picture, Reader
from eo_audit.report.html import anchor
from eo_audit.report.time_charts import open_transactions_chart, transactional_id_chart
from eo_audit.report.values import maybe, whole
from eo_audit.words import Row, count, place, visible

MAX_PARTITIONS = 24
MAX_QUIET_PARTITIONS = 6  # that no finding is about
MAX_IDS = 16
MAX_BATCHES = 80  # that stay readable across one page
AROUND = 24  # batches drawn on either side of a finding in a long log
MAX_STRETCHES = 4  # of one partition
STRETCHES_OF_STRIP = 180
# Nobody knows how many batches lie in so many offsets: ten times as far until there are enough.
_REACHES = (200, 2_000, 20_000, 200_000, 2_000_000)


def with_pictures(content: Content, findings: Sequence[Row], reader: Reader) -> Content:
    """The same content with its charts drawn."""
    ordered = sorted(findings, key=rank)
    return replace(
        content,
        partition_charts=_partition_pictures(content, ordered, reader),
        id_charts=_id_pictures(ordered, reader),
        run_chart=_run_chart(content, reader),
    )


def _firsts(keys: Iterable[tuple[object, ...]], most: int) -> list[tuple[object, ...]]:
    return list(dict.fromkeys(keys))[:most]


def _key(row: Row) -> tuple[object, ...]:
    return row.get("cluster"), row.get("topic"), row.get("partition")


def _partition_pictures(content: Content, ordered: Sequence[Row], reader: Reader) -> dict[str, Picture]:
    pictures = {}
    named = [finding for finding in ordered if finding.get("partition") is not None]
    # Those first whose consumers wait; on Kafka's own topics nobody's do.
    quiet = sorted((p for p in content.partitions if not str(p["topic"]).startswith("__")), key=lambda p: -whole(p, "held_back_records"))
    concerned = _firsts(map(_key, named), MAX_PARTITIONS)
    others = [key for key in _firsts(map(_key, quiet), MAX_PARTITIONS) if key not in set(concerned)]
    for cluster, topic, partition in [*concerned, *others[: min(MAX_QUIET_PARTITIONS, MAX_PARTITIONS - len(concerned))]]:
        here = [finding for finding in named if _key(finding) == (cluster, topic, partition)]
        log = _shown_replica(reader.rows("visibility", cluster=cluster, topic=topic, partition=partition), here)
        picture = picture_of_partition(log, here, reader) if log else Picture("", ())
        if picture.charts:
            pictures[anchor(cluster, topic, partition)] = picture
    return pictures


def _shown_replica(logs: Sequence[Row], findings: Sequence[Row]) -> Row | None:
    """The replica that the gravest finding names first, else the first one."""
    brokers = findings[0].get("brokers") if findings else None
    wanted = brokers[0] if isinstance(brokers, list) and brokers else None
    return next((log for log in logs if log.get("broker") == wanted), logs[0] if logs else None)


def picture_of_partition(log: Row, findings: Sequence[Row], reader: Reader) -> Picture:
    """One replica log; without charts where it has no batches.

    Args:
        log: its row of `visibility`.
        findings: the findings about it, the gravest first.
        reader: where its history is read.
    """
    concerns = _concerns(findings)
    # Without a finding the end of what consumers read is the place that people ask about.
    middles = [concern.first for concern in concerns] or [whole(log, "lso" if maybe(log, "lso") is not None else "leo")]
    stretches, left_out = _stretches(log, middles, reader)
    drawn = [(whole(rows[0], "base_offset"), whole(rows[-1], "last_offset")) for rows in stretches]
    charts = [partition_chart(rows, log, concerns) for rows in stretches]
    if drawn and (drawn[0][0] > whole(log, "log_start") or drawn[-1][1] + 1 < whole(log, "leo") or len(drawn) > 1):
        start, end = whole(log, "log_start"), whole(log, "leo")
        shares = reader.shares(whole(log, "replica_log_id"), start=start, end=end, stretches=min(STRETCHES_OF_STRIP, max(end - start, 1)))
        charts.insert(0, overview_chart(shares, log, drawn=drawn, concerns=concerns))
    where = "" if log.get("broker") is None else f" on broker {log['broker']}"
    note = f"{count(left_out, 'more place')} with findings are in the tables." if left_out else ""
    return Picture(visible(f"{place(log)}{where}, cluster {log.get('cluster')}"), tuple(charts), note)


def _concerns(findings: Sequence[Row]) -> list[Concern]:
    """Offsets with the rules that speak of them, in the order of the findings."""
    rules: dict[tuple[int, int], list[str]] = {}
    for finding in findings:
        first, last = maybe(finding, "first_offset"), maybe(finding, "last_offset")
        if first is not None:
            rules.setdefault((first, first if last is None else last), []).append(str(finding["rule"]))
    return [Concern(first, last, " ".join(dict.fromkeys(codes))) for (first, last), codes in rules.items()]


def _stretches(log: Row, middles: Sequence[int], reader: Reader) -> tuple[list[list[dict[str, object]]], int]:
    """Batches to draw in full, in offset order, and how many places are left out: the whole of a short log, else around each place."""
    rows, is_whole = _around(log, middles[0], reader)
    if is_whole and len(rows) <= MAX_BATCHES:
        return ([rows] if rows else []), 0
    found: list[tuple[int, int]] = []
    left_out = 0
    for middle in middles:
        if any(first <= middle <= last for first, last in found):
            continue
        if len(found) == MAX_STRETCHES:
            left_out += 1
            continue
        near = _nearest(_around(log, middle, reader)[0], middle)
        if near:
            found = _joined([*found, (whole(near[0], "base_offset"), whole(near[-1], "last_offset"))])
    log_id = whole(log, "replica_log_id")
    return [reader.window(log_id, first_offset=first, last_offset=last)[: 2 * MAX_BATCHES] for first, last in found], left_out


def _around(log: Row, middle: int, reader: Reader) -> tuple[list[dict[str, object]], bool]:
    """Enough batches around an offset, and whether they are all of the log."""
    start, end = whole(log, "log_start"), whole(log, "leo")
    rows: list[dict[str, object]] = []
    for reach in (*_REACHES, end - start + 1):
        rows = reader.window(whole(log, "replica_log_id"), first_offset=middle - reach, last_offset=middle + reach)
        is_whole = middle - reach <= start and middle + reach >= end
        if is_whole or len(rows) > MAX_BATCHES:
            return rows, is_whole
    return rows, True


def _nearest(rows: Sequence[Row], middle: int) -> Sequence[Row]:
    at = next((at for at, row in enumerate(rows) if whole(row, "last_offset") >= middle), len(rows) - 1)
    return rows[max(0, at - AROUND) : at + AROUND]


def _joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges in order, with those put together that overlap or touch."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(last, joined[-1][1])
        else:
            joined.append((first, last))
    return joined


def _id_pictures(ordered: Sequence[Row], reader: Reader) -> dict[str, Picture]:
    named = dict.fromkeys((str(f["cluster"]), str(f["transactional_id"])) for f in ordered if f.get("transactional_id"))
    return {
        anchor(*key): Picture(visible(f"{key[1]}, cluster {key[0]}"), (transactional_id_chart(entries, aborts),))
        for key, (entries, aborts) in reader.steps(list(named)[:MAX_IDS]).items()
    }


def _run_chart(content: Content, reader: Reader) -> str | None:
    """Only for a run over one cluster: several have no common clock."""
    if len({str(partition["cluster"]) for partition in content.partitions}) != 1:
        return None
    begins, ends = reader.open_intervals(whole(content.verdict, "as_of_ms"))
    return open_transactions_chart(begins, ends) if len(begins) else None
