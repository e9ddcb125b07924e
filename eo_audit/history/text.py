"""Runs the SQL text of a history: `<history>.sql` beside this module, or the chapters of a long one in `<history>/`, in their order.

Each text is a chain of named steps, from top to bottom, ended by the columns of its table; what it reads stands in braces (`{rows}`).
`step=` shows any of its steps instead. Sentences that several texts share are functions (`functions.sql`).

Spark is given step by step, each as a view that the later ones name. As one statement with its common table expressions a text means the
same, and costs twice as much to plan: each pass of the analyzer resolves one more step and walks all of them, and `InlineCTE` walks the
rest once for each step (a whole audit of 8 KB: 46 CPU seconds instead of 24).
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from threading import Lock
from weakref import WeakKeyDictionary, finalize

from pyspark.sql import Column, DataFrame, SparkSession

from eo_audit.history import views
from eo_audit.store import frames
from eo_audit.store.schemas import schema

# A tuple of words stands behind `IN`.
Input = DataFrame | Column | int | float | str | tuple[str, ...] | None

FOLDER = Path(__file__).parent
# A step begins with its name at the start of a line, the end of a text with the first SELECT there.
_STEP = re.compile(r"^(\w+) AS \($", re.MULTILINE)
_END = re.compile(r"^SELECT\b", re.MULTILINE)
# A table that is read, and the name it has in the statement: words of SQL have capital letters, all names small ones.
_READ = re.compile(r"(?<!DISTINCT )\b(FROM|JOIN)(\s+)(?:\{(\w+)\}|(\w+)\b)(\s+(?:AS\s+)?[a-z_]\w*\b)?")
_FUNCTION = re.compile(r"^CREATE OR REPLACE TEMPORARY FUNCTION (\w+)\(", re.MULTILINE)
# Steps that only one other reads stand within it, so many deep: a view costs two small commands, a deeper statement more passes of the
# analyzer (a whole audit of 8 KB with 1, 2, 3 and 5: 43, 39, 36, 39 CPU seconds on a loaded machine; the column API before 33).
_DEPTH = 3
_NUMBERS = count()  # of runs: each has views of its own
_TAUGHT: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()  # the functions that sessions know
_LEARNING = Lock()
_looked_for: list[tuple[str, str]] = []
_given: WeakKeyDictionary[DataFrame, str] = WeakKeyDictionary()
_gone: list[str] = []  # views of frames that nobody holds: a collector of garbage may not talk to Java


class Seen(Exception):
    """The step that somebody looks for: raised where its history would be made."""

    def __init__(self, rows: DataFrame) -> None:
        """The rows of the step."""
        self.rows = rows


def run(history: str, *, step: str | None = None, **inputs: Input) -> DataFrame:
    """The rows of a history, or of one of its steps.

    Args:
        history: name of the text.
        step: one of `steps(history)`; the whole text without it.
        inputs: the frames that the text names, and the columns, numbers and words that it is told.

    Raises:
        KeyError: the history has no such step.
    """
    session = next(frame for frame in inputs.values() if isinstance(frame, DataFrame)).sparkSession
    _teach(session, _named(_text(history)))
    for wanted in _looked_for:
        if wanted[0] == history:
            raise Seen(_Run(session, inputs).rows(*wanted))
    return _Run(session, inputs).rows(history, step)


class _Run:
    """One run of a text: its steps as views."""

    def __init__(self, session: SparkSession, inputs: Mapping[str, Input]) -> None:
        self._session = session
        self._prefix = f"eo_audit_{next(_NUMBERS)}_"
        self._told = {name: _input(value) for name, value in inputs.items() if not isinstance(value, DataFrame)}
        self._given = {f"{{{name}}}": _given_view(session, value) for name, value in inputs.items() if isinstance(value, DataFrame)}
        self._views: dict[str, str] = {}

    def rows(self, history: str, step: str | None) -> DataFrame:
        """Those of a step, or of the whole text."""
        try:
            for statement in statements(history):
                if statement.step == step:
                    return self._sql(statement.text)
                if statement.step is not None and not statement.is_within:
                    self._view(statement.step, self._sql(statement.text))
        finally:
            for view in self._views.values():
                views.drop(self._session, view)
        raise KeyError(f"{history} has no step {step}; it has {', '.join(steps(history))}")

    def _sql(self, text: str) -> DataFrame:
        text = _READ.sub(self._read, text)
        return self._session.sql(text, None, **self._told) if self._told else self._session.sql(text.format())

    def _view(self, name: str, rows: DataFrame) -> None:
        self._views[name] = self._prefix + name
        views.make(self._session, self._views[name], rows)

    def _read(self, found: re.Match[str]) -> str:
        word, blank, given, step, alias = found.groups()
        view = self._given.get(f"{{{given}}}") if given else self._views.get(step)
        return found[0] if view is None else f"{word}{blank}{view}{alias or f' AS {given or step}'}"


def _given_view(session: SparkSession, rows: DataFrame) -> str:
    """The view of a frame that texts are given: made once, whoever reads it (184 views of a small audit become 140), and dropped when
    nobody holds the frame any more."""
    with _LEARNING:
        while _gone:
            views.drop(session, _gone.pop())
        view = _given.get(rows)
        if view is None:
            view = _given[rows] = f"eo_audit_given_{next(_NUMBERS)}"
            views.make(session, view, rows)
            finalize(rows, _gone.append, view)
    return view


@contextmanager
def looking_for(history: str, step: str) -> Iterator[None]:
    """Meanwhile `run` raises `Seen` with the rows of a step, where the history would be made; whatever thread makes it.

    Raises:
        KeyError: there is no such history, or it has no such step.
    """
    if history not in histories():
        raise KeyError(f"there is no history {history}")
    if step not in steps(history):
        raise KeyError(f"{history} has no step {step}; it has {', '.join(steps(history))}")
    _looked_for.append((history, step))
    try:
        yield
    finally:
        _looked_for.clear()


def histories() -> tuple[str, ...]:
    """All histories that are texts, in order of their names."""
    whole = {path.stem for path in FOLDER.glob("*.sql")} - {"functions"}
    return tuple(sorted(whole | {path.parent.name for path in FOLDER.glob("*/*.sql")}))


def no_rows(session: SparkSession, table: str) -> DataFrame:
    """A table of which there are no rows, for an input that nobody has."""
    return frames.no_rows(session, schema(table).spark())


def steps(history: str) -> tuple[str, ...]:
    """The named steps of a history, from top to bottom."""
    return tuple(_STEP.findall(_text(history)))


class _Raw:
    """SQL that the text takes as it is: Spark puts words in quotes, and all else in as `str` shows it."""

    def __init__(self, sql: str) -> None:
        self._sql = sql

    def __str__(self) -> str:
        return self._sql


def _input(value: Input) -> object:
    if value is None:
        return _Raw("NULL")
    return _Raw("(" + ", ".join(f"'{word}'" for word in value) + ")") if isinstance(value, tuple) else value


@cache
def _text(name: str) -> str:
    whole = FOLDER / f"{name}.sql"
    chapters = [whole] if whole.is_file() else sorted((FOLDER / name).glob("*.sql"))
    return "\n".join(chapter.read_text(encoding="utf-8") for chapter in chapters)


@dataclass(frozen=True)
class Statement:
    """A step of a text, with the steps that it stands around; the last one, which is the history, has no name.

    `is_within`: a later step reads it, and no other, so it stands within that one and needs no view.
    """

    step: str | None
    text: str
    is_within: bool = False


@cache
def statements(history: str) -> tuple[Statement, ...]:
    """The steps of a text, from top to bottom."""
    found = own_texts(history)
    reads = Counter(reading[4] for _, text in found for reading in _READ.finditer(text))
    within: dict[str, tuple[str, int]] = {}
    told = []
    for step, text in found:
        depth = 1 + max((within[reading[4]][1] for reading in _READ.finditer(text) if reading[4] in within), default=0)
        whole = _READ.sub(lambda reading: _around(reading, within), text)
        if step is not None and reads[step] == 1 and depth < _DEPTH:
            within[step] = whole, depth
        told.append(Statement(step, whole, step in within))
    return tuple(told)


def _around(reading: re.Match[str], within: Mapping[str, tuple[str, int]]) -> str:
    word, blank, _, step, alias = reading.groups()
    return f"{word}{blank}({within[step][0]}\n){alias or f' AS {step}'}" if step in within else reading[0]


def own_texts(history: str) -> list[tuple[str | None, str]]:
    """Each step with its own text alone; the last one, which is the history, has no name.

    Raises:
        ValueError: the text has no end.
    """
    text = _text(history)
    begins = [*_STEP.finditer(text)]
    end = _END.search(text)
    if end is None:
        raise ValueError(f"{history}.sql does not end with a SELECT at the start of a line")
    stops = [*(step.start() for step in begins[1:]), end.start()]
    # Behind the bracket that closes a step stand a comma and what is said of the next one.
    told = [(step[1], text[step.end() : stop].rpartition("\n)")[0]) for step, stop in zip(begins, stops, strict=True)]
    return [*told, (None, text[end.start() :])]


@cache
def _functions() -> Mapping[str, str]:
    """The statement of each function, by its name."""
    told = _text("functions").split(";\n")
    return {found[1]: statement for statement in told if (found := _FUNCTION.search(statement))}


@cache
def _named(text: str) -> tuple[str, ...]:
    """The functions that a text calls, in the order in which they are told: none calls one that is told further down."""
    return tuple(name for name in _functions() if re.search(rf"\b{name}\(", text))


def _teach(session: SparkSession, names: tuple[str, ...]) -> None:
    """Let a session know some functions; each is taught once, when the first text calls it (all of them: 1.7 s of a young session)."""
    with _LEARNING:
        known = _TAUGHT.setdefault(session, set())
        for name in names:
            if name not in known:
                session.sql(_functions()[name])
                known.add(name)
