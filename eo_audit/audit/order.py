"""In which order findings are told, and the headline: what blocks or loses first. verdict.json and the report say the same.

Everything comes from verdict.json, as far as it is known, and from the finding rows; nothing is judged here.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from eo_audit.audit.sentences import GRAVEST_FIRST, headline, is_paper, is_waiting, waiting_for
from eo_audit.words import Row, place

# By what rules say of themselves (`Rule.waiting`): no code of a rule stands here.
_BLOCKS = frozenset({"for_ever", "overdue", "stuck"})  # nothing behind these reaches a read_committed consumer


@dataclass(frozen=True)
class Blind:
    """Something the audit could not see: which rules it leaves open, why, and which dump would show it."""

    why: str
    bring: str | None
    rules: tuple[str, ...]


def rank(row: Row) -> tuple[int, int, str]:
    """Order of findings: gravest first, then the one that is about most records, then by id."""
    count = row.get("record_count")
    return (GRAVEST_FIRST.index(str(row["severity"])), -(count if isinstance(count, int) else 0), str(row["finding_id"]))


def summary(verdict: Row, findings: Sequence[Row], most: int) -> tuple[str, list[Row]]:
    """The headline of a report and its first findings, in the order of its incidents, without the report.

    Args:
        verdict: the content of verdict.json, as far as it is known.
        findings: all finding rows.
        most: how many findings.
    """
    told = in_order(verdict, findings)
    groups: dict[object, list[Row]] = defaultdict(list)
    for finding in told.ordered:
        groups[finding["incident_id"]].append(finding)
    rows = [row for name, members in groups.items() for row in head_first(str(name), members)]
    return headline_of(verdict, told), rows[:most]


@dataclass(frozen=True)
class Told:
    """All findings in the order of the report, those that count, and the partitions whose consumers are stuck, or only wait."""

    ordered: Sequence[Row]
    counting: Sequence[Row]
    stuck: Sequence[Row]
    waiting: Sequence[Row]


def in_order(verdict: Row, findings: Sequence[Row]) -> Told:
    """All findings in the order in which a person should hear of them; what a team accepted comes last."""
    muted = {entry["finding_id"] for entry in rows_of(verdict, "accepted") if not entry["expired"]}
    # By incident: of one fault some findings block and others only tell of it, and they stay together.
    held = {finding["incident_id"] for finding in findings if _holds_back(finding) and finding["finding_id"] not in muted}
    partitions = rows_of(verdict, "partitions")
    waiting = _waiting(partitions, findings)
    why = {finding["incident_id"] for finding in tells_of(waiting, findings)}
    ordered = sorted(findings, key=lambda finding: _order(finding, muted, held, why))
    counting = [finding for finding in ordered if finding["finding_id"] not in muted]
    return Told(ordered, counting, _stuck(partitions, counting), waiting)


def headline_of(verdict: Row, told: Told) -> str:
    """The sentence that opens the terminal's table, the page and verdict.json."""
    blind = blind_spots(verdict)
    many = has_many_clusters((*rows_of(verdict, "partitions"), *told.ordered))
    return headline(verdict, told.counting, told.stuck, blind[0].why if blind else None, waiting=told.waiting, many=many)


def _waiting(partitions: Sequence[Row], findings: Sequence[Row]) -> list[Row]:
    """Partitions, one replica of each, that wait for what the coordinator will end, without a finding above info; the longest first."""
    told = {(finding.get("cluster"), place(finding)) for finding in findings if _holds_back(finding)}
    found: dict[tuple[object, str], Row] = {}
    for row in filter(is_waiting, partitions):
        # Of a partition that a finding already calls stuck there is nothing more to say.
        if (row.get("cluster"), place(row)) not in told:
            found.setdefault((row.get("cluster"), place(row)), row)
    return sorted(found.values(), key=lambda row: -_seconds(row))


def _seconds(partition: Row) -> int:
    blocker = partition.get("blocker")
    seconds = blocker.get("held_back_seconds") if isinstance(blocker, Mapping) else None
    return seconds if isinstance(seconds, int) else 0


