"""The three pictures of a report, each from plain rows of the history tables.

1. `partition_chart`: offsets along the axis, one lane per producer id, batches coloured by outcome, markers, LSO and HW.
2. `transactional_id_chart`: the states of one transactional id over time, with epochs and abort causes.
3. `open_transactions_chart`: open transactions and the age of the oldest one, over the run.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from eo_audit.report.canvas import chart_style, new_axes, to_svg
from eo_audit.report.palette import colour

Row = Mapping[str, object]
Times = npt.NDArray[np.int64]
MAX_LANES = 12  # more producers than a reader can follow; the rest share one lane
LANE_INCHES = 0.34
INSTANTS = 401  # enough for the width of a page
STATE_COLOUR = {
    "Empty": "plain",
    "Ongoing": "open",
    "PrepareCommit": "committed",
    "CompleteCommit": "committed",
    "PrepareAbort": "aborted",
    "CompleteAbort": "aborted",
    "Tombstone": "unknown",
}


def whole(row: Row, column: str) -> int:
    """A column that holds a whole number, as an int (0 where it is null)."""
    value = row.get(column)
    return int(value) if isinstance(value, (int, float)) else 0


def clock(ms: int) -> str:
    """Milliseconds since the epoch as UTC hours, minutes, seconds and milliseconds."""
    return datetime.fromtimestamp(ms / 1000, tz=UTC).strftime("%H:%M:%S.%f")[:-3]


def partition_chart(rows: Sequence[Row], log: Row, findings: Sequence[tuple[int, int]]) -> str:
    """One replica log, as SVG.

    Args:
        rows: rows of `producer_history` of one replica log, in offset order; the window to draw.
        log: its row of `visibility`.
        findings: (first, last) offsets that findings are about, shaded behind the lanes.
    """
    lanes = _lanes(rows)
    first, last = whole(rows[0], "base_offset"), max(whole(row, "last_offset") for row in rows) + 1
    with chart_style():
        figure, axes = new_axes(height=1.1 + LANE_INCHES * (max(lanes.values()) + 1))
        for start, end in findings:
            if start < last and end >= first:
                axes.axvspan(max(start, first), min(end + 1, last), color=colour("finding"), alpha=0.16, lw=0)
        for row in rows:
            _draw_batch(axes, row, lane=lanes[whole(row, "producer_id")], span=last - first)
        _offset_line(axes, log.get("lso"), name="LSO", role="lso", window=(first, last))
        _offset_line(axes, log.get("hw"), name="HW", role="hw", window=(first, last))
        _lane_axis(axes, lanes)
        axes.set_xlim(first - 0.02 * (last - first), last + 0.02 * (last - first))
        axes.set_xlabel("offset")
        axes.xaxis.get_major_locator().set_params(integer=True)
        name = f"{log.get('topic')}-{log.get('partition')}"
        about = f"Offsets {first} to {last - 1}, {len(lanes)} producers, LSO {log.get('lso')}, HW {log.get('hw')}."
        return to_svg(figure, title=f"Producers of {name} by offset", description=about)


def _lanes(rows: Sequence[Row]) -> dict[int, int]:
    """Producer id -> lane, in order of first appearance; producers beyond the last lane share it."""
    lanes: dict[int, int] = {}
    for row in rows:
        lanes.setdefault(whole(row, "producer_id"), min(len(lanes), MAX_LANES))
    return lanes


def _lane_axis(axes: Axes, lanes: Mapping[int, int]) -> None:
    names: dict[int, str] = {}
    for producer, lane in lanes.items():
        names[lane] = "more producers" if lane == MAX_LANES else ("no producer id" if producer < 0 else f"producer {producer}")
    axes.set_yticks(list(names), list(names.values()))
    axes.set_ylim(max(names) + 0.6, -0.9)
    axes.tick_params(axis="y", length=0)


def _draw_batch(axes: Axes, row: Row, *, lane: int, span: int) -> None:
    offset, width = whole(row, "base_offset"), whole(row, "last_offset") - whole(row, "base_offset") + 1
    if row.get("row_kind") == "marker":
        role = "committed" if row.get("marker_type") == "COMMIT" else "aborted"
        axes.plot(
            [offset + 0.5], [lane], marker="D" if role == "committed" else "X", ms=7, color=colour(role), mec=colour("paper"), mew=0.8
        )
        return
    role = str(row.get("truth") or "unknown")
    shape = Rectangle((offset, lane - 0.3), width, 0.6, fc=colour(role), ec=colour("paper"), lw=0.8, alpha=0.95)
    if not row.get("is_transactional"):
        shape.set_hatch("...")
    axes.add_patch(shape)
    label = _batch_label(row)
    if width / max(span, 1) > 0.011 * len(label):
        axes.text(offset + width / 2, lane, label, ha="center", va="center", fontsize=7.5, color=colour("on_fill"))


def _batch_label(row: Row) -> str:
    if whole(row, "producer_id") < 0:
        return ""
    return f"e{row.get('producer_epoch')} s{row.get('base_sequence')}–{row.get('last_sequence')}"


def _offset_line(axes: Axes, value: object, *, name: str, role: str, window: tuple[int, int]) -> None:
    if not isinstance(value, int) or not window[0] <= value <= window[1]:
        return
    axes.axvline(value, color=colour(role), lw=1.6, ls="-" if name == "LSO" else "--")
    axes.text(
        value, -0.62, f" {name} {value}", color=colour(role), fontsize=8.5, fontweight="bold", ha="left" if name == "LSO" else "right"
    )


def transactional_id_chart(entries: Sequence[Row], instances: Sequence[Row]) -> str:
    """The states of one transactional id over time, as SVG.

    Args:
        entries: its rows of `coordinator_history`, in entry order.
        instances: its rows of `transaction_instances` (for abort causes).
    """
    times = [whole(entry, "batch_timestamp_ms") for entry in entries]
    start, end = min(times), max(times)
    tail = max((end - start) // 20, 1)
    with chart_style():
        figure, axes = new_axes(height=1.5)
        for entry, begin, until in zip(entries, times, [*times[1:], end + tail], strict=True):
            status = "Tombstone" if entry.get("tombstone") else str(entry.get("status"))
            width = max(until - begin, (end + tail - start) / 300)
            axes.add_patch(
                Rectangle(
                    (begin - start, 0.2),
                    width,
                    0.6,
                    fc=colour(STATE_COLOUR.get(status, "unknown")),
                    ec=colour("paper"),
                    lw=0.8,
                    alpha=0.55 if status.startswith("Prepare") else 0.95,
                )
            )
        _epoch_labels(axes, entries, [time - start for time in times], end + tail - start)
        for instance in instances:
            if instance.get("abort_cause") and instance.get("decided_at_ms"):
                axes.text(
                    whole(instance, "decided_at_ms") - start,
                    0.02,
                    str(instance["abort_cause"]).replace("_", " "),
                    fontsize=7.5,
                    color=colour("aborted"),
                    va="top",
                )
        axes.set_xlim(0, end + tail - start)
        axes.set_ylim(-0.35, 1.3)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_xlabel(f"milliseconds after {clock(start)} UTC")
        states = ", ".join(f"{entry.get('status') or 'tombstone'} epoch {entry.get('producer_epoch')}" for entry in entries[-6:])
        return to_svg(figure, title=f"States of {entries[0].get('transactional_id')} over time", description=f"Last states: {states}.")


def _epoch_labels(axes: Axes, entries: Sequence[Row], times: Sequence[int], span: int) -> None:
    """The epoch above the first state of each epoch, where there is room for it."""
    previous, free_from = None, -span
    for entry, time in zip(entries, times, strict=True):
        epoch = entry.get("producer_epoch")
        if epoch != previous and epoch is not None and time >= free_from:
            axes.text(time, 0.9, f"epoch {epoch}", fontsize=8, color=colour("ink"))
            free_from = time + span * 0.06
        previous = epoch


def open_transactions_chart(begins: Times, ends: Times) -> str:
    """Open transactions over the time that the dumps cover, and the age of the oldest, as SVG.

    Args:
        begins: when each transaction span began, ms.
        ends: when it ended, ms; the audit's now where it is still open.
    """
    start, end = int(begins.min()), int(max(ends.max(), begins.max() + 1))
    instants = np.linspace(start, end, INSTANTS).astype(np.int64)
    opened = [(begins <= time) & ((ends > time) | (ends == end)) for time in instants]
    ages = [int(time - begins[now].min()) / 1000 if now.any() else 0.0 for time, now in zip(instants, opened, strict=True)]
    seconds = (instants - start) / 1000
    with chart_style():
        figure, axes = new_axes(height=1.9)
        axes.fill_between(seconds, ages, step="post", color=colour("open"), alpha=0.25, lw=0)
        axes.step(seconds, ages, where="post", color=colour("open"), lw=1.4)
        axes.set_ylabel("age of oldest\nopen transaction (s)")
        axes.set_xlabel(f"seconds after {clock(start)} UTC")
        right = axes.twinx()
        right.step(seconds, [int(now.sum()) for now in opened], where="post", color=colour("lso"), lw=1.2)
        right.set_ylabel("open transactions", color=colour("lso"))
        right.set_ylim(bottom=0)
        axes.set_ylim(bottom=0)
        about = f"The oldest open transaction reached an age of {max(ages):.1f} seconds."
        return to_svg(figure, title="Open transactions over time", description=about)
