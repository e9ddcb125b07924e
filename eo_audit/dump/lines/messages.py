"""What the dump tool says beside the data: on stdout between the facts, on stderr, in `*.log.err.txt`.

The kinds are those of `tool_messages.text_kind`. The reader of a log asks between two batches, never inside a record; but where
records could be read in more than one way even a line between two may be somebody's data. So the text of such a line is not kept.
"""

import re
from dataclasses import dataclass, replace

from eo_audit.dump.lines.printed import number, text

NOT_KEPT = "bytes, not kept: they may be part of a record)"
MAX_QUOTE = 500  # characters of a message that are kept


@dataclass(frozen=True)
class Message:
    """One message of the tool, with the columns of `tool_messages`.

    `path` is the file it speaks of, as printed; `invalid_bytes` is the number in `Found N invalid bytes`.
    """

    text_kind: str
    severity: str
    text: str
    path: str | None = None
    invalid_bytes: int | None = None


# Messages that are made of the tool's own words, numbers and one path.
_WITHOUT_TEXT = frozenset({"non_consecutive_offsets", "index_mismatch", "invalid_bytes"})
# What ends a dump, as far as these words say it: they are ours, whoever wrote the line.
_FATAL = re.compile(
    r'Exception in thread "main" (?:java\.lang\.(?:NullPointerException|OutOfMemoryError|IllegalStateException|IllegalArgumentException)'
    r"|java\.nio\.file\.(?:NoSuchFileException|AccessDeniedException)|java\.io\.FileNotFoundException"
    r"|org\.apache\.kafka\.common\.(?:KafkaException|errors\.(?:CorruptRecordException|UnsupportedVersionException|SerializationException)))"
)
# What a shell writes around a dump where a terminal was copied: a prompt, alone or before the call of a tool of Kafka's.
_PROMPT = re.compile(
    rb"(?:(?:\(\w[\w.-]{0,40}\) )?"
    rb"(?:\[?[\w.-][\w. !-]{0,60}@[\w.-]{1,80}[: ][\w ./~-]{0,200}\]?|(?:ba|z|k|da)?sh-\d[\d.]{0,8}|/[\w./-]{0,200}|~) ?[$#%] ?|[$#%] )"
    rb"(?:exit|logout|(?:\S{0,200} ){0,40}\S{0,200}kafka-(?:dump-log|run-class)(?:\.sh)? .*)?|exit|logout"
)

