"""Markers that neither places nor times match plainly: rows of a log on their way to the law, and back."""

import random
from typing import get_args, get_type_hints

import pyarrow as pa

from eo_audit.history.doubtful_markers import _aligned, _Row

ARROW = {int: pa.int64(), bool: pa.bool_(), str: pa.string()}
KINDS = {name: next(ARROW[kind] for kind in ARROW if kind in (said, *get_args(said))) for name, said in get_type_hints(_Row).items()}
IN_A_LOG = dict.fromkeys(KINDS) | {
    "replica_log_id": 1,
    "skew_ms": 2_000,
    "of_tv2": False,
    "epochs_are_elections": False,
    "coordinator_log_id": 100,
    "older_markers": True,
    "newer_decided": False,
    "cleaned_below": 0,
    "marker_epoch": 0,
    "data_epoch": 0,
}
ENDS = {7: {"older_decided": False, "newer_markers": True}, 8: {"older_decided": True, "newer_markers": False}}


def instance(producer: int, place: int, decision: str, decided_at_ms: int) -> dict[str, object]:
    ends = {"decision": decision, "decided_at_ms": decided_at_ms, "until_ms": decided_at_ms + 10}
    offsets = {"decided_at_offset": place + 1, "complete_offset": place + 2, "prepare_leader_epoch": 0, "complete_leader_epoch": 0}
    return IN_A_LOG | ENDS[producer] | ends | offsets | {"producer_id": producer, "place": place}


def marker(producer: int, place: int, kind: str, at_ms: int) -> dict[str, object]:
    epochs = {"its_epoch": 0, "its_data_epoch": 0, "its_coordinator_epoch": 0, "its_leader_epoch": 0}
    said = {"its_type": kind, "its_at_ms": at_ms, "its_closes": True, "its_after_hole": False}
    return IN_A_LOG | ENDS[producer] | epochs | said | {"producer_id": producer, "place": place}


def told(rows: list[dict[str, object]]) -> list[str]:
    return sorted(str(row) for row in _aligned(pa.Table.from_pylist(rows, schema=pa.schema(KINDS))).to_pylist())


def test_what_is_told_does_not_depend_on_the_order_in_which_rows_arrive() -> None:
    """Each producer has a partition of `__transaction_state` of its own, so both begin at the same offset."""
    rows = [
        instance(7, 1, "ABORT", 302),
        marker(7, 5, "ABORT", -2_193),
        marker(7, 11, "COMMIT", -1_821),
        instance(8, 1, "COMMIT", 465),
        instance(8, 4, "ABORT", 840),
        marker(8, 2, "ABORT", -2_363),
        marker(8, 8, "COMMIT", -2_030),
    ]
    answers = [told(rows), told(rows[::-1]), *(told(random.Random(seed).sample(rows, len(rows))) for seed in range(8))]
    assert len(answers[0]) >= 4  # all markers, at least
    assert answers == answers[:1] * len(answers)
