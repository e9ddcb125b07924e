"""report.html: one self-contained page. Values are escaped by the template engine; only our own SVG is inserted as it is."""

import hashlib
import json
import re
from dataclasses import dataclass
from functools import cache

import jinja2
from markupsafe import Markup, escape

from eo_audit.report.content import Content, Incident, Shown
from eo_audit.report.wording import Row, moment, offsets, place

FIRST_INCIDENTS = 60  # laid out at once; the page adds more when asked, so that 10,000 findings still open in a second
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_COMMAND = re.compile(r"(`[^`]+`)")


@dataclass(frozen=True)
class Linked:
    """A finding with the anchors of its partition's and its transactional id's pictures, where there are any."""

    row: Row
    place: str
    evidence: tuple[object, ...]
    more_evidence: int
    place_link: str | None
    id_link: str | None


def anchor(*names: object) -> str:
    """A page anchor for anything that has a name, whatever characters the name holds."""
    return "at-" + hashlib.sha256(json.dumps(names, default=str).encode()).hexdigest()[:12]


def visible(text: object) -> str:
    """Text with control and direction-changing characters spelled out, so that none of them acts on the reader's screen."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found.group()):04x}", str(text))


def _remedy(text: object) -> Markup:
    """A remedy with each command (between back quotes) in a box of its own that can be copied."""
    parts = []
    for part in _COMMAND.split(visible(text)):
        if part.startswith("`"):
            command = escape(part.strip("`"))
            parts.append(
                Markup('<div class="command"><pre tabindex="0">{}</pre><button type="button" class="copy">Copy</button></div>').format(
                    command
                )
            )
        else:
            parts.append(escape(part))
    return Markup("").join(parts)


def _number(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else "–"


@cache
def _templates() -> jinja2.Environment:
    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("eo_audit.report"), autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined
    )
    templates.filters.update(moment=moment, number=_number, offsets=offsets, place=place, visible=visible, remedy=_remedy)
    return templates


def render(content: Content) -> str:
    """The page as HTML text."""
    templates = _templates()
    pieces = [Markup(_render_incident(incident, content)) for incident in content.incidents]
    sources = {name: Markup(jinja2.PackageLoader("eo_audit.report").get_source(templates, f"page.{name}")[0]) for name in ("css", "js")}
    return templates.get_template("page.html.j2").render(
        content=content,
        first=pieces[:FIRST_INCIDENTS],
        later=len(pieces) > FIRST_INCIDENTS,
        data=Markup(_filter_data(content.incidents, pieces)),
        style=sources["css"],
        script=sources["js"],
    )


def _render_incident(incident: Incident, content: Content) -> str:
    template = _templates().get_template("incident.html.j2")
    effects = [_linked(effect, content) for effect in incident.effects]
    return template.render(incident=incident, cause=_linked(incident.cause, content), effects=effects)


def _linked(shown: Shown, content: Content) -> Linked:
    row = shown.row
    partition = anchor(row["cluster"], row["topic"], row["partition"])
    transactional_id = anchor(row["cluster"], row["transactional_id"])
    return Linked(
        row,
        shown.place,
        shown.evidence,
        shown.more_evidence,
        partition if partition in content.partition_charts else None,
        transactional_id if transactional_id in content.id_charts else None,
    )


def _filter_data(incidents: tuple[Incident, ...], pieces: list[Markup]) -> str:
    """What the page's script filters by, as JSON that cannot end its own script element."""
    rows = []
    for index, (incident, piece) in enumerate(zip(incidents, pieces, strict=True)):
        severities = sorted({str(shown.row["severity"]) for shown in (incident.cause, *incident.effects)})
        rows.append([incident.topics, severities, incident.rules, incident.search, None if index < FIRST_INCIDENTS else piece])
    return json.dumps(rows, ensure_ascii=False).replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
