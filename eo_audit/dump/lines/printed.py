"""Printed values and the bytes they stand for.

The dump tool prints through the JVM's console encoding, so a text can be longer or shorter than the bytes it stands for: bytes that are
not UTF-8 come out as U+FFFD (3 bytes of text for 1 to 3), everything outside ASCII as `?` under `LC_ALL=C` (1 byte of text for 1 to 4),
and a terminal between (`docker exec -t`) turns a newline into CRLF.
"""

LONG, INT, SHORT = 63, 31, 15

_REPLACEMENT = "\ufffd".encode()


def exact_or_lossy(printed: bytes, size: int) -> bool:
    """Can this printed text stand for `size` bytes?"""
    # One U+FFFD stands for 1 to 3 bytes, and takes 3 itself; a CRLF stands for one byte at least.
    shortest = len(printed) - 2 * printed.count(_REPLACEMENT) - printed.count(b"\r\n")
    # Under LC_ALL=C a `?` may have been a character of four bytes, or a question mark.
    longest = len(printed) + 3 * printed.count(b"?")
    return shortest <= size <= longest


def longest_printed(size: int) -> int:
    """The longest text, in bytes, that can stand for `size` bytes: each one printed as U+FFFD."""
    return 3 * max(size, 0)


def number(digits: str | bytes, bits: int = LONG) -> int:
    """The printed integer, of at most `bits` bits beside the sign.

    Raises:
        ValueError: not a number, or more than a Kafka field of that width can hold.
    """
    value = int(digits)
    if not -(1 << bits) <= value < 1 << bits:
        raise ValueError(f"a number of {len(digits)} digits does not fit {bits + 1} bits")
    return value


def text(printed: bytes | str) -> str:
    """Printed bytes, or a string out of JSON, as text that every table can hold: what is not UTF-8 is replaced."""
    raw = printed.encode("utf-8", "replace") if isinstance(printed, str) else printed
    return raw.decode("utf-8", "replace")
