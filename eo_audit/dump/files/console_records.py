"""What a console consumer printed of Kafka's own topics (`lines.console`), block by block: every byte has an owner.

Objects of JSON cannot be forged inside one another. In the text forms an id, a group or the metadata of a commit may hold line feeds and a
perfect record. Such words are shorter than a string of Kafka's protocol, and broken pieces of a record stand before and behind what they
hold. So where a stretch of records is that short, and text that is unread and holds a piece of a record ends it, none of it is believed.
"""

import codecs
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from eo_audit.dump.files.identity import Identity, section_id
from eo_audit.dump.lines.console import JSON, LONGEST_NAME, OBJECT, PIECE, json_record, text_record
from eo_audit.dump.lines.decoders import Fields
from eo_audit.dump.lines.messages import MAX_QUOTE, Message, message_of
from eo_audit.dump.lines.printed import text

KIND = "console_records"  # of the section, and the name of its table
ANOTHER_TOOL = "another_tool"  # why all that comes is left unread
_AHEAD = 256 << 10  # bytes: two names, what stands between them, and the partitions of a transaction
# What ConsoleConsumer says beside the records (4.2 and later on standard output), and a terminal where it was interrupted.
_MESSAGE = re.compile(
    rb"(?:\^C)?(?:Processed a total of \d+ messages|Option --\S+ is deprecated and will be removed in a future version\. Use \S+ instead\."
    rb"|The consumer rebalance protocol \(KIP-848\) .*|shutdown_complete)?"
)
# Lines of a dump. Behind them stand payloads, and those may hold anything.
_OTHER_TOOL = re.compile(
    rb"Dumping \S|(?:Log s|S)tarting offset: \d|baseOffset: \d+ lastOffset: \d|\| offset: \d|offset: \d+ position: \d"
    rb"|producerId: \d+ producerEpoch: |version: \d+ producerId: "
)

Rows = dict[str, list[Mapping[str, object]]]


@dataclass(frozen=True)
class Element:
    """A piece of the text: where it is, whose its bytes are, and what is known of it.

    Attributes:
        owner: preamble, facts, tool_messages or unread.
        fields: of a record, its columns.
        message: of the tool.
        reason: why it is unread.
        broken: it holds a piece of a record.
    """

    at: int
    end: int
    owner: str
    fields: Fields = field(default_factory=dict)
    message: Message | None = None
    reason: str = ""
    broken: bool = False


def read_block(dump: bytes, start: int, stop: int, *, final: bool, formatter: str) -> list[Element]:
    """The elements that begin in a part of the text, one behind the other; fewer where more text is needed to read the next one.

    Args:
        dump: the text from some byte on. It should go on for some hundred KiB behind `stop`.
        start, stop: offsets in it; an element begins at `start`.
        final: it goes to the end of the file.
        formatter: whose records the file begins with, one of `lines.console`; ANOTHER_TOOL where the last element before was of that.
    """
    elements: list[Element] = []
    stretch: list[int] = []
    is_over = False
    for element in _elements(dump, start, final=final, formatter=formatter):
        if element.at >= stop + LONGEST_NAME:
            break
        if element.owner == "facts":
            stretch, is_over = ([] if is_over else stretch), False
            stretch.append(len(elements))
        elif element.owner == "unread":
            is_over = True
            if element.broken and stretch and elements[stretch[-1]].end - elements[stretch[0]].at <= LONGEST_NAME:
                for one in stretch:
                    elements[one] = _unread(elements[one], "ambiguous")
        elements.append(element)
    return [element for element in elements if element.at < stop]


def _unread(element: Element, reason: str) -> Element:
    return Element(element.at, element.end, "unread", reason=reason)


def _elements(dump: bytes, at: int, *, final: bool, formatter: str) -> Iterator[Element]:
    begins_line, is_doubtful = True, False
    # Where Windows wrote one.
    if dump.startswith(codecs.BOM_UTF8, at):
        yield Element(at, at + len(codecs.BOM_UTF8), "preamble")
        at += len(codecs.BOM_UTF8)
    while at < len(dump) and formatter != ANOTHER_TOOL and (final or len(dump) - at >= _AHEAD):
        element, formatter = _element(dump, at, formatter, begins_line=begins_line, final=final)
        if element is None:
            return
        # Of a name with line feeds the last line looks like a tombstone of another name.
        if is_doubtful and element.fields.get("tombstone") and formatter != JSON:
            element = _unread(element, "ambiguous")
        yield element
        at, is_doubtful = element.end, element.owner == "unread"
        begins_line = dump.endswith(b"\n", 0, at)
        formatter = ANOTHER_TOOL if element.reason == ANOTHER_TOOL else formatter
    if at < len(dump) and formatter == ANOTHER_TOOL:
        yield Element(at, len(dump), "unread", reason=ANOTHER_TOOL)


