"""Runs the SQL text of a history: `<history>.sql` beside this module.

Each text is a chain of named steps, from top to bottom, ended by the columns of its table; what it reads stands in braces (`{rows}`).
`step=` shows any of its steps instead. Sentences that several texts share are functions (`functions.sql`).
"""

import re
from functools import cache
from pathlib import Path
from threading import Lock

from pyspark.sql import DataFrame, SparkSession

_FOLDER = Path(__file__).parent
# A step begins with its name at the start of a line, the end of a text with its only SELECT there.
_STEP = re.compile(r"^(\w+) AS \($", re.MULTILINE)
_END = re.compile(r"^SELECT\b", re.MULTILINE)
_KNOWN: set[int] = set()  # sessions that know the functions, by the id of their Java object
_LEARNING = Lock()


def run(history: str, *, step: str | None = None, **inputs: DataFrame | float | str) -> DataFrame:
    """The rows of a history, or of one of its steps.

    Args:
        history: name of the text.
        step: one of `steps(history)`; the whole text without it.
        inputs: what the text names: frames, and numbers and strings that stand in it as literals.

    Raises:
        KeyError: the history has no such step.
    """
    session = next(one for one in inputs.values() if isinstance(one, DataFrame)).sparkSession
    _teach(session)
    return session.sql(_text(history) if step is None else _up_to(history, step), None, **inputs)


def steps(history: str) -> tuple[str, ...]:
    """The named steps of a history, from top to bottom."""
    return tuple(_STEP.findall(_text(history)))


@cache
def _text(name: str) -> str:
    return (_FOLDER / f"{name}.sql").read_text(encoding="utf-8")


def _up_to(history: str, step: str) -> str:
    if step not in steps(history):
        raise KeyError(f"{history} has no step {step}; it has {', '.join(steps(history))}")
    text = _text(history)
    end = list(_END.finditer(text))[-1].start()
    return f"{text[:end]}SELECT * FROM {step}"


def _teach(session: SparkSession) -> None:
    """Let a session know the functions, once."""
    with _LEARNING:
        if id(session._jsparkSession) not in _KNOWN:
            for statement in _text("functions").split(";\n"):
                if statement.strip():
                    session.sql(statement)
            _KNOWN.add(id(session._jsparkSession))
