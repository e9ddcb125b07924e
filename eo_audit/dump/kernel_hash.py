"""Salted hashes of keys and payloads."""

import hashlib
from collections.abc import Sequence


def keyed_hashes(text: bytes, spans: Sequence[tuple[int, int] | None], salt: bytes) -> list[int | None]:
    """A 64-bit hash of each span of text (None for None), as a signed integer, the same in every run with this salt."""
    view = memoryview(text)
    return [None if span is None else _hash(view[span[0] : span[1]], salt) for span in spans]


def _hash(content: memoryview, salt: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(content, digest_size=8, key=salt).digest(), "little", signed=True)
