"""A moment as a person types it."""

from datetime import UTC, datetime

from eo_audit.errors import ArgumentError


def parse_moment(text: str | None) -> int | None:
    """A moment as epoch milliseconds; ISO 8601 without a zone is UTC.

    Raises:
        ArgumentError: it is neither, or a number that is no time of our days in milliseconds.
    """
    if text is None or (text.isascii() and text.isdigit()):
        return None if text is None else _milliseconds(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ArgumentError(f"--as-of {text} is neither ISO 8601 (2026-11-21T05:00:00Z) nor milliseconds since 1970") from None
    milliseconds = round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    if not 0 <= milliseconds < 10**13:
        raise ArgumentError(f"--as-of {text} is no time of our days (1970 to 2286)")
    return milliseconds


def _milliseconds(text: str) -> int:
    """Milliseconds of our days (2001 to 2286) have 13 digits, seconds have 10."""
    # A slip of units is a moment too, in 1970 or in the year 50000, and every transaction would be overdue or in the future.
    number = int(text)
    if 10**12 <= number < 10**13:
        return number
    for unit, milliseconds in (("seconds", number * 1000), ("microseconds", number // 1000), ("nanoseconds", number // 10**6)):
        if 10**12 <= milliseconds < 10**13:
            raise ArgumentError(f"--as-of {text} is a time in {unit}: did you mean milliseconds, --as-of {milliseconds}?")
    raise ArgumentError(f"--as-of {text} is no time in milliseconds since 1970: such a number has 13 digits (or use 2026-11-21T05:00:00Z)")
