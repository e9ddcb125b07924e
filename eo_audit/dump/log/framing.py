"""A batch line with its record lines: where does the batch's text end, and how sure is that?

By induction: the text before a batch line was delimited exactly, so the line is the tool's own; its records are delimited by their
lengths, so the next line is the tool's own too. Where lengths prove nothing (header keys are unbounded text, printing lost bytes, a custom
decoder printed something else) the reading must close: `count` records, then a line that can follow, above all a batch line at
`position + size`. A forged batch line must claim that position as well, and then collides with the genuine one behind it.
"""

import re
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple

from eo_audit.dump.lines.dialects import BATCH_OVERHEAD, DUMPING, DUMPING_BEGINS, BatchLine, RecordLine, batch_line, record_line
from eo_audit.dump.lines.messages import MAX_QUOTE, Message, detail_of, is_prompt, message_of
from eo_audit.dump.log.owed import is_last, is_next, owed_records, owes_base_offset
from eo_audit.dump.log.records import Decoder, Ending, Rules, cut_by_exception, endings
from eo_audit.dump.log.text import Window

LARGEST_RECORD = 1 << 25  # bytes: a larger record is not read (the default of Kafka's max.message.bytes is 1 MiB)
# Header keys have no length in print, so their end is searched for: without a bound, one odd record would cost a pass over the rest of the
# file.
HEADERS_SEARCHED = 1 << 16  # bytes looked through for header keys
# A longer line is a payload's: no message of the tool, with a path in it, comes near.
LONGEST_MESSAGE = 1 << 13  # bytes of a line that the tool or the JVM prints beside the data
_OWN = re.compile(rb"\n(?=\| offset: |baseOffset: |offset: )")
_FRAME = b"\tat "
_MOST_BETWEEN = 40  # lines of a shell between two dumps
_DEATH = b'Exception in thread "'  # of the JVM's own handler: the tool has one thread, and that has ended


class Follower(Enum):
    """What stands at a byte where an element may begin."""

    BATCH = "the batch line at the next position"
    OTHER_BATCH = "a batch line at another position"
    DUMPING = "a new section"
    MESSAGE = "a message of the tool"
    END = "the end of the file"
    NOTHING = "nothing known"


class Failure(Enum):
    """Why a batch has fewer records than its line says; the value is the reason of the unread text behind them."""

    TRUNCATED = "truncated_record"
    EXCEPTION = "undecodable_record"
    UNDELIMITED = "undelimited_record"
    MISSING = "missing_record"
    AMBIGUOUS = "ambiguous"


class Record(NamedTuple):
    """One record line with the reading of its text."""

    start: int
    line: RecordLine
    ending: Ending


@dataclass
class Group:
    """A batch line (up to `line_end`) and what was read behind it, up to `end`.

    `shallow`: the dump prints no records. `verified`: every record was delimited by lengths, and in one way only. `several`: a decoded
    record may be read in another way. `meeting`: of a batch whose readings differ, the position of the batch line where they meet.
    `doubted`: the reading of a batch of which damage may hide a longer one, which begins at `doubtful_to`.
    `failed_at` is where the text begins
    that belongs to the batch but could not be read, up to `unread_end` (None: as far as the damage goes).
    """

    line: BatchLine
    start: int
    line_end: int
    end: int
    records: list[Record] = field(default_factory=list)
    shallow: bool = False
    messages: list[tuple[int, int, Message]] = field(default_factory=list)
    failure: Failure | None = None
    failed_at: int | None = None
    unread_end: int | None = None
    verified: bool | None = True
    several: bool = False
    meeting: int | None = None
    doubtful_to: int | None = None
    doubted: "Group | None" = None

    def fail(self, failure: Failure, at: int, unread_end: int | None) -> None:
        """The batch ends here, with fewer records than its line says."""
        self.failure, self.failed_at, self.unread_end, self.verified = failure, at, unread_end, False

    def keep_what_is_sure(self) -> None:
        """Of a batch that does not close only the first record line is surely the tool's own: the others may be its header keys. So may a
        message, unless the batch's first record stands behind it, be the payload of a record of which the line was lost."""
        if self.failure in (Failure.MISSING, Failure.UNDELIMITED, Failure.TRUNCATED):
            first = next((record for record in self.records[:1] if self._is_sure(record)), None)
            self.records = [] if first is None else [first]
            end = self.records[0].ending.end if self.records else self.line_end
            self.messages = [message for message in self.messages if message[1] <= end]
            self.end = self.failed_at = end

    def _is_sure(self, first: Record) -> bool:
        told = any(start < first.start for start, _, _ in self.messages)
        return first.line.offset == self.line.base_offset or not (told or owes_base_offset(self.line))

    @property
    def lost(self) -> bool:
        """Nobody can tell where its text ends."""
        return self.failure is Failure.UNDELIMITED or (self.failure is Failure.AMBIGUOUS and self.unread_end is None)

    @property
    def base_offset(self) -> int:
        """Its first offset. The line of a compressed batch of magic 0 or 1 prints the last only: there it is its first record's."""
        first = self.records[0].line.offset if self.line.magic < 2 and self.records else self.line.base_offset
        return min(first, self.line.base_offset)

    @property
    def next_position(self) -> int:
        """What the next batch line must print as its position."""
        return self.line.position + self.line.size_bytes


