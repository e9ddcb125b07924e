"""Lines of dump files, quoted as far as they may be: a record line up to its header keys, never a key or a payload of anybody's.

What the decoders print of `__transaction_state` and `__consumer_offsets` is quoted whole: ids, states, partitions, Kafka's own words.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from io import BufferedReader, FileIO, RawIOBase
from pathlib import Path

from eo_audit.dump.files.unpacked import Unpacked
from eo_audit.report.values import whole
from eo_audit.words import Row

# What stands before these words on a record line are numbers and names of the dump tool; behind them stand other people's bytes.
_PRIVATE = re.compile(rb"(?<=headerKeys: \[)| key: | payload: ")
KAFKAS_OWN = ("__transaction_state", "__consumer_offsets")
_RECORD_LINE = (b"| ", b"offset: ")
_TOOL_LINE = re.compile(
    rb"Dumping \S|(?:Log s|S)tarting offset: \d|baseOffset: \d+ lastOffset: \d|\| offset: \d|offset: \d+ position: \d"
    rb"|producerId: \d+ producerEpoch: |version: \d+ producerId: \d"
)
_MARKER_LINE = re.compile(rb"\| [\w:. -]+ headerKeys: \[\] endTxnMarker: (?:COMMIT|ABORT) coordinatorEpoch: -?\d+\r?")
# One record may be megabytes: enough of it to be found again.
MOST_BYTES = 64 << 10
Address = tuple[str, str, int]  # cluster, dump file, byte offset


def address_of(cluster: str, evidence: Row) -> Address:
    """What one piece of evidence points at."""
    return cluster, str(evidence["dump_file"]), whole(evidence, "byte_offset")


def text_at(path: Path, *, byte_offset: int, length: int, compression: str = "none") -> bytes:
    """Bytes of the text of a dump file, at most 64 KiB of them.

    Args:
        path: the file.
        byte_offset: in the text, that is after decompression.
        length: how many bytes.
        compression: none or gzip.

    Raises:
        OSError: the file is not there, or is not what it was.
    """
    return texts_at(path, [(byte_offset, length)], compression=compression)[0]


def texts_at(path: Path, spans: Sequence[tuple[int, int]], *, compression: str = "none") -> list[bytes]:
    """The same for several (byte offset, length), in the order of their offsets: a packed file is then read once.

    A packed file that is damaged is read up to there, as it was when it was ingested.

    Raises:
        OSError: the file is not there, or is not what it was: where its text ends now, and why.
    """
    texts, at = list[bytes](), 0
    with ExitStack() as opened:
        raw, file = _opened(path, compression, opened)
        for byte_offset, length in spans:
            if byte_offset < at and not file.seekable():
                # It begins within what was just read: there is no way back in a packed file.
                opened.close()
                (raw, file), at = _opened(path, compression, opened), 0
            at = _go_on(file, at, byte_offset)
            texts.append(file.read(min(length, MOST_BYTES)))
            at += len(texts[-1])
            if len(texts[-1]) < min(length, MOST_BYTES):
                raise OSError(f"its text ends at byte {at:,}{_damage(raw)}")
    return texts


def _opened(path: Path, compression: str, until: ExitStack) -> "tuple[RawIOBase, BufferedReader[RawIOBase]]":
    raw: RawIOBase = Unpacked(path) if compression == "gzip" else FileIO(path)
    return raw, until.enter_context(BufferedReader(raw))


def damage_of(path: Path) -> str:
    """Why the text of a packed file ends where it ends, in words to put behind that; empty where nothing is wrong with it.

    Raises:
        OSError: the file is not there.
    """
    raw = Unpacked(path)
    with BufferedReader(raw) as file:
        while file.read(MOST_BYTES):
            pass
    return _damage(raw)


def _damage(raw: RawIOBase) -> str:
    return f", where the gzip file is damaged ({raw.damage})" if isinstance(raw, Unpacked) and raw.damage else ""


def _go_on(file: "BufferedReader[RawIOBase]", at: int, byte_offset: int) -> int:
    """From one byte of a text to another one further on; where that got to, which is no further than its end."""
    if file.seekable():
        return file.seek(byte_offset)
    while at < byte_offset and (piece := file.read(min(byte_offset - at, MOST_BYTES))):
        at += len(piece)
    return at


def is_kafkas_own(section: Mapping[str, object]) -> bool:
    """Whether a row of `dump_sections` holds what a decoder of the dump tool printed of one of Kafka's own topics."""
    return section["topic"] in KAFKAS_OWN and section["decoder"] is not None


def quotable(text: bytes, *, known: bool = False, whole: bool = False) -> list[str]:
    """The lines of a text, each as far as it may be shown; control characters are still in them.

    Args:
        text: from `text_at`.
        known: the text is a fact of a kind that holds no payload; else only lines that begin as the dump tool begins them are shown.
        whole: the text is of a section that `is_kafkas_own`, and was understood.
    """
    if whole:
        return [line.decode("utf-8", errors="replace").rstrip("\r") for line in text.removesuffix(b"\n").split(b"\n")]
    shown = []
    for line in text.removesuffix(b"\n").split(b"\n"):
        # A marker's line prints no payload (DumpLogSegments prints the end marker in its place), so it is quoted to its end.
        private = _PRIVATE.search(line) if line.startswith(_RECORD_LINE) and not _MARKER_LINE.fullmatch(line) else None
        if private:
            shown.append(line[: private.end() if not private.group() else private.start()] + b" ...")
            break  # what follows may belong to a key or a payload
        if not known and not _TOOL_LINE.match(line):
            shown.append(b"(%d bytes, not quoted: they may be part of a payload)" % len(line))
            break
        shown.append(line)
    return [line.decode("utf-8", errors="replace").rstrip("\r") for line in shown]
