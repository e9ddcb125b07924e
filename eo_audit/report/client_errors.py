"""`eo-audit explain ERROR`: what a client's exception means, which findings to look for, what to change; and to whom it happened."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from eo_audit.errors import ArgumentError
from eo_audit.report.results import Results
from eo_audit.rules.catalogue import BY_CODE
from eo_audit.words import count, moment, place, shown, visible

_DATA = Path(__file__).with_name("client_errors.yaml")
MOST_TOLD = 10
# What other clients write before the name of the protocol's error, and packages of Java.
_PREFIX = re.compile(r"^(rd_kafka_resp_)?err_+|^([a-z]+\.)+", re.IGNORECASE)


@dataclass(frozen=True)
class ClientError:
    """One error, as client_errors.yaml says it."""

    names: tuple[str, ...]
    codes: frozenset[int]
    says: tuple[re.Pattern[str], ...]
    means: str
    rules: tuple[str, ...]
    causes: frozenset[str]
    change: str

    def is_named(self, words: str) -> bool:
        """Is it a name or the code of this error?"""
        return words in {str(code) for code in self.codes} or _bare(words) in {_bare(name) for name in self.names}

    def is_said_in(self, words: str) -> bool:
        """Does a line of a client's log tell of it?"""
        named = any(re.search(rf"(?<![A-Za-z]){re.escape(name)}(?![A-Za-z])", words) for name in self.names)
        return named or any(pattern.search(words) for pattern in self.says)


def _bare(name: str) -> str:
    return re.sub(r"[^a-z]", "", _PREFIX.sub("", name.strip()).lower())


@cache
def client_errors() -> tuple[ClientError, ...]:
    """All errors that are explained."""
    return tuple(_read(entry) for entry in yaml.safe_load(_DATA.read_text(encoding="utf-8")))


def _read(entry: Mapping[str, object]) -> ClientError:
    def several(name: str) -> Sequence[object]:
        found = entry.get(name, ())
        assert isinstance(found, list | tuple)
        return found

    codes = [code for code in (entry.get("code"), *several("also")) if isinstance(code, int)]
    return ClientError(
        tuple(map(str, several("names"))),
        frozenset(codes),
        tuple(re.compile(str(pattern), re.IGNORECASE) for pattern in several("says")),
        str(entry["means"]),
        tuple(map(str, several("rules"))),
        frozenset(map(str, several("causes"))),
        str(entry["change"]),
    )


def errors_of(words: str) -> list[ClientError]:
    """The errors that a name, a code or a line of a client's log tells of.

    Raises:
        ArgumentError: none.
    """
    named = [error for error in client_errors() if error.is_named(words.strip())]
    found = named or [error for error in client_errors() if error.is_said_in(words)]
    if not found:
        known = ", ".join(error.names[0] for error in client_errors())
        raise ArgumentError(f"no error of producers or transactions is known by these words; known are {known}")
    return found


def explain(words: str, screen: Console, results: Results | None) -> None:
    """Print what is known of an error, and to whom it happened in an audit.

    Args:
        words: its name, its code, or what a client logged.
        screen: where to.
        results: of a finished audit, if there is one.
    """
    for number, error in enumerate(errors_of(words)):
        if number:
            screen.print()
        for block in _explained(error):
            screen.print(block)
        if results is not None:
            for block in _happened(error, results):
                screen.print(block)


def _explained(error: ClientError) -> Iterator[RenderableType]:
    codes = f"  (error code {', '.join(map(str, sorted(error.codes)))})" if error.codes else ""
    yield Text(f"{', '.join(error.names)}{codes}", "bold")
    rules = "; ".join(f"{code} {BY_CODE[code].slug}" for code in error.rules)
    for name, text in (("what it means", error.means), ("what to change", error.change), ("findings to look for", rules)):
        if text:
            yield Text(f"\n{name}")
            yield Padding(Text(text), (0, 0, 0, 2))


def _happened(error: ClientError, results: Results) -> Iterator[RenderableType]:
    """The aborts and findings of an audit that this error may tell of."""
    told = [*_aborts(error, results), *_findings(error, results)]
    yield Text(f"\nin the audit in {results.out}")
    yield Padding(Text("\n".join(told) if told else "nothing that it would tell of"), (0, 0, 0, 2))


def _in_cluster(row: Mapping[str, object], results: Results) -> str:
    """Which cluster a line is of, where there are several."""
    return f"{shown(str(row['cluster']))}: " if len(results.rows("clusters")) > 1 else ""


def _aborts(error: ClientError, results: Results) -> list[str]:
    aborted = [row for row in results.warehouse.arrow("transaction_instances").to_pylist() if row["abort_cause"] in error.causes]
    # The newest are asked for; without a time of its own a decision stands where its entry does.
    aborted.sort(key=lambda row: (-(row["decided_at_ms"] or 0), row["instance_id"]))
    lines = [
        f"{moment(row['decided_at_ms']) if row['decided_at_ms'] else 'at an unknown time'}  {_in_cluster(row, results)}"
        f"{shown(row['transactional_id'])} "
        f"(producer {row['producer_id']}, epoch {row['data_epoch']}): {str(row['abort_cause']).replace('_', ' ')}"
        for row in aborted[:MOST_TOLD]
    ]
    left = len(aborted) - MOST_TOLD
    return [*lines, f"and {count(left, 'more abort')} of these kinds"] if left > 0 else lines


def _findings(error: ClientError, results: Results) -> list[str]:
    found = [finding for finding in results.findings if finding["rule"] in error.rules and finding["severity"] != "info"]
    lines = [
        f"{finding['rule']} {finding['severity']}  {_in_cluster(finding, results)}{visible(place(finding))}: {visible(finding['message'])}"
        for finding in found[:MOST_TOLD]
    ]
    left = len(found) - MOST_TOLD
    return [*lines, f"and {count(left, 'more finding')} of these rules"] if left > 0 else lines
