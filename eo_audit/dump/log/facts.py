"""What was read, as rows of the fact tables."""

from collections import defaultdict

from eo_audit.dump.lines.decoders import TRANSACTION_JSON, TRANSACTION_TEXT
from eo_audit.dump.lines.messages import Message, without_text
from eo_audit.dump.lines.metadata_decoder import JSON_DECODER
from eo_audit.dump.log.framing import Group, Record
from eo_audit.dump.log.records import Span
from eo_audit.dump.log.sections import section_row, speaks_of
from eo_audit.dump.log.state import FileContext, Section

Row = dict[str, object]
UNDECODED_RECORD = "undecoded_record"  # a reason of `unread_spans`


def replica_log(section: Section) -> int:
    """The log a section speaks of; a section that does not say is a log of its own."""
    return section.section_id if section.identity.replica_log_id is None else section.identity.replica_log_id


def batch_row(group: Group, section: Section, base: int) -> Row:
    """The row of the batch line, and of the marker's line behind it.

    Args:
        group: offsets in the window.
        section: the section in force.
        base: file offset of the window.
    """
    line = group.line
    marker = next((record.ending.marker for record in group.records if record.ending.marker), None)
    # A marker is one row of `batches`, with the line of its record: no row of `records` stands for it.
    end = group.records[-1].ending.end if group.records and line.is_control else group.line_end
    return {
        **line.columns,
        "section_id": section.section_id,
        "byte_offset": base + group.start,
        "length": end - group.start,
        "replica_log_id": replica_log(section),
        # Of a compressed wrapper of magic 0 or 1 its records tell where it begins.
        "base_offset": group.base_offset,
        "records_seen": None if group.shallow else len(group.records),
        "marker_type": marker.marker_type if marker else None,
        "control_type": marker.control_type if marker else None,
        "coordinator_epoch": marker.coordinator_epoch if marker else None,
        "payload_verified": group.verified,
    }


def record_row(record: Record, group: Group, section: Section, base: int) -> Row:
    """The row of a record line, but for its hashes; without what a decoder says of a record that it could not read."""
    decoded = record.ending.decoded
    end = record.ending.end if decoded is None or decoded.unread_from is None else decoded.unread_from
    return {
        **record.line.columns,
        "section_id": section.section_id,
        "byte_offset": base + record.start,
        "length": end - record.start,
        "replica_log_id": replica_log(section),
        "base_offset": group.base_offset,
    }


def hashed_spans(record: Record, group: Group) -> tuple[Span | None, Span | None]:
    """Text of key and value where it is the bytes of the record, and surely so."""
    return (record.ending.key, record.ending.value) if group.verified else (None, None)


def decoded_row(record: Record, group: Group, section: Section, base: int) -> tuple[str, Row] | None:
    """The row of a record that a topic decoder printed, with its table; None where there is none."""
    decoded = record.ending.decoded
    if decoded is None or decoded.fields is None:
        return None
    address: Row = {
        "section_id": section.section_id,
        "byte_offset": base + record.start,
        "length": record.ending.end - record.start,
        "replica_log_id": replica_log(section),
    }
    if decoded.form in (TRANSACTION_TEXT, TRANSACTION_JSON):
        place: Row = {
            "entry_offset": record.line.offset,
            "partition_leader_epoch": group.line.partition_leader_epoch,
            "batch_timestamp_ms": group.line.max_timestamp_ms,
        }
        return "coordinator_entries", address | place | decoded.fields
    if decoded.form == JSON_DECODER:
        block: Row = {"record_offset": record.line.offset, "batch_timestamp_ms": group.line.max_timestamp_ms}
        return "producer_id_blocks", address | block | decoded.fields
    batch: Row = {
        "record_offset": record.line.offset,
        "producer_id": group.line.producer_id,
        "producer_epoch": group.line.producer_epoch,
        "is_transactional": group.line.is_transactional,
    }
    return "offset_commits", address | batch | decoded.fields


