"""`manifest.yaml`: what the person who collected the dumps says of them, flattened to dotted names."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from itertools import accumulate

import yaml

from eo_audit.dump.files.identity import ManifestHint
from eo_audit.dump.lines.printed import INT, number, text

# A person writes some lines; what is larger was not meant to be one.
MAX_BYTES = 1 << 20
# Names are joined by dots; ten levels are more than anybody reads, and less than Python's stack.
_MAX_DEPTH = 10


@dataclass(frozen=True)
class Entry:
    """One value of a manifest: its dotted name, its text (None: nothing said), and the bytes [start, stop) it stands on."""

    name: str
    value: str | None
    start: int
    stop: int


@dataclass(frozen=True)
class Manifest:
    """What a manifest says. `error` is what is wrong with it, with the position; then there are no entries."""

    entries: tuple[Entry, ...] = ()
    error: str | None = None

    @property
    def values(self) -> dict[str, str | None]:
        """Values by dotted name."""
        return {entry.name: entry.value for entry in self.entries}


class _Unusable(ValueError):
    """Why a manifest cannot be used."""


def read_manifest(content: bytes) -> Manifest:
    """Read a manifest. Never raises: what is wrong with it is one sentence in `error`."""
    if len(content) > MAX_BYTES:
        return Manifest(error=f"larger than {MAX_BYTES} bytes")
    try:
        entries = _entries(content.decode("utf-8"))
        places = _byte_offsets(content.decode("utf-8"))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        return Manifest(error=f"{where}{error.problem or error.context}")
    except UnicodeDecodeError as error:
        return Manifest(error=f"byte {error.start + 1}: not UTF-8")
    except RecursionError:
        return Manifest(error="nested too deeply")
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        return Manifest(error=" ".join(str(error).split()))
    return Manifest(tuple(replace(entry, start=places[entry.start], stop=places[entry.stop]) for entry in entries.values()))


def _byte_offsets(content: str) -> Sequence[int]:
    """The byte offset of each character, and of the end."""
    # Nearly all are; else YAML counts characters, and facts are addressed by bytes.
    if content.isascii():
        return range(len(content) + 1)
    return [0, *accumulate(len(character.encode()) for character in content)]


class _Loader(yaml.SafeLoader):
    """Builds nodes, but follows no alias: a few lines of them can stand for any amount of text."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """The next node.

        Raises:
            _Unusable: it is an alias.
        """
        if self.check_event(yaml.AliasEvent):
            alias = self.peek_event()  # type: ignore[no-untyped-call]
            raise _Unusable(f"line {alias.start_mark.line + 1}: aliases are not understood")
        return super().compose_node(parent, index)


def _entries(content: str) -> dict[str, Entry]:
    loader = _Loader(content)
    try:
        root = loader.get_single_node()
        if root is None:
            return {}
        if not isinstance(root, yaml.MappingNode):
            raise _Unusable("line 1: not a list of `name: value`")
        entries: dict[str, Entry] = {}
        for entry in _flatten(loader, root, ()):
            end = len(content[entry.start : entry.stop].rstrip())  # a block's end mark lies behind comments that follow it
            entries[entry.name] = replace(entry, stop=entry.start + end)
        return entries
    finally:
        loader.dispose()


def _flatten(loader: yaml.SafeLoader, mapping: yaml.MappingNode, names: tuple[str, ...]) -> Iterator[Entry]:
    if len(names) > _MAX_DEPTH:
        raise _Unusable(f"line {mapping.start_mark.line + 1}: nested too deeply")
    for key, value in mapping.value:
        path = (*names, text(str(_construct(loader, key))))
        if isinstance(value, yaml.MappingNode) and value.value:
            yield from _flatten(loader, value, path)
        else:
            said = None if isinstance(value, yaml.MappingNode) else _text(_construct(loader, value))
            yield Entry(".".join(path), said, key.start_mark.index, value.end_mark.index)


def _construct(loader: yaml.SafeLoader, node: yaml.Node) -> object:
    try:
        built: object = loader.construct_object(node, deep=True)
    except (ValueError, LookupError, AttributeError, TypeError) as error:  # a date that no calendar has, `!!bool x`, `!!timestamp x`
        raise _Unusable(f"line {node.start_mark.line + 1}: {error}") from error
    return built


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return None if value is None else text(value)
    if isinstance(value, date):
        return value.isoformat()
    return json.dumps(value, default=str, sort_keys=True)


def hint(manifest: Manifest) -> ManifestHint:
    """What a manifest says of the files beside and below it; a value of the wrong kind says nothing."""
    # An unknown name is no error: manifests are written for people, too.
    values = manifest.values
    return ManifestHint(
        cluster=values.get("cluster") or None,
        broker=_whole(values.get("broker")),
        topic=values.get("topic") or None,
        partition=_whole(values.get("partition")),
        dumped_at_ms=_milliseconds(values.get("dumped_at")),
    )


def _whole(value: str | None) -> int | None:
    try:
        return None if value is None or value.startswith("-") else number(value, INT)
    except ValueError:
        return None


def _milliseconds(value: str | None) -> int | None:
    """Epoch milliseconds, or ISO 8601 (UTC where it names no zone)."""
    try:
        if value is None or value.lstrip("-").isdigit():
            return None if value is None else number(value)
        moment = datetime.fromisoformat(value)
        return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None
