"""All places where one record's text may end, among those where it could: the reading that believes none of them.

`records` finds the end that exact lengths give. Here printing may have changed the text, and header keys may go on for as long as
there is room for them.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from eo_audit.dump.lines.dialects import RecordLine
from eo_audit.dump.lines.scan import Ints
from eo_audit.dump.log.marks import Marks
from eo_audit.dump.log.records import LINES_LIMIT, Ending, Form, Proof, Rules, Span, forms, shows
from eo_audit.dump.log.text import Window

_KEY, _PAYLOAD = len(" key: "), len(" payload: ")
# Ways are counted up to `_MANY`: more are as doubtful, and the true number may not fit into 64 bits. Below `_FEW` combinations a dozen
# calls of numpy cost more than the loop.
_MANY, _FEW = 1 << 20, 64
_NO_PLACES = np.zeros(0, dtype=np.int64)

Path = tuple[int, list[Span], bool]
"""An end (index), the spans of key and payload before it, and whether there is another way to it."""


class Stage(NamedTuple):
    """Texts that begin at `starts` and stand for `size` bytes: where they may end, as runs [low, high) of `ends`, and in how many ways."""

    starts: Ints
    size: int
    ends: Ints
    low: Ints
    high: Ints
    ways: Ints


def ends_of(window: Window, marks: Marks, line: RecordLine, rules: Rules, stops: Ints) -> Iterator[Ending]:
    """The readings of a record whose text begins behind its line's numbers, one for each place where it may end.

    A reading has spans of key and value only where no other cut of the same text is possible.

    Args:
        window: the text.
        marks: of the text, covered up to the last stop.
        line: the record line.
        rules: of its batch; `header_limit` bounds the header keys.
        stops: where the text may end: offsets behind a line end, sorted.
    """
    if max(line.key_size, 0) + max(line.value_size, 0) > rules.size_limit:
        return
    if rules.by_lines:
        # A decoder class of the user's own printed the text: sizes are those of the binary record, so only lines delimit it.
        yield from (Ending(stop, Proof.LINE) for stop in stops.tolist() if stop <= line.end + LINES_LIMIT and window.ends_line(stop))
        return
    texts = np.array([_text_end(window, stop) for stop in stops.tolist()], dtype=np.int64)
    for form in forms(line, rules):
        if any(form):
            yield from _printed(window, marks, line, rules, form, texts=texts, stops=stops)
        else:
            yield from _bare(window, line, rules, texts=texts, stops=stops)


def _text_end(window: Window, stop: int) -> int:
    """Where the text of a line ends that ends at `stop`; the last line of a file may lack its line end."""
    if window.text[stop - 1 : stop] != b"\n":
        return stop
    return stop - 2 if window.crlf and window.text[stop - 2 : stop - 1] == b"\r" else stop - 1


def _bare(window: Window, line: RecordLine, rules: Rules, *, texts: Ints, stops: Ints) -> Iterator[Ending]:
    shown = shows(line, rules, (False, False))
    for text, stop in zip(texts.tolist(), stops.tolist(), strict=True):
        ended = shown is None or window.ends_line(stop)
        if line.sequence is None:
            if text == line.end and ended:
                yield Ending(stop, Proof.EXACT, printed=shown)
        elif line.end < text <= line.end + rules.header_limit + 1 and window.text[text - 1 : text] == b"]" and ended:
            yield Ending(stop, Proof.EXACT, text - line.end - 1, printed=shown)


def _header_ends(window: Window, marks: Marks, line: RecordLine, rules: Rules, form: Form) -> Ints:
    if line.sequence is None:
        there = window.text.startswith(b" key: " if form[0] else b" payload: ", line.end)
        return np.array([line.end] if there else [], dtype=np.int64)
    places = marks.places.keys if form[0] else marks.places.payloads
    begin, end = np.searchsorted(places, (line.end + 1, line.end + 1 + rules.header_limit + 1))
    return places[begin:end]


def _stage(marks: Marks, starts: Ints, size: int, ends: Ints, ways: Ints) -> Stage:
    # Both bounds grow with the text, so the ends that a start can reach are one run: two binary searches instead of a comparison with each.
    low = np.searchsorted(marks.longest(ends), marks.longest(starts) + size, side="left")
    high = np.searchsorted(marks.shortest(ends), marks.shortest(starts) + size, side="right")
    return Stage(starts, size, ends, low, np.maximum(low, high), ways)


def _arrivals(stage: Stage) -> Ints:
    """In how many ways each end is reached."""
    # Runs summed by their edges: linear in starts and ends, where each start adding to each of its ends would be quadratic.
    change = np.zeros(len(stage.ends) + 1, dtype=np.int64)
    np.add.at(change, stage.low, stage.ways)
    np.subtract.at(change, stage.high, stage.ways)
    return np.minimum(np.cumsum(change)[:-1], _MANY)


def _printed(window: Window, marks: Marks, line: RecordLine, rules: Rules, form: Form, *, texts: Ints, stops: Ints) -> Iterator[Ending]:
    """Readings with a key, a payload or both."""
    at, parts = _header_ends(window, marks, line, rules, form), _NO_PLACES
    if not len(at) or not len(texts):
        return
    if all(form):
        begin, end = np.searchsorted(marks.places.parts, (int(at[0]), int(texts[-1]) + 1))
        parts = marks.places.parts[begin:end]
    few = max(len(at), len(texts)) * max(len(parts), 1) <= _FEW
    for index, spans, several in (_few if few else _many)(marks, line, form, at, parts, texts):
        found = _ending(window, spans, line, form, stop=int(stops[index]), several=several)
        if found.proof is Proof.LOSSY and not window.ends_line(found.end):
            window.overshoot = True  # the tool ends every line: this one was cut, and no length says how much is missing
            continue
        # Where `?` stands for what ASCII lacks, nothing else is printed as it is.
        if not found.ascii_lossy or all(window.text[begin:end].isascii() for begin, end in spans):
            yield found


def _few(marks: Marks, line: RecordLine, form: Form, at: Ints, parts: Ints, texts: Ints) -> Iterator[Path]:
    """What `_many` finds, one by one: few places need no columns."""
    places = np.concatenate((at, parts, texts))
    shortest: dict[int, int] = dict(zip(places.tolist(), marks.shortest(places).tolist(), strict=True))
    longest: dict[int, int] = dict(zip(places.tolist(), marks.longest(places).tolist(), strict=True))

    def reaches(start: int, separator: int, size: int, end: int) -> bool:
        return shortest[end] - shortest[start] <= separator + size <= longest[end] - longest[start]

    sizes = [
        (separator, size) for separator, size, there in zip((_KEY, _PAYLOAD), (line.key_size, line.value_size), form, strict=True) if there
    ]
    heads, ends = at.tolist(), texts.tolist()
    if not all(form):
        for index, end in enumerate(ends):
            found = [head for head in heads if reaches(head, *sizes[0], end)]
            if found:
                yield index, [(found[0] + sizes[0][0], end)], len(found) > 1
        return
    # First where keys end, then where payloads that begin there do: not each pair with each end.
    met = {part: found for part in parts.tolist() if (found := [head for head in heads if reaches(head, *sizes[0], part)])}
    for index, end in enumerate(ends):
        through = [part for part in met if reaches(part, *sizes[1], end)]
        if through:
            first = through[0]
            several = len(through) > 1 or len(met[first]) > 1
            yield index, [(met[first][0] + _KEY, first), (first + _PAYLOAD, end)], several


def _many(marks: Marks, line: RecordLine, form: Form, at: Ints, parts: Ints, texts: Ints) -> Iterator[Path]:
    """The places of `texts` that are reached, each with one way there: the first header end of several."""
    with_key, with_value = form
    stages: list[Stage] = []
    # Numbers of ways, not the ways: forged separators can make more of them than memory holds.
    ways = np.ones(len(at), dtype=np.int64)
    if with_key:
        stages.append(_stage(marks, at + _KEY, line.key_size, parts if with_value else texts, ways))
        ways = _arrivals(stages[-1])
    if with_value:
        if with_key:
            reached = ways > 0
            at, ways = stages[-1].ends[reached], ways[reached]
        stages.append(_stage(marks, at + _PAYLOAD, line.value_size, texts, ways))
        ways = _arrivals(stages[-1])
    for index in np.flatnonzero(ways > 0).tolist():
        yield index, _traced(stages, form, index), bool(ways[index] > 1)


def _traced(stages: list[Stage], form: Form, index: int) -> list[Span]:
    spans: list[Span] = []
    # Backwards: from the end to a start that reaches it, and from there on. One way is enough; `several` says that there are others.
    end = int(stages[-1].ends[index])
    for number in range(len(stages) - 1, -1, -1):
        stage = stages[number]
        place = int(np.searchsorted(stage.ends, end))
        chosen = int(np.flatnonzero((stage.low <= place) & (place < stage.high))[0])
        spans.append((int(stage.starts[chosen]), end))
        end = int(stage.starts[chosen]) - (_PAYLOAD if number or not form[0] else _KEY)
    return spans[::-1]


def _ending(window: Window, spans: list[Span], line: RecordLine, form: Form, *, stop: int, several: bool) -> Ending:
    """The reading with these spans of key and payload."""
    headers = spans[0][0] - (_KEY if form[0] else _PAYLOAD) - line.end - 1 if line.sequence is not None else 0
    sizes = [size for size, there in ((line.key_size, form[0]), (line.value_size, form[1])) if there]
    # A span is kept for its hash only where its text is the record's bytes and nothing else: a hash of changed text would match nothing, or
    # the wrong thing.
    same = [_unchanged(window, span, size) and not several for span, size in zip(spans, sizes, strict=True)]
    kept = iter(span if exact else None for span, exact in zip(spans, same, strict=True))
    key, value = (next(kept) if there else None for there in form)
    shorter = any(span[1] - span[0] < size for span, size in zip(spans, sizes, strict=True))
    proof = Proof.EXACT if all(same) else Proof.LOSSY
    return Ending(stop, proof, headers, key, value, printed=True, ascii_lossy=shorter)


def _unchanged(window: Window, span: Span, size: int) -> bool:
    """Is the text of a span the bytes it stands for?"""
    return span[1] - span[0] == size and not (window.crlf and window.text.find(b"\r\n", span[0], span[1] + 1) >= 0)