def follower(window: Window, at: int, position: int) -> Follower:
    """What stands at `at`, where a batch line should be at `position`."""
    if at >= len(window.text):
        window.reach(at + 1)
        return Follower.END
    window.structural(at)
    # At another position it may be forged, or the batch before it ended elsewhere: the caller decides by what closes.
    if line := batch_line(window.text, at):
        return Follower.BATCH if line.position == position and window.is_within(position) else Follower.OTHER_BATCH
    if DUMPING.match(window.text, at):
        return Follower.DUMPING
    return Follower.MESSAGE if message_at(window, at) else Follower.NOTHING


def message_at(window: Window, at: int) -> tuple[int, Message] | None:
    """The message whose first line starts at `at`, and where the next line starts."""
    # Nothing that begins as a fact is taken for a message, so none is lost as one.
    if window.text.startswith((b"| offset: ", b"baseOffset: ", b"Dumping "), at):
        return None
    end = window.short_line(at, LONGEST_MESSAGE)
    message = message_of(window.text[at:end].rstrip(b"\r\n")) if end is not None else None
    if end is None or message is None or (window.text.startswith(_DEATH, at) and goes_on(window, end)):
        return None
    if message.text_kind == "other" and is_prompt(window.text[at:end].rstrip(b"\r\n")) and not _is_between_dumps(window, end):
        return None
    return end, message


def _is_between_dumps(window: Window, at: int) -> bool:
    """Does nothing stand behind a prompt but the end of the file, or another dump and more messages before it?"""
    for _ in range(_MOST_BETWEEN):
        if at >= len(window.text):
            window.reach(at + 1)
            return True
        window.structural(at)
        end = window.short_line(at, LONGEST_MESSAGE)
        if end is None or DUMPING.match(window.text, at):
            return end is not None
        line = window.text[at:end].rstrip(b"\r\n")
        if line and message_of(line) is None:
            return False
        at = end
    return False


def goes_on(window: Window, at: int) -> bool:
    """Does a line of a log stand behind an exception, that does not begin another section? The tool dies with its own: then it is none."""
    found = _OWN.search(window.text, at - 1, at + HEADERS_SEARCHED)
    if found is None:
        window.reach(at + HEADERS_SEARCHED)
        return False
    window.structural(found.end())
    line = batch_line(window.text, found.end())
    return line is None or line.position != 0 or window.text.find(b"\nDumping ", at - 1, found.end()) < 0


def whole_message(window: Window, at: int) -> tuple[int, Message] | None:
    """The message that starts at `at` with the lines that go on with it (a stack, offset pairs), and where it ends."""
    found = message_at(window, at)
    if found is None:
        return None
    end, message = found
    while end < len(window.text) or not window.final:
        behind = window.short_line(end, LONGEST_MESSAGE)
        detail = None if behind is None else detail_of(window.text[end:behind].rstrip(b"\r\n"))
        if behind is None or detail is None or detail.text_kind != message.text_kind:
            break
        end, message = behind, replace(message, text=f"{message.text}\n{detail.text}"[:MAX_QUOTE])
    # What looks like one more line of a stack and is none shows that none of them is: a payload has text behind it.
    return None if window.text.startswith(_FRAME, end) else (end, message)


