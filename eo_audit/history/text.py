"""Runs the SQL text of a history: `<history>.sql` beside this module.

Each text is a chain of named steps, from top to bottom, ended by the columns of its table; what it reads stands in braces (`{rows}`).
`step=` shows any of its steps instead. Sentences that several texts share are functions (`functions.sql`).
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Lock

from pyspark.sql import Column, DataFrame, SparkSession

from eo_audit.store.schemas import schema

# A tuple of words stands behind `IN`.
Input = DataFrame | Column | int | float | str | tuple[str, ...] | None

_FOLDER = Path(__file__).parent
# A step begins with its name at the start of a line, the end of a text with the first SELECT there.
_STEP = re.compile(r"^(\w+) AS \($", re.MULTILINE)
_END = re.compile(r"^SELECT\b", re.MULTILINE)
_KNOWN: set[int] = set()  # sessions that know the functions, by the id of their Java object
_LEARNING = Lock()
_looked_for: list[tuple[str, str]] = []


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
    _teach(session)
    known = {name: _input(value) for name, value in inputs.items()}
    for wanted in _looked_for:
        if wanted[0] == history:
            raise Seen(session.sql(_up_to(*wanted), None, **known))
    return session.sql(_text(history) if step is None else _up_to(history, step), None, **known)


@contextmanager
def looking_for(history: str, step: str) -> Iterator[None]:
    """Meanwhile `run` raises `Seen` with the rows of a step, where the history would be made; whatever thread makes it.

    Raises:
        KeyError: there is no such history, or it has no such step.
    """
    if not (_FOLDER / f"{history}.sql").is_file():
        raise KeyError(f"there is no history {history}")
    _up_to(history, step)
    _looked_for.append((history, step))
    try:
        yield
    finally:
        _looked_for.clear()


def histories() -> tuple[str, ...]:
    """All histories that are texts, in order of their names."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.sql") if path.stem != "functions"))


def no_rows(session: SparkSession, table: str) -> DataFrame:
    """A table of which there are no rows, for an input that nobody has."""
    return session.createDataFrame([], schema(table).spark())


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
    return (_FOLDER / f"{name}.sql").read_text(encoding="utf-8")


def _up_to(history: str, step: str) -> str:
    if step not in steps(history):
        raise KeyError(f"{history} has no step {step}; it has {', '.join(steps(history))}")
    before, *_ = _END.split(_text(history), maxsplit=1)
    return f"{before}SELECT * FROM {step}"


def _teach(session: SparkSession) -> None:
    """Let a session know the functions, once."""
    with _LEARNING:
        if id(session._jsparkSession) not in _KNOWN:
            for statement in _text("functions").split(";\n"):
                if statement.strip():
                    session.sql(statement)
            _KNOWN.add(id(session._jsparkSession))
