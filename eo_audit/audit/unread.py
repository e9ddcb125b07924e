"""Text that nobody understood, file by file, as far as it could matter: whether that leaves a run open is the policy's word."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

NO_LINE_END = "no_line_end"  # the last line is whole but for that, or was cut
AMBIGUOUS = "ambiguous"  # more than one reading of the text closes
UNDECODED_RECORD = "undecoded_record"  # the decoder of the tool could not read it
NAMELESS = "no_partition"  # batches that were read, of which nothing says whose they are
# The reasons of `unread_spans` that a policy may name, and the kinds of `dump_sections`.
UNREAD_BECAUSE = (
    *("truncated_record", "truncated_line", "undecodable_record", "undelimited_record", "missing_record", "orphan_record"),
    "lost_batch",
    NO_LINE_END,
    AMBIGUOUS,
    UNDECODED_RECORD,
    NAMELESS,
    *("unknown_line", "blank_line", "unsupported_dialect", "not_a_dump", "bad_manifest", "another_tool"),
    "no_producer_epochs",  # of facts that older versions read; policies name it
)
SECTION_KINDS = (
    *("log", "snapshot", "txnindex", "index", "timeindex", "checkpoint", "manifest", "listing", "tool_messages", "broker_answers"),
    "partition_metadata",
    *("console_records", "unknown"),
)
_PRINTED = frozenset({"log", "snapshot", "txnindex", "index", "timeindex"})
MOST_FILES = 4
_STRANGE = ("unknown_line", "not_a_dump")


class Tables(Protocol):
    """Where small tables are read into memory."""

    def arrow(self, name: str) -> "pa.Table":
        """A table."""


@dataclass(frozen=True, order=True)
class Unread:
    """What one dump file holds that was unread for one reason: `size` bytes in sections of a kind, the first of them at `byte_offset`."""

    path: str
    byte_offset: int
    size: int
    because: str
    kind: str


def unread_text(tables: Tables) -> list[Unread]:
    """The unread text of all dump files, in the order of paths; without that of sections that another dump replaces or that are of no
    log in its place (`-delete`, `-future`, `-stray`)."""
    spans = tables.arrow("unread_spans").select(["section_id", "byte_offset", "length", "reason"])
    columns = ["section_id", "path", "kind", "superseded_by", "dir_kind", "topic", "partition", "first_offset"]
    sections = {row["section_id"]: row for row in tables.arrow("section_status").select(columns).to_pylist()}
    grouped = spans.group_by(["section_id", "reason"]).aggregate([("length", "sum"), ("byte_offset", "min")])
    pieces = [(row["section_id"], row["reason"], row["length_sum"], row["byte_offset_min"]) for row in grouped.to_pylist()]
    found: dict[tuple[str, str, str], tuple[int, int]] = {}
    for section_id, reason, length, at in [*pieces, *_nameless(tables, sections.values())]:
        section = sections[section_id]
        # Nobody judges what a newer dump replaced, or folders that no log lives in.
        if section["superseded_by"] is None and section["dir_kind"] in (None, "normal"):
            key = (section["path"], section["kind"], reason)
            size, first = found.get(key, (0, at))
            found[key] = (size + length, min(first, at))
    return sorted(Unread(path, first, size, because, kind) for (path, kind, because), (size, first) in found.items())


def _nameless(tables: Tables, sections: Iterable[Mapping[str, object]]) -> list[tuple[int, str, int, int]]:
    """Log sections with batches of no known partition, as pieces of text: somebody printed a segment from within its folder."""
    nobodys = {
        section["section_id"]
        for section in sections
        if section["kind"] == "log" and section["first_offset"] is not None and None in (section["topic"], section["partition"])
    }
    if not nobodys:
        return []
    texts = tables.arrow("dump_sections").select(["section_id", "length", "byte_offset"]).to_pylist()
    return [(text["section_id"], NAMELESS, text["length"], text["byte_offset"]) for text in texts if text["section_id"] in nobodys]


def holds_dumps(tables: Tables) -> bool:
    """Whether anything in the fact tables was read as text of kafka-dump-log (a `Dumping` line, or a line of a log, snapshot or index)
    or as records on a console."""
    read = {
        row["dump_file_id"] for row in tables.arrow("dump_files").select(["dump_file_id", "bytes_facts"]).to_pylist() if row["bytes_facts"]
    }
    columns = ["dump_file_id", "kind", "dumped_path"]
    sections = tables.arrow("dump_sections").select(columns).to_pylist()
    if any(row["kind"] == "console_records" and row["dump_file_id"] in read for row in sections):
        return True
    return any(row["kind"] in _PRINTED and (row["dumped_path"] is not None or row["dump_file_id"] in read) for row in sections)


def told(unread: Sequence[Unread]) -> tuple[str, str]:
    """Why a run is unknown for this text, and what to do: the largest pieces by name."""
    nameless = [one for one in unread if one.because == NAMELESS]
    if nameless:
        why, what = _named_nowhere(nameless)
        rest = [one for one in unread if one.because != NAMELESS]
        others = told(rest) if rest else ("", "")
        return "; ".join(filter(None, (why, others[0]))), " ".join(filter(None, (what, others[1])))
    by_size = sorted(unread, key=lambda one: -one.size)
    largest, doubt = by_size[:MOST_FILES], next((one for one in by_size if one.because == AMBIGUOUS), None)
    named = ", ".join(f"{one.path} ({one.size:,} bytes from {one.byte_offset:,} on, {one.because.replace('_', ' ')})" for one in largest)
    files = len({one.path for one in unread} - {one.path for one in largest})
    more = f" and {files} more files" if files else ""
    why = f"{sum(one.size for one in unread):,} bytes of the dumps were not understood: {named}{more}"
    if doubt is not None:
        why += f"; the text of {doubt.path} can be read in more than one way, so none is believed"
    shown = f"`eo-audit show {largest[0].path}@{largest[0].byte_offset}`"
    undecoded = next((one for one in by_size if one.because == UNDECODED_RECORD), None)
    strange = None if doubt is None else next((one for one in by_size if one.path == doubt.path and one.because in _STRANGE), None)
    what = (_taken_out(strange) if strange is not None else "" if doubt is None else _without_doubt(doubt.path)) + (
        "" if undecoded is None else _decoded(undecoded.path)
    )
    what += _ended([one.path for one in by_size if one.because == NO_LINE_END])
    if all(one.because == NO_LINE_END for one in by_size):
        return why, f"{what}{shown} shows it."
    if all(one.because == UNDECODED_RECORD for one in by_size):
        return why, f"{what}{shown} shows it."
    return why, what + (
        f"Look at the text ({shown}, eo-audit export unread_spans). Where a dump is damaged, print it again; where the text is no dump at "
        "all (a login, a shell), take it out of the file, or let the policy allow it (unread_bytes)."
    )


def _named_nowhere(nameless: Sequence[Unread]) -> tuple[str, str]:
    paths = sorted({one.path for one in nameless})
    more = f" and {len(paths) - MOST_FILES} more" if len(paths) > MOST_FILES else ""
    why = f"Nothing says of which partition the batches in {', '.join(paths[:MOST_FILES])}{more} are, so nobody judges them"
    return why, (
        "Put each such text into a folder that is named as the partition is (orders-0), or print it again with the whole path of its "
        "segment: `kafka-dump-log.sh --files /var/lib/kafka/data/orders-0/00000000000000000000.log`."
    )


def _ended(paths: Sequence[str]) -> str:
    if not paths:
        return ""
    more = f" and of {len(paths) - 1} more files" if len(paths) > 1 else ""
    return (
        f"The last line of {paths[0]}{more} has no line end: it was cut, or an editor or `$(...)` took the line end off. Print it again "
        f"into a file (`> FILE`); only where you know that it is whole, put the line end back (`echo >> {paths[0]}`). "
    )


def _decoded(path: str) -> str:
    option = "--offsets-decoder" if "__consumer_offsets" in path else "--transaction-log-decoder"
    return (
        f"Dump {path} again with {option}, and no other decoder, with the tool of the brokers' release or a newer one: what printed it "
        "could not read its records. "
    )


def _taken_out(strange: Unread) -> str:
    """Beside a line of nobody knows whose even text that is whole may be somebody's payload."""
    return (
        f"A line stands in {strange.path} that kafka-dump-log did not print (`eo-audit show {strange.path}@{strange.byte_offset}`): take "
        "it out where it is an echo or a login, else dump the file again; what stands around it can be read then. "
    )


def _without_doubt(path: str) -> str:
    if "__transaction_state" in path:
        return f"Dump {path} again in a UTF-8 locale (LC_ALL=C.UTF-8): then ids are printed as they are. "
    without = "without --print-data-log (collect-dumps.sh without --payloads)"
    return f"Dump {path} again {without}: then no payload can look like the tool's lines. "


def minded(unread: Iterable[Unread], minds: "Minds") -> list[Unread]:
    """The text that the policy minds."""
    return [one for one in unread if minds.minds_unread(one.because, one.kind, one.size)]


class Minds(Protocol):
    """A policy."""

    def minds_unread(self, because: str, kind: str, size: int) -> bool:
        """Whether so much unread text makes the run unknown."""