def tells_of(waiting: Sequence[Row], findings: Sequence[Row]) -> list[Row]:
    """Findings about the open transactions that partitions wait for."""
    keys = {(row.get("cluster"), place(row), row["blocker"]["producer_id"]) for row in waiting if isinstance(row["blocker"], Mapping)}
    return [f for f in findings if waiting_for(f) in ("open", "stuck") and (f.get("cluster"), place(f), f.get("producer_id")) in keys]


def rows_of(verdict: Row, name: str) -> list[Row]:
    """A list of rows in a verdict; empty where it has none."""
    value = verdict.get(name)
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, list) else []


def has_many_clusters(rows: Sequence[Row]) -> bool:
    """Whether a place needs its cluster's name."""
    return len({row.get("cluster") for row in rows}) > 1


def _holds_back(finding: Row) -> bool:
    return waiting_for(finding) == "stuck" and finding["severity"] != "info"


def _order(finding: Row, muted: Collection[object], held: Collection[object], why: Collection[object]) -> tuple[object, ...]:
    """What blocks or loses first, then why consumers merely wait, what only breaks the coordinator's log, warnings, information.

    Within each the gravest first, and of equally grave ones those that consumers wait for; what is accepted comes last.
    """
    severity, *rest = rank(finding)
    # A coordinator entry that breaks Kafka's law is as grave as a loss, but at night the loss comes first.
    is_grave = finding["severity"] in ("critical", "error")
    if (is_grave and not is_paper(finding)) or (waiting_for(finding) in _BLOCKS and finding["severity"] != "info"):
        tier = 0
    elif finding["severity"] == "info":
        tier = 1 if finding["incident_id"] in why else 4
    else:
        tier = 2 if is_grave else 3
    return finding["finding_id"] in muted, tier, severity, finding["incident_id"] not in held, *rest


def _stuck(partitions: Sequence[Row], findings: Sequence[Row]) -> list[Row]:
    """Partitions, one replica of each, whose LSO is known and held back by a finding above information, in the order of the incidents
    they belong to."""
    # Findings are in order already: a partition comes where its incident does.
    first: dict[object, int] = {}
    for finding in findings:
        first.setdefault(finding["incident_id"], len(first))
    held: dict[tuple[object, str], int] = {}
    for finding in filter(_holds_back, findings):
        held.setdefault((finding.get("cluster"), place(finding)), first[finding["incident_id"]])
    # One replica of each, that knows behind whom: of copies that all wait one partition is stuck.
    found: dict[tuple[object, str], Row] = {}
    for row in partitions:
        key = (row.get("cluster"), place(row))
        if key in held and isinstance(row.get("lso"), int) and (key not in found or (row.get("blocker") and not found[key].get("blocker"))):
            found[key] = row
    return [found[key] for key in sorted(found, key=lambda key: held[key])]


def head_first(incident_id: str, rows: Sequence[Row]) -> list[Row]:
    """The cause heads an incident; where it is only information and what follows is more, the gravest does."""
    cause = next((row for row in rows if row["finding_id"] == incident_id), rows[0])
    gravest = min(rows, key=lambda row: GRAVEST_FIRST.index(str(row["severity"])))
    # A cause that only informs (an abort by timeout) would hide what followed from it.
    head = gravest if cause["severity"] == "info" and gravest["severity"] != "info" else cause
    return [head, *(row for row in rows if row is not head)]


def blind_spots(verdict: Row) -> tuple[Blind, ...]:
    """What leaves the whole run open, then unknown rules, grouped by what would turn them into an answer; first what the policy minds."""
    rules = verdict.get("rules")
    groups: dict[tuple[str, str | None], list[str]] = defaultdict(list)
    minded = set[tuple[str, str | None]]()
    for code, result in rules.items() if isinstance(rules, Mapping) else ():
        if result.get("unknown_why"):
            group = result["unknown_why"], result.get("bring")
            groups[group].append(code)
            minded |= {group} if result.get("leaves_open") else set()
    # What one more dump would answer for most rules comes first.
    ordered = sorted(groups.items(), key=lambda item: (item[0] not in minded, -len(item[1]), str(item)))
    of_run = tuple(Blind(str(row["why"]), str(row["bring"]), ("all",)) for row in rows_of(verdict, "unknowns"))
    return of_run + tuple(Blind(why, bring, tuple(sorted(codes))) for (why, bring), codes in ordered)
