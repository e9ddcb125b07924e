"""report.html: one self-contained page. Values are escaped by the template engine; only our own SVG is inserted as it is."""

import base64
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import jinja2
from markupsafe import Markup, escape

from eo_audit.audit.sentences import acceptances, writer
from eo_audit.report.content import Content, Evidence, Incident, Shown
from eo_audit.rules.commands import address_for
from eo_audit.words import Row, count, digits, moment, offset_range, place, visible, visible_lines

FIRST_INCIDENTS = 60  # laid out at once; the page adds more when asked, so that 10,000 findings still open in a second
# A producer that a thousand incidents name would else be followed by a page of links.
MOST_LINKS = 12
MOST_PARTITIONS = 500  # rows of the table; all are in verdict.json
_COMMAND = re.compile(r"`([^`]+)`")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC")
_BOX = Markup('<span class="command"><code>{}</code><button type="button" class="copy">Copy</button></span>')
_WORD = Markup("<code>{}</code>")


@dataclass(frozen=True)
class Link:
    """A link within the page."""

    to: str
    text: str


@dataclass(frozen=True)
class Linked:
    """A finding with the anchors of its partition and of its transactional id, where the page has them."""

    row: Row
    place: str
    evidence: tuple[Evidence, ...]
    more_evidence: int
    brokers: str
    accepted: str | None
    muted: bool
    place_link: str | None
    id_link: str | None


@dataclass(frozen=True)
class Anchors:
    """What the page has anchors for.

    Attributes:
        known: the anchors of partitions and transactional ids.
        findings: anchor -> links to the incidents about it, the gravest first.
        others: anchor of a partition -> links to the transactional ids of those incidents, and the other way round.
    """

    known: frozenset[str]
    findings: Mapping[str, tuple[Link, ...]]
    others: Mapping[str, tuple[Link, ...]]


def anchor(*names: object) -> str:
    """A page anchor for anything that has a name, whatever characters the name holds."""
    # A transactional id may hold anything, blanks and quotes as well: its hash is a good anchor.
    return "at-" + hashlib.sha256(json.dumps(names, default=str).encode()).hexdigest()[:12]


def partition_anchor(row: Row) -> str:
    """The anchor of the partition that a row of verdict.json or a finding speaks of."""
    return anchor(row["cluster"], row["topic"], row["partition"])


def incident_anchor(incident: Incident) -> str:
    """The anchor of an incident."""
    return f"incident-{str(incident.cause.row['incident_id'])[:16]}"


def render(content: Content, names: Mapping[str, str] | None = None) -> str:
    """The page as HTML text.

    Args:
        content: with its pictures.
        names: rule code -> what the rule is called, for the table of rules.
    """
    templates = _templates()
    anchors = _anchors(content)
    many = content.many_clusters
    pieces = [_render_incident(incident, anchors, many=many) for incident in content.incidents]
    style, script = (Markup(templates.get_template(f"page.{name}").render()) for name in ("css", "js"))
    return templates.get_template("page.html.j2").render(
        content=content,
        names=names or {},
        anchors=anchors,
        first=pieces[:FIRST_INCIDENTS],
        address=address_for(row.row["remedy"] for incident in content.incidents for row in (incident.cause, *incident.effects)),
        partitions=sorted(content.partitions, key=lambda row: _partition_order(row, anchors))[:MOST_PARTITIONS],
        data=Markup(_filter_data(content.incidents, pieces)),
        style=style,
        script=script,
        # The page's content policy allows this one script by its hash: nothing that a dump smuggled in runs, even where escaping failed.
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


@cache
def _templates() -> jinja2.Environment:
    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("eo_audit.report"),
        autoescape=lambda name: name is None or name.endswith(".html.j2"),
        trim_blocks=True,
        lstrip_blocks=True,
        # A name that is missing raises: an empty place in a report would read like a fact.
        undefined=jinja2.StrictUndefined,
        auto_reload=False,
    )
    templates.filters.update(moment=moment, number=digits, offsets=offset_range, place=place, visible=visible, remedy=_remedy)
    templates.filters.update(
        partition_anchor=partition_anchor,
        count=count,
        visible_lines=visible_lines,
        acceptances=acceptances,
        headline=_headline,
        writer=writer,
    )
    return templates


