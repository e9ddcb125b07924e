"""Dump sections: what kind they are, what their text shows, and their row in `dump_sections`."""

import re
from dataclasses import replace

from eo_audit.dump.files.identity import Identity, identify, section_id
from eo_audit.dump.lines.decoders import coordinator_records
from eo_audit.dump.lines.dialects import CUT_LINE, OLD_LINE, PREAMBLE, BatchLine, batch_line, dialect, record_line
from eo_audit.dump.lines.flat_lines import FLAT
from eo_audit.dump.lines.messages import Message
from eo_audit.dump.lines.metadata_decoder import metadata_records
from eo_audit.dump.lines.offsets_decoder import offset_records
from eo_audit.dump.log.closing import is_contradicted
from eo_audit.dump.log.framing import Group, Profile
from eo_audit.dump.log.records import Decoder, Proof
from eo_audit.dump.log.state import FileContext, Section
from eo_audit.dump.log.text import BYTE_ORDER_MARK, Window

_SIDECARS = ("snapshot", "txnindex", "index", "timeindex")
UNKNOWN_DECODER = "other"


_DECODERS: dict[str, Decoder] = {
    "__transaction_state": coordinator_records,
    "__consumer_offsets": offset_records,
    # Most of its records are of no interest, but their text must end somewhere.
    "__cluster_metadata": metadata_records,
}


def looks_like_log(window: Window, at: int) -> bool:
    """Is the line at `at` one that only the dump of a log segment has?"""
    window.structural(at)
    text = window.text
    lines = (batch_line(text, at), record_line(text, at), PREAMBLE.match(text, at), OLD_LINE.match(text, at))
    return any(line is not None for line in lines)


def new_section(context: FileContext, byte_offset: int, *, dumped_path: str | None, kind: str | None = None) -> Section:
    """The section that starts at a byte of the file.

    Args:
        context: the file.
        byte_offset: of its `Dumping` line, or of its first line where it has none.
        dumped_path: the path behind `Dumping`.
        kind: what its text is where the path does not say.
    """
    is_first = byte_offset <= len(BYTE_ORDER_MARK)
    identity = identify(context.cluster, manifest=context.manifest, dumped_path=dumped_path, own=context.own, is_first=is_first)
    if kind is not None and (identity.kind == "unknown" or dumped_path is None):
        identity = replace(identity, kind=kind)
    return Section(section_id(context.dump_file_id, byte_offset), byte_offset, dumped_path, identity)


def kind_without_path(window: Window, at: int, own: Identity | None, message: tuple[int, Message] | None) -> str:
    """What the text is of a file, or of a part of it, that no `Dumping` line introduces; `message` as of `whole_message`."""
    if looks_like_log(window, at):
        return "log"
    if message is not None:
        return "log" if is_contradicted(window, *message, 0) else "tool_messages"
    cut = CUT_LINE.match(window.text, at) if window.final else None
    if cut is not None and (cut["log"] or not cut["old"] or (own is not None and own.kind == "log")):
        return "log"
    return own.kind if own is not None and own.kind in _SIDECARS else "unknown"


def announced(section: Section, found: re.Match[bytes]) -> Section:
    """The section behind a line of the preamble (`PREAMBLE`)."""
    if b"tarting offset" in found[0]:
        return replace(section, log_starting=found["log"] is not None)
    return _of_no_log(section) if b"napshot" in found[0] else section


def _of_no_log(section: Section) -> Section:
    """Records of a snapshot of the metadata have offsets of their own (`Snapshots`, `DumpLogSegments` since 3.3)."""
    if section.dialect is not None or section.identity.replica_log_id is None:
        return section
    return replace(section, identity=replace(section.identity, replica_log_id=None))


def profile(section: Section, line: BatchLine | None = None) -> Profile:
    """What the section has shown, for reading records; `line` is its first batch line."""
    known = section.dialect or (dialect(line, style=None, log_starting=section.log_starting) if line else None)
    topic = section.identity.topic
    return Profile(
        deep=section.deep,
        printed=section.payload_printed,
        hides_keys=known == "2.2",
        decoder=_DECODERS.get(topic) if topic is not None else None,
        by_lines=section.decoder in (None, UNKNOWN_DECODER),
    )