class FactRows:
    """The rows read from one window, and who owns its bytes; offsets that come in are those of the window.

    Attributes:
        rows: by table.
        spans: text of key and value of each row of `records`.
        owned: bytes by owner.
    """

    def __init__(self, context: FileContext, base: int) -> None:
        """No rows yet, of the window at a file offset (`base`)."""
        self._context, self._base = context, base
        self.rows: defaultdict[str, list[Row]] = defaultdict(list)
        self.spans: list[tuple[Span | None, Span | None]] = []
        self.owned = dict.fromkeys(("preamble", "facts", "tool_messages", "unread"), 0)
        self.ascii_lossy = False

    def own(self, owner: str, start: int, end: int) -> None:
        """Bytes [start, end) belong to `owner`."""
        self.owned[owner] += end - start

    def add(self, table: str, start: int, end: int, *, section: Section, row: Row) -> None:
        """A row of a table, whose text is [start, end)."""
        self.rows[table].append({"section_id": section.section_id, "byte_offset": self._base + start, "length": end - start, **row})

    def section(self, section: Section, end: int, end_reason: str) -> None:
        """A section that ends at `end`."""
        # Only now: what its text has shown (dialect, decoder, how it ended) is known at its end.
        self.rows["dump_sections"].append(section_row(section, self._context, end=self._base + end, end_reason=end_reason))

    def unread(self, start: int, end: int, *, section: Section, reason: str) -> None:
        """A span of unread text."""
        self.add("unread_spans", start, end, section=section, row={"dump_file_id": self._context.dump_file_id, "reason": reason})

    def message(self, start: int, end: int, *, section: Section, message: Message, among_records: bool) -> None:
        """A message of the tool; `among_records`: where the text of a record may stand, so that its own is not stored."""
        if among_records:
            message = without_text(message, end - start, dumped_path=section.dumped_path)
        applies = section.section_id if speaks_of(message, section) else None
        row: Row = {"text_kind": message.text_kind, "severity": message.severity, "applies_to_section": applies, "text": message.text}
        self.add("tool_messages", start, end, section=section, row=row)
        self.own("tool_messages", start, end)

    def group(self, group: Group, section: Section) -> None:
        """A batch with its records."""
        self.rows["batches"].append(batch_row(group, section, self._base))
        self.own("facts", group.start, group.end)
        for start, end, message in group.messages:
            self.message(start, end, section=section, message=message, among_records=True)
            # The message stands within the bytes of the group, and each byte has one owner: taken back, as start and end are exchanged.
            self.own("facts", end, start)
        for record in () if group.line.is_control else group.records:
            self.rows["records"].append(record_row(record, group, section, self._base))
            self.spans.append(hashed_spans(record, group))
            self.ascii_lossy |= record.ending.ascii_lossy
            decoded = decoded_row(record, group, section, self._base)
            if decoded:
                self.rows[decoded[0]].append(decoded[1])
            elif record.ending.decoded is not None and record.ending.decoded.unread_from is not None:
                self._undecoded(record.ending.decoded.unread_from, record.ending.end, section)

    def _undecoded(self, start: int, end: int, section: Section) -> None:
        """What a decoder says of a record that it could not read: nobody knows what that record was."""
        self.unread(start, end, section=section, reason=UNDECODED_RECORD)
        self.own("unread", start, end)
        self.own("facts", end, start)  # each byte has one owner

    def entry(self, start: int, end: int, *, section: Section, row: Row, index: int) -> None:
        """A line of a snapshot, or of an index of aborted transactions (its number in the file is `index`)."""
        named = section.identity.segment_base_offset
        segment = -1 if named is None else named
        row["replica_log_id"] = replica_log(section)
        if section.identity.kind == "snapshot":
            self.add("producer_snapshots", start, end, section=section, row=row | {"snapshot_offset": segment})
        else:
            self.add("aborted_transactions", start, end, section=section, row=row | {"segment_base_offset": segment, "entry_index": index})
        self.own("facts", start, end)
