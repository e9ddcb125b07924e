"""What dump files are there? Walks the inputs of an audit; a file is taken for what it is by its name *and* its first bytes.

A bad input is an `InputError`. Inside a folder one unreadable file stops nothing: it becomes a `Problem`, one sentence, and the rest goes
on. The order is that of cluster and path, whatever the order of arguments and of directory entries.
"""

import gzip
import os
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path, PurePosixPath

from eo_audit.dump.files.identity import Identity, ManifestHint, PathFacts, identify, is_broker_folder, is_partition_folder, parse_path
from eo_audit.dump.files.manifest import MAX_BYTES, Manifest, hint, read_manifest
from eo_audit.dump.files.not_dumps import KafkaFile, NotADump, Problem, archive, by_name, is_kafka_file, told_together, unlike, unpacking
from eo_audit.dump.files.recognised import dumps_in_notes, printed_by, spoilt
from eo_audit.dump.files.sidecars import CHECKPOINT_KINDS, DUMP_TIMES, PARTITION_METADATA, dump_times, listed_sizes
from eo_audit.dump.files.unpacked import beginning
from eo_audit.dump.files.walk import check_file, outside, real_paths, walk
from eo_audit.dump.lines.printed import text
from eo_audit.errors import InputError
from eo_audit.store.folders import refuse_scheme

# The preamble of a dump, with the warnings of a JVM before it, is far shorter; and a file of payloads is not read to learn that it is none.
HEAD_BYTES = 64 << 10
UNFINISHED = "unfinished.txt"  # what collect-dumps.sh removes at its end
_GZIP = b"\x1f\x8b"
_CHECKPOINT = re.compile(f"({'|'.join(CHECKPOINT_KINDS)})-checkpoint")
_MANIFEST = re.compile(r"manifest\.ya?ml(\.gz)?")
_LISTING = re.compile(r"(.*[._-])?listing\.txt(\.gz)?")
_DUMP_TIMES = re.compile(r"dumped-at\.txt(\.gz)?")
_PARTITION_METADATA = re.compile(r"partition\.metadata(\.gz)?")
_MESSAGES = re.compile(r".*\.(std)?err(\.txt)?(\.gz)?|stderr(\.txt|\.log)?(\.gz)?")
# Hidden files, what people write beside dumps, what brokers keep beside logs.
_NOT_MEANT = re.compile(r"\..*|README.*|meta\.properties|quorum-state")
_NOTES = re.compile(r".*\.md")

_Nearest = tuple[ManifestHint, Path | None]


@dataclass(frozen=True)
class DumpFile:
    """One file to read.

    Attributes:
        cluster: `--cluster`, else the nearest manifest's, else the name of the input folder (of the one above, for a `broker-1`).
        input_path: what `path` is relative to, absolute: the input. Where the input is a broker's or a partition's own folder it is the
            folder above, so that a path always names both; where the input is a file without such folders it is that file.
        path: relative to the input, with `/`; the file's name when the file itself is the input.
        absolute: where to open it.
        compression: none or gzip, by its first bytes.
        stored_bytes: size on disk.
        dump_set: names the files that were made in one go.
        dumped_at_ms: when its dump began, if a `dumped-at.txt` says so, else when its collection began, if a manifest does.
        dumped_at_source: which of them: dumped-at, manifest.
        manifest: what the manifests beside it and above it say, the nearest first.
        own: what its own path says.
        dumped_bytes: size of the file that it prints, from a `listing.txt`; of an index, before it was dumped. None: not known.
        kind_hint: text (has or may have `Dumping` lines), one of `sidecars.SIDECAR_KINDS`, or a formatter of `lines.console`.
        spoilt: what became of its lines on the way here, and what to do about it, in words; None: nothing.
    """

    cluster: str
    input_path: str
    path: str
    absolute: Path
    compression: str
    stored_bytes: int
    dump_set: str
    dumped_at_ms: int | None
    dumped_at_source: str | None
    manifest: ManifestHint
    own: PathFacts
    kind_hint: str
    dumped_bytes: int | None = None
    spoilt: str | None = None

    def identity(self, dumped_path: str | None = None) -> Identity:
        """Whose text it holds, behind a `Dumping` line with that path (None: the file has none)."""
        return identify(self.cluster, manifest=self.manifest, dumped_path=dumped_path, own=self.own)


