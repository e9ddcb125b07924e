"""What is changed in the files beside the logs: snapshots, indexes of aborted transactions, checkpoints, listing. At each line of each, and
each number of it.

Unlike a log such a file says what other files say too: a change is a contradiction, or a thing that only this file knows.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.support.mutated import BROKER
from tests.sweep.change import Change

# Of a line of a listing only its size is a number; the rest is the name of a file.
_NUMBER = re.compile(r"(?<![\w.-])-?\d+(?![\w.-])")
_LISTED = re.compile(r"^\d+")
_STEPS = (-1, 1, 1_000)
# What an index says of an aborted transaction the log says too: each number of it but the last stable offset, which a follower may have
# higher.
INDEX_ALWAYS_SEEN = frozenset(
    f"txnindex {name} {step:+}" for name in ("version", "producerId", "firstOffset", "lastOffset") for step in _STEPS
)


def sidecar_changes(source: Path) -> Iterator[Change]:
    """All changes of the files beside the logs of a dump of one broker.

    Args:
        source: a folder of the corpus, in plain text.
    """
    for path in sorted((source / BROKER).rglob("*")):
        if path.is_file() and not path.name.endswith(".log.txt"):
            yield from _of_file(path, str(path.relative_to(source)))


def _of_file(path: Path, name: str) -> Iterator[Change]:
    kind = name_of_kind(path)
    yield Change(f"{kind} gone", name, [{"remove": name}])
    yield Change(f"{kind} empty", name, [{"text": name, "find": r"(?s)\A.*\Z", "put": ""}])
    lines = path.read_text().splitlines()
    for number, line in enumerate(lines):
        yield from _of_line(kind, name, lines, number, line)


def _of_line(kind: str, name: str, lines: list[str], number: int, line: str) -> Iterator[Change]:
    at = f"{name}.{number + 1}"

    def put(change: str, *instead: str) -> Change:
        whole = "\n".join([*lines[:number], *instead, *lines[number + 1 :], ""])
        return Change(f"{kind} {change}", at, [{"text": name, "find": r"(?s)\A.*\Z", "put": whole.replace("\\", r"\\")}])

    yield put("line lost")
    yield put("line twice", line, line)
    yield put("line cut", line[: len(line) // 2])
    yield put("line of noise before", "Picked up JAVA_TOOL_OPTIONS: -Xmx1g", line)
    for found in (_LISTED if kind == "listing" else _NUMBER).finditer(line):
        for step in _STEPS:
            changed = line[: found.start()] + str(int(found[0]) + step) + line[found.end() :]
            yield Change(**{**put(f"{_field(line, found.start())} {step:+}", changed).__dict__, "at": f"{at}.{found.start()}"})


def _field(line: str, start: int) -> str:
    named = re.search(r"(\w+): $", line[:start])
    return named[1] if named else f"number {len(line[:start].split()) + 1}"


def name_of_kind(path: Path) -> str:
    """`snapshot`, `txnindex`, or the file's own name where a broker has one of it."""
    kind = re.fullmatch(r"\d+\.(\w+)\.txt", path.name)
    return kind[1] if kind else path.name.removesuffix(".txt")
