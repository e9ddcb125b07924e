"""Markers that neither places nor times match plainly: `model.alignment` itself, run over the logs that have some.

One task sees all producers of such a log, because they have seen the same clocks; logs whose markers match plainly never come here.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypedDict

from pyspark.sql import DataFrame

from eo_audit.history.clock_offsets import NEVER_MS
from eo_audit.model.alignment.align import align
from eo_audit.model.alignment.clocks import Decided, Marker
from eo_audit.model.alignment.prices import Witness, witness
from eo_audit.model.alignment.producer import Producer
from eo_audit.model.alignment.story import Told

if TYPE_CHECKING:
    import pyarrow as pa

# Only what prices are made of goes to Python, where every value becomes an object.
_DECIDED = (
    *("marker_epoch", "decision", "decided_at_ms", "until_ms", "prepare_leader_epoch", "complete_leader_epoch"),
    *("decided_at_offset", "complete_offset", "data_epoch"),
)
_MARKER = ("type", "epoch", "at_ms", "closes", "data_epoch", "coordinator_epoch", "leader_epoch", "opened_at")
_ENDS = (
    *("older_markers", "older_decided", "newer_markers", "newer_decided", "both_stopped"),
    *("cleaned_below", "known_until_ms", "known_until_epoch", "known_from_offset", "hole_behind"),
)
_ANSWER = """replica_log_id long, producer_id long, kind int, place long, at_entry long, again boolean, doubtful boolean, legal boolean,
    lost_among int, unseen string"""


class _Row(TypedDict):
    """An instance, or a marker (`its_type`), of one producer."""

    replica_log_id: int
    producer_id: int
    place: int
    skew_ms: int
    of_tv2: bool
    epochs_are_elections: bool
    coordinator_log_id: int | None
    open_from: int | None
    open_epoch: int | None
    older_markers: bool | None
    older_decided: bool | None
    newer_markers: bool | None
    newer_decided: bool | None
    both_stopped: bool | None
    cleaned_below: int | None
    known_until_ms: int | None
    known_until_epoch: int | None
    known_from_offset: int | None
    hole_behind: int | None
    marker_epoch: int | None
    decision: str | None
    decided_at_ms: int | None
    until_ms: int
    prepare_leader_epoch: int | None
    complete_leader_epoch: int | None
    decided_at_offset: int | None
    complete_offset: int | None
    data_epoch: int | None
    its_type: str | None
    its_epoch: int
    its_at_ms: int
    its_closes: bool | None
    its_data_epoch: int | None
    its_coordinator_epoch: int | None
    its_leader_epoch: int | None
    its_after_hole: bool | None
    its_opened_at: int | None


def aligned(paired: DataFrame) -> DataFrame:
    """Markers of the logs in which `method` is missing somewhere, with what the law says of them.

    Args:
        paired: markers and instances with method, partner and the ends of their sequences.

    Returns:
        replica_log_id, producer_id, kind and place: of a marker with at_entry (the first entry of its instance, or null), again (it
        repeats another marker of that instance), doubtful (another reading is as good), legal (and nothing is wrong in any of them);
        of an instance with lost_among: at least one of so many lacks its marker, and nothing tells which; and with unseen: its marker
        is held to be below the start of the log, behind its end, or among offsets that are missing (`below_start`, `tail`, `hole`;
        `last_hole`: behind all markers of the producer, where its data may still be seen).
    """
    # Windows replayed 5 million coordinator entries in 4.7 s, a Python call for each group took 22.6 s: so only logs in which the windows
    # left something open come here.
    doubtful = paired.where("method IS NULL AND kind = 2").select("replica_log_id").distinct()
    # Under TV2 (KIP-890) the epoch has told already; those pairs come along as witnesses of the two clocks.
    asked = paired.join(doubtful, "replica_log_id", "left_semi").where("NOT of_tv2 OR (kind = 2 AND partner.decision = marker.type)")
    columns = [
        "replica_log_id",
        "producer_id",
        "place",
        "skew_ms",
        "open_from",
        "open_epoch",
        "coordinator_log_id",
        "of_tv2",
        "epochs_are_elections",
        *_ENDS,
        *(f"coalesce(own, partner).{name} AS {name}" for name in _DECIDED),
    ]
    markers = [f"marker.{name} AS its_{name}" for name in _MARKER]
    told = asked.selectExpr(*columns, *markers, "after_hole AS its_after_hole")
    return told.groupBy("replica_log_id").applyInArrow(_aligned, _ANSWER)


def _aligned(log: "pa.Table") -> "pa.Table":
    import pyarrow as pa

    # `applyInArrow` promises no order of the rows of a group, and what `align` says depends on who is heard first. Places are offsets of
    # several logs, so many are alike: there the producer decides, and all that a row says, so that only rows that are alike stay tied.
    first = ("place", "producer_id")
    keys = [*first, *(name for name in log.column_names if name not in first)]
    rows: list[_Row] = log.sort_by([(key, "ascending") for key in keys]).to_pylist()
    elections: dict[int | None, set[int]] = {}
    for row in rows:
        if row["its_type"] is not None and row["its_coordinator_epoch"] is not None:
            elections.setdefault(row["coordinator_log_id"], set()).add(row["its_coordinator_epoch"])
    elected = {one: sorted(epochs) for one, epochs in elections.items()}
    of_producer: dict[int, list[_Row]] = {}
    seen: dict[int | None, list[Witness]] = {}
    for row in rows:
        # By coordinator: its clock wrote the decisions, and each partition of `__transaction_state` has a leader of its own.
        if row["of_tv2"]:
            seen.setdefault(row["coordinator_log_id"], []).extend(_seen(row, elected.get(row["coordinator_log_id"], ())))
        else:
            of_producer.setdefault(row["producer_id"], []).append(row)
    producers = {name: _producer(found, elected.get(found[0]["coordinator_log_id"], ())) for name, found in of_producer.items()}
    told = align(producers, skew_ms=rows[0]["skew_ms"], seen=seen)
    answers = [
        (rows[0]["replica_log_id"], name, *answer) for name, producer in producers.items() for answer in _answers(producer, told[name])
    ]
    longs, flags = [pa.int64()], [pa.bool_()]
    types = [*longs * 2, pa.int32(), *longs * 2, *flags * 3, pa.int32(), pa.string()]
    names = [column.split()[0] for column in _ANSWER.split(",")]
    return pa.table({name: pa.array([row[at] for row in answers], kind) for at, (name, kind) in enumerate(zip(names, types, strict=True))})


def _answers(producer: Producer, told: Told) -> Iterable[tuple[object, ...]]:
    """What is said of each marker, and of the transactions of which one lacks its marker, from the column `kind` on."""
    for marker, match in zip(producer.markers, told.matches, strict=True):
        entry = None if match.decided is None else producer.decided[match.decided].place
        yield 2, marker.offset, entry, match.again, match.doubtful, match.legal, None, None
    lost, unseen = dict.fromkeys(told.one_lost_of, len(told.one_lost_of)), dict.fromkeys(told.older, "below_start")
    behind = "tail" if producer.hole_behind is None else "last_hole"
    unseen |= dict.fromkeys(told.younger, behind) | dict.fromkeys(told.in_hole, "hole")
    for at in sorted({*lost, *unseen}):
        yield 0, producer.decided[at].place, None, None, None, None, lost.get(at), unseen.get(at)


def _seen(row: _Row, elections: Sequence[int]) -> list[Witness]:
    """What the pair of a marker and the instance that its epoch names tells of the clocks."""
    marker, one = _marker(row, None), _decided(row, elections)
    return [witness(marker, one)] if marker is not None and one is not None else []


def _producer(rows: list[_Row], elections: Sequence[int]) -> Producer:
    markers: list[Marker] = []
    before: int | None = None
    for row in rows:
        if (marker := _marker(row, before)) is not None:
            markers.append(marker)
            before = row["its_coordinator_epoch"]
    decided = [one for row in rows if row["its_type"] is None and (one := _decided(row, elections)) is not None]
    # Data behind the last marker belongs to the transaction that is running, where there is one: then it tells nothing of the markers.
    running = any(row["its_type"] is None and not row["decision"] for row in rows)
    ends = rows[0]
    return Producer(
        markers,
        decided,
        older_markers=bool(ends["older_markers"]),
        older_decided=bool(ends["older_decided"]),
        newer_markers=bool(ends["newer_markers"]),
        newer_decided=bool(ends["newer_decided"]),
        both_stopped=bool(ends["both_stopped"]),
        cleaned_below=ends["cleaned_below"] or 0,
        open_from=None if running else ends["open_from"],
        open_epoch=ends["open_epoch"],
        coordinator=ends["coordinator_log_id"],
        running=running,
        told_until_ms=ends["known_until_ms"],
        told_until_epoch=ends["known_until_epoch"],
        told_anew_at=ends["known_from_offset"],
        of_election=not ends["epochs_are_elections"],
        hole_behind=ends["hole_behind"],
    )


def _marker(row: _Row, coordinator_epoch_before: int | None) -> Marker | None:
    """None for an instance. The abort tool writes the data's epoch, and the coordinator epoch of the producer's last marker,
    or 0 where it has none."""
    if row["its_type"] is None:
        return None
    # The tool has it from DescribeProducers (KIP-664), and the broker from the producer's last marker.
    known = row["its_coordinator_epoch"] in (0, coordinator_epoch_before)
    return Marker(
        offset=row["place"],
        type=row["its_type"],
        epoch=row["its_epoch"],
        at_ms=row["its_at_ms"],
        closes=bool(row["its_closes"]),
        by_tool=row["its_type"] == "ABORT" and row["its_epoch"] == row["its_data_epoch"] and known,
        odd=bool(row["its_closes"]) and _is_odd(row),
        coordinator_epoch=row["its_coordinator_epoch"],
        leader_epoch=row["its_leader_epoch"],
        after_hole=bool(row["its_after_hole"]),
        opened_at=row["its_opened_at"],
    )


def _is_odd(row: _Row) -> bool:
    """A COMMIT has the epoch of its data, or one more (KIP-890); an ABORT up to two more."""
    # Two: 4.0 raises the epoch twice where it fences or times out (KAFKA-19367).
    raised = None if row["its_data_epoch"] is None else row["its_epoch"] - row["its_data_epoch"]
    return raised is not None and raised not in (range(2) if row["its_type"] == "COMMIT" else range(3))


def _decided(row: _Row, elections: Sequence[int]) -> Decided | None:
    """The instance of a row, or the partner of a marker; None without a decision, or where nobody knows its time. `elections`: of leader
    epochs those under which a coordinator was elected, as markers tell."""
    if not row["decision"] or row["decided_at_ms"] is None:
        return None
    until = row["until_ms"]
    return Decided(
        place=row["place"],
        epoch=row["marker_epoch"],
        decision=row["decision"],
        decided_ms=row["decided_at_ms"],
        until_ms=until if until < NEVER_MS else None,
        first_leader_epoch=row["prepare_leader_epoch"],
        last_leader_epoch=row["complete_leader_epoch"],
        decided_at=row["decided_at_offset"],
        completed_at=row["complete_offset"],
        data_epoch=row["data_epoch"],
        of_election=not row["epochs_are_elections"],
        elected=_elected(row, elections),
    )


def _elected(row: _Row, elections: Sequence[int]) -> int | None:
    led = row["prepare_leader_epoch"]
    if led is None or row["epochs_are_elections"]:
        return led
    up_to = bisect_right(elections, led)
    return elections[up_to - 1] if up_to else None
