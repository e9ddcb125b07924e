"""One matplotlib figure to one inline SVG: same input, same bytes; text stays text; colours follow the page."""

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
    "axes.labelcolor": colour("ink"),
    "xtick.color": colour("ink"),
    "ytick.color": colour("ink"),
    "text.color": colour("ink"),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
}
INCHES_WIDE = 9.6


@contextmanager
def chart_style() -> Iterator[None]:
    """Every chart is drawn and saved inside this style."""
    with matplotlib.rc_context(_STYLE):
        yield


def new_axes(*, height: float) -> tuple[Figure, Axes]:
    """A transparent figure of the page's width and `height` inches, with one set of axes."""
    figure = Figure(figsize=(INCHES_WIDE, height), layout="constrained")
    figure.patch.set_alpha(0.0)
    axes = figure.add_subplot()
    axes.patch.set_alpha(0.0)
    return figure, axes


def to_svg(figure: Figure, *, title: str, description: str) -> str:
    """The figure as an `<svg>` element that names itself to a screen reader and scales with the page."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\b(width|height)="[0-9.]+pt"', "", svg, count=2)
    opening, rest = svg.split(">", 1)
    label, about = html.escape(title, quote=True), html.escape(description)
    named = f'{opening} role="img" aria-label="{label}"><title>{label}</title><desc>{about}</desc>'
    return themed(named + rest)
