"""What stands in a report, as plain values: the page template only lays it out.

Everything comes from verdict.json, the finding rows and a `Reader` of the history tables; nothing is judged here.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from eo_audit.report.wording import SEVERITIES, Row, acceptance, headline, is_paper, is_waiting, place, waiting_for

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MAX_EVIDENCE = 5  # lines quoted per finding; the rest is counted, and all of it is in findings.jsonl
_BLOCKS = frozenset({"for_ever", "overdue", "stuck"})  # nothing behind these reaches a read_committed consumer
FULLY_QUOTED = 500  # findings, from the gravest on, with as many; the others have one line

Quote = Callable[[str, Row], str | None]


class Reader(Protocol):
    """Reads rows of result tables without Spark."""

    def rows(self, table: str, **equal: object) -> list[dict[str, object]]:
        """Rows of a table whose columns equal the given values, in key order."""
        ...

    def window(self, replica_log_id: int, *, first_offset: int, last_offset: int) -> list[dict[str, object]]:
        """Rows of `producer_history` of one replica log that begin in an offset range, in offset order."""
        ...

    def steps(self, ids: Collection[tuple[str, str]]) -> Mapping[tuple[str, str], tuple[Sequence[Row], Sequence[Row]]]:
        """(cluster, transactional id) -> its telling rows of `coordinator_history` and the `transaction_instances` of its aborts."""
        ...

    def shares(self, replica_log_id: int, *, start: int, end: int, stretches: int) -> "Mapping[str, npt.NDArray[np.int64]]":
        """Outcome -> records in each of some stretches of equal length of one replica log, from offset `start` up to before `end`."""
        ...

    def open_intervals(self, as_of_ms: int) -> "tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]":
        """When each transaction span began and ended, ms; one that is still open ends at `as_of_ms`."""
        ...


@dataclass(frozen=True)
class Evidence:
    """One quoted line: where it stands, and its text as far as it may be shown (None: the dump is no longer there)."""

    address: str
    text: str | None


@dataclass(frozen=True)
class Shown:
    """One finding with what a reader needs to check it; `accepted` says who accepted it, `muted` that this still holds."""

    row: Row
    place: str
    evidence: tuple[Evidence, ...]
    more_evidence: int
    accepted: str | None = None
    muted: bool = False


@dataclass(frozen=True)
class Incident:
    """Findings that one cause explains: the cause, then what follows from it."""

    cause: Shown
    effects: tuple[Shown, ...]
    severity: str
    topics: tuple[str, ...]
    rules: tuple[str, ...]
    search: str

    @property
    def muted(self) -> bool:
        """Whether everything above information in it is accepted."""
        return all(shown.muted for shown in (self.cause, *self.effects) if shown.row["severity"] != "info") and self.severity != "info"


@dataclass(frozen=True)
class Blind:
    """Something the audit could not see: which rules it leaves open, why, and which dump would show it."""

    why: str
    bring: str | None
    rules: tuple[str, ...]


@dataclass(frozen=True)
class Picture:
    """The charts of one partition or one transactional id: its title, SVGs, and what is not drawn."""

    title: str
    charts: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True)
class Content:
    """A whole report. `partition_charts` and `id_charts` map an anchor to a picture; `accepted` holds what people accepted.

    `waiting` holds the partitions whose consumers wait for a transaction that the coordinator will end, the longest first.
    """

    verdict: Row
    headline: str
    counts: Mapping[str, int]
    incidents: tuple[Incident, ...]
    blind: tuple[Blind, ...]
    topics: tuple[str, ...]
    rules: tuple[str, ...]
    partitions: tuple[Row, ...] = ()
    waiting: tuple[Row, ...] = ()
    accepted: tuple[Row, ...] = ()
    partition_charts: Mapping[str, Picture] = field(default_factory=dict)
    id_charts: Mapping[str, Picture] = field(default_factory=dict)
    run_chart: str | None = None

    @property
    def label(self) -> str:
        """The verdict in a word, and whether a pass has a but: consumers that wait longer than the policy likes."""
        held = self.verdict.get("held_back")
        warned = isinstance(held, Mapping) and held.get("decides") == "warning"
        return "pass, but" if warned and self.verdict["verdict"] == "pass" else str(self.verdict["verdict"])

    def is_waiting(self, incident: Incident) -> bool:
        """Whether an incident, itself no fault, is why consumers wait: it goes to the top."""
        return incident.severity == "info" and bool(_tells_of(self.waiting, (incident.cause.row, *(e.row for e in incident.effects))))

    @property
    def many_clusters(self) -> bool:
        """Whether a place needs its cluster's name."""
        return _many_clusters((*self.partitions, *(incident.cause.row for incident in self.incidents)))


