"""Do two dump files claim the same segment with different content? Only where nobody says which broker each was printed on.

With brokers known, two contents are two replicas, or one segment dumped twice; that is for the histories to judge.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from eo_audit.dump.identity import Identity
from eo_audit.errors import InputError


@dataclass(frozen=True)
class SegmentClaim:
    """One dump section's claim to be a segment.

    Attributes:
        identity: whose text it holds.
        path: the dump file, for the message.
        digest: of the section's content, the `Dumping` line left out.
        view: anything that makes the same segment print differently (with or without record lines, the decoder).
    """

    identity: Identity
    path: str
    digest: str
    view: str = ""


def check_unknown_brokers(claims: Iterable[SegmentClaim]) -> list[str]:
    """One warning for each cluster with segments of an unknown broker.

    Args:
        claims: the log, snapshot and index sections of all dump files.

    Raises:
        InputError: two files of an unknown broker claim the same segment with different content.
    """
    unknown = [claim for claim in claims if claim.identity.broker is None and claim.identity.replica_log_id is not None]
    first: dict[tuple[str, int | None, str, int | None, str, str | None], SegmentClaim] = {}
    files: defaultdict[str, set[str]] = defaultdict(set)
    for claim in sorted(unknown, key=lambda claim: claim.path):
        whose = claim.identity
        files[whose.cluster].add(claim.path)
        segment = (whose.cluster, whose.replica_log_id, whose.kind, whose.segment_base_offset, claim.view, whose.dir_kind)
        other = first.setdefault(segment, claim)
        if other.digest != claim.digest:
            raise InputError(_conflict(other, claim))
    advice = "name a folder broker-1, or say so in manifest.yaml"
    return [
        f"cluster {name}: nothing says which broker printed {len(paths)} of its dump files ({advice})"
        for name, paths in sorted(files.items())
    ]


def _conflict(one: SegmentClaim, other: SegmentClaim) -> str:
    whose = one.identity
    segment = f"{whose.kind} {whose.segment_base_offset} of {whose.topic}-{whose.partition} in cluster {whose.cluster}"
    return (
        f"{one.path} and {other.path} both claim to be {segment}, with different content, and nothing says which broker "
        "printed which: put them in folders named broker-1, broker-2"
    )
