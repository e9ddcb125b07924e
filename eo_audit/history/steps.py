"""What the SQL texts of histories say: which there are, their steps from top to bottom, and the functions that they call. No Spark.

`<history>.sql` lies beside this module; a long one is a folder `<history>/` of chapters, which are read one behind the other. A text begins
with what it is for, in comments, and `WITH`; then come its steps, each `name AS (` at the start of a line; it ends with the first `SELECT`
there. A step reads steps above it, and what the text is given, in braces (`{rows}`).
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

FOLDER = Path(__file__).parent
# A step begins with its name at the start of a line, the end of a text with the first SELECT there.
_STEP = re.compile(r"^(\w+) AS \($", re.MULTILINE)
_END = re.compile(r"^SELECT\b", re.MULTILINE)
# A table that is read, and the name it has in the statement: words of SQL have capital letters, all names small ones.
READ = re.compile(r"(?<!DISTINCT )\b(FROM|JOIN)(\s+)(?:\{(\w+)\}|(\w+)\b)(\s+(?:AS\s+)?[a-z_]\w*\b)?")
_FUNCTION = re.compile(r"^CREATE OR REPLACE TEMPORARY FUNCTION (\w+)\(", re.MULTILINE)
# Steps that only one other reads stand within it, so many deep: a view costs two small commands, a deeper statement more passes of the
# analyzer (a whole audit of 8 KB with 1, 2, 3 and 5: 43, 39, 36, 39 CPU seconds on a loaded machine; the column API before 33).
_DEPTH = 3


@dataclass(frozen=True)
class Statement:
    """A step of a text, with the steps that it stands around; the last one, which is the history, has no name.

    `is_within`: a later step reads it, and no other, so it stands within that one and needs no view.
    """

    step: str | None
    text: str
    is_within: bool = False


def histories() -> tuple[str, ...]:
    """All histories that are texts, in order of their names."""
    whole = {path.stem for path in FOLDER.glob("*.sql")} - {"functions"}
    return tuple(sorted(whole | {path.parent.name for path in FOLDER.glob("*/*.sql")}))


def steps(history: str) -> tuple[str, ...]:
    """The named steps of a history, from top to bottom."""
    return tuple(_STEP.findall(text_of(history)))


@cache
def statements(history: str) -> tuple[Statement, ...]:
    """The steps of a text as Spark is given them, from top to bottom."""
    found = own_texts(history)
    reads = Counter(reading[4] for _, text in found for reading in READ.finditer(text))
    within: dict[str, tuple[str, int]] = {}
    told = []
    for step, text in found:
        depth = 1 + max((within[reading[4]][1] for reading in READ.finditer(text) if reading[4] in within), default=0)
        whole = READ.sub(lambda reading: _around(reading, within), text)
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
    text = text_of(history)
    begins = [*_STEP.finditer(text)]
    end = _END.search(text)
    if end is None:
        raise ValueError(f"{history}.sql does not end with a SELECT at the start of a line")
    # Behind the bracket that closes a step stand a comma and what is said of the next one.
    told = [(step[1], text[step.end() : behind.start()].rpartition("\n)")[0]) for step, behind in pairwise([*begins, end])]
    return [*told, (None, text[end.start() :])]


@cache
def text_of(name: str) -> str:
    """The whole text of a history, or of `functions`."""
    whole = FOLDER / f"{name}.sql"
    chapters = [whole] if whole.is_file() else sorted((FOLDER / name).glob("*.sql"))
    return "\n".join(chapter.read_text(encoding="utf-8") for chapter in chapters)


@cache
def functions() -> Mapping[str, str]:
    """The statement that makes each function of `functions.sql`, by its name."""
    told = text_of("functions").split(";\n")
    return {found[1]: statement for statement in told if (found := _FUNCTION.search(statement))}


@cache
def called_by(text: str) -> tuple[str, ...]:
    """The functions that a text calls, in the order in which they are told: none calls one that is told further down."""
    return tuple(name for name in functions() if re.search(rf"\b{name}\(", text))
