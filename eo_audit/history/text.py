"""Runs the SQL text of a history, or shows one of its steps (`step=`); what a text is made of, `steps.py` tells.

Spark is given step by step, each as a view that the later ones name. As one statement with its common table expressions a text means the
same, and costs twice as much to plan: each pass of the analyzer resolves one more step and walks all of them, and `InlineCTE` walks the
rest once for each step (a whole audit of 8 KB: 46 CPU seconds instead of 24).
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from threading import Lock
from weakref import WeakKeyDictionary, finalize

from pyspark.sql import Column, DataFrame, SparkSession

from eo_audit.history import views
from eo_audit.history.steps import READ, called_by, functions, histories, statements, steps, text_of
from eo_audit.store import frames
from eo_audit.store.schemas import schema

# A tuple of words stands behind `IN`.
Input = DataFrame | Column | int | float | str | tuple[str, ...] | None

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
    _teach(session, called_by(text_of(history)))
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
        text = READ.sub(self._read, text)
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


def no_rows(session: SparkSession, table: str) -> DataFrame:
    """A table of which there are no rows, for an input that nobody has."""
    return frames.no_rows(session, schema(table).spark())


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


def _teach(session: SparkSession, names: tuple[str, ...]) -> None:
    """Let a session know some functions; each is taught once, when the first text calls it (all of them: 1.7 s of a young session)."""
    with _LEARNING:
        known = _TAUGHT.setdefault(session, set())
        for name in names:
            if name not in known:
                session.sql(functions()[name])
                known.add(name)