def rank(row: Row) -> tuple[int, int, str]:
    """Order of findings: gravest first, then the one that is about most records, then by id."""
    count = row.get("record_count")
    return (SEVERITIES.index(str(row["severity"])), -(count if isinstance(count, int) else 0), str(row["finding_id"]))


def build_content(verdict: Row, findings: Sequence[Row], quote: Quote) -> Content:
    """The words of a report; charts are added by `report.pictures`.

    Args:
        verdict: the content of verdict.json.
        findings: all finding rows.
        quote: (cluster, evidence struct) -> the quoted text, or None where the dump cannot be read any more.
    """
    told = _in_order(verdict, findings)
    said = {entry["finding_id"]: entry for entry in _rows(verdict, "accepted")}
    briefly = {finding["finding_id"] for finding in told.ordered[FULLY_QUOTED:]}
    incidents = _incidents(told.ordered, quote, said, briefly=briefly)
    return Content(
        verdict=verdict,
        headline=_headline(verdict, told),
        counts={severity: sum(f["severity"] == severity for f in told.ordered) for severity in SEVERITIES},
        incidents=incidents,
        blind=_blind_spots(verdict),
        topics=tuple(sorted({topic for incident in incidents for topic in incident.topics})),
        rules=tuple(sorted({str(f["rule"]) for f in told.ordered})),
        partitions=tuple(_rows(verdict, "partitions")),
        waiting=tuple(told.waiting),
        accepted=tuple(said.values()),
    )


def summary(verdict: Row, findings: Sequence[Row], most: int) -> tuple[str, list[Row]]:
    """The headline of a report and its first findings, in the order of its incidents, without the report.

    Args:
        verdict: the content of verdict.json, as far as it is known.
        findings: all finding rows.
        most: how many findings.
    """
    told = _in_order(verdict, findings)
    groups: dict[object, list[Row]] = defaultdict(list)
    for finding in told.ordered:
        groups[finding["incident_id"]].append(finding)
    rows = [row for name, members in groups.items() for row in _head_first(str(name), members)]
    return _headline(verdict, told), rows[:most]


@dataclass(frozen=True)
class _InOrder:
    """All findings in the order of the report, those that count, and the partitions whose consumers are stuck, or only wait."""

    ordered: Sequence[Row]
    counting: Sequence[Row]
    stuck: Sequence[Row]
    waiting: Sequence[Row]


def _in_order(verdict: Row, findings: Sequence[Row]) -> _InOrder:
    muted = {entry["finding_id"] for entry in _rows(verdict, "accepted") if not entry["expired"]}
    held = {finding["incident_id"] for finding in findings if _holds_back(finding) and finding["finding_id"] not in muted}
    partitions = _rows(verdict, "partitions")
    waiting = _waiting(partitions, findings)
    why = {finding["incident_id"] for finding in _tells_of(waiting, findings)}
    ordered = sorted(findings, key=lambda finding: _order(finding, muted, held, why))
    counting = [finding for finding in ordered if finding["finding_id"] not in muted]
    return _InOrder(ordered, counting, _stuck(partitions, counting), waiting)


def _headline(verdict: Row, told: _InOrder) -> str:
    blind = _blind_spots(verdict)
    many = _many_clusters((*_rows(verdict, "partitions"), *told.ordered))
    return headline(verdict, told.counting, told.stuck, blind[0].why if blind else None, waiting=told.waiting, many=many)


def _waiting(partitions: Sequence[Row], findings: Sequence[Row]) -> list[Row]:
    """Partitions, one replica of each, that wait for what the coordinator will end, without a finding above info; the longest first."""
    told = {(finding.get("cluster"), place(finding)) for finding in findings if _holds_back(finding)}
    found: dict[tuple[object, str], Row] = {}
    for row in filter(is_waiting, partitions):
        if (row.get("cluster"), place(row)) not in told:
            found.setdefault((row.get("cluster"), place(row)), row)
    return sorted(found.values(), key=lambda row: -_seconds(row))


def _seconds(partition: Row) -> int:
    blocker = partition.get("blocker")
    seconds = blocker.get("held_back_seconds") if isinstance(blocker, Mapping) else None
    return seconds if isinstance(seconds, int) else 0


def _tells_of(waiting: Sequence[Row], findings: Sequence[Row]) -> list[Row]:
    """Findings about the open transactions that partitions wait for."""
    keys = {(row.get("cluster"), place(row), row["blocker"]["producer_id"]) for row in waiting if isinstance(row["blocker"], Mapping)}
    return [f for f in findings if waiting_for(f) in ("open", "stuck") and (f.get("cluster"), place(f), f.get("producer_id")) in keys]


def _rows(verdict: Row, name: str) -> list[Row]:
    value = verdict.get(name)
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, list) else []


def _many_clusters(rows: Sequence[Row]) -> bool:
    return len({row.get("cluster") for row in rows}) > 1


