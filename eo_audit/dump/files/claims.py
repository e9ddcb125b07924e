"""Do two dump files claim the same segment with different content? Only where nobody says which broker each was printed on.

With brokers known, two contents are two replicas, or one segment dumped twice; that is for the histories to judge.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eo_audit.dump.lines.dialects import UNSUPPORTED
from eo_audit.errors import InputError

Row = Mapping[str, object]

_PRINTED_AS = ("dialect", "deep", "payload_printed", "decoder")  # the same segment prints differently with other options and tools
_SEGMENT = ("cluster", "topic", "partition", "dir_kind", "kind", "segment_base_offset")


@dataclass(frozen=True)
class SegmentClaim:
    """One dump section of an unknown broker that claims to be a segment: where, which one, printed how, and with what content."""

    path: str
    cluster: str
    segment: tuple[object, ...]
    printed_as: tuple[object, ...]
    digest: str


def claims(dump_files: Iterable[Row], dump_sections: Iterable[Row]) -> list[SegmentClaim]:
    """The claims of sections whose broker nobody names.

    A file of several sections has one digest for all of them, which proves nothing about one: it makes no claim.

    Args:
        dump_files: rows with dump_file_id, path, digest.
        dump_sections: rows of those files.
    """
    sections = list(dump_sections)
    files = {row["dump_file_id"]: row for row in dump_files}
    alone = Counter(row["dump_file_id"] for row in sections)
    return [
        SegmentClaim(
            path=str(files[row["dump_file_id"]]["path"]),
            cluster=str(row["cluster"]),
            segment=tuple(row[name] for name in _SEGMENT),
            printed_as=tuple(row[name] for name in _PRINTED_AS),
            digest=str(files[row["dump_file_id"]]["digest"]),
        )
        for row in sections
        if row["broker"] is None and row["replica_log_id"] is not None and row["segment_base_offset"] is not None
        if row["kind"] in ("log", "snapshot", "txnindex") and alone[row["dump_file_id"]] == 1
        if row["dialect"] != UNSUPPORTED  # a shallow and a deep dump look alike there, and nothing of them is read
    ]


def check_claims(made: Iterable[SegmentClaim]) -> list[str]:
    """One warning for each cluster with segments of an unknown broker.

    Raises:
        InputError: two files claim the same segment with different content.
    """
    first: dict[tuple[object, ...], SegmentClaim] = {}
    paths: defaultdict[str, set[str]] = defaultdict(set)
    # In a fixed order: the same inputs give the same sentence.
    for claim in sorted(made, key=lambda claim: (claim.cluster, claim.path)):
        paths[claim.cluster].add(claim.path)
        other = first.setdefault((claim.segment, claim.printed_as), claim)
        if other.digest != claim.digest:
            raise InputError(_conflict(other, claim))
    advice = "name a folder broker-1, or say so in manifest.yaml"
    return [
        f"cluster {name}: nothing says which broker printed {len(own)} of its dump files ({advice})" for name, own in sorted(paths.items())
    ]


def _conflict(one: SegmentClaim, other: SegmentClaim) -> str:
    cluster, topic, partition, _, kind, base = one.segment
    return (
        f"{one.path} and {other.path} both claim to be {kind} {base} of {topic}-{partition} in cluster {cluster}, with different content, "
        "and nothing says which broker printed which: put them in folders named broker-1, broker-2"
    )
