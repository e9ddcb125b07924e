"""Which tool printed a text? Told by the first line in it that only one tool prints; what follows may be anybody's words."""

import re
from collections.abc import Mapping

from eo_audit.dump.files.broker_answers import HEAD_LINE
from eo_audit.dump.lines.console import HEADS

DUMP, ANSWERS = "text", "broker_answers"
# A line as the tool begins it, with a byte order mark where Windows wrote one: what has none within its first 64 KiB is no dump.
_LINES: Mapping[str, bytes] = {
    DUMP: (
        rb"Dumping \S|(?:Log s|S)tarting offset: |baseOffset: \d|\| offset: \d|offset: \d+ position: "
        rb"|timestamp: \d+ offset: |producerId: \d+ producerEpoch: |version: \d+ producerId: |Found \d+ invalid bytes "
    ),
    ANSWERS: rb"(?:%s)[ \t]*\r?$" % HEAD_LINE,
    **HEADS,
}
_FIRST = re.compile(
    rb"^(?:\xef\xbb\xbf)?(?:%s)" % b"|".join(b"(%s)" % lines for lines in _LINES.values()),
    re.MULTILINE,
)


def printed_by(head: bytes) -> str | None:
    """What the first bytes of a file are of: a dump, broker answers, or a formatter of `lines.console`; None: of no tool known.

    Args:
        head: the first bytes, decompressed.
    """
    found = _FIRST.search(head)
    return None if found is None or found.lastindex is None else tuple(_LINES)[found.lastindex - 1]
