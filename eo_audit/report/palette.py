"""Colours by role, as one stand-in colour each that becomes a variable of the page's style sheet.

matplotlib writes fixed colours; the page must follow the reader's light or dark setting. So charts are drawn with the stand-ins
below and `themed` turns each into a CSS variable (`templates/page.css` sets them for light and dark).
"""

import re

# Role -> the colour where no page sets another: in a notebook, light or dark.
_ALONE = {
    **{"ink": "#808890", "soft-ink": "#808890", "faint": "#9aa3ad", "paper": "#ffffff", "on-fill": "#ffffff"},
    **{"committed": "#2f7d5b", "aborted": "#b4552d", "open": "#b98a00", "plain": "#6b7f95", "unknown": "#8d8799"},
    **{"finding": "#d1242f", "lso": "#8f55c8", "hw": "#7a858e"},
}
OUTCOMES = ("committed", "aborted", "open", "plain", "unknown")
# Nearly black greys that differ by one step: no chart draws with them by itself.
_STAND_INS = {role: f"#{number:02x}{number:02x}{number:02x}" for number, role in enumerate(_ALONE, start=1)}
_ROLES = {colour: role for role, colour in _STAND_INS.items()}
_COLOUR = re.compile("|".join(_ROLES))
_VARIABLE = re.compile(r"var\(--([a-z-]+)\)")


def colour(role: str) -> str:
    """The stand-in colour of a role (`unknown` for a role that has none)."""
    return _STAND_INS.get(role, _STAND_INS["unknown"])


def themed(svg: str) -> str:
    """The same SVG with each stand-in replaced by its CSS variable."""
    return _COLOUR.sub(lambda found: f"var(--{_ROLES[found.group()]})", svg)


def standing_alone(svg: str) -> str:
    """The same SVG for a place whose style sheet does not know the variables, such as a notebook."""
    return _VARIABLE.sub(lambda found: f"var(--{found.group(1)}, {_ALONE[found.group(1)]})", svg)
