"""R06 tail-bytes: a closed segment ends with bytes that are no batch.

Proves: Behind the last whole batch of a segment that a broker has closed stand bytes that nobody can read. By itself it does not prove that
delivery was wrong: where offsets are missing as well, R04 tells.

Bad history: "Found 264 invalid bytes at the end of 00000000000000000000.log", and the next segment begins with the next offset.

Legal look-alike: The newest segment of a running broker, dumped in the middle of an append; a segment that was the newest when it was
dumped, and was closed before the next one was (info).
"""

from typing import TYPE_CHECKING

from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.words import count, shown

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="R06",
    slug="tail-bytes",
    severity="warning",
    reads=("section_status",),
    subject="batch",
    where="is_read AND kind = 'log' AND invalid_tail_bytes > 0 AND next_segment_base IS NOT NULL",
    by="",
    columns="invalid_tail_bytes next_segment_base last_offset segment_base_offset path",
    proves_delivery_wrong=False,
    cause="a crash in the middle of an append and no recovery behind it, a disk fault, or a file that was copied while it was written",
    remedy=(
        "Dump this segment once more; if it says the same, compare the other replicas (R01). While another one leads, stop this broker, "
        "delete the replica's directory and start it: the partition is fetched again."
    ),
)


def explain(case: Case, context: "Context") -> Explanation:
    """Certain where the next segment goes on right behind the last batch: nothing of the log can be in those bytes."""
    row = case.row
    ahead = row.number("next_segment_base") - row.number("last_offset", row.number("segment_base_offset") - 1) - 1
    stopped = case.log is not None and case.log.cluster in context.stopped
    live = ahead > 0 and not stopped
    message = (
        f"Segment {row.maybe('segment_base_offset')} ends with {count(row.maybe('invalid_tail_bytes'), 'byte')} that are no batch "
        f"({shown(row.text('path'))}), "
    )
    if ahead > 0:
        message += f"and {count(ahead, 'offset')} up to the next segment are not in the dump"
        message += ": it was closed while it was dumped, or they are lost" if live else ""
    else:
        message += f"and the next segment goes on at offset {row.maybe('next_segment_base')} all the same"
    return Explanation(
        message,
        severity="info" if live else "warning",
        certainty="open" if live else "definite",
        details={"invalid_bytes": row.maybe("invalid_tail_bytes"), "segments": case.hits, "offsets_missing": max(ahead, 0)},
    )
