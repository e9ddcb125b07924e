"""What stands in a report, as plain values: the page template only lays it out.

Everything comes from verdict.json, the finding rows and a `Reader` of the history tables; nothing is judged here.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from eo_audit.audit.covers import sentence
from eo_audit.audit.order import Blind, blind_spots, has_many_clusters, head_first, headline_of, in_order, rows_of, tells_of
from eo_audit.audit.sentences import GRAVEST_FIRST, acceptance, copies_of, whose
from eo_audit.words import Row, place

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
    """One finding with what a reader needs to check it.

    Attributes:
        row: as it stands in findings.jsonl.
        place: where it lies.
        evidence: the first lines that show it.
        more_evidence: how many there are beside them.
        brokers: on which ones it is seen, where others do not show it; else empty.
        accepted: who accepted it.
        muted: whether that still holds.
    """

    row: Row
    place: str
    evidence: tuple[Evidence, ...]
    more_evidence: int
    brokers: str = ""
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

    @property
    def covers(self) -> str | None:
        """How many partitions the verdict is about, and from when to when their records are; None for results of an earlier release."""
        covered = self.verdict.get("covers")
        return sentence(covered) if isinstance(covered, Mapping) else None

    def is_waiting(self, incident: Incident) -> bool:
        """Whether an incident, itself no fault, is why consumers wait: it goes to the top."""
        return incident.severity == "info" and bool(tells_of(self.waiting, (incident.cause.row, *(e.row for e in incident.effects))))

    @property
    def many_clusters(self) -> bool:
        """Whether a place needs its cluster's name."""
        return has_many_clusters((*self.partitions, *(incident.cause.row for incident in self.incidents)))


def build_content(verdict: Row, findings: Sequence[Row], quote: Quote) -> Content:
    """The words of a report; charts are added by `report.pictures`.

    Args:
        verdict: the content of verdict.json.
        findings: all finding rows.
        quote: (cluster, evidence struct) -> the quoted text, or None where the dump cannot be read any more.
    """
    told = in_order(verdict, findings)
    said = {entry["finding_id"]: entry for entry in rows_of(verdict, "accepted")}
    copies = copies_of(rows_of(verdict, "partitions"))
    incidents = _incidents(
        [
            _shown(
                finding,
                quote,
                most=MAX_EVIDENCE if number < FULLY_QUOTED else 1,
                brokers=whose(finding, copies),
                entry=said.get(finding["finding_id"]),
            )
            for number, finding in enumerate(told.ordered)
        ]
    )
    return Content(
        verdict=verdict,
        headline=headline_of(verdict, told),
        counts={severity: sum(f["severity"] == severity for f in told.ordered) for severity in GRAVEST_FIRST},
        incidents=incidents,
        blind=blind_spots(verdict),
        topics=tuple(sorted({topic for incident in incidents for topic in incident.topics})),
        rules=tuple(sorted({str(f["rule"]) for f in told.ordered})),
        partitions=tuple(rows_of(verdict, "partitions")),
        waiting=tuple(told.waiting),
        accepted=tuple(said.values()),
    )


def _incidents(told: Sequence[Shown]) -> tuple[Incident, ...]:
    # Findings come in the order of the report, and a dictionary keeps it: the gravest finding places its incident.
    groups: dict[str, list[Shown]] = defaultdict(list)
    for shown in told:
        groups[str(shown.row["incident_id"])].append(shown)
    return tuple(_incident(incident_id, members) for incident_id, members in groups.items())


def _incident(incident_id: str, members: Sequence[Shown]) -> Incident:
    rows = [shown.row for shown in members]
    # The same choice as on the terminal: a cause that only informs does not hide what followed from it.
    head = head_first(incident_id, rows)[0]
    cause = next(shown for shown in members if shown.row is head)
    return Incident(
        cause=cause,
        effects=tuple(shown for shown in members if shown is not cause),
        # That of the gravest of them: a cause may itself be only information.
        severity=min((str(row["severity"]) for row in rows), key=GRAVEST_FIRST.index),
        topics=tuple(sorted({str(row["topic"]) for row in rows if row.get("topic")})),
        rules=tuple(sorted({str(row["rule"]) for row in rows})),
        search=" ".join(_words(row) for row in rows).lower(),
    )


def _words(row: Row) -> str:
    """What the text filter of a page looks through."""
    return f"{row['message']} {place(row)} {row.get('transactional_id') or ''} {row.get('producer_id')} {str(row['finding_id'])[:12]}"


def _shown(finding: Row, quote: Quote, *, most: int, brokers: str, entry: Row | None) -> Shown:
    items = evidence_of(finding)
    quoted = [Evidence(f"{e['dump_file']}@{e['byte_offset']}", quote(str(finding["cluster"]), e)) for e in items[:most]]
    accepted, muted = (acceptance(entry), not entry["expired"]) if entry else (None, False)
    return Shown(finding, place(finding), tuple(quoted), len(items) - len(quoted), brokers, accepted, muted)


def evidence_of(finding: Row) -> list[Row]:
    """The evidence of a finding row."""
    return rows_of(finding, "evidence")
