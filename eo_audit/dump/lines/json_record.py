"""A record as the JSON decoders print it (transactions from 4.1, offsets from 3.8): one line, control characters escaped."""

import json
import re
from collections.abc import Mapping

from eo_audit.dump.lines.printed import LONG, number, text

Json = Mapping[str, object]

# A Jackson tree on one line: a line feed inside a value is printed as an escape.
JSON_RECORD = re.compile(rb' key: (\{"type":[^\n]*)\n')


def split_json_record(line: bytes) -> tuple[Json, Json | None] | None:
    """Key and value of a record that a JSON decoder printed on one line, from its key's `{` on; the value is None on a tombstone."""
    printed = line.decode("utf-8", "replace").rstrip("\r")
    try:
        key, end = json.JSONDecoder().raw_decode(printed)
        # The tool puts key and payload side by side; whatever a JSON string holds, it cannot close its own quotes.
        if not isinstance(key, dict) or not printed.startswith(" payload: ", end):
            return None
        payload = printed[end + len(" payload: ") :]
        value = None if payload == "<DELETE>" else json.loads(payload)
    # A member's metadata may be any JSON, nested as deep as somebody likes.
    except (ValueError, RecursionError):
        return None
    return (key, value) if value is None or isinstance(value, dict) else None


def json_number(data: Json, name: str, *, bits: int = LONG) -> int | None:
    """A whole number out of decoded JSON, None where it is not printed.

    Raises:
        ValueError: something else is there.
    """
    value = data.get(name)
    # A boolean is an int to Python.
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise ValueError(f"{name} is not a whole number")
    return None if value is None else number(str(value), bits)


def json_object(parent: Json, name: str) -> Json:
    """An object inside decoded JSON.

    Raises:
        ValueError: something else is there.
    """
    value = parent.get(name)
    if not isinstance(value, dict):
        raise ValueError(f"{name} is not an object")
    return value


def json_text(data: Json, name: str) -> str | None:
    """A string inside decoded JSON, None where there is none."""
    value = data.get(name)
    return text(value) if isinstance(value, str) else None
