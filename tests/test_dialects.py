"""docs/dialects.md says what the readers do: its lines are read with them, its tables are held against them and against real dumps."""

import re
import runpy
from functools import cache
from pathlib import Path

import pytest

from eo_audit.dump.files.broker_answers import TABLES
from eo_audit.dump.files.recognised import printed_by
from eo_audit.dump.lines.console import GROUPS, JSON, OFFSETS, TRANSACTIONS
from eo_audit.dump.lines.decoders import TRANSACTION_JSON, TRANSACTION_TEXT
from eo_audit.dump.lines.dialects import UNSUPPORTED
from eo_audit.dump.lines.fields import DIALECTS
from eo_audit.dump.lines.flat_lines import FLAT
from eo_audit.dump.lines.metadata_decoder import JSON_DECODER
from eo_audit.dump.lines.offsets_decoder import OFFSETS_JSON, OFFSETS_TEXT
from eo_audit.dump.parse import FileContext
from eo_audit.rules.reasons import REASONS
from tests.support.readers import read

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "dialects.md").read_text(encoding="utf-8")
DUMPS = ROOT / "tests" / "data" / "corpus" / "dumps"
SAMPLES = dict(re.findall(r"^```text (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
RELEASES = sorted(path.name.partition("@")[2] for path in DUMPS.glob("dialects_tv2@*"))


def rows_of(heading: str) -> list[list[str]]:
    """The cells of the table below a heading."""
    part = PAGE.partition(f"\n## {heading}")[2].partition("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("| ") and line.endswith(" |")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[1:]]


def sections_of(text: bytes, path: str) -> list[dict[str, object]]:
    return list(read(text, FileContext("c", path, 1), fast=True).facts["dump_sections"].to_pylist())


def number(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))


def is_of(release: str, said: str) -> bool:
    """Is a release one of those that a cell names: `2.2 to 2.7`, `3.0 and 3.1`, `2.8`?"""
    named = [number(one) for one in re.findall(r"\d+(?:\.\d+)+", said)]
    return min(named) <= number(release) and number(release)[: len(max(named))] <= max(named)


@cache
def printed_by_release(release: str) -> frozenset[tuple[str | None, str | None]]:
    """Dialect and decoder of each section that the tools of a release printed of one log."""
    files = (path for path in (DUMPS / f"dialects_tv2@{release}").rglob("*.log.txt"))
    found = (row for path in files for row in sections_of(path.read_bytes(), path.relative_to(DUMPS).as_posix()))
    return frozenset((row["dialect"], row["decoder"]) for row in found if row["kind"] == "log")  # type: ignore[misc]


@pytest.mark.parametrize("dialect", SAMPLES)
def test_the_lines_of_the_page_are_of_the_dialect_that_it_says(dialect: str) -> None:
    facts = read(SAMPLES[dialect].encode(), FileContext("c", "broker-1/orders-0/00000000000000000000.log.txt", 1), fast=True)
    (section,) = facts.facts["dump_sections"].to_pylist()
    assert section["dialect"] == dialect and section["deep"]
    assert (facts.facts["batches"].num_rows, facts.facts["records"].num_rows, facts.ledger.unread) == (1, 1, 0)


def test_each_dialect_has_a_row_and_its_lines() -> None:
    named = [re.findall(r"`([^`]+)`", row[0])[0] for row in rows_of("Log segments")]
    assert named == [FLAT, UNSUPPORTED, *(dialect for dialect in SAMPLES if dialect != FLAT)] and len(SAMPLES) == 6


def test_the_fields_of_the_page_are_those_of_the_grammar() -> None:
    assert runpy.run_path(str(ROOT / ".ci" / "dialects.py"))["page"](PAGE) == PAGE, "run `make tables`"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_releases_of_a_dialect_are_those_that_the_page_says(dialect: str) -> None:
    (said,) = (re.findall(r"[\d.]+", row[1]) for row in rows_of("Log segments") if row[0] == f"`{dialect}`")
    since, until = DIALECTS[dialect]
    # The newest one goes on, as far as anybody knows.
    assert (said[0], said[-1]) == (since, until or said[-1])


def test_the_first_releases_are_read_and_do_not_tell_epochs() -> None:
    without_epoch = SAMPLES[FLAT].replace(" producerEpoch: 0", "").encode()
    result = read(without_epoch, FileContext("c", "broker-1/orders-0/00000000000000000000.log.txt", 1), fast=True)
    assert result.facts["dump_sections"]["dialect"].to_pylist() == [FLAT] and result.ledger.unread == 0
    assert result.facts["batches"].select(["producer_id", "producer_epoch"]).to_pylist() == [{"producer_id": 0, "producer_epoch": None}]


def test_the_decoders_are_those_of_the_readers() -> None:
    named = [row[0].strip("`") for row in rows_of("Records of Kafka's own topics")]
    assert named == [TRANSACTION_TEXT, TRANSACTION_JSON, OFFSETS_TEXT, OFFSETS_JSON, JSON_DECODER]


@pytest.mark.parametrize("release", RELEASES)
def test_real_tools_print_what_the_page_says_of_their_release(release: str) -> None:
    rows = rows_of("Log segments")
    dialects = {
        name: re.findall(r"`([\d.]+)`", row[2]) for row in rows if (name := row[0].strip("`")) != UNSUPPORTED and is_of(release, row[1])
    }
    decoders = {row[0].strip("`"): row[1] for row in rows_of("Records of Kafka's own topics")}
    found = printed_by_release(release)
    shown = {dialect for dialect, _ in found if dialect}
    # Where a dialect cannot always be told from another one, the page names that beside it.
    assert dialects.keys() <= shown <= {*dialects, *(other for others in dialects.values() for other in others)}
    assert {decoder for _, decoder in found if decoder in decoders} <= {name for name, said in decoders.items() if is_of(release, said)}


def test_there_are_real_dumps_of_many_releases() -> None:
    assert len(RELEASES) == 12 and {FLAT, "2.2", "2.8", "3.3"} == {
        dialect for release in RELEASES for dialect, _ in printed_by_release(release)
    }


def test_reasons_on_the_page_are_those_of_the_verdict() -> None:
    reasons = set(re.findall(r"\(`([a-z_]+)`\)", PAGE))
    assert reasons <= REASONS.keys() and {"no_checksums", "shallow", "unsupported_dialect", "no_producer_epochs", "cut_off"} <= reasons


def test_the_columns_of_broker_answers_are_those_that_are_read() -> None:
    said = {row[0].strip("`"): re.findall(r"`([^`]+)`", row[1]) for row in rows_of("Answers of live brokers")}
    assert said == {command: [name for name, _, _ in columns] for command, columns in TABLES.items()}


def test_formatters_are_told_by_what_the_page_says() -> None:
    rows = {row[0].strip("`"): row for row in rows_of("Console consumers")}
    kinds = dict(zip(rows, (TRANSACTIONS, OFFSETS, GROUPS), strict=True))
    told = [(kinds[name], line) for name, row in rows.items() for line in re.findall(r"`([^` ]+)`", row[1]) if not line.isalpha()]
    for kind, line in told:
        before = "" if line.startswith("{") else "[g,t,0" if line.startswith("]") else "x"
        assert printed_by(f"{before}{line}".encode()) == (JSON if line.startswith("{") else kind)
    assert len(told) == 7
