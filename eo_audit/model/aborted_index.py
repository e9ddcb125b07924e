"""Does the `.txnindex` say what the log says? Each ABORT that closed data, and each index entry, judged in plain Python.

The states and reasons are those of the table `aborted_index`; `eo_audit.history.aborted_index` says what they mean.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from eo_audit.model.batches import ABORT, COMMIT
from eo_audit.model.lso import EndedTransaction
from eo_audit.model.visibility import IndexEntry

Key = tuple[int, int]
"""Producer id and offset of the marker."""


@dataclass(frozen=True)
class Seen:
    """What the dumps show of a log: where it starts and ends, what is missing, cleaned or not judged, which indexes were not dumped.

    `holes` are (first, last) offsets missing; `unknown` are (base, end) of segments whose index was not dumped; `may_lag`: the indexes may
    have been dumped before the log.
    """

    log_start: int
    first_offset: int
    end_offset: int
    holes: Sequence[tuple[int, int]] = ()
    unknown: Sequence[tuple[int, int]] = ()
    unjudged_from: int | None = None
    cleaned_below: int = 0
    may_lag: bool = False


def judge_index(ended: Sequence[EndedTransaction], entries: Sequence[IndexEntry], seen: Seen) -> list[tuple[Key, str, str | None]]:
    """Key, state and reason of each entry, and of each transaction closed by ABORT that has none."""
    markers = {(txn.producer_id, txn.marker_offset): txn for txn in ended}
    # Since 2.8 (KAFKA-10702) an ABORT that closed nothing has no entry, so none can be missing.
    closing = [key for key, txn in markers.items() if txn.marker == ABORT and txn.first_offset < txn.marker_offset]
    pairs: list[tuple[Key, IndexEntry | None]] = [((entry.producer_id, entry.last_offset), entry) for entry in entries]
    listed = {key for key, _ in pairs}
    if seen.may_lag:  # nothing is known of what stands behind the newest entry
        seen = replace(seen, unknown=[*seen.unknown, (max((entry.last_offset for entry in entries), default=-1) + 1, seen.end_offset)])
    pairs += [(key, None) for key in closing if key not in listed]
    return [(key, *_judged(key, markers.get(key), entry, seen)) for key, entry in pairs]


def _judged(key: Key, txn: EndedTransaction | None, entry: IndexEntry | None, seen: Seen) -> tuple[str, str | None]:
    judged = seen.unjudged_from is None or key[1] < seen.unjudged_from
    closes = txn is not None and txn.first_offset < txn.marker_offset
    if txn and entry and judged and closes and txn.marker == ABORT and txn.first_offset == entry.first_offset:
        return "match", None
    reason = _why_not(key, txn, entry, seen)
    if reason is not None:
        return "not_judged", reason
    if entry is None:
        return "missing", None
    if txn is None:
        return "extra", None
    return ("marker_is_commit" if txn.marker == COMMIT else "wrong_first"), None


def _why_not(key: Key, txn: EndedTransaction | None, entry: IndexEntry | None, seen: Seen) -> str | None:
    marker = key[1]
    starts = [txn.first_offset] if txn and txn.first_offset < marker else []
    first = min(starts + ([entry.first_offset] if entry else []))
    if (txn and txn.marker is None) or marker >= seen.end_offset or (seen.unjudged_from is not None and marker >= seen.unjudged_from):
        return "uncovered"
    if entry is None and any(base <= marker < end for base, end in seen.unknown):
        return "index_not_dumped"
    # Segments go with their indexes, and of what began below the first batch nobody can replay the first offset.
    # Up to 2.3 an open transaction is forgotten with the head of the log, and its ABORT ends nothing for the index.
    is_forgotten = entry is not None and any(start < seen.log_start for start in starts)
    if marker < seen.log_start or (entry and entry.first_offset < seen.first_offset) or is_forgotten:
        return "below_start"
    # What brokers before 2.8 wrote for an empty ABORT: it hides no record.
    if txn and txn.marker == ABORT and not starts and entry and entry.first_offset == marker:
        return "empty_abort"
    # The first batch of the transaction may lie in what is missing, and then its first offset is not the one that is seen.
    if any(low <= marker and high >= first for low, high in seen.holes):
        return "hole"
    return "compacted" if first < seen.cleaned_below else None