@dataclass(frozen=True)
class Discovery:
    """The dump files of an audit, and what was left out."""

    files: list[DumpFile]
    problems: list[Problem]


def discover(inputs: Sequence[Path], cluster: str | None = None) -> list[DumpFile]:
    """The dump files of some inputs, in the order of cluster and path. See `look_through` for what was left out.

    Args:
        inputs: files and folders.
        cluster: overrides every manifest and folder name.

    Raises:
        InputError: a path does not exist or cannot be read, or there is no dump file in it.
    """
    return look_through(inputs, cluster).files


def look_through(inputs: Sequence[Path], cluster: str | None = None) -> Discovery:
    """The dump files of some inputs, and the problems met on the way.

    A file that several inputs hold is taken once. Arguments and errors as for `discover`.
    """
    problems: list[Problem] = []
    found: list[_Found] = []
    for given in inputs:
        refuse_scheme(given, InputError)
    for root in sorted({Path(os.path.abspath(given)) for given in inputs}):
        found += _look_into(root, problems)
    if not found:
        raise InputError("there is nothing to audit: name a folder of dumps")
    unique: dict[str, _Found] = {}
    real = real_paths(file.absolute for file in found)
    for file in sorted(found, key=lambda file: real[file.absolute] != str(file.absolute)):  # the file itself before links to it
        # Two names of one file would be two dumps of one segment, and the copy is judged against itself.
        unique.setdefault(real[file.absolute], file)
    said = _manifests(unique.values(), problems)
    times = _numbers(unique.values(), DUMP_TIMES, dump_times)
    partitions = {file.absolute.parent for file in unique.values() if parse_path(file.absolute.name).kind != "unknown"}
    nearest = {folder: _nearest(folder, said) for folder in {file.absolute.parent for file in unique.values()}}
    placed = [_dump_file(file, nearest, base=_base(file, partitions), cluster=cluster) for file in unique.values()]
    sizes = _numbers(unique.values(), "listing", listed_sizes)
    files = _name_dump_sets([_sized(_timed(file, times), sizes) for file in placed])
    return Discovery(sorted(files, key=lambda file: (file.cluster, file.path, file.input_path)), sorted(problems, key=lambda p: p.path))


@dataclass(frozen=True)
class _Found:
    """A file as found: the input it is in, where it is, and what its name and first bytes say."""

    root: Path
    absolute: Path
    compression: str
    stored_bytes: int
    kind: str
    spoilt: str | None


def _look_into(root: Path, problems: list[Problem]) -> list[_Found]:
    """The dump files of one input."""
    try:
        if not root.is_dir():
            return [_look_at(root, root)]
        os.scandir(root).close()
        if why := outside(os.path.realpath(root), os.path.realpath(root)):
            raise NotADump(why)
    except NotADump as problem:
        raise InputError(f"{root} {problem}") from None
    except OSError as error:
        raise InputError(f"{root} cannot be read: {error.strerror}") from error
    met: list[Problem] = []
    found = list(_dumps_below(root, met))
    problems += met
    if not found:
        why = f" ({met[0].path} {met[0].text})" if met else ""
        raise InputError(f"{root} holds no dump file{why}")
    return found


def _dumps_below(root: Path, problems: list[Problem]) -> Iterator[_Found]:
    """Its dump files; what is left out is added to the problems, Kafka's own files in front and as one."""
    own: list[Path] = []
    yield from _taken(root, problems, own)
    together = told_together(root, own)
    if together is not None:
        problems.insert(0, Problem(str(root), together))


