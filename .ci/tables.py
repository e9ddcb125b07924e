"""Prints docs/tables.md from the files of schemas/: which table answers which question, and what every column means."""

import json
import sys
from pathlib import Path

FAMILIES = {
    "results": "Results: what the audit says",
    "histories": "Histories: what happened, in order",
    "facts": "Facts: what the text says",
}
# Question -> the table that answers it, and the columns to look at.
QUESTIONS = (
    ("What is wrong, and where?", "findings", ("rule", "severity", "topic", "partition", "message", "evidence")),
    ("How did a transaction end, and why was it aborted?", "transaction_instances", ("transactional_id", "decision", "abort_cause")),
    ("Which partitions did it register, and which got its marker?", "instance_partitions", ("topic", "partition", "marker_match")),
    ("What did one producer write, batch by batch?", "producer_history", ("producer_id", "base_offset", "row_kind", "truth")),
    ("Which transactions are in a partition, from which batch to which marker?", "transaction_spans", ("span_id", "marker_offset")),
    ("How far may read_committed consumers read, and behind whom do they wait?", "visibility", ("lso", "hw", "blocker_first_offset")),
    ("What did the coordinator write, and was each step legal?", "coordinator_history", ("transactional_id", "status", "step")),
    ("Which offsets do the dumps cover?", "coverage", ("first_offset", "last_offset", "state", "reason")),
    ("What does the aborted-transaction index lack?", "aborted_index", ("span_first_offset", "marker_offset")),
    ("Does the producer snapshot say what the log says?", "snapshot_states", ("state", "differences", "snapshot_offset")),
    ("What became of the offsets that a group committed in transactions?", "group_offsets", ("group", "outcome", "committed_offset")),
    ("What did a console consumer print of an id or a group?", "console_records", ("transactional_id", "status", "group", "byte_offset")),
    ("Which markers and decisions have no partner, and why is that open?", "unmatched", ("why", "markers", "spans", "first_offset")),
    ("How far do the brokers' clocks lie apart?", "clock_offsets", ("offset_ms", "spread_ms", "pairs")),
    ("Which batch stands at an offset, and in which line of which dump?", "batches", ("base_offset", "byte_offset", "length")),
    ("Which text was not understood?", "unread_spans", ("section_id", "byte_offset", "length", "reason")),
    ("Which dumps were read, when were they made?", "dump_files", ("path", "dumped_at_ms", "text_bytes", "bytes_unread")),
    ("Which audits were there, and at which versions of the tables?", "runs", ("step", "finished_at_ms")),
)


def kind(column: object) -> str:
    """A type as Spark prints it: `long`, `array<struct<first, last>>`."""
    if not isinstance(column, dict):
        return str(column)
    if column["type"] == "array":
        return f"array of {kind(column['elementType'])}"
    if column["type"] == "struct":
        return f"struct({', '.join(field['name'] for field in column['fields'])})"
    return str(column["type"])


def section(table: dict) -> list[str]:
    """A table, its key and its columns."""
    rows = []
    for field in table["fields"]:
        about = field["metadata"]
        unit = f" ({about['unit']})" if about.get("unit") else ""
        null = "" if not field["nullable"] else ", or null"
        meaning = about["comment"].replace("|", "\\|")
        rows.append(f"| `{field['name']}` | {kind(field['type'])}{unit}{null} | {meaning} |")
    key = ", ".join(f"`{name}`" for name in table["key"])
    head = [f"### `{table['table']}`", "", table["description"], "", f"Key: {key}."]
    return [*head, "", "| column | type | meaning |", "|---|---|---|", *rows, ""]


def page(schemas: Path) -> str:
    """The whole page."""
    tables = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(schemas.glob("*.json"))}
    lines = [
        "# Tables and questions",
        "",
        "Made from [schemas/](../schemas) by `make tables`; do not edit. `warehouse/` in `--out` holds these Delta tables, for any reader "
        "of Delta. In Python, without Spark:",
        "",
        "```python",
        'results = eo_audit.open("out")',
        'results.frame("producer_history", producer_id=4007)   # a pandas frame in the order of the key; results.rows gives dictionaries',
        "```",
        "",
        "`eo-audit export TABLE --out out` prints any of them as JSON lines, `eo-audit export HISTORY.STEP` any step of a text in "
        "`eo_audit/history/` that makes one. No table holds keys or values of records: their sizes, and "
        "keyed hashes of them.",
        "",
        "`results.frame` keeps whole numbers whole (`Int64`). Who reads the Delta tables with pandas itself says so: where a column has "
        "nulls, pandas makes floats of whole numbers, and ids of 64 bits (`replica_log_id`, `section_id`, `instance_id`, ...) lose their "
        "last digits. `DeltaTable(path).to_pandas(types_mapper={pyarrow.int64(): pandas.Int64Dtype()}.get)` keeps them.",
        "",
        "| question | table | look at |",
        "|---|---|---|",
    ]
    for question, name, columns in QUESTIONS:
        known = {field["name"] for field in tables[name]["fields"]}
        assert set(columns) <= known, f"{name} has no {set(columns) - known}"
        lines.append(f"| {question} | [`{name}`](#{name}) | {', '.join(f'`{column}`' for column in columns)} |")
    for family, title in FAMILIES.items():
        lines += ["", f"## {title}", ""]
        for table in tables.values():
            if table["family"] == family:
                lines += section(table)
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    sys.stdout.write(page(Path(__file__).resolve().parent.parent / "schemas"))
