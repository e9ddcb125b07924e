"""A case of a rule as a drawing: the logs of its brokers side by side with what lies around them, for a page that people read.

orders-0: LSO 6, high watermark 9, log end 9
  offset  what      producer  epoch  sequence
  6-8     txn data  1         0      3-5       open: no marker follows    ◀ T01
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from textwrap import wrap

from eo_audit.audit.findings import Finding
from eo_audit.words import duration
from tests.rules.compact import CLUSTER, parse, place_of
from tests.rules.drawing import coordinator, files, log
from tests.rules.drawing.line import Line, Place, Row, at, clock

DRAWN: Mapping[str, Callable[[Place, Row], Iterator[Line]]] = {
    "producer_history": log.batch,
    "transaction_spans": log.span,
    "instance_partitions": log.of_transaction,
    "open_transactions": log.fate,
    "producer_edges": log.edge,
    "repeated_records": log.repeated,
    "marker_keys": log.marker_keys,
    "coordinator_history": coordinator.entry,
    "transaction_instances": coordinator.instance,
    "group_offsets": coordinator.commit,
    "aborted_index": files.index_entry,
    "snapshot_states": files.snapshot,
    "coverage": files.part,
    "section_status": files.segment,
    "id_allocation": files.allocation,
    "overwritten_offsets": files.overwritten,
}
# The order of blocks and of their columns.
TITLES = {
    "log": "{log}",
    "index": "aborted index of {log} (.txnindex)",
    "snapshot": "producer snapshot of {log}",
    "file": "files of {log}",
    "offsets": "{log}",
    "coordinator": "{log}",
}
COLUMNS = (
    *("offset", "what", "file", "offsets", "transactional id", "state", "group", "input", "next offset", "producer", "epoch", "sequence"),
    *("next producer id", "given to broker"),
    *("firstOffset", "lastOffset", "lastStableOffset", "the snapshot says", "the log says"),
    *("leader epoch", "coordinator epoch", "crc", "timeout", "partitions", "time", "lastUpdate", "appended"),
)
UNNUMBERED = ("index", "file")  # their lines have an order, and no offset of their own
WIDTH = 110  # of a line of a drawing, so that a code host shows it whole
BLANK = "\0"  # one at which no line is broken
ALIKE = 5  # that many lines in a row that differ in numbers only are folded


def drawn(case: Mapping[str, object], code: str, findings: Iterable[Finding]) -> str:
    """A case as lines of text; what the findings of the rule speak of is pointed at."""
    lines = _merged(_lines(case))
    mine = [finding for finding in findings if finding.rule == code]
    places = sorted({line.place for line in lines}, key=lambda place: (place[0].startswith("__"), place))
    several = len({broker for _, _, broker in places}) > 1
    blocks = ["\n".join(_given(case, lines))] if _given(case, lines) else []
    for kind, title in TITLES.items():
        for place in places:
            own = [line for line in lines if (line.block, line.place) == (kind, place)]
            if own:
                name = f"{place[0]}-{place[1]}" + (f" on broker {place[2]}" if several else "")
                state = _log_state(case, place) if kind in ("log", "offsets", "coordinator") else ""
                head = wrap(title.format(log=name) + state, WIDTH, subsequent_indent="    ")
                blocks.append("\n".join([*(text.replace(BLANK, " ") for text in head), *_table(own, mine)]))
    return "\n\n".join(blocks)


def _lines(case: Mapping[str, object]) -> list[Line]:
    history = case.get("history") or {}
    assert isinstance(history, dict)
    lines = [line for table, rows in history.items() for row in rows for line in DRAWN[table](*parse(table, row))]
    commits = {line.place for line in lines if line.block == "offsets"}
    placed = [replace(line, block="offsets") if line.block == "log" and line.place in commits else line for line in lines]
    found: list[Line] = []
    for nth, line in enumerate(placed):
        # A row that is only known as the one before another stands there by itself where the case has it.
        if line.first is None and line.block == "coordinator":
            there = next((at for at, other in reversed(list(enumerate(found))) if _is_entry(line, other)), None)
            if there is not None:
                found[there] = _one(found[there], line)
                continue
        if line.first is None and not line.remarks and line.block in ("log", "offsets") and _is_written(line, placed[nth + 1], placed):
            continue
        found.append(line)
    return found


def _is_entry(line: Line, other: Line) -> bool:
    known = ("transactional id", "state", "epoch")
    same = (line.block, line.place) == (other.block, other.place) and other.first is not None
    return same and all(line.cells[name] in ("", other.cells.get(name)) for name in known)


def _is_written(line: Line, following: Line, lines: Sequence[Line]) -> bool:
    """The log of the case has a row of this producer before the one that names it."""
    own = [other for other in lines if other.place == line.place and other.cells.get("producer") == line.cells["producer"]]
    return any(other.first is not None and other.first < (following.first or 0) for other in own)


def _merged(lines: Sequence[Line]) -> list[Line]:
    """Lines of several histories that speak of the same thing are one, in the order of offsets."""
    found: dict[object, Line] = {}
    for nth, line in enumerate(lines):
        whose = [line.cells.get(name, "") for name in ("what", "transactional id", "producer", "group", "input")]
        loose = line.first is None or line.block in UNNUMBERED or line.block == "snapshot"
        key = nth if loose else (line.block, line.place, line.first, *whose[:2], *(whose[2:] if not whose[1] else ()))
        before = found.get(key)
        found[key] = line if before is None else _one(before, line)
    # What has no offset stands where it was told.
    return [line for _, line in sorted(enumerate(found.values()), key=lambda item: (_where(item, list(found.values())), item[0]))]


def _where(item: tuple[int, Line], lines: Sequence[Line]) -> int:
    nth, line = item
    following = (other.first for other in lines[nth:] if other.block == line.block and other.place == line.place)
    return next((first for first in following if first is not None), 1 << 62)


def _one(first: Line, second: Line) -> Line:
    # The longer one says more: a transaction from its first entry to its last, where the other has the first.
    cells = {name: max(first.cells.get(name, ""), second.cells.get(name, ""), key=len) for name in {**first.cells, **second.cells}}
    said = tuple(dict.fromkeys((*first.remarks, *second.remarks)))
    ends = [line.last for line in (first, second) if line.last is not None]
    return Line(first.block, first.place, first.first, max(ends, default=None), cells, said)


def _table(lines: Sequence[Line], findings: Sequence[Finding]) -> Iterator[str]:
    """Columns under each other; those that say nothing are left out."""
    cells = [{"offset": _offset(line, is_first=nth == 0), **line.cells} for nth, line in enumerate(lines)]
    assert all(set(row) <= set(COLUMNS) for row in cells), "a column that would not be drawn"
    used = [name for name in COLUMNS if any(row.get(name) for row in cells)]
    widths = {name: max(len(name), *(len(row.get(name, "")) for row in cells)) for name in used}
    if used != ["offset"]:
        yield f"  {'  '.join(name.ljust(widths[name]) for name in used)}".rstrip()
    rows = [
        f"{'>' if any(_speaks_of(finding, line) for finding in findings) else ' '} "
        + "  ".join(row.get(name, "").ljust(widths[name]) for name in used)
        for row, line in zip(cells, lines, strict=True)
    ]
    yield from _folded([_with_remarks(row, line.remarks) for row, line in zip(rows, lines, strict=True)])


def _with_remarks(row: str, remarks: Sequence[str]) -> str:
    """Remarks behind a row, below each other where the line would be too long for a page."""
    told = f"{row}  {'; '.join(remarks)}".rstrip()
    return told if len(told) <= WIDTH else f"{row}  " + f"\n{' ' * len(row)}  ".join(remarks)


def _offset(line: Line, *, is_first: bool) -> str:
    if line.block in UNNUMBERED:
        return ""
    return at(line.first, line.last) or ("" if line.cells.get("what") == "nothing" else "earlier" if is_first else "between")


def _folded(rows: Sequence[str]) -> Iterator[str]:
    """Of many rows that are alike but for their numbers, pointed at or not, the first, the last, and how many stand between."""
    for _, alike in groupby(rows, key=lambda row: re.sub(r"\s+", " ", re.sub(r"\d+", "0", row[1:]))):
        same = list(alike)
        mark = ">" if any(row.startswith(">") for row in same[1:-1]) else " "
        yield from same if len(same) < ALIKE else [same[0], f"{mark} ...     {len(same) - 2} more like these", same[-1]]


def _speaks_of(finding: Finding, line: Line) -> bool:
    if (finding.topic, finding.partition) != line.place[:2] or (finding.brokers and line.place[2] not in finding.brokers):
        return False
    last = line.first if line.last is None else line.last
    return line.first is not None and any(first <= (last or 0) and line.first <= until for first, until in finding.offset_ranges)


def _log_state(case: Mapping[str, object], place: Place) -> str:
    """What the case says of a whole log, behind its name."""
    logs = case.get("logs") or {}
    assert isinstance(logs, dict)
    row: Row = next((columns for name, columns in logs.items() if place_of(name) == place), {})
    said = [f"{words} {row[name]}" for name, words in _NUMBERS.items() if row.get(name) is not None]
    first, holder = row.get("blocker_first_offset"), row.get("blocker_producer_id")
    if holder is not None:
        said.append(f"held back by producer {holder}" + (f" from offset {first} on" if first is not None else ""))
    said += [words for name, value, words in _FLAGS if name in row and row[name] == value]
    said += [f"{words} {clock(row[name])}" for name, words in _CLOCKS.items() if row.get(name) is not None]
    # Each of them stays whole where the line is broken.
    return f": {', '.join(words.replace(' ', BLANK) for words in said)}" if said else ""


_NUMBERS = {
    "log_start": "log start",
    "lso": "LSO",
    "hw": "high watermark",
    "leo": "log end",
    "last_leader_epoch": "newest leader epoch",
    "uncleaned_from": "cleaned below offset",
    "held_back_committed_records": "committed records that wait:",
}
_FLAGS = (
    ("compacted", True, "compacted"),
    ("uncleaned_from", None, "cleaned nobody knows how far"),
    ("tail_intact", False, "the dump is cut off"),
    ("hw_source", "leo", "high watermark not known"),
    ("lso_source", "snapshot", "LSO as the snapshot says"),
    ("lso_source", "coordinator", "LSO as the coordinator's log says"),
)
_CLOCKS = {
    "blocker_began_after_ms": "a broker wrote below the open transaction at",
    "blocker_open_by_ms": "a broker wrote behind its beginning at",
    "newest_broker_clock_ms": "newest time of a broker",
    "dumped_at_ms": "dumped at",
}


def _given(case: Mapping[str, object], lines: Sequence[Line]) -> list[str]:
    """What the case says of its cluster, and the audit's now where times are drawn."""
    cluster = case.get("cluster") or {}
    assert isinstance(cluster, dict)
    said = [words.format(cluster[name]) for name, words in _SETTINGS.items() if cluster.get(name) is not None]
    said += [words for name, value, words in _STATES if name in cluster and cluster[name] == value]
    said += [f"{words} {duration(cluster[name])}" for name, words in _DURATIONS.items() if name in cluster]
    # The audit's now matters where something is open.
    is_open = any(word.startswith(("open", "started")) for line in lines for word in line.remarks)
    said += [f"audited as of {clock(cluster.get('as_of_ms', CLUSTER['as_of_ms']))}"] if is_open or "as_of_ms" in cluster else []
    return [", ".join(said)] if said else []


_SETTINGS = {
    "kafka_version": "Kafka {}",
    "transaction_version": "transaction.version {}",
    "coordinator_partitions": "__transaction_state has {} partitions",
}
_STATES = (
    ("coordinator_complete", False, "__transaction_state was not dumped whole"),
    ("coordinator_partitions", None, "nobody knows how many partitions __transaction_state has"),
    ("coordinator_partitions_source", "inferred", "as its ids tell"),
    ("settings_known", False, "the brokers' settings are not known"),
)
_DURATIONS = {
    "max_transaction_timeout_ms": "transaction.max.timeout.ms",
    "producer_id_expiration_ms": "producer.id.expiration.ms",
    "transactional_id_expiration_ms": "transactional.id.expiration.ms",
}
