"""`eo-audit history`: how findings came and went between the audits of one output folder, newest first."""

import json
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from eo_audit.audit.sentences import GRAVEST_FIRST
from eo_audit.report.audits import AuditRun
from eo_audit.report.terminal import STYLES
from eo_audit.words import Row, count, moment, offset_range, place, visible

MOST_LISTED = 8


def show_audits(audits: Sequence[AuditRun], screen: Console) -> None:
    """Print audits (from `audits.newest_first`): when, verdict, code, rules and input of each, and its new and gone findings."""
    for audit in audits:
        screen.print(_title(audit))
        screen.print(Text(f"  {_inputs(audit.run)}; code {audit.run['code_version']}, rule set {audit.run['rule_set']}"), soft_wrap=True)
        for sign, what, findings in (("+", "new", audit.new), ("-", "gone", audit.gone)):
            for line in _listed(sign, what, findings):
                screen.print(Text(f"  {line}"), soft_wrap=True)
        screen.print()


def _title(audit: AuditRun) -> Text:
    verdict = str(audit.run["verdict"])
    counts = f"{len(audit.new)} new, {len(audit.still)} still there, {len(audit.gone)} gone"
    return Text.assemble(f"{moment(audit.run['finished_at_ms'])}  ", (f"{verdict:8}", STYLES.get(verdict, "")), counts)


def _inputs(run: Row) -> str:
    inputs = json.loads(str(run["inputs"]))
    named = ", ".join(visible(entry["path"]) for entry in inputs[:3]) + (f" and {len(inputs) - 3} more" if len(inputs) > 3 else "")
    return f"{sum(entry['bytes'] for entry in inputs):,} bytes of {named}"


def _listed(sign: str, what: str, findings: Sequence[Row]) -> Iterator[str]:
    ordered = sorted(findings, key=lambda row: (GRAVEST_FIRST.index(str(row["severity"])), str(row["finding_id"])))
    for row in ordered[:MOST_LISTED]:
        where = f"{place(row)} {offset_range(row)}".strip()
        # Twelve characters of the id are enough for `eo-audit accept`, and leave room for the words.
        yield visible(f"{sign} {str(row['finding_id'])[:12]}  {row['severity']}  {row['rule']} {row['slug']}  {where}: {row['message']}")
    if len(ordered) > MOST_LISTED:
        yield f"{sign} and {count(len(ordered) - MOST_LISTED, f'more {what} finding')}"
