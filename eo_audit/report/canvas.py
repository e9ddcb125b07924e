"""One matplotlib figure to one inline SVG: same input, same bytes; text stays text; colours follow the page."""

import hashlib
import html
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from eo_audit.report.palette import colour, themed

matplotlib.use("svg")

_STYLE = {
    "svg.fonttype": "none",  # text, not outlines: searchable, small, read by screen readers
    "svg.hashsalt": "eo-audit",  # ids inside the SVG are then the same on every run
    "font.family": "sans-serif",
    "font.size": 9.0,
    "axes.edgecolor": colour("faint"),
    "axes.labelcolor": colour("soft-ink"),
    "xtick.color": colour("faint"),
    "xtick.labelcolor": colour("soft-ink"),
    "ytick.color": colour("faint"),
    "ytick.labelcolor": colour("ink"),
    "text.color": colour("ink"),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "path.simplify": True,
}
INCHES_WIDE = 9.6
INCHES_PER_LETTER = 0.075
BELOW, ABOVE, RIGHT = 0.52, 0.06, 0.15  # inches: room for the axis and its label; a little air
_GROUP_ID = re.compile(r'(<g) id="[^"]*"')
_REFERRED = re.compile(r'( id="|href="#|url\(#)([^")]+)')


@contextmanager
def chart_style() -> Iterator[None]:
    """Every chart is drawn and saved inside this style."""
    with matplotlib.rc_context(_STYLE):
        yield


def new_axes(*, height: float, left: float = 0.6, right: float = RIGHT, below: float = BELOW) -> tuple[Figure, Axes]:
    """A transparent figure of the page's width with one set of axes.

    Margins are given and not found: laying a chart out by its texts takes as long as drawing it.

    Args:
        height: of the axes, inches.
        left: room for the labels of the vertical axis, inches.
        right: the same on the other side.
        below: room for the horizontal axis, inches.
    """
    figure = Figure(figsize=(INCHES_WIDE, height + below + ABOVE))
    figure.patch.set_alpha(0.0)
    whole = height + below + ABOVE
    axes = figure.add_axes((left / INCHES_WIDE, below / whole, (INCHES_WIDE - left - right) / INCHES_WIDE, height / whole))
    axes.patch.set_alpha(0.0)
    return figure, axes


def to_svg(figure: Figure, *, title: str, description: str) -> str:
    """The figure as an `<svg>` element that names itself to a screen reader and scales with the page."""
    buffer = io.StringIO()
    # Without date and version of matplotlib: the same rows give the same page.
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    # The page gives the width; the viewBox keeps the proportions.
    svg = re.sub(r'\b(width|height)="[0-9.]+pt"', "", svg, count=2)
    # A page may have an id only once: those of groups go, those that are referred to get the chart's own name.
    own = hashlib.sha256((title + svg).encode()).hexdigest()[:8]
    svg = _REFERRED.sub(lambda found: f"{found.group(1)}{own}-{found.group(2)}", _GROUP_ID.sub(r"\1", svg))
    opening, rest = svg.split(">", 1)
    label, about = html.escape(title, quote=True), html.escape(description)
    return themed(f'{opening} role="img" aria-label="{label}"><title>{label}</title><desc>{about}</desc>{rest}')