def _holds_back(finding: Row) -> bool:
    return waiting_for(finding) == "stuck" and finding["severity"] != "info"


def _order(finding: Row, muted: Collection[object], held: Collection[object], why: Collection[object]) -> tuple[object, ...]:
    """What blocks or loses first, then why consumers merely wait, what only breaks the coordinator's log, warnings, information.

    Within each the gravest first, and of equally grave ones those that consumers wait for; what is accepted comes last.
    """
    severity, *rest = rank(finding)
    is_grave = finding["severity"] in ("critical", "error")
    if (is_grave and not is_paper(finding)) or (waiting_for(finding) in _BLOCKS and finding["severity"] != "info"):
        tier = 0
    elif finding["severity"] == "info":
        tier = 1 if finding["incident_id"] in why else 4
    else:
        tier = 2 if is_grave else 3
    return finding["finding_id"] in muted, tier, severity, finding["incident_id"] not in held, *rest


def _stuck(partitions: Sequence[Row], findings: Sequence[Row]) -> list[Row]:
    """Partitions whose LSO is known and held back by a finding above information, in the order of the incidents they belong to."""
    first: dict[object, int] = {}
    for finding in findings:
        first.setdefault(finding["incident_id"], len(first))
    held: dict[tuple[object, str], int] = {}
    for finding in filter(_holds_back, findings):
        held.setdefault((finding.get("cluster"), place(finding)), first[finding["incident_id"]])
    known = [p for p in partitions if (p.get("cluster"), place(p)) in held and isinstance(p.get("lso"), int)]
    return sorted(known, key=lambda p: held[p.get("cluster"), place(p)])


def _incidents(ordered: Sequence[Row], quote: Quote, said: Mapping[object, Row], *, briefly: Collection[object]) -> tuple[Incident, ...]:
    groups: dict[str, list[Shown]] = defaultdict(list)
    for finding in ordered:
        most = 1 if finding["finding_id"] in briefly else MAX_EVIDENCE
        groups[str(finding["incident_id"])].append(_shown(finding, quote, most=most, entry=said.get(finding["finding_id"])))
    return tuple(_incident(incident_id, members) for incident_id, members in groups.items())


def _incident(incident_id: str, members: Sequence[Shown]) -> Incident:
    rows = [shown.row for shown in members]
    head = _head_first(incident_id, rows)[0]
    cause = next(shown for shown in members if shown.row is head)
    return Incident(
        cause=cause,
        effects=tuple(shown for shown in members if shown is not cause),
        severity=min((str(row["severity"]) for row in rows), key=SEVERITIES.index),
        topics=tuple(sorted({str(row["topic"]) for row in rows if row.get("topic")})),
        rules=tuple(sorted({str(row["rule"]) for row in rows})),
        search=" ".join(_words(row) for row in rows).lower(),
    )


def _head_first(incident_id: str, rows: Sequence[Row]) -> list[Row]:
    """The cause heads an incident; where it is only information and what follows is more, the gravest does."""
    cause = next((row for row in rows if row["finding_id"] == incident_id), rows[0])
    gravest = min(rows, key=lambda row: SEVERITIES.index(str(row["severity"])))
    head = gravest if cause["severity"] == "info" and gravest["severity"] != "info" else cause
    return [head, *(row for row in rows if row is not head)]


def _words(row: Row) -> str:
    """What the text filter of a page looks through."""
    return f"{row['message']} {place(row)} {row.get('transactional_id') or ''} {row.get('producer_id')} {str(row['finding_id'])[:12]}"


def _shown(finding: Row, quote: Quote, *, most: int, entry: Row | None) -> Shown:
    items = evidence_of(finding)
    quoted = [Evidence(f"{e['dump_file']}@{e['byte_offset']}", quote(str(finding["cluster"]), e)) for e in items[:most]]
    accepted, muted = (acceptance(entry), not entry["expired"]) if entry else (None, False)
    return Shown(finding, place(finding), tuple(quoted), len(items) - len(quoted), accepted, muted)


def evidence_of(finding: Row) -> list[Row]:
    """The evidence of a finding row."""
    return _rows(finding, "evidence")


def _blind_spots(verdict: Row) -> tuple[Blind, ...]:
    """What leaves the whole run open, then unknown rules, grouped by what would turn them into an answer."""
    rules = verdict.get("rules")
    groups: dict[tuple[str, str | None], list[str]] = defaultdict(list)
    for code, result in rules.items() if isinstance(rules, Mapping) else ():
        if result.get("unknown_why"):
            groups[result["unknown_why"], result.get("bring")].append(code)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), str(item)))
    of_run = tuple(Blind(str(row["why"]), str(row["bring"]), ("all",)) for row in _rows(verdict, "unknowns"))
    return of_run + tuple(Blind(why, bring, tuple(sorted(codes))) for (why, bring), codes in ordered)