def _varint(value: int) -> int:
    """Bytes of a zig-zag varint."""
    return max(1, ((value << 1 ^ value >> 63).bit_length() + 6) // 7)


def least_size(line: RecordLine, batch: BatchLine, base_timestamp: int | None) -> int:
    """Bytes of a record in an uncompressed batch without headers; the least where the batch's first timestamp is not printed."""
    time = 1 if base_timestamp is None else _varint(line.timestamp_ms - base_timestamp)
    # DefaultRecord.writeTo: attributes (1 byte), timestamp delta, offset delta, key and value with their sizes, number of headers (1 byte
    # for none).
    body = 2 + time + _varint(line.offset - batch.base_offset) + _varint(line.key_size) + _varint(line.value_size)
    body += max(line.key_size, 0) + max(line.value_size, 0)
    return _varint(body) + body


def learned(rules: Rules, records: list[Record]) -> Rules:
    """The rules after these records: the last one may have shown whether payloads are printed."""
    # `--print-data-log` holds for the whole call of DumpLogSegments: one record that shows it speaks for all behind it.
    shown = records[-1].ending.printed if records else None
    return rules if rules.printed is not None or shown is None else replace(rules, printed=shown)


def headers_room(batch: BatchLine, records: list[Record]) -> int:
    """Most bytes of header keys beyond the ones printed, that these records of an uncompressed batch can have."""
    # Only of a batch that the cleaner left alone is the first record the one that deltas count from; LogAppendTime replaces the timestamp
    # that is printed.
    whole = batch.record_count == batch.last_offset - batch.base_offset + 1 and batch.timestamp_type == "CreateTime"
    base = records[0].line.timestamp_ms if records and whole else None
    used = sum(least_size(record.line, batch, base) + record.ending.headers for record in records)
    # What is left over are header values, which are never printed, and longer varints: so it is a most, not a sum.
    return batch.size_bytes - BATCH_OVERHEAD - used


@dataclass(frozen=True)
class Profile:
    """What the section of a batch has shown so far, where it matters for reading records.

    `deep`: it has record lines; `printed`: keys and payloads are printed (None: neither shown yet). The rest as in `Rules`.
    """

    deep: bool | None = None
    printed: bool | None = None
    hides_keys: bool = False
    decoder: Decoder | None = None
    by_lines: bool = True

    def rules(self, line: BatchLine) -> Rules:
        """The rules of the records behind a batch line."""
        plain = line.codec == "none"
        return Rules(
            printed=self.printed,
            hides_keys=self.hides_keys,
            control=bool(line.is_control),
            # A record is no longer than its batch, as long as nothing is packed.
            size_limit=min(line.size_bytes, LARGEST_RECORD) if plain else LARGEST_RECORD,
            header_limit=min(line.size_bytes, HEADERS_SEARCHED) if plain else HEADERS_SEARCHED,
            decoder=self.decoder,
            by_lines=self.by_lines,
        )


def greedy_group(window: Window, start: int, line: BatchLine, profile: Profile) -> Group:
    """The batch line at `start` with the first exact reading of each of its records in turn, without a look at what follows.

    Raises:
        NeedMore: it goes on behind the window.
    """
    behind = window.after_line(start)
    group = Group(line, start, behind, behind)
    if _is_shallow(window, group, profile):
        group.shallow, group.verified = True, None
        return group
    rules, owed = profile.rules(line), owed_records(line)
    while len(group.records) < owed if owed is not None else not (group.records and is_last(line, group.records[-1].line)):
        if not _next_record(window, group, rules):
            break
        rules = learned(rules, group.records)
    return group


def _is_shallow(window: Window, group: Group, profile: Profile) -> bool:
    """What can follow a batch stands where a record line must: the dump has none, or ends here."""
    if profile.deep is not None:
        return not profile.deep
    # A batch that the cleaner emptied prints no record in a deep dump either.
    if owed_records(group.line) == 0:
        return False
    if group.end >= len(window.text):
        window.reach(group.end + 1)
        return True
    if follower(window, group.end, group.next_position) in (Follower.NOTHING, Follower.OTHER_BATCH):
        return False
    # Records further on, in the same section: those that are owed here were lost.
    record = window.text.find(b"\n| offset: ", group.end, group.end + HEADERS_SEARCHED)
    begun = DUMPING_BEGINS.search(window.text, max(group.end - 1, 0), group.end + HEADERS_SEARCHED)
    section = -1 if begun is None else begun.start()
    if record < 0 and section < 0:
        window.reach(group.end + HEADERS_SEARCHED)
    return record < 0 or 0 <= section < record


def _next_record(window: Window, group: Group, rules: Rules) -> bool:
    """Read the next record, or a message between two; False when there is none, or its end cannot be told (then the group failed)."""
    at = group.end
    if at >= len(window.text):
        window.reach(at + 1)
        group.fail(Failure.TRUNCATED, at, at)
        return False
    window.structural(at)
    line = record_line(window.text, at)
    if line is None:
        return _between(window, group)
    if not is_next(group.line, group.records[-1].line if group.records else None, line):
        group.fail(Failure.MISSING, at, at)
        return False
    window.overshoot = False
    several = endings(window, line, rules)
    ending = next(several, None)
    if ending is None:
        cut = cut_by_exception(window, line)
        cut = None if cut is not None and goes_on(window, cut) else cut
        group.fail(Failure.UNDELIMITED if cut is None else Failure.EXCEPTION, at, cut)
        return False
    # Ids and group names stand in print as they are: a second ending that fits means that one of them may be forged.
    group.several |= ending.decoded is not None and next(several, None) is not None
    group.records.append(Record(at, line, ending))
    group.end = ending.end
    return True


def _is_file_end(window: Window) -> bool:
    window.reach(len(window.text) + 1)
    return True


def _between(window: Window, group: Group) -> bool:
    """No record line where one is owed: a message of the tool may stand between, an exception ends the batch, or the file does."""
    at = group.end
    found = message_at(window, at)
    died = found is not None and found[1].text_kind == "exception"
    # No count tells that a wrapper has a record behind it: of one that was lost it may be the payload.
    if found and not died and owed_records(group.line) is not None:
        group.messages.append((at, *found))
        group.end = found[0]
        return True
    if found and died and not goes_on(window, found[0]):
        group.fail(Failure.EXCEPTION, at, at)
    elif window.text.find(b"\n", at) < 0 and _is_file_end(window):
        group.fail(Failure.TRUNCATED, at, len(window.text))
    else:
        group.fail(Failure.MISSING, at, at)
    return False