def _remedy(text: object) -> Markup:
    """Prose with each command (between back quotes) in a box of its own that can be copied; a single word stays in the line."""
    pieces = _COMMAND.split(visible(text))
    parts = []
    for number, piece in enumerate(pieces):
        if number % 2:
            parts.append((_BOX if " " in piece else _WORD).format(piece))
        else:
            # The box ends the line, so a full stop behind it would stand alone on the next one.
            behind_box = number > 0 and " " in pieces[number - 1]
            parts.append(escape(piece.lstrip(".;,: ") if behind_box else piece))
    return Markup("").join(parts)


def _headline(text: object) -> Markup:
    """A sentence whose dates stay in one piece."""
    return Markup(_MOMENT.sub(r'<span class="whole">\g<0></span>', str(escape(visible(text)))))


def _partition_order(row: Row, anchors: Anchors) -> tuple[bool, bool, str, str, int]:
    """Partitions that findings are about first, then those that are held back."""
    quiet, held = partition_anchor(row) not in anchors.findings, bool(row.get("held_back_records"))
    number = row.get("partition")
    return quiet, not held, str(row["cluster"]), str(row["topic"]), number if isinstance(number, int) else -1


def _anchors(content: Content) -> Anchors:
    # Dictionaries for sets that keep their order.
    findings: dict[str, dict[Link, None]] = defaultdict(dict)
    others: dict[str, dict[Link, None]] = defaultdict(dict)
    known = {*content.partition_charts, *content.id_charts, *map(partition_anchor, content.partitions[:MOST_PARTITIONS])}
    for incident in content.incidents:
        places, ids = {}, {}
        for shown in (incident.cause, *incident.effects):
            row = shown.row
            if row["partition"] is not None:
                places[partition_anchor(row)] = shown.place
            if row["transactional_id"] is not None:
                ids[anchor(row["cluster"], row["transactional_id"])] = visible(row["transactional_id"])
        told = Link(incident_anchor(incident), _in_short(incident))
        for name in (*places, *ids):
            findings[name][told] = None
        for name in places:
            others[name].update({Link(to, text): None for to, text in ids.items() if to in known})
        for name in ids:
            others[name].update({Link(to, text): None for to, text in places.items() if to in known})
    return Anchors(
        frozenset(known),
        {name: tuple(links)[:MOST_LINKS] for name, links in findings.items()},
        {name: tuple(links)[:MOST_LINKS] for name, links in others.items()},
    )


def _in_short(incident: Incident) -> str:
    """`T01 hanging-txn, orders-1, offsets 3-4 (with L01, T07)`."""
    row, range_ = incident.cause.row, offset_range(incident.cause.row)
    where = f"{visible(incident.cause.place)}, offset{'s' if '-' in range_ else ''} {range_}" if range_ else visible(incident.cause.place)
    others = [rule for rule in incident.rules if rule != row["rule"]]
    return f"{row['rule']} {row['slug']}, {where}" + (f" (with {', '.join(others)})" if others else "")


def _render_incident(incident: Incident, anchors: Anchors, *, many: bool) -> Markup:
    effects = [_linked(effect, anchors) for effect in incident.effects]
    values = {"incident": incident, "anchor": incident_anchor(incident), "cause": _linked(incident.cause, anchors), "effects": effects}
    return Markup(_templates().get_template("incident.html.j2").render(**values, many_clusters=many).strip())


def _linked(shown: Shown, anchors: Anchors) -> Linked:
    row = shown.row
    to_place, to_id = partition_anchor(row), anchor(row["cluster"], row["transactional_id"])
    return Linked(
        row,
        shown.place,
        shown.evidence,
        shown.more_evidence,
        shown.brokers,
        shown.accepted,
        shown.muted,
        place_link=to_place if to_place in anchors.known else None,
        id_link=to_id if to_id in anchors.known else None,
    )


def _filter_data(incidents: Sequence[Incident], pieces: Sequence[str]) -> str:
    """What the page's script filters by, as JSON that cannot end its own script element."""
    rows = []
    for index, (incident, piece) in enumerate(zip(incidents, pieces, strict=True)):
        severities = sorted({str(shown.row["severity"]) for shown in (incident.cause, *incident.effects)})
        words = visible(incident.search)
        # What is not laid out at once travels as text: the browser parses it when somebody asks for more.
        later = None if index < FIRST_INCIDENTS else piece
        rows.append([incident_anchor(incident), incident.topics, severities, incident.rules, words, later])
    text = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
    # `</script>` inside a JSON string would end the element, and the two separators are line ends to JavaScript.
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
