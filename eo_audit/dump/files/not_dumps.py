"""What lies beside dumps and is none: archives, and Kafka's own binary files. Named, with what to do with them."""

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

# How a file begins -> how it is unpacked. A tar is known by its header, whatever packs it.
_MAGIC = (
    (b"PK\x03\x04", "unzip"),
    (b"PK\x05\x06", "unzip"),
    (b"7z\xbc\xaf\x27\x1c", "7z x"),
    (b"\x28\xb5\x2f\xfd", "zstd -d"),
    (b"\xfd7zXZ\0", "xz -dk"),
    (b"BZh", "bzip2 -dk"),
    (b"\x04\x22\x4d\x18", "lz4 -d"),
    (b"Rar!\x1a\x07", "unrar x"),
    (b"LZIP", "lzip -dk"),
    (b"\x89LZO\0", "lzop -d"),
    (b"\x1f\x9d", "gzip -dk"),  # of compress
    (b"\x5d\0\0", "xz -dk"),  # as LZMA begins before xz: settings, then a size of the dictionary
)
_TAR_NAME = re.compile(r".*\.(tar(\.\w+)?|tgz|tbz2?|txz|tzst)", re.IGNORECASE)
_NAMES = (
    (re.compile(r".*\.(tar\.gz|tgz)", re.IGNORECASE), "tar xzf"),
    (_TAR_NAME, "tar xf"),
    (re.compile(r".*\.(zip|jar)", re.IGNORECASE), "unzip"),
    (re.compile(r".*\.7z", re.IGNORECASE), "7z x"),
    (re.compile(r".*\.zst", re.IGNORECASE), "zstd -d"),
    (re.compile(r".*\.(xz|lzma)", re.IGNORECASE), "xz -dk"),
    (re.compile(r".*\.bz2", re.IGNORECASE), "bzip2 -dk"),
    (re.compile(r".*\.lz4", re.IGNORECASE), "lz4 -d"),
    (re.compile(r".*\.rar", re.IGNORECASE), "unrar x"),
    (re.compile(r".*\.lz", re.IGNORECASE), "lzip -dk"),
    (re.compile(r".*\.lzo", re.IGNORECASE), "lzop -d"),
    (re.compile(r".*\.Z"), "gzip -dk"),
    (re.compile(r".*\.br", re.IGNORECASE), "brotli -d"),  # which has no first bytes of its own
)
_OWN_NAME = re.compile(r"\d{20}(-\d+)?\.(log|index|timeindex|snapshot|txnindex|checkpoint)(\.(deleted|cleaned|swap))?")
_LS = re.compile(rb"^[-dl](?:[r-][w-][xsStT-]){3}[.+@]?[ \t]+\d+ ", re.MULTILINE)
_WINDOWS_LETTERS = re.compile(rb"(?:[\t\r\n -~]\0){16}")
_BINARY_WITHIN = 16  # a segment begins with an offset, an index with a small number
_TAR_HEADER, _CHECKSUM = 512, slice(148, 156)  # POSIX ustar, and the tar of V7 before it


class NotADump(Exception):
    """Why a file that can be read is not taken."""


@dataclass(frozen=True)
class Problem:
    """Something about a path that is not read: one sentence for the person who gave it."""

    path: str
    text: str


class KafkaFile(NotADump):
    """It is a segment, index or snapshot as the broker keeps it. There may be thousands: they are told in one sentence."""

    def __init__(self) -> None:
        """The reason for a file that stands alone."""
        super().__init__("is a binary file, as Kafka keeps it: print it with kafka-dump-log (collect-dumps.sh does)")


def unpacking(name: str, head: bytes, *, gzip: bool) -> str | None:
    """The command that unpacks an archive; None for a file that is none.

    Args:
        name: of the file.
        head: how its content begins, unpacked where it is gzip.
        gzip: whether it is.
    """
    if _is_tar(head):
        return "tar xzf" if gzip else "tar xf"
    packed = next((command for magic, command in _MAGIC if head.startswith(magic)), None)
    return "tar xf" if packed is not None and _TAR_NAME.fullmatch(name) else packed


def by_name(name: str) -> str | None:
    """The same by the name alone, for a file whose content is nothing known."""
    return next((command for pattern, command in _NAMES if pattern.fullmatch(name)), None)


def archive(path: Path, command: str) -> NotADump:
    """Why an archive is not taken."""
    return NotADump(f"is an archive: unpack it first (`{command} {path.name}`), and name the folder that comes out of it")


def is_kafka_file(name: str, head: bytes) -> bool:
    """A file that only a broker writes: named by it, and binary or empty, as text of the dump tool never is."""
    # People redirect a dump into a file of the segment's own name: the name alone proves nothing.
    return _OWN_NAME.fullmatch(name) is not None and (not head or b"\0" in head[:_BINARY_WITHIN])


def told_together(root: Path, paths: Iterable[Path]) -> str | None:
    """One sentence, without its subject, for the binary files below a folder; None where there is none."""
    files = sorted(paths)
    segments = sum(path.suffix == ".log" for path in files)
    if not files:
        return None
    number, what = (segments, "segment") if segments else (len(files), "file")
    others = f" and {len(files) - segments} indexes and snapshots" if segments and len(files) > segments else ""
    first = files[0].relative_to(root).as_posix() if files[0] != root else files[0].name
    return (
        f"holds {number} binary {what}{'' if number == 1 else 's'}{others} ({first}{', ...' if len(files) > 1 else ''}): "
        "these are Kafka's own files; print them with kafka-dump-log, or collect-dumps.sh does"
    )


def unlike(name: str, head: bytes) -> NotADump | None:
    """Why a file without a line of any tool is not taken for what its name says; None where it may be that.

    Args:
        name: of the file.
        head: how its content begins.
    """
    if (utf16 := _in_utf16(name, head)) is not None:
        return utf16
    if by_name(name):
        return NotADump("is an archive")
    if name.endswith(("listing.txt", "listing.txt.gz")) and _LS.search(head):
        return NotADump(r"is what `ls -l` prints: list the log directory with `find . -type f -printf '%s %P\n'`, as collect-dumps.sh does")
    return None


def _is_tar(head: bytes) -> bool:
    """The first header of a tar, old or new: the sum of its bytes stands in it, its own field counted as blanks."""
    header = head[:_TAR_HEADER]
    written = header[_CHECKSUM].strip(b" \0")
    if len(header) < _TAR_HEADER or not re.fullmatch(rb"[0-7]{1,7}", written):
        return False
    return sum(header) - sum(header[_CHECKSUM]) + 8 * ord(" ") == int(written, 8)


def _in_utf16(name: str, head: bytes) -> NotADump | None:
    """What to do about a file of UTF-16 text; None where it is none.

    Args:
        name: of the file.
        head: how its content begins: with a byte order mark, or, as a part of such a file does, with letters of Windows and no mark.
    """
    marked = head.startswith((b"\xff\xfe", b"\xfe\xff")) and b"\0" in head
    if not (marked or _WINDOWS_LETTERS.match(head)):
        return None
    encoding = "UTF-16" if marked else "UTF-16LE"  # without a mark some iconv take the bytes the other way round
    return NotADump(
        "is UTF-16 text, as PowerShell's > writes it: print the dump again from cmd.exe, or convert it with "
        f"`iconv -f {encoding} -t UTF-8 {shlex.quote(name)} > {shlex.quote(f'utf8-{name}')}`"
    )
