"""JSON for files that people look at in a terminal."""

import json
import re

# Characters that a terminal obeys or that move text about: controls of Latin 1, invisible and directional ones; and lone surrogates.
_OBEYED = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")


def json_text(value: object, *, indent: int | None = None) -> str:
    """A value as JSON that can be read and printed: letters of all scripts as they are, what a terminal would obey as an escape."""
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, indent=indent, ensure_ascii=False))
