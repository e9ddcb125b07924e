"""Pictures of a partition, from plain rows of the history tables.

1. `partition_chart`: offsets along the axis, one lane per producer id with its batches, sequences, epochs, transaction spans and markers,
   and the LSO and HW as lines.
2. `overview_chart`: a whole log as one strip, for logs of which only parts are drawn in full.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.ticker import FuncFormatter, MaxNLocator

from eo_audit.report.canvas import INCHES_PER_LETTER, INCHES_WIDE, RIGHT, chart_style, new_axes, to_svg
from eo_audit.report.palette import OUTCOMES, colour
from eo_audit.report.values import maybe, whole
from eo_audit.words import Row

Counts = npt.NDArray[np.int64]
MAX_LANES = 12  # more producers than a reader can follow; the rest share one lane
LANE_INCHES = 0.36
LABEL_ROW = 0.42  # lanes
MAX_LABEL_ROWS = 3
_OPAQUE = frozenset({"committed", "plain"})  # the others are outlines, so that outcomes differ without colours too
_LINE_STYLE: dict[str, object] = {"open": (0, (4, 2)), "unknown": (0, (1, 1.5))}


@dataclass(frozen=True)
class Concern:
    """Offsets that findings are about, first to last, and the codes of their rules."""

    first: int
    last: int
    rules: str


@dataclass(frozen=True)
class Window:
    """What one chart shows: offsets from `first` up to before `end`, over `inches` of paper."""

    first: int
    end: int
    inches: float

    def letters(self, offsets: float) -> float:
        """How many small letters fit into a number of offsets."""
        return offsets / max(self.end - self.first, 1) * self.inches / (INCHES_PER_LETTER * 0.8)

    def offsets(self, letters: int) -> float:
        """How many offsets a text is wide."""
        return letters * INCHES_PER_LETTER * 0.8 / self.inches * max(self.end - self.first, 1)


def partition_chart(rows: Sequence[Row], log: Row, concerns: Sequence[Concern]) -> str:
    """A stretch of one replica log, as SVG.

    Args:
        rows: rows of `producer_history` of one replica log, in offset order.
        log: its row of `visibility`.
        concerns: shaded behind the lanes.
    """
    lanes = _lanes(rows)
    names = _lane_names(lanes)
    # Room for the longest name: matplotlib would cut it off.
    left = max(0.6, 0.15 + max(map(len, names.values())) * INCHES_PER_LETTER)
    first, end = whole(rows[0], "base_offset"), max(whole(row, "last_offset") for row in rows) + 1
    window = Window(first, end, INCHES_WIDE - left - RIGHT)
    here = [concern for concern in concerns if concern.first < end and concern.last >= first]
    labels = _label_rows(here, window)
    lines = [(name, log.get(name.lower())) for name in ("HW", "LSO")]
    named = [(name, value) for name, value in lines if isinstance(value, int) and first <= value <= end]
    top = -0.5 - (0.15 + 0.46 * len(named) if named else 0.1)
    bottom = max(names) + 0.62 + LABEL_ROW * (max(labels.values(), default=-1) + 1)
    with chart_style():
        figure, axes = new_axes(height=LANE_INCHES * (bottom - top), left=left)
        # A little paper on both sides, so that a batch at the edge has its outline.
        axes.set_xlim(first - 0.012 * (end - first), end + 0.012 * (end - first))
        axes.set_ylim(bottom, top)
        _draw_concerns(axes, here, labels, window=window, below=max(names) + 0.62)
        _draw_spans(axes, rows, lanes, window)
        _draw_batches(axes, rows, lanes, window)
        _draw_markers(axes, rows, lanes)
        for row, (name, value) in enumerate(named):
            _offset_line(axes, value, name=name, row=-0.86 - 0.46 * row, window=window)
        axes.set_yticks(list(names), list(names.values()))
        axes.tick_params(axis="y", length=0)
        _offset_axis(axes)
        about = f"Offsets {first} to {end - 1}, {len(lanes)} producers, LSO {log.get('lso')}, HW {log.get('hw')}."
        return to_svg(figure, title=f"Producers of {log.get('topic')}-{log.get('partition')} by offset", description=about)


def _offset_axis(axes: Axes) -> None:
    axes.set_xlabel("offset")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=9, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def _lanes(rows: Sequence[Row]) -> dict[int, int]:
    """Producer id -> lane, in order of first appearance; producers beyond the last lane share it."""
    lanes: dict[int, int] = {}
    for row in rows:
        lanes.setdefault(_producer(row), min(len(lanes), MAX_LANES))
    return lanes


def _producer(row: Row) -> int:
    producer = maybe(row, "producer_id")
    return -1 if producer is None else producer


def _lane_names(lanes: Mapping[int, int]) -> dict[int, str]:
    names: dict[int, str] = {}
    for producer, lane in lanes.items():
        names[lane] = "more producers" if lane == MAX_LANES else ("no producer id" if producer < 0 else f"producer {producer}")
    return names


def _label_rows(concerns: Sequence[Concern], window: Window) -> dict[int, int]:
    """Index of each concern that is named -> the row of its name, so that no two names overlap."""
    free: dict[int, float] = defaultdict(lambda: float(window.first) - 1)
    rows = {}
    for index in sorted(range(len(concerns)), key=lambda index: concerns[index].first):
        start = max(concerns[index].first, window.first)
        # A name without room is left out, its shade stays; the page lists all findings.
        row = next((row for row in range(MAX_LABEL_ROWS) if free[row] <= start), None)
        if row is not None:
            rows[index] = row
            free[row] = start + window.offsets(len(concerns[index].rules) + 2)
    return rows


def _draw_concerns(axes: Axes, concerns: Sequence[Concern], labels: Mapping[int, int], *, window: Window, below: float) -> None:
    for index, concern in enumerate(concerns):
        start, end = max(concern.first, window.first), min(concern.last + 1, window.end)
        axes.axvspan(start, end, color=colour("finding"), alpha=0.11, lw=0)
        if index in labels:
            y = below + LABEL_ROW * (labels[index] + 0.5)
            late = start + window.offsets(len(concern.rules) + 2) > window.end
            _name(axes, concern.rules, (end if late else start, y), role="finding", late=late, size=7.5)


def _name(axes: Axes, text: str, place: tuple[float, float], *, role: str, late: bool, size: float) -> None:
    """A name beside a line or an edge, on its left side where it is late in the chart."""
    style = {"fontsize": size, "fontweight": "bold", "color": colour(role), "va": "center", "ha": "right" if late else "left"}
    axes.annotate(text, place, xytext=(-3 if late else 3, 0), textcoords="offset points", annotation_clip=False, **style)


def _draw_spans(axes: Axes, rows: Sequence[Row], lanes: Mapping[int, int], window: Window) -> None:
    """A line below the batches of each transaction, from its first offset to its marker; an open one runs on to an arrow."""
    spans: dict[tuple[int, int], list[Row]] = defaultdict(list)
    for row in rows:
        if row.get("span_id") is not None:
            spans[_producer(row), whole(row, "span_id")].append(row)
    for (producer, begin), members in spans.items():
        role = next((str(row["span_outcome"]) for row in members if row.get("span_outcome")), None) or _outcome_of_marker(members[-1])
        start, end = max(begin, window.first), max(whole(row, "last_offset") for row in members) + 1
        y = lanes[producer] + 0.42
        axes.plot([start, window.end if role == "open" else end], [y, y], color=colour(role), lw=2.2, solid_capstyle="butt")
        # No marker ends it: the line leaves the picture.
        if role == "open":
            axes.plot([window.end], [y], marker=">", ms=6, color=colour(role), clip_on=False)


def _outcome_of_marker(row: Row) -> str:
    return {"COMMIT": "committed", "ABORT": "aborted"}.get(str(row.get("marker_type")), "unknown")


def _draw_batches(axes: Axes, rows: Sequence[Row], lanes: Mapping[int, int], window: Window) -> None:
    boxes: dict[str, list[list[tuple[float, float]]]] = defaultdict(list)
    for row in rows:
        if row.get("row_kind") in ("marker", "control"):
            continue
        role = str(row.get("truth") or "unknown")
        start, end, lane = whole(row, "base_offset"), whole(row, "last_offset") + 1, lanes[_producer(row)]
        boxes[role].append([(start, lane - 0.3), (end, lane - 0.3), (end, lane + 0.3), (start, lane + 0.3)])
        label = _batch_label(row, window.letters(end - start))
        if label:
            on = colour("on-fill" if role in _OPAQUE else "ink")
            axes.text((start + end) / 2, lane, label, ha="center", va="center", fontsize=7.5, color=on)
    for role, corners in boxes.items():
        opaque = role in _OPAQUE
        edge, style = colour("paper" if opaque else role), _LINE_STYLE.get(role, "-")
        face = colour(role) if opaque else "none"
        # Fill and outline apart: one collection has one transparency, and outlines should stay sharp.
        if not opaque:
            axes.add_collection(PolyCollection(corners, facecolors=colour(role), alpha=0.16, linewidths=0), autolim=False)
        axes.add_collection(PolyCollection(corners, facecolors=face, edgecolors=edge, linewidths=1.0, linestyles=[style]), autolim=False)


def _batch_label(row: Row, letters: float) -> str:
    """Epoch and sequences of a batch, as far as there is room."""
    if _producer(row) < 0 or maybe(row, "base_sequence") is None:
        return ""
    first, last = row.get("base_sequence"), row.get("last_sequence")
    sequences = f"s{first}" if first == last else f"s{first}–{last}"
    return next((label for label in (f"e{row.get('producer_epoch')} {sequences}", sequences) if len(label) + 1 <= letters), "")


def _draw_markers(axes: Axes, rows: Sequence[Row], lanes: Mapping[int, int]) -> None:
    shapes = {"COMMIT": ("D", "committed", 6), "ABORT": ("X", "aborted", 8)}
    for kind in ("COMMIT", "ABORT", None):
        found = [row for row in rows if row.get("row_kind") in ("marker", "control") and row.get("marker_type") == kind]
        shape, role, size = shapes.get(str(kind), ("o", "unknown", 5))
        x, y = [whole(row, "base_offset") + 0.5 for row in found], [lanes[_producer(row)] for row in found]
        if found:
            axes.plot(x, y, ls="", marker=shape, ms=size, color=colour(role), mec=colour("paper"), mew=0.7)


def _offset_line(axes: Axes, value: int, *, name: str, row: float, window: Window) -> None:
    """LSO or HW, named above the lanes; each in a row of its own, so that the two names never overlap."""
    role, late = name.lower(), value > (window.first + window.end) / 2
    axes.plot([value, value], [row, axes.get_ylim()[0]], color=colour(role), lw=1.6, ls="-" if name == "LSO" else "--")
    _name(axes, f"{name} {value:,}", (value, row), role=role, late=late, size=8.5)


def overview_chart(shares: Mapping[str, Counts], log: Row, *, drawn: Sequence[tuple[int, int]], concerns: Sequence[Concern]) -> str:
    """A whole replica log as one strip, as SVG: what became of the records of each stretch.

    Args:
        shares: outcome (of `palette.OUTCOMES`) -> records in each of as many stretches of equal length from log start to log end.
        log: its row of `visibility`.
        drawn: (first, last) offsets that charts of their own show.
        concerns: offsets of findings.
    """
    start, end = whole(log, "log_start"), max(whole(log, "leo"), whole(log, "log_start") + 1)
    stretches = max((len(counts) for counts in shares.values()), default=1)
    edges = np.linspace(start, end, stretches + 1)
    # A stretch without records is divided by one, and stays empty.
    total = np.maximum(sum((shares[role] for role in shares), np.zeros(stretches, np.int64)), 1)
    with chart_style():
        figure, axes = new_axes(height=0.78)
        below = np.zeros(stretches)
        for role in OUTCOMES:
            if role in shares and shares[role].any():
                top = below + shares[role] / total
                axes.stairs(top, edges, baseline=below, fill=True, color=colour(role), lw=0)
                below = top
        for first, last in drawn:
            axes.plot([first, max(last, first + (end - start) / 300)], [-0.14, -0.14], color=colour("ink"), lw=3, solid_capstyle="butt")
        axes.plot([c.first for c in concerns], [1.14] * len(concerns), ls="", marker="v", ms=6, color=colour("finding"), mew=0)
        for name in ("lso", "hw"):
            if (value := maybe(log, name)) is not None:
                axes.plot([value, value], [-0.25, 1.0], color=colour(name), lw=1.6, ls="-" if name == "lso" else "--")
        axes.set_xlim(start - 0.012 * (end - start), end + 0.012 * (end - start))
        axes.set_ylim(-0.28, 1.3)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        _offset_axis(axes)
        about = f"Offsets {start} to {end - 1}; {len(drawn)} stretches are drawn in full below."
        return to_svg(figure, title=f"The whole log of {log.get('topic')}-{log.get('partition')}", description=about)