def _taken(root: Path, problems: list[Problem], own: list[Path]) -> Iterator[_Found]:
    for path in walk(root, lambda path, why: problems.append(Problem(path, why)), _NOT_MEANT.fullmatch):
        if _NOTES.fullmatch(path.name):
            problems.extend(dumps_in_notes(path, HEAD_BYTES))
            continue
        try:
            yield _look_at(root, path)
        except KafkaFile:
            own.append(path)
        except NotADump as problem:
            problems.append(Problem(str(path), str(problem)))
        except OSError as error:
            problems.append(Problem(str(path), f"cannot be read: {error.strerror}"))


def _look_at(root: Path, path: Path) -> _Found:
    status = check_file(path)
    with path.open("rb") as file:
        stored = file.read(HEAD_BYTES)
    compression, head = ("gzip", beginning(path, HEAD_BYTES)) if stored.startswith(_GZIP) else ("none", stored)
    if command := unpacking(path.name, head, gzip=compression == "gzip"):
        raise archive(path, command)
    try:
        kind = _kind(path.name, head)
    except NotADump:
        if command := by_name(path.name):
            raise archive(path, command) from None
        raise
    return _Found(root, path, compression, status.st_size, kind, spoilt(head) if kind == "text" else None)


def _kind(name: str, head: bytes) -> str:
    """What a file is, by its name where its text does not say otherwise."""
    # Before anything else: a segment holds payloads, and among them may be lines of a dump.
    if is_kafka_file(name, head):
        raise KafkaFile
    tool = printed_by(head)
    if tool is None and (why := unlike(name, head)):
        raise why
    # `kafka-dump-log ... > dump.err 2>&1` is a dump, whatever it is called.
    if _MESSAGES.fullmatch(name) and not re.search(rb"^(?:\xef\xbb\xbf)?Dumping \S", head, re.MULTILINE):
        return "tool_messages"
    if tool is not None:
        return tool
    if checkpoint := _CHECKPOINT.search(name):
        return checkpoint[1]
    if _MANIFEST.fullmatch(name) or _LISTING.fullmatch(name):
        return "manifest" if _MANIFEST.fullmatch(name) else "listing"
    if _DUMP_TIMES.fullmatch(name):
        return DUMP_TIMES
    if _PARTITION_METADATA.fullmatch(name):
        return PARTITION_METADATA
    if name == UNFINISHED:
        raise NotADump("says that the collection did not finish: the same collect-dumps.sh command goes on where it stopped")
    if b"\0" in head:
        raise NotADump("is a binary file: print segments with kafka-dump-log first")
    if parse_path(name).kind != "unknown":
        return "text"
    became = spoilt(head)
    raise NotADump(f"is a dump {became}" if became else "does not look like a dump")


def _manifests(found: Iterable[_Found], problems: list[Problem]) -> dict[Path, ManifestHint]:
    """What each folder's manifest says."""
    said: dict[Path, ManifestHint] = {}
    for file in found:
        if file.kind == "manifest":
            try:
                manifest = read_manifest(_content(file, MAX_BYTES + 1))
            except (OSError, EOFError, zlib.error) as error:
                manifest = Manifest(error=str(error))
            said[file.absolute.parent] = hint(manifest)
            if manifest.error:
                problems.append(Problem(str(file.absolute), f"is not understood, {manifest.error}"))
    return said


def _content(file: _Found, limit: int = -1) -> bytes:
    with gzip.open(file.absolute) if file.compression == "gzip" else file.absolute.open("rb") as opened:
        return opened.read(limit)


def _numbers(found: Iterable[_Found], kind: str, read: Callable[[bytes], dict[str, int]]) -> dict[Path, int]:
    """What the files of a kind say of dumped files (when the dump began, how large the segment is), by their path without `.txt`."""
    said: dict[Path, int] = {}
    for file in found:
        if file.kind == kind:
            try:
                numbers = read(_content(file))
            except (OSError, EOFError, zlib.error):  # said again, with its path, where it is read as a dump file
                continue
            said.update((file.absolute.parent / path, number) for path, number in numbers.items())
    return said