def learned_section(section: Section, group: Group, *, at_end: bool) -> Section:
    """The section after one more group; `at_end`: the file ends with it.

    Where the first group holds the header of a snapshot, it is a snapshot of the metadata, and that group is of no log either.
    """
    markers = [record.ending.marker for record in group.records if record.ending.marker]
    if any(marker.control_type == "SNAPSHOT_HEADER" for marker in markers):
        section = _of_no_log(section)
    changes: dict[str, bool | str | None] = {}
    if section.deep is None:
        # The last group of a file may have lost its record lines with the end of the text: it says nothing of --deep-iteration.
        changes["deep"] = True if group.records else False if group.shallow and not at_end else None
    style = group.records[0].line.style if group.records else None
    # Tools from 2.2 to 2.8 print the same batch line; the first record line tells them apart.
    if section.dialect is None or (section.dialect == "2.2" and style == "2.8"):
        changes["dialect"] = dialect(group.line, style=style, log_starting=section.log_starting)
    if section.payload_printed is None:
        changes["payload_printed"] = _printed(group)
    if section.decoder in (None, UNKNOWN_DECODER):
        changes["decoder"] = _decoder(group) or section.decoder
    changed = {name: value for name, value in changes.items() if getattr(section, name) != value}
    return replace(section, **changed) if changed else section  # type: ignore[arg-type]


def _printed(group: Group) -> bool | None:
    return next((record.ending.printed for record in group.records if record.ending.printed is not None), None)


def _decoder(group: Group) -> str | None:
    for record in group.records:
        if record.ending.decoded is not None:
            return record.ending.decoded.form
        if record.ending.printed:
            return "plain"
        if record.ending.proof is Proof.LINE:
            return UNKNOWN_DECODER
    return None


def learned_flat(section: Section, group: Group) -> Section:
    """The section of a flat dump after one more batch."""
    shown = _printed(group) if section.payload_printed is None else section.payload_printed
    decoder, last_offset = section.decoder or _decoder(group), group.records[-1].line.offset
    return replace(section, dialect=FLAT, deep=True, payload_printed=shown, decoder=decoder, last_offset=last_offset)


def heard(section: Section, message: Message) -> Section:
    """The section after a message of the tool."""
    # `DumpLogSegments` dies with its first exception: what stood behind in the segment was not printed.
    if message.text_kind == "exception":
        return replace(section, end_reason="exception")
    # Dumps of several files in one run have their summaries at the end, behind the last section.
    if message.invalid_bytes is not None and speaks_of(message, section):
        return replace(section, invalid_tail_bytes=message.invalid_bytes)
    return section


def went_on(section: Section) -> Section:
    """The section at one more batch line: a tool that printed it had not ended before."""
    return replace(section, end_reason=None) if section.end_reason == "exception" else section


def may_hold_records(section: Section) -> bool:
    """May text of this section be that of a record? Not before the first batch line of a dump, nor in one of a sidecar."""
    known = section.dumped_path is not None and section.identity.kind in ("log", *_SIDECARS)
    return not known or section.dialect is not None


def speaks_of(message: Message, section: Section) -> bool:
    """Is the message about this section's file? Summaries at the end of a run speak of any file of the run."""
    spoken, dumped = message.path, section.dumped_path
    if spoken is None or dumped is None:
        return spoken is None
    return spoken == dumped or dumped.endswith(f"/{spoken}") or spoken.endswith(f"/{dumped}")


# Bytes before the first entry of a file, and of each: `AbortedTxn.TotalSize`; `ProducerStateManager`, whose snapshots begin with version,
# CRC and count. So of all releases from 0.11 to 4.3.
_ENTRIES = {"txnindex": (0, 34), "snapshot": (10, 46)}


def lacks_entries(section: Section, context: FileContext, *, entries: int) -> bool:
    """Does the text of an index or snapshot hold fewer entries than the file that it was printed from?"""
    if context.dumped_bytes is None or section.identity.kind not in _ENTRIES:
        return False
    head, each = _ENTRIES[section.identity.kind]
    return entries < (context.dumped_bytes - head) // each


def section_row(section: Section, context: FileContext, *, end: int, end_reason: str) -> dict[str, object]:
    """The row of a section that ends at a byte of the file."""
    return vars(section.identity) | {
        "section_id": section.section_id,
        "dump_file_id": context.dump_file_id,
        "byte_offset": section.byte_offset,
        "length": end - section.byte_offset,
        "dumped_path": section.dumped_path,
        "dialect": section.dialect,
        "deep": section.deep,
        "payload_printed": section.payload_printed,
        "decoder": section.decoder,
        "end_reason": section.end_reason or end_reason,
        "invalid_tail_bytes": section.invalid_tail_bytes,
        "end_at_most": section.end_at_most,
        "ingest_id": context.ingest_id,
    }
