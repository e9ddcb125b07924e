"""Which tool printed a text? Told by the first line in it that only one tool prints; what follows may be anybody's words.

Console consumers with the formatters of Kafka's own topics print records without their offsets, their batches and their markers: nothing
of what an audit asks can be told from that, so such a text is named and not read.
"""

import re
from collections.abc import Mapping

from eo_audit.dump.files.broker_answers import HEAD_LINE
from eo_audit.dump.files.not_dumps import NotADump

DUMP, ANSWERS = "text", "broker_answers"
_TRANSACTIONS, _OFFSETS = "__transaction_state", "__consumer_offsets"
_PARTITION = rb"[\w.-]{1,249},\d{1,10}\]::"
# A line as the tool begins it, with a byte order mark where Windows wrote one: what has none within its first 64 KiB is no dump.
_LINES: Mapping[str, bytes] = {
    DUMP: (
        rb"Dumping \S|(?:Log s|S)tarting offset: |baseOffset: \d|\| offset: \d|offset: \d+ position: "
        rb"|timestamp: \d+ offset: |producerId: \d+ producerEpoch: |version: \d+ producerId: |Found \d+ invalid bytes "
    ),
    ANSWERS: rb"(?:%s)[ \t]*\r?$" % HEAD_LINE,
    # TransactionLog.TransactionLogMessageFormatter up to 3.9; JSON, with `version` in 3.9 and `type` since 4.0 (tools.consumer).
    _TRANSACTIONS: (
        rb"[^\n]*::TransactionMetadata\(transactionalId=" rb'|\{"key":\{"(?:version|type)":\d{1,5},"data":\{"transactionalId":'
    ),
    # GroupMetadataManager.OffsetsMessageFormatter (up to 2.0 without names, since then with) and GroupMetadataMessageFormatter up to 3.9;
    # JSON since then.
    _OFFSETS: (
        rb"\[[^\n]*," + _PARTITION + rb"(?:\[OffsetMetadata\[|OffsetAndMetadata\(|NULL\r?$)"
        rb"|[^\n]*::GroupMetadata\(groupId="
        rb'|\{"key":\{"(?:version|type)":\d{1,5},"data":(?:\{"group(?:Id)?":|"unknown")'
    ),
}
_FIRST = re.compile(
    rb"^(?:\xef\xbb\xbf)?(?:%s)" % b"|".join(b"(%s)" % lines for lines in _LINES.values()),
    re.MULTILINE,
)
_DECODERS = {_TRANSACTIONS: "--transaction-log-decoder", _OFFSETS: "--offsets-decoder"}


def printed_by(head: bytes) -> str | None:
    """What the first bytes of a file are of: a dump, broker answers, or one of Kafka's own topics on a console; None: of no tool known.

    Args:
        head: the first bytes, decompressed.
    """
    found = _FIRST.search(head)
    return None if found is None or found.lastindex is None else tuple(_LINES)[found.lastindex - 1]


def on_console(topic: str) -> NotADump:
    """Why what a console consumer printed of one of Kafka's own topics is not taken, and what to print instead."""
    return NotADump(
        f"is what a console consumer printed of {topic}: it shows neither offsets nor batches nor markers, so nothing is judged by it; "
        f"print the segments with kafka-dump-log {_DECODERS[topic]} --deep-iteration instead (collect-dumps.sh does)"
    )
