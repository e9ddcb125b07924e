"""Which protocol wrote each entry of the coordinator's log: transaction versions 0 and 1, or 2 (KIP-890)."""

from collections.abc import Sequence

from eo_audit.model.entries import Entry
from eo_audit.model.states import EMPTY, ONGOING, PREPARE_ABORT, PREPARE_COMMIT, PREPARED, TOMBSTONE, TV0, TV2, UNKNOWN


def protocols_of(entries: Sequence[Entry], transaction_version: int | None, *, by_own_version: bool) -> list[str]:
    """The protocol of each entry: its own evidence, else that of the nearest earlier, else later entry, else the cluster's.

    `by_own_version`: whether the coordinator may have ended by its own version what an older client began (`states.ends_by_own_version`).
    """
    assumed = {0: TV0, 1: TV0, 2: TV2}.get(-1 if transaction_version is None else transaction_version, UNKNOWN)
    befores = [None, *entries]
    seen = [_evidence(None if b.after_gap else a, b, transaction_version) for a, b in zip(befores, entries, strict=False)]
    earlier, known = [], None
    for evidence in seen:
        known = evidence or known
        earlier.append(known)
    first = next((evidence for evidence in seen if evidence), assumed)
    protocols = [evidence or first for evidence in earlier]
    return [
        TV2 if by_own_version and not entry.after_gap and _raised_twice(before, entry) else protocol
        for before, entry, protocol in zip(befores, entries, protocols, strict=False)
    ]


def _raised_twice(before: Entry | None, entry: Entry) -> bool:
    """An abort that no old protocol writes; it tells nothing of the client."""
    if before is None or entry.status != PREPARE_ABORT or None in (before.epoch, entry.epoch):
        return False
    return (entry.epoch or 0) - (before.epoch or 0) == 2


def _evidence(before: Entry | None, entry: Entry, transaction_version: int | None) -> str | None:
    if entry.client_version is not None and entry.client_version >= 2:
        return TV2
    if transaction_version in (0, 1):
        return TV0
    printed = entry.start_ms is not None  # a form that prints the start prints the client's version too, unless it is 0
    # InitProducerId does not tell which protocol the client will speak: an Empty proves nothing.
    if printed and entry.status not in (EMPTY, TOMBSTONE):
        return TV0
    if before is None or before.status != ONGOING or before.epoch is None or entry.epoch is None:
        return None
    raised = entry.epoch - before.epoch
    if raised == 0 and entry.status in PREPARED:
        return TV0
    return TV2 if raised == 1 and entry.status == PREPARE_COMMIT else None