# (kind, severity, first line): the texts of `kafka.tools.DumpLogSegments` (to 4.2) and `org.apache.kafka.tools.DumpLogSegments`,
# of the JVM and of the logging libraries around them.
_HEADS = [
    (kind, severity, re.compile(pattern))
    for kind, severity, pattern in (
        ("non_consecutive_offsets", "info", rb"Non-consecutive offsets in :?(?P<path>.+)"),
        ("index_mismatch", "warning", rb"Mismatches in :(?P<path>.+)"),
        ("index_mismatch", "warning", rb"Found (?:timestamp mismatch|out of order timestamp) in :(?P<path>.+)"),
        ("index_mismatch", "warning", rb"The following indexed offsets are not found in (?:the log\.|:(?P<path>.+))"),
        ("snapshot_corrupt", "error", rb"Snapshot (?:file '(?P<path>[^']+)' )?is corrupt(?:ed)? \(CRC is no longer valid\)\..*"),
        ("snapshot_corrupt", "error", rb"Snapshot (?:contained an unknown file version|failed schema validation:) .*"),
        ("invalid_bytes", "info", rb"Found (?P<invalid>\d{1,18}) invalid bytes at the end of (?P<path>.+)"),
        # `Throwable.toString`: the class, and its message if it has one.
        ("exception", "error", rb'Exception in thread "[^"]*" [\w.$]+(?::.*)?'),
        ("exception", "error", rb"(?:Caused by: |Error: )?(?:[a-z]\w*\.){2,}[A-Z][\w$]*(?:Exception|Error)\b.*"),
        ("empty_index", "info", rb"(?P<path>.+\.(?:time)?index) is empty\."),
        ("other", "info", rb"(?P<path>.+\.(?:time)?index) passed sanity check\."),
        ("other", "warning", rb"Ignoring unknown file (?P<path>.+)"),
        ("other", "info", rb"kafka\.serializer\.\w+Decoder is deprecated\. Please use .*"),
        ("jvm_warning", "info", rb"(?:OpenJDK|Java HotSpot\(TM\)|Eclipse OpenJ9).{0,40}\bwarning: .*"),
        (
            "jvm_warning",
            "info",
            rb"(?:(?:NOTE: )?Picked up (?:_JAVA_OPTIONS|JAVA_TOOL_OPTIONS|JDK_JAVA_OPTIONS): |WARNING: |SLF4J(?:\([WIE]\))?: ).*",
        ),
        ("jvm_warning", "info", rb"(?:log4j:(?:WARN|ERROR) |\[[\d :,.-]+\] (?:WARN|INFO|ERROR) |main (?:WARN|ERROR) ).*"),
        ("jvm_warning", "info", rb"(?:DEPRECATED: A Log4j 1\.x |To use a Log4j 2\.x |You can also use the \S+log4j2\.\w+ file ).*"),
        # Unified logging goes to the standard output, with the dump (`-Xlog`, and what the virtual machine says of its own accord).
        ("jvm_warning", "info", rb"\[\d{1,9}[.,]\d{3}s\]\[\w+ *\]\[[\w,+ ]+\] .*"),
        ("jvm_warning", "info", rb"\[(?:otel\.javaagent|dd\.trace) [\d :+.-]+\] \[[^\]]*\] (?:TRACE|DEBUG|INFO|WARN|ERROR) .*"),
        ("jvm_warning", "info", rb"(?:Unable to use a TTY - .*|the input device is not a TTY.*|command terminated with exit code \d{1,3})"),
        ("jvm_warning", "info", rb"(?:Defaulted container |Enabling Java debug options: |Listening for transport ).*"),
        ("other", "info", _PROMPT.pattern),
    )
]
_DETAILS = [
    (kind, severity, re.compile(pattern))
    for kind, severity, pattern in (
        ("non_consecutive_offsets", "info", rb"  -?\d+ is followed by -?\d+"),
        ("index_mismatch", "warning", rb"  Index offset: -?\d+, log offset: -?\d+"),
        ("index_mismatch", "warning", rb"  Index timestamp: -?\d+, (?:log timestamp|Previously indexed timestamp): -?\d+"),
        ("index_mismatch", "warning", rb" {0,2}Indexed offset: -?\d+, found log offset: -?\d+"),
        # A frame ends with its source, and where a logging library prints it with the jar: a payload's text does not stand behind it.
        ("exception", "error", rb"\tat [^\s()]+(?:\([^()]*\))?(?: ~?\[[^\[\]]*\])?|\t\.\.\. \d+ [a-z ]+|\tSuppressed: .*|Caused by: .*"),
    )
]


def is_prompt(line: bytes) -> bool:
    """Is this line (without its line end) the prompt of a shell, or what was typed to leave it? It stands around dumps, never in one."""
    return _PROMPT.fullmatch(line) is not None


def message_of(line: bytes) -> Message | None:
    """The message that begins on this line (without its line end); None when it is none."""
    for kind, severity, head in _HEADS:
        # The whole line: what only begins like a message may be a piece of a payload.
        if found := head.fullmatch(line):
            names = found.groupdict()
            path, invalid = names.get("path"), names.get("invalid")
            spoken_of = None if path is None else text(path)
            return Message(kind, severity, text(line)[:MAX_QUOTE], spoken_of, None if invalid is None else number(invalid))
    return None


def detail_of(line: bytes) -> Message | None:
    """The message this line (without its line end) goes on with: an offset pair, a stack line; None when it is none."""
    for kind, severity, detail in _DETAILS:
        if detail.fullmatch(line):
            return Message(kind, severity, text(line)[:MAX_QUOTE])
    return None


def without_text(message: Message, size: int, *, dumped_path: str | None) -> Message:
    """A message among records, as it may be stored: what could be part of a record is only counted.

    Args:
        message: its text may be anybody's.
        size: bytes of the whole of it.
        dumped_path: the path behind the `Dumping` line of its section, which is known without it.
    """
    if message.text_kind in _WITHOUT_TEXT and (message.path is None or f"/{dumped_path}".endswith(f"/{message.path}")):
        return message
    fatal = _FATAL.match(message.text)
    words = f"{fatal[0]} " if fatal else ""
    return replace(message, text=f"{words}({size} {NOT_KEPT}")
