"""Accepted findings: who accepted which finding, why, and until when. They are still found and shown, and fail nothing until they expire.

The file is YAML that a team keeps beside its policy and reviews like code:

    accepted:
    - finding_id: 4be1...      # the whole id
      what: T01 orders-3       # for the reader
      who: ana@example.org
      why: the replay of 12 June is under way, ticket 4711
      until: 2026-12-31        # a day (UTC), the last on which it counts as accepted
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

import yaml

from eo_audit.config import read_yaml
from eo_audit.errors import ArgumentError, ConfigurationError
from eo_audit.words import Row, moment, place

_FIELDS = ("finding_id", "what", "who", "why", "until")
_DAY_MS = 86_400_000


@dataclass(frozen=True)
class Accepted:
    """One accepted finding; `until` is the last day (UTC) on which it counts as accepted."""

    finding_id: str
    what: str
    who: str
    why: str
    until: date

    def holds(self, as_of_ms: int | None) -> bool:
        """Is it still accepted at the audit's now? Never where there is no clock."""
        if as_of_ms is None:
            return False
        # By the audit's now, not the machine's: the same dumps and the same file give the same verdict in any year.
        return as_of_ms // _DAY_MS <= (self.until - date(1970, 1, 1)).days


def load(path: Path) -> tuple[Accepted, ...]:
    """The accepted findings of a file; a file that is not there accepts nothing.

    Raises:
        ConfigurationError: one sentence with the file and what is wrong in it.
    """
    if not path.is_file():
        return ()
    content = read_yaml(path, "the file of accepted findings")
    rows = (content or {}).get("accepted") if isinstance(content, dict) or content is None else None
    if (rows is not None and not isinstance(rows, list)) or (rows is None and content):
        raise ConfigurationError(f"{path} must hold one list named accepted")
    return tuple(_accepted(row, path, number) for number, row in enumerate(rows or [], start=1))


def _accepted(row: object, path: Path, number: int) -> Accepted:
    # Exactly these: a misspelled `until` would else accept for ever.
    if not isinstance(row, dict) or set(row) != set(_FIELDS):
        raise ConfigurationError(f"{path}: entry {number} must have exactly {', '.join(_FIELDS)}")
    if type(row["until"]) is not date:  # nor a moment, which is a date to Python
        raise ConfigurationError(f"{path}: until of entry {number} is not a day such as 2026-12-31")
    # YAML makes a number of an id that has digits only.
    texts = {name: str(row[name] or "").strip() for name in _FIELDS[:-1]}
    if not all(texts.values()):
        raise ConfigurationError(f"{path}: entry {number} must say finding_id, what, who and why")
    return Accepted(**texts, until=row["until"])


def accept(path: Path, finding: Row, *, who: str, why: str, until: str, as_of_ms: int | None = None) -> Accepted:
    """Write one accepted finding into a file, in the place of what was said of it before.

    Args:
        path: the file; it need not exist.
        finding: its row of `findings`.
        who: who accepts it.
        why: for whoever reads the report.
        until: the last day, such as 2026-12-31.
        as_of_ms: the audit's now, by which that day must not be over.

    Returns:
        What stands there now.

    Raises:
        ArgumentError: nobody, no reason, no day, or a day that is over.
        ConfigurationError: the file is there, and is not one of accepted findings.
    """
    if not who.strip() or not why.strip():
        raise ArgumentError("--who and --why must say something")
    added = Accepted(str(finding["finding_id"]), f"{finding['rule']} {place(finding)}", who.strip(), why.strip(), _day(until))
    if as_of_ms is not None and not added.holds(as_of_ms):
        raise ArgumentError(f"--until {until} is over already: the audit was judged as of {moment(as_of_ms)}")
    rows = [entry for entry in load(path) if entry.finding_id != added.finding_id]
    content = {"accepted": [asdict(entry) for entry in (*rows, added)]}
    # The file is a team's, and under review: half of it must never be read by the audit of that night.
    waiting = path.with_suffix(path.suffix + ".new")
    waiting.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), encoding="utf-8")
    waiting.replace(path)
    return added


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ArgumentError(f"--until {text} is not a day such as 2026-12-31") from None


def of_same_incidents(findings: Sequence[Row], accepted: Sequence[Accepted]) -> list[str]:
    """Short ids of findings above information that nobody accepted, of incidents of which another finding is accepted."""
    # Who accepts the cause mostly means what follows from it, too; that is told and not done.
    known = {entry.finding_id for entry in accepted}
    incidents = {row["incident_id"] for row in findings if row["finding_id"] in known}
    left = [row for row in findings if row["incident_id"] in incidents and row["finding_id"] not in known and row["severity"] != "info"]
    return [str(row["finding_id"])[:12] for row in left]


def entry(accepted: Accepted, as_of_ms: int | None) -> dict[str, object]:
    """What verdict.json says of an accepted finding; an expired one counts again."""
    return {**asdict(accepted), "until": accepted.until.isoformat(), "expired": not accepted.holds(as_of_ms)}
