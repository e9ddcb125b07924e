"""What stands in a report, as plain values: the page template only lays it out.

Everything comes from verdict.json, the finding rows and a `Reader` of the history tables; nothing is judged here.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from eo_audit.report.wording import SEVERITIES, Row, acceptance, headline, place

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MAX_EVIDENCE = 5  # lines quoted per finding; the rest is counted, and all of it is in findings.jsonl
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
    """A whole report. `partition_charts` and `id_charts` map an anchor to a picture; `accepted` holds what people accepted."""

    verdict: Row
    headline: str
    counts: Mapping[str, int]
    incidents: tuple[Incident, ...]
    blind: tuple[Blind, ...]
    topics: tuple[str, ...]
    rules: tuple[str, ...]
    partitions: tuple[Row, ...] = ()
    accepted: tuple[Row, ...] = ()
    partition_charts: Mapping[str, Picture] = field(default_factory=dict)
    id_charts: Mapping[str, Picture] = field(default_factory=dict)
    run_chart: str | None = None

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
    accepted = _rows(verdict, "accepted")
    muted = {entry["finding_id"] for entry in accepted if not entry["expired"]}
    waiting = {finding["incident_id"] for finding in findings if _holds_back(finding) and finding["finding_id"] not in muted}
    ordered = sorted(findings, key=lambda finding: _order(finding, muted, waiting))
    counting = [finding for finding in ordered if finding["finding_id"] not in muted]
    said = {entry["finding_id"]: entry for entry in accepted}
    briefly = {finding["finding_id"] for finding in ordered[FULLY_QUOTED:]}
    incidents = _incidents(ordered, quote, said, briefly=briefly)
    partitions = _rows(verdict, "partitions")
    stuck = _stuck(partitions, counting)
    blind = _blind_spots(verdict)
    return Content(
        verdict=verdict,
        headline=headline(verdict, counting, stuck, blind[0].why if blind else None, many=_many_clusters((*partitions, *findings))),
        counts={severity: sum(f["severity"] == severity for f in ordered) for severity in SEVERITIES},
        incidents=incidents,
        blind=blind,
        topics=tuple(sorted({topic for incident in incidents for topic in incident.topics})),
        rules=tuple(sorted({str(f["rule"]) for f in ordered})),
        partitions=tuple(partitions),
        accepted=tuple(accepted),
    )


def _rows(verdict: Row, name: str) -> list[Row]:
    value = verdict.get(name)
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, list) else []


def _many_clusters(rows: Sequence[Row]) -> bool:
    return len({row.get("cluster") for row in rows}) > 1


def _holds_back(finding: Row) -> bool:
    return finding["rule"] == "L01" and finding["severity"] != "info"


def _order(finding: Row, muted: Collection[object], waiting: Collection[object]) -> tuple[object, ...]:
    """Gravest first, and of equally grave ones those that consumers wait for; what is accepted comes last."""
    severity, *rest = rank(finding)
    return finding["finding_id"] in muted, severity, finding["incident_id"] not in waiting, *rest


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
    cause = next((shown for shown in members if shown.row["finding_id"] == incident_id), members[0])
    rows = [shown.row for shown in members]
    return Incident(
        cause=cause,
        effects=tuple(shown for shown in members if shown is not cause),
        severity=min((str(row["severity"]) for row in rows), key=SEVERITIES.index),
        topics=tuple(sorted({str(row["topic"]) for row in rows if row.get("topic")})),
        rules=tuple(sorted({str(row["rule"]) for row in rows})),
        search=" ".join(_words(row) for row in rows).lower(),
    )


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
