"""Dumps as `kafka-dump-log` prints them without `--print-data-log`, made of the text that it printed with it."""

import gzip
import shutil
from pathlib import Path

from eo_audit.dump.files.discovery import discover
from tests.support.facts import parsed, text_of


def without_payloads(text: bytes, records: list[tuple[int, int, int, int]]) -> bytes:
    """Dump text less the keys and values of its records.

    Args:
        text: of a dump file.
        records: byte offset, length, key size and value size of its records, in order.
    """
    pieces, done = [], 0
    for start, length, key_size, value_size in records:
        behind = start + length
        line_end = behind - (2 if text.endswith(b"\r\n", start, behind) else 1)
        close = _headers_end(text, start, line_end, key_size, value_size)
        pieces += [text[done:close], text[line_end:behind]]
        done = behind
    return b"".join([*pieces, text[done:]])


def _headers_end(text: bytes, start: int, line_end: int, key_size: int, value_size: int) -> int:
    """Where key or value begin: counted from the end by their sizes, else (printing changed them) at the first place they can."""
    for hidden in (False, True):  # tools up to 2.3.1 hide the key of a record without a value
        key = b" key: " if key_size >= 0 and not (hidden and value_size < 0) else b""
        value = b" payload: " if value_size >= 0 else b""
        at = line_end - (len(value) + value_size if value else 0) - (len(key) + key_size if key else 0)
        in_place = text.startswith(key, at) and text.startswith(value, line_end - len(value) - max(value_size, 0))
        if at > start and in_place and (text[at - 1 : at] == b"]" or b"headerKeys" not in text[start:at]):
            return at
    found = [at for at in (text.find(mark, start, line_end) for mark in (b"] key: ", b"] payload: ")) if at >= 0]
    return min(found) + 1 if found else line_end


def copy_without_payloads(source: Path, target: Path) -> None:
    """An input folder with the logs of its own topics as they look without payloads; every other file as it is."""
    shutil.copytree(source, target)
    for file in discover([target]):
        if file.kind_hint != "text" or ".log" not in file.absolute.name or file.own.topic is None or file.own.topic.startswith("__"):
            continue
        rows = parsed(file).facts.get("records")
        sizes = [] if rows is None else rows.select(["byte_offset", "length", "key_size", "value_size"]).to_pylist()
        bare = without_payloads(text_of(file), [(r["byte_offset"], r["length"], r["key_size"], r["value_size"]) for r in sizes])
        file.absolute.write_bytes(gzip.compress(bare) if file.compression == "gzip" else bare)