def _sized(file: DumpFile, sizes: dict[Path, int]) -> DumpFile:
    """With the size of what it prints, where collect-dumps.sh listed it: it does so again where a segment was replaced meanwhile."""
    if file.dumped_at_source != "dumped-at":
        return file
    return replace(file, dumped_bytes=sizes.get(_dumped(file)))


def _dumped(file: DumpFile) -> Path:
    return file.absolute.with_name(file.absolute.name.removesuffix(".gz").removesuffix(".txt"))


def _timed(file: DumpFile, times: dict[Path, int]) -> DumpFile:
    dumped = _dumped(file)
    if dumped not in times:
        return file
    return replace(file, dumped_at_ms=times[dumped], dumped_at_source="dumped-at")


def _nearest(folder: Path, said: dict[Path, ManifestHint]) -> _Nearest:
    """Value by value, the word of the nearest manifest beside or above; and the folder of the one that says when the dumps were made."""
    merged, made_in = ManifestHint(), None
    for above in (folder, *folder.parents):
        if above in said:
            # A broker's folder may name its broker, and the one above the cluster: neither need repeat the other.
            nearer = {f.name: getattr(merged, f.name) for f in fields(merged) if getattr(merged, f.name) is not None}
            merged = replace(said[above], **nearer)
            made_in = made_in or (above if merged.dumped_at_ms is not None else None)
    return merged, made_in


def _folder(found: _Found) -> Path:
    """The input folder; of a file that is itself the input, the folder it is in."""
    return found.root.parent if found.root == found.absolute else found.root


def _base(found: _Found, partitions: set[Path]) -> Path:
    """The folder that its path is relative to: above the partition's and the broker's folder, where the input is one of those."""
    folder = _folder(found)
    # Whoever names `broker-1/orders-0` itself means the same files as whoever names the folder above: their ids must be the same.
    above = folder.parent if folder in partitions and is_partition_folder(folder.name) else folder
    return above.parent if is_broker_folder(above.name) else above


def _dump_file(found: _Found, nearest: dict[Path, _Nearest], *, base: Path, cluster: str | None) -> DumpFile:
    folder = _folder(found)
    manifest, made_in = nearest[found.absolute.parent]
    path = _printable(found.absolute.relative_to(base))
    named_after = folder.parent if is_broker_folder(folder.name) else folder
    return DumpFile(
        cluster=cluster or manifest.cluster or _printable(named_after.name) or "cluster",
        input_path=_printable(found.root if base == folder else base),
        path=path,
        absolute=found.absolute,
        compression=found.compression,
        stored_bytes=found.stored_bytes,
        dump_set=_printable(made_in or folder),
        dumped_at_ms=manifest.dumped_at_ms,
        dumped_at_source=None if manifest.dumped_at_ms is None else "manifest",
        manifest=manifest,
        own=parse_path(path),
        kind_hint=found.kind,
        spoilt=found.spoilt,
    )


def _printable(path: Path | str) -> str:
    """A path as text: bytes of a name that are not UTF-8 are replaced."""
    return text(os.fsencode(Path(path).as_posix() if isinstance(path, Path) else path))


def _name_dump_sets(files: list[DumpFile]) -> list[DumpFile]:
    """Dump sets by the name of their folder; by its whole path where two have the same name."""
    short = {folder: PurePosixPath(folder).name for folder in {file.dump_set for file in files}}
    used = Counter(short.values())
    # Names of sets reach the tables: the short one stays the same when a collection is moved.
    names = {folder: name if used[name] == 1 else folder for folder, name in short.items()}
    return [replace(file, dump_set=names[file.dump_set]) for file in files]
