"""How findings came and went between the audits of one output folder."""

from collections.abc import Sequence
from dataclasses import dataclass

from eo_audit.store.tables import Warehouse

Row = dict[str, object]


@dataclass(frozen=True)
class AuditRun:
    """One finished audit beside the one before it.

    Attributes:
        run: its row of `runs`.
        new: findings that the audit before it did not have.
        still: findings that both have.
        gone: findings that only the audit before it had.
    """

    run: Row
    new: tuple[Row, ...]
    still: tuple[Row, ...]
    gone: tuple[Row, ...]


def audits_of(warehouse: Warehouse) -> list[AuditRun]:
    """All finished audits, oldest first; each finding keeps its id as long as the fault is the same."""
    audits, before = [], dict[str, Row]()
    for run in warehouse.runs():
        # Findings of a damaged table are gone, and their versions with them (`recovery`); the audits around it still compare.
        if run["step"] == "audit" and warehouse.has("findings", run):
            now = {str(row["finding_id"]): row for row in warehouse.arrow_of("findings", run).to_pylist()}
            audits.append(AuditRun(run, _only(now, before), tuple(now[key] for key in now if key in before), _only(before, now)))
            before = now
    return audits


def _only(these: dict[str, Row], others: dict[str, Row]) -> tuple[Row, ...]:
    return tuple(row for key, row in these.items() if key not in others)


def newest_first(audits: Sequence[AuditRun], most: int) -> list[AuditRun]:
    """The newest audits, newest first."""
    return list(reversed(audits))[:most]
