"""Writes the part of docs/dialects.md that says what each line consists of, from `eo_audit/dump/lines/grammar.py`."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from eo_audit.dump.lines import grammar, sidecars  # noqa: E402
from eo_audit.dump.lines.fields import Field, Line, Stamp, fields_of  # noqa: E402

HEADING = "\n## The lines, field by field\n"
LINES = {
    "A batch of magic 2, since 2.2": grammar.BATCH,
    "A batch of magic 0 or 1, since 2.2": grammar.LEGACY_BATCH,
    "A record, since 2.2": grammar.RECORD,
    "A record, up to 2.1": grammar.FLAT_RECORD,
    "A batch, up to 2.1": grammar.FLAT_BATCH,
    "A producer of a snapshot, since 1.0.2": sidecars.SNAPSHOT,
    "A producer of a snapshot, 1.0.0 and 1.0.1": sidecars.SNAPSHOT_1_0,
    "A producer of a snapshot, 0.11": sidecars.SNAPSHOT_0_11,
    "An aborted transaction of a transaction index": sidecars.TXNINDEX,
    "An entry of an offset index": sidecars.INDEX,
    "An entry of a time index": sidecars.TIMEINDEX,
    "A state of a transactional id on a console, up to 3.9": grammar.CONSOLE_TRANSACTION,
    "A commit on a console, 2.1 to 3.9": grammar.CONSOLE_COMMIT,
    "A commit on a console, up to 2.0": grammar.CONSOLE_COMMIT_2_0,
}


def row(field: Field | Stamp, when: str) -> str:
    """A field as a row of a table."""
    if isinstance(field, Stamp):
        name, told, columns = f"{field.kinds.told} (the name says the kind of time)", field.time.told, (field.column, field.kind_column)
    else:
        old = f" (`{field.old}` before 3.0)" if field.old else ""
        name, told, columns = f"`{field.printed}`{old}", field.kind.told, (field.column, None)
    kept = ", ".join(f"`{column}`" for column in columns if column)
    return f"| {name.replace('|', chr(92) + '|')} | {told} | {when or 'always'} | {kept} |".replace("|  |", "| |")


def table(line: Line) -> list[str]:
    """The fields of a line, in the order of print."""
    head = ["| printed | value | when | column |", "|---|---|---|---|"]
    return [*head, *(row(field, when) for when, field in fields_of(line.items))]


def page(text: str) -> str:
    """The page with its tables of fields made anew: all that stands below the first subheading of their part."""
    before, heading, rest = text.partition(HEADING)
    intro, _, _ = rest.partition("\n### ")
    _, next_heading, behind = rest.partition("\n## ")
    tables = [f"### {title}\n\n" + "\n".join(table(line)) + "\n" for title, line in LINES.items()]
    return before + heading + intro + "\n" + "\n".join(tables) + next_heading + behind


if __name__ == "__main__":
    target = ROOT / "docs" / "dialects.md"
    target.write_text(page(target.read_text(encoding="utf-8")), encoding="utf-8")
