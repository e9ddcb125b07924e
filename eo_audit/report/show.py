"""`eo-audit show FILE@OFFSET`: the dump line behind a piece of evidence, with its fields named. No Spark: two tables and one dump file."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from eo_audit.dump.lines.messages import NOT_KEPT
from eo_audit.errors import ArgumentError, InputError, WarehouseError
from eo_audit.report.dump_files import DumpFiles
from eo_audit.report.quote import damage_of, is_kafkas_own, quotable, text_at
from eo_audit.store.tables import Warehouse
from eo_audit.words import Row, moment

# Tables of a section's facts, the ones that say most first. Any section may hold messages of the tool and unread text.
# A record of Kafka's own topics has a row of its fields and a plain one: the fields say more.
_TABLES: Mapping[str, Sequence[str]] = {
    "log": ("batches", "coordinator_entries", "offset_commits", "records"),
    "snapshot": ("producer_snapshots",),
    "txnindex": ("aborted_transactions",),
    "checkpoint": ("checkpoints",),
    "manifest": ("manifest_entries",),
    "listing": ("listed_files",),
    "broker_answers": ("broker_answers",),
    "console_records": ("console_records",),
}
_WHAT = {
    "batches": "a batch",
    "coordinator_entries": "an entry of the transaction coordinator",
    "offset_commits": "a record of consumer offsets",
    "records": "a record",
    "producer_snapshots": "a row of a producer snapshot",
    "aborted_transactions": "an entry of the aborted-transaction index",
    "checkpoints": "a row of a checkpoint",
    "manifest_entries": "a line of the manifest",
    "listed_files": "a line of the listing",
    "broker_answers": "a broker's answer to kafka-transactions.sh",
    "console_records": "a record of one of Kafka's own topics, as a console consumer printed it",
    "dump_sections": "the head of one dumped file",
    "tool_messages": "a message of the dump tool",
    "unread_spans": "text that was not understood",
}
_PLACE = {"section_id", "byte_offset", "length", "replica_log_id", "dump_file_id", "ingest_id", "applies_to_section"}
_UNSHOWN = {*_PLACE, "key_hash", "value_hash", "text"}
_NEAR = 1 << 20  # bytes


@dataclass(frozen=True)
class Element:
    """One element of a dump file: what it is, where it stands, its lines as far as they may be shown, and its fields."""

    what: str
    where: str
    lines: tuple[str, ...]
    fields: tuple[tuple[str, str], ...]


def parse_address(address: str) -> tuple[str, int]:
    """FILE@OFFSET as the file and the byte offset.

    Raises:
        ArgumentError: it is not of that form.
    """
    name, _, offset = address.rpartition("@")
    if not name or not (offset.isascii() and offset.isdigit()):
        raise ArgumentError(f"{address} is not FILE@OFFSET, such as broker-1/orders-0/00000000000000000000.log.txt@2931")
    return name, int(offset)


def show(address: str, warehouse: Warehouse, *, cluster: str | None = None) -> Element:
    """The element of a dump file that holds a byte.

    Args:
        address: FILE@OFFSET; the file as in `evidence` (relative to its input), or where it lies now. Of files of one name, from several
            nights, the one that the audit reads.
        warehouse: the tables of the run.
        cluster: whose file, where several clusters have one of that name.

    Raises:
        ArgumentError: the address is not understood, or several clusters have such a file.
        InputError: no such file was ingested, it is not there any more, or it has no such byte.
        WarehouseError: nothing was ingested into this warehouse.
    """
    name, offset = parse_address(address)
    file, path, section, table, fact = _meant(_dump_files(name, warehouse, cluster), offset, warehouse)
    begin, length = _number(fact, "byte_offset"), _number(fact, "length")
    try:
        text = text_at(path, byte_offset=begin, length=length, compression=str(file["compression"]))
    except OSError as error:
        raise InputError(f"{path} was ingested, but cannot be read now: {error}") from error
    understood = table not in ("unread_spans", "tool_messages")
    lines = quotable(text, known=table != "unread_spans", whole=understood and is_kafkas_own(section))
    if table == "tool_messages" and str(fact["text"]).endswith(NOT_KEPT):
        lines = [str(fact["text"])]
    where = f"{file['path']}@{begin}, {length} bytes; cluster {file['cluster']}{_log_name(section)}"
    return Element(_WHAT[table], where, tuple(lines), tuple(_fields(fact)))


def _number(row: Row, column: str) -> int:
    value = row[column]
    assert isinstance(value, int)
    return value


def _meant(files: Sequence[tuple[Row, Path]], offset: int, warehouse: Warehouse) -> tuple[Row, Path, Row, str, Row]:
    """Of several files of one name that in which an element begins at that byte, as evidence has it; else the first."""
    likeliest = files[0][1]
    for place, (file, path) in enumerate(files if len(files) > 1 else ()):
        found = _begins(file, offset, warehouse, path)
        if found is not None and place and path == likeliest:
            raise InputError(f"{likeliest} is another dump now: the one that has something at byte {offset} lay there before")
        if found is not None:
            return file, path, *found
    return *files[0], *_fact(files[0][0], offset, warehouse, likeliest)


def _begins(file: Row, offset: int, warehouse: Warehouse, path: Path) -> tuple[Row, str, Row] | None:
    """What begins there, if anything does."""
    with suppress(InputError):
        section, table, fact = _fact(file, offset, warehouse, path)
        return (section, table, fact) if fact["byte_offset"] == offset else None
    return None


def _dump_files(name: str, warehouse: Warehouse, cluster: str | None) -> list[tuple[Row, Path]]:
    """The rows of the files that may be meant, and where they lie; the likeliest first."""
    if not warehouse.exists("dump_files"):
        raise WarehouseError(f"{warehouse.folder} holds no ingested dumps: name the folder of the run with --out")
    files = DumpFiles(warehouse)
    found = files.named(name, cluster)
    clusters = sorted({str(row["cluster"]) for row in found})
    if not found:
        of_cluster = f" of cluster {cluster}" if cluster else ""
        raise InputError(f"no dump file {name}{of_cluster} was ingested into {warehouse.folder}; name it relative to its input")
    if len(clusters) > 1:
        raise ArgumentError(f"{name} was ingested for {len(clusters)} clusters ({', '.join(clusters[:8])} ...): say which with --cluster")
    return [(row, files.path(row)) for row in found]


def _fact(file: Row, offset: int, warehouse: Warehouse, path: Path) -> tuple[Row, str, Row]:
    """The section, the table and the row that own a byte; the smallest one where a batch and its records could both."""
    file_id = _number(file, "dump_file_id")
    sections = warehouse.find("dump_sections", dump_file_id=(file_id, file_id), byte_offset=(0, offset)).to_pylist()
    for section in sorted((row for row in sections if offset < row["byte_offset"] + row["length"]), key=lambda row: row["length"]):
        tables = (*_TABLES.get(section["kind"], ()), "tool_messages", "unread_spans")
        # Most elements begin at the byte that was asked for, or a little before; a record of megabytes is looked for last.
        for lowest in (offset, max(0, offset - _NEAR), 0):
            for table in tables:
                rows = warehouse.find(table, section_id=(section["section_id"],) * 2, byte_offset=(lowest, offset)).to_pylist()
                owners = [row for row in rows if offset < row["byte_offset"] + row["length"]]
                if owners:
                    return section, table, min(owners, key=lambda row: row["length"])
        if section["dumped_path"] is None:
            raise InputError(f"byte {offset} of {file['path']} is in no fact")
        # The line with which the tool begins, as long as in `section_status`: coverage (R07) points there for what should follow it.
        return section, "dump_sections", {**section, "length": len(f"Dumping {section['dumped_path']}\n".encode())}
    raise InputError(f"{file['path']} has {file['text_bytes']} bytes of text{_why_no_more(file, path)}: there is no byte {offset}")


def _why_no_more(file: Row, path: Path) -> str:
    """Where a packed file is damaged its text ends, as far as it was ingested."""
    return damage_of(path) if file["compression"] == "gzip" and path.is_file() else ""


def _log_name(section: Row) -> str:
    broker = "" if section["broker"] is None else f", broker {section['broker']}"
    return broker + ("" if section["topic"] is None else f", {section['topic']}-{section['partition']}")


def _fields(fact: Row) -> Iterator[tuple[str, str]]:
    for name, value in fact.items():
        if value is None or name in _UNSHOWN:
            continue
        if isinstance(value, list):
            value = ", ".join("-".join(str(part) for part in item.values()) if isinstance(item, dict) else str(item) for item in value)
        # A number below 10^11 is a duration: as a moment it would be before 1974.
        yield name, f"{value}  ({moment(value)})" if name.endswith("_ms") and isinstance(value, int) and value > 10**11 else str(value)
