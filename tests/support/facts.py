"""Facts of real dumps, read in-process without Spark."""

import gzip
import hashlib
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pyarrow as pa

from eo_audit.dump.files.discovery import DumpFile, discover
from eo_audit.dump.files.identity import dump_file_id
from eo_audit.dump.lines.columns import fact_table
from eo_audit.dump.parse import PARSER_VERSION, FileContext, RangeResult, State, parse_range
from eo_audit.store.schemas import schema, table_names

CORPUS = Path(__file__).resolve().parent.parent / "data" / "corpus"
SALT = b"salt of the tests"[:16]


@cache
def corpus_files() -> tuple[DumpFile, ...]:
    """All files of the corpus, each of its folders an input of its own; reading their manifests takes a while."""
    return tuple(file for path in sorted((CORPUS / "dumps").iterdir()) for file in discover([path]))


def text_of(file: DumpFile) -> bytes:
    """The decompressed text of a dump file."""
    stored = file.absolute.read_bytes()
    return gzip.decompress(stored) if file.compression == "gzip" else stored


def context_of(file: DumpFile, text: bytes) -> FileContext:
    """What the parser is told of a file."""
    digest = hashlib.sha256(text).hexdigest()
    return FileContext.of(file, dump_file_id=dump_file_id(file.cluster, file.path, digest), salt=SALT, ingest_id="test")


def parsed(file: DumpFile) -> RangeResult:
    """A whole dump file read as one range."""
    text = text_of(file)
    context = context_of(file, text)
    return parse_range(text, context=context, base=0, start=0, stop=len(text), state=State.initial(), final=True)


def dump_file_row(file: DumpFile, result: RangeResult) -> dict[str, object]:
    """The row of `dump_files`."""
    text = text_of(file)
    context = context_of(file, text)
    return {
        "dump_file_id": context.dump_file_id,
        "cluster": file.cluster,
        "input_path": file.input_path,
        "path": file.path,
        "digest": hashlib.sha256(text).hexdigest(),
        "text_bytes": len(text),
        "stored_bytes": file.stored_bytes,
        "compression": file.compression,
        "encoding": "crlf" if result.crlf else "ascii_lossy" if result.ascii_lossy else "utf8",
        "dump_set": file.dump_set,
        "dumped_at_ms": file.dumped_at_ms,
        "dumped_at_source": file.dumped_at_source,
        "bytes_preamble": result.ledger.preamble,
        "bytes_facts": result.ledger.facts,
        "bytes_tool_messages": result.ledger.tool_messages,
        "bytes_unread": result.ledger.unread,
        "parser_version": PARSER_VERSION,
        "ingest_id": "test",
    }


def facts_of(paths: Sequence[Path], cluster: str | None = None) -> dict[str, pa.Table]:
    """All fact tables of some inputs, every one with the columns of its schema, empty where there is no row.

    Args:
        paths: input folders or files.
        cluster: overrides every manifest and folder name.
    """
    chunks: defaultdict[str, list[pa.Table]] = defaultdict(list)
    files = []
    for file in discover(paths, cluster):
        result = parsed(file)
        files.append(dump_file_row(file, result))
        for table, facts in result.facts.items():
            chunks[table].append(facts)
    chunks["dump_files"].append(fact_table("dump_files", files))
    return {name: pa.concat_tables([schema(name).arrow().empty_table(), *chunks[name]]) for name in table_names("facts")}
