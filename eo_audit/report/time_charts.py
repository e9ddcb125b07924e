"""Pictures over time, from plain rows of the history tables.

1. `transactional_id_chart`: the newest steps of one transactional id, with epochs, how long each state lasted, and abort causes.
2. `open_transactions_chart`: open transactions and the age of the oldest one, over the run.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from eo_audit.report.canvas import chart_style, new_axes, to_svg
from eo_audit.report.palette import colour
from eo_audit.report.values import maybe, whole
from eo_audit.words import Row, duration, visible

Times = npt.NDArray[np.int64]
MAX_STEPS = 8  # states whose names fit side by side
INSTANTS = 401  # enough for the width of a page
STATE_ROLE = {
    "Empty": "plain",
    "Ongoing": "open",
    "PrepareCommit": "committed",
    "CompleteCommit": "committed",
    "PrepareAbort": "aborted",
    "CompleteAbort": "aborted",
}
_ODD_STEPS = frozenset({"illegal", "ghost"})
_IN_WORDS = {"not_in_table": "no legal step"}


def clock(ms: int) -> str:
    """Milliseconds since the epoch as UTC hours, minutes, seconds and milliseconds."""
    return datetime.fromtimestamp(ms / 1000, tz=UTC).strftime("%H:%M:%S.%f")[:-3]


def transactional_id_chart(entries: Sequence[Row], instances: Sequence[Row]) -> str:
    """The newest steps of one transactional id, or those around its last step that was not legal, as SVG.

    States last from a millisecond to days, so each gets the same room, and says when it began and how long it lasted.

    Args:
        entries: its rows of `coordinator_history`, in entry order.
        instances: its rows of `transaction_instances` (for abort causes).
    """
    # Where something is odd the steps around it: an id of a year has thousands, and eight fit.
    begin = _first_shown(entries)
    shown = entries[begin : begin + MAX_STEPS]
    until = [maybe(entry, "batch_timestamp_ms") for entry in entries[begin + 1 : begin + MAX_STEPS + 1]]
    causes = {whole(i, "prepare_offset"): str(i["abort_cause"]) for i in instances if i.get("abort_cause") and i.get("prepare_offset")}
    with chart_style():
        lines = max(len(_told(entry, causes.get(whole(entry, "entry_offset")))) for entry in shown)
        bottom = -0.25 - 0.27 * lines
        figure, axes = new_axes(height=0.6 * (1.1 - bottom), left=0.05, right=0.05, below=0.04)
        axes.set_axis_off()
        axes.set_xlim(0, MAX_STEPS)
        axes.set_ylim(bottom, 1.1)
        for place, (entry, end) in enumerate(zip(shown, [*until, None], strict=False)):
            _draw_step(axes, entry, place=place, end_ms=end, note=causes.get(whole(entry, "entry_offset")))
        axes.text(0.02, 0.05 - 0.27 * lines, _when(entries, begin, len(shown)), fontsize=7.8, va="center", color=colour("soft-ink"))
        states = ", ".join(f"{_status(entry)} epoch {entry.get('producer_epoch')}" for entry in shown)
        name = visible(entries[0].get("transactional_id"))
        return to_svg(figure, title=f"States of {name} over time", description=f"Steps shown: {states}.")


def _first_shown(entries: Sequence[Row]) -> int:
    """Where to begin: with the newest steps, or so that the last odd one is in the middle."""
    odd = [at for at, entry in enumerate(entries) if _is_odd(entry)]
    last = max(len(entries) - MAX_STEPS, 0)
    return min(max(odd[-1] - MAX_STEPS // 2, 0), last) if odd else last


def _is_odd(entry: Row) -> bool:
    wrong_epoch = entry.get("epoch_step") in ("regression", "jump", "pid_change_epoch_not_zero")
    return entry.get("step") in _ODD_STEPS or wrong_epoch or entry.get("field_change") is not None


def _status(entry: Row) -> str:
    return "Tombstone" if entry.get("tombstone") else str(entry.get("status"))


def _draw_step(axes: Axes, entry: Row, *, place: int, end_ms: int | None, note: str | None) -> None:
    status, odd = _status(entry), _is_odd(entry)
    role = STATE_ROLE.get(status, "unknown")
    # PrepareX is an outline: it is meant to pass.
    passing = status.startswith("Prepare") or role == "unknown"
    box = {"fc": "none" if passing else colour(role), "ec": colour("finding" if odd else role), "lw": 2.4 if odd else 1.0}
    axes.add_patch(Rectangle((place + 0.02, 0.25), 0.95, 0.58, **box))
    on, middle = colour("ink" if passing else "on-fill"), place + 0.495
    axes.text(middle, 0.64, status, fontsize=8.2, ha="center", va="center", color=on)
    lasted = "" if end_ms is None else duration(max(end_ms - whole(entry, "batch_timestamp_ms"), 0))
    axes.text(middle, 0.41, lasted, fontsize=7.6, ha="center", va="center", color=on)
    epoch = entry.get("producer_epoch")
    # Only where it changes: an epoch over every step would hide the changes.
    if epoch is not None and (place == 0 or epoch != entry.get("previous_epoch")):
        axes.text(place + 0.02, 0.97, f"epoch {epoch}", fontsize=8, va="center", color=colour("ink"))
    for line, (text, colour_of) in enumerate(_told(entry, note)):
        axes.text(place + 0.02, 0.1 - 0.27 * line, text.replace("_", " "), fontsize=7.6, va="center", color=colour(colour_of))


def _told(entry: Row, note: str | None) -> list[tuple[str, str]]:
    """What stands below a step, each with the role of its colour: when it was, what is odd, why it aborts."""
    reason = entry.get("step_reason") or entry.get("field_change") or entry.get("epoch_step")
    told = [(clock(whole(entry, "batch_timestamp_ms")), "soft-ink")]
    told += [(_IN_WORDS.get(str(reason), str(reason)), "finding")] if _is_odd(entry) else []
    return told + ([(note, "aborted")] if note else [])


def _when(entries: Sequence[Row], begin: int, count: int) -> str:
    day = datetime.fromtimestamp(whole(entries[begin], "batch_timestamp_ms") / 1000, tz=UTC).strftime("%Y-%m-%d")
    more = "; earlier and later steps are in the table coordinator_history" if len(entries) > count else ""
    return f"{day}, times in UTC: when each state was written, and how long it lasted{more}"


def open_transactions_chart(begins: Times, ends: Times) -> str:
    """Open transactions over the time that the dumps cover, and the age of the oldest, as SVG.

    Args:
        begins: when each transaction span began, ms.
        ends: when it ended, ms; the audit's now where it is still open.
    """
    start, end = int(begins.min()), int(max(ends.max(), begins.max() + 1))
    instants = np.linspace(start, end, INSTANTS).astype(np.int64)
    # What is open at the end is open there, not ended.
    counts, ages = _open_at(instants, begins, np.where(ends == end, ends + 1, ends))
    size, unit = _unit(end - start)
    with chart_style():
        figure, axes = new_axes(height=1.6, left=0.8, right=0.6)
        time, age_unit = (instants - start) / size, _unit(int(ages.max()))
        axes.fill_between(time, ages / age_unit[0], step="post", color=colour("open"), alpha=0.22, lw=0)
        axes.step(time, ages / age_unit[0], where="post", color=colour("open"), lw=1.4)
        axes.set_ylabel(f"oldest open ({age_unit[1]})")
        axes.set_xlabel(f"{unit} after {datetime.fromtimestamp(start / 1000, tz=UTC).strftime('%Y-%m-%d')} {clock(start)} UTC")
        right = axes.twinx()
        right.step(time, counts, where="post", color=colour("lso"), lw=1.2, ls=(0, (3, 1.5)))
        right.set_ylabel("open (dashed)", color=colour("lso"))
        right.yaxis.get_major_locator().set_params(integer=True, nbins=4)
        for side in (axes, right):
            side.set_ylim(bottom=0)
            side.set_xlim(0, (end - start) / size)
        about = f"Up to {int(counts.max())} transactions are open at once; the oldest reaches an age of {duration(int(ages.max()))}."
        return to_svg(figure, title="Open transactions over time", description=about)


def _open_at(instants: Times, begins: Times, ends: Times) -> tuple[Times, Times]:
    """How many transactions are open at each instant, and the age of the oldest of them, ms."""
    begun = np.sort(begins)
    counts = np.searchsorted(begun, instants, side="right") - np.searchsorted(np.sort(ends), instants, side="right")
    order = np.argsort(begins, kind="stable")
    # The oldest one that is open at an instant is the first, by begin, of which the end lies behind the instant.
    oldest = np.searchsorted(np.maximum.accumulate(ends[order]), instants, side="right")
    ages = instants - begun[np.minimum(oldest, len(begun) - 1)]
    return counts, np.where(counts > 0, np.maximum(ages, 0), 0)


def _unit(ms: int) -> tuple[int, str]:
    units: Mapping[str, int] = {"days": 86_400_000, "h": 3_600_000, "min": 60_000, "s": 1_000}
    # From three of a unit on: `90 s` is easier to read than `1.5 min`.
    return next(((size, unit) for unit, size in units.items() if ms >= 3 * size), (1, "ms"))