def _element(dump: bytes, at: int, formatter: str, *, begins_line: bool, final: bool) -> tuple[Element | None, str]:
    """The element at a byte, None where the text ends before it does; and whose records stand before the next one."""
    # An id may look like the beginning of an object.
    if begins_line and formatter != JSON and (record := text_record(dump, at, formatter)):
        return Element(at, record.end, "facts", record.fields), record.formatter
    if dump.startswith(OBJECT, at) and (begins_line or formatter == JSON):
        found = _object(dump, at, final=final)
        return found, JSON if found is not None and found.owner == "facts" else formatter
    if begins_line and formatter == JSON and (record := text_record(dump, at, formatter)):
        return Element(at, record.end, "facts", record.fields), record.formatter
    return _line(dump, at, formatter, final=final), formatter


def _object(dump: bytes, at: int, *, final: bool) -> Element | None:
    # A quote inside a string is escaped: the next object begins where one seems to. Files may be one line of gigabytes.
    following = dump.find(OBJECT, at + len(OBJECT))
    end = dump.find(b"\n", at, None if following < 0 else following) + 1 or following
    if end < 0 and not final:
        return None
    end = len(dump) if end < 0 else end
    record = json_record(dump, at, end)
    if record is not None:
        return Element(at, record.end, "facts", record.fields)
    return Element(at, end, "unread", reason="truncated_record" if end == len(dump) else "unknown_line")


def _line(dump: bytes, at: int, formatter: str, *, final: bool) -> Element | None:
    """The rest of a line that is no record; in JSON only up to the next object."""
    following = dump.find(OBJECT, at + 1) if formatter == JSON else -1
    end = dump.find(b"\n", at, None if following < 0 else following) + 1 or following
    if end < 0 and not final:
        return None
    whole, end = end >= 0, len(dump) if end < 0 else end
    line = dump[at:end].removesuffix(b"\n").removesuffix(b"\r")
    if not line.strip():
        return Element(at, end, "preamble")
    if message := _message(line):
        return Element(at, end, "tool_messages", message=message)
    if _OTHER_TOOL.match(line):
        return Element(at, end, "unread", reason=ANOTHER_TOOL)
    reason = "unknown_line" if whole else "truncated_record"
    return Element(at, end, "unread", reason=reason, broken=whole and PIECE.search(line) is not None)


def _message(line: bytes) -> Message | None:
    said = _MESSAGE.fullmatch(line)
    return message_of(line) if said is None else Message("other", "info", text(line)[:MAX_QUOTE])


def rows_of(elements: Sequence[Element], *, dump_file_id: int, base: int, cluster: str) -> Rows:
    """The rows of elements, by table.

    Args:
        elements: of one block, in order.
        dump_file_id: of the file.
        base: file offset that their offsets begin at.
        cluster: whose file it is.
    """
    rows: defaultdict[str, list[Mapping[str, object]]] = defaultdict(list)
    section = section_id(dump_file_id, 0)
    for element in _joined(elements):
        where = {"section_id": section, "byte_offset": base + element.at, "length": element.end - element.at}
        if element.owner == "facts":
            rows[KIND].append({**where, "cluster": cluster, **element.fields})
        elif element.owner == "unread":
            rows["unread_spans"].append({**where, "dump_file_id": dump_file_id, "reason": element.reason})
        elif element.message is not None:
            said = element.message
            rows["tool_messages"].append({**where, "text_kind": said.text_kind, "severity": said.severity, "text": said.text})
    return dict(rows)


def _joined(elements: Sequence[Element]) -> Iterator[Element]:
    """The elements; unread text is one span as long as its reason stays the same."""
    last: Element | None = None
    for element in elements:
        if last is not None and last.reason and last.reason == element.reason:
            last = replace(last, end=element.end)
            continue
        if last is not None:
            yield last
        last = element
    if last is not None:
        yield last


def section_of(whose: Identity, *, dump_file_id: int, length: int, is_cut: bool) -> dict[str, object]:
    """The row of `dump_sections` of a whole file, but for `ingest_id`.

    Args:
        whose: the file's; nothing printed says which partition or broker a record is of.
        dump_file_id: of the file.
        length: of its text.
        is_cut: its last record is not whole.
    """
    nobodys = replace(whose, kind=KIND, topic=None, partition=None, dir_kind=None, segment_base_offset=None, replica_log_id=None)
    where = {"section_id": section_id(dump_file_id, 0), "dump_file_id": dump_file_id, "byte_offset": 0, "length": length}
    return {**where, **vars(nobodys), "end_reason": "truncated" if is_cut else "eof"}
