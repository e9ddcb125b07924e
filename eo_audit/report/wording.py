"""Sentences that a person reads first: the verdict, a place, a moment, a number."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

Row = Mapping[str, object]
SEVERITIES = ("critical", "error", "warning", "info")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")


def visible(text: object) -> str:
    """Text with control and direction-changing characters spelled out, so that none of them acts on the reader's screen."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found.group()):04x}", str(text))


def moment(ms: object) -> str:
    """Milliseconds since the epoch as a UTC date and time; a dash where nobody knows."""
    if not isinstance(ms, int) or ms < 0:
        return "–"
    return datetime.fromtimestamp(ms / 1000, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def duration(ms: int) -> str:
    """A length of time in the largest unit that keeps it readable: 850 ms, 12 s, 47 min, 3.5 h, 12 days."""
    for unit, size, digits in (("days", 86_400_000, 0), ("h", 3_600_000, 1), ("min", 60_000, 0), ("s", 1_000, 0)):
        if ms >= 2 * size:
            return f"{ms / size:.{digits}f} {unit}"
    return f"{ms} ms"


def place(row: Row) -> str:
    """Where a finding or a partition lies: orders-3, a transactional id, a group, or the cluster."""
    if row.get("topic") is not None:
        return f"{row['topic']}-{row['partition']}" if row.get("partition") is not None else str(row["topic"])
    return str(row.get("transactional_id") or row.get("group") or row.get("cluster"))


def offsets(row: Row) -> str:
    """The offsets a finding is about: 6–8, or 6; empty where it is about none."""
    first, last = row.get("first_offset"), row.get("last_offset")
    if not isinstance(first, int):
        return ""
    return f"{first:,}" if last in (None, first) or not isinstance(last, int) else f"{first:,}–{last:,}"


def stuck_sentence(partition: Row, findings: Sequence[Row], *, many: bool = False) -> str:
    """What a stuck partition means for its consumers: since when, behind whom, and whether time will free them.

    Args:
        partition: a row of verdict.json.
        findings: finding rows.
        many: whether there are several clusters.
    """
    blocker = partition.get("blocker")
    producer = blocker.get("producer_id") if isinstance(blocker, Mapping) else None
    here = [f for f in findings if place(f) == place(partition) and f.get("cluster") == partition.get("cluster")]
    hanging = next((f for f in here if f.get("rule") == "T01"), None)
    lso = partition.get("lso")
    since = f" since {moment(hanging.get('timestamp_ms'))}" if hanging and hanging.get("timestamp_ms") else ""
    ending = "nothing will free them without an abort" if hanging else "they go on when that transaction ends"
    where = f"{place(partition)}{_cluster(partition, many=many)}"
    return f"{where}: read_committed consumers are stuck at offset {lso:,}{since} behind producer {producer}; {ending}."


def _cluster(row: Row, *, many: bool) -> str:
    """Named only where there are several."""
    return f" in cluster {row.get('cluster')}" if many else ""


def counted(number: int, noun: str) -> str:
    """`1 finding`, `3 findings`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def acceptance(entry: Row) -> str:
    """Who accepted a finding until when and why, or that it counts again."""
    if entry["expired"]:
        return f"Accepted by {entry['who']} until {entry['until']} ({entry['why']}): that has expired, it counts again."
    return f"Accepted by {entry['who']} until {entry['until']}: {entry['why']}"


def acceptances(entries: Sequence[Row]) -> list[str]:
    """All accepted findings of a run in a few sentences: `2 accepted by ana until 2026-12-31: why`."""
    told: dict[tuple[object, ...], int] = {}
    for entry in entries:
        key = (entry["expired"], str(entry["until"]), entry["who"], entry["why"])
        told[key] = told.get(key, 0) + 1
    sentences = []
    for (expired, until, who, why), number in sorted(told.items(), key=str):
        again = f" expired on {until} and {'counts' if number == 1 else 'count'} again" if expired else f" until {until}"
        sentences.append(f"{number} accepted by {who}{again}: {why}")
    return sentences


def headline(verdict: Row, findings: Sequence[Row], stuck: Sequence[Row], why_unknown: str | None = None, *, many: bool = False) -> str:
    """The verdict in one sentence.

    Args:
        verdict: the content of verdict.json.
        findings: finding rows that nobody accepted, the gravest first.
        stuck: rows of its `partitions` whose LSO is held back by a finding above info.
        why_unknown: what most rules lacked.
        many: whether there are several clusters.
    """
    if verdict["verdict"] == "unknown":
        why = f" {why_unknown.rstrip('.')}." if why_unknown else ""
        return f"These dumps do not show whether delivery was exactly once.{why}"
    if verdict["verdict"] == "pass":
        return _passed(verdict, findings)
    if stuck:
        others = {1: "", 2: " One more partition is stuck."}
        more = others.get(len(stuck), f" {len(stuck) - 1:,} more partitions are stuck.")
        return stuck_sentence(stuck[0], findings, many=many) + more
    worst = next(iter(findings), None)
    if worst is None:
        return "Delivery was not exactly once."
    return f"Delivery was not exactly once{_cluster(worst, many=many)}. {str(worst['message']).rstrip('.')}."


def _passed(verdict: Row, findings: Sequence[Row]) -> str:
    found = verdict.get("accepted")
    accepted = sum(not entry["expired"] for entry in found) if isinstance(found, list) else 0
    warnings = sum(f["severity"] != "info" for f in findings)
    look = f" {counted(warnings, 'warning')} to look at." if warnings else ""
    if accepted:
        return f"As far as these dumps show, no promise was broken but for {counted(accepted, 'accepted finding')}.{look}"
    return f"Delivery was exactly once, as far as these dumps show: no promise was broken.{look}"
