"""Colours by role, as one stand-in colour each that the page's style sheet replaces.

matplotlib writes fixed colours; the page must follow the reader's light or dark setting. So charts are drawn with the stand-ins
below and `themed` turns each into a CSS variable of the page (`report/page.html.j2` defines both sets).
"""

import re

STAND_INS = {
    "ink": "#010101",
    "faint": "#020202",
    "paper": "#030303",
    "committed": "#040404",
    "aborted": "#050505",
    "open": "#060606",
    "plain": "#070707",
    "unknown": "#080808",
    "finding": "#090909",
    "lso": "#0a0a0a",
    "hw": "#0b0b0b",
    "on_fill": "#0c0c0c",
}
_NAMES = {colour: name for name, colour in STAND_INS.items()}
_COLOUR = re.compile("|".join(_NAMES))


def colour(role: str) -> str:
    """The stand-in colour of a role (`unknown` for a role that has none)."""
    return STAND_INS.get(role, STAND_INS["unknown"])


def themed(svg: str) -> str:
    """The same SVG with each stand-in replaced by its CSS variable."""
    return _COLOUR.sub(lambda found: f"var(--{_NAMES[found.group()].replace('_', '-')})", svg)
