"""A printed field is one line of the grammar: with one line more, and a column, both readers read it and the page tells it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from eo_audit.dump.lines import grammar
from eo_audit.dump.lines.dialects import LONGEST_LINE
from eo_audit.dump.lines.fields import Field, Line, Part, Wording, fields_in
from eo_audit.store.schemas import schema
from tests.support.program_copy import copied, run

ROOT = Path(__file__).resolve().parents[2]
ALL = {name: line for name, line in vars(grammar).items() if isinstance(line, Line)}
WORDINGS = {name: line for name, line in ALL.items() if isinstance(line, Wording)}
LINES = {name: line for name, line in ALL.items() if name not in WORDINGS}
COPIED = ("eo_audit", "schemas", ".ci", "tests/support", "docs/dialects.md")
ADDED = 'Part("5.0 and later", (Field("foo", INT, "foo"), Field("bar", FLAG)))'
# One line of the grammar each: behind which field of which line the new ones stand.
PLACES = {
    '    Field("isControl", FLAG, "is_control"),\n': f'    Field("isControl", FLAG, "is_control"),\n    {ADDED},\n',
    '(Field("sequence", INT, "sequence"), HEADER_KEYS)': f'(Field("sequence", INT, "sequence"), {ADDED}, HEADER_KEYS)',
}
HALF = 100


def printed(copy: Path, *arguments: str) -> str:
    """What a Python process prints that sees the copy."""
    done = run(copy, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, whose grammar has two more fields in the line of a batch and in that of a record, and no other change."""
    folder = copied(COPIED, tmp_path_factory.mktemp("copy"))
    target = folder / "eo_audit/dump/lines/grammar.py"
    text = target.read_text(encoding="utf-8")
    for place, added in PLACES.items():
        assert text.count(place) == 1
        text = text.replace(place, added)
    target.write_text(text, encoding="utf-8")
    return folder


def with_column(copy: Path, table: str) -> None:
    """Its column in the schema, at the end."""
    target = copy / "schemas" / f"{table}.json"
    content = json.loads(target.read_text(encoding="utf-8"))
    content["fields"].append({"name": "foo", "type": "integer", "nullable": True, "metadata": {"comment": "as printed"}})
    target.write_text(json.dumps(content), encoding="utf-8")


def test_a_field_without_a_column_is_passed_over_by_both_readers(copy: Path) -> None:
    said = json.loads(printed(copy, "-m", "tests.support.new_field"))
    assert (said["batches"], said["unread"], said["foo"]) == (2 * HALF, 0, {})
    assert said["columns"] == {name: schema(name).columns for name in said["columns"]}
    assert said["taken"] > 1.8 * HALF, "the fast reader takes lines with the fields and lines without them"


def test_a_field_with_a_column_lands_there_and_in_the_page(copy: Path) -> None:
    for table in ("batches", "records"):
        with_column(copy, table)
    said = json.loads(printed(copy, "-m", "tests.support.new_field"))
    assert (said["batches"], said["unread"]) == (2 * HALF, 0) and said["taken"] > 1.8 * HALF
    assert said["foo"] == {"batches": [None] * HALF + [-7] * HALF, "records": [None] * 2 * HALF + [12] * 2 * HALF}
    printed(copy, ".ci/dialects.py")
    page = (copy / "docs/dialects.md").read_text(encoding="utf-8")
    assert page.count("| `foo` | int | 5.0 and later | `foo` |\n| `bar` | `true` or `false` | 5.0 and later | |\n") == 2


def test_without_the_line_of_the_grammar_the_text_is_not_read() -> None:
    """What the tests above see comes from that line."""
    said = subprocess.run([sys.executable, "-m", "tests.support.new_field"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert json.loads(said)["unread"] > 0


@pytest.mark.parametrize("name", LINES)
def test_all_columns_are_those_of_the_facts(name: str) -> None:
    tables = {"BATCH": ("batches",), "RECORD": ("records",)}.get(name, ("batches", "records"))
    assert set(LINES[name].columns) <= {column for table in tables for column in schema(table).columns}


@pytest.mark.parametrize("name", WORDINGS)
def test_all_columns_of_a_console_are_those_of_its_records(name: str) -> None:
    assert {"CONSOLE_TRANSACTION", "CONSOLE_COMMIT", "CONSOLE_COMMIT_2_0"} == WORDINGS.keys()
    assert set(WORDINGS[name].columns) <= set(schema("console_records").columns)


@pytest.mark.parametrize("name", LINES)
def test_no_line_is_longer_than_readers_look(name: str) -> None:
    assert sum(item.longest for item in LINES[name].items) < LONGEST_LINE


@pytest.mark.parametrize(
    ("when", "dialect", "printed"),
    [
        ("3.2 and later", "3.0", "never"),
        ("3.2 and later", "3.2", "always"),
        ("3.2 and later", "3.3", "always"),
        ("2.8", "2.2", "never"),
        ("2.2 to 2.7, 3.0 and later", "2.2", "always"),
        ("2.2 to 2.7, 3.0 and later", "2.8", "never"),
        ("2.5 and later", "2.2", "sometimes"),
        ("5.0 and later", "3.3", "sometimes"),
        ("3.1 to 4.0", "3.0", "sometimes"),
        ("3.1 to 4.0", "3.2", "always"),
    ],
)
def test_what_a_dialect_prints(when: str, dialect: str, printed: str) -> None:
    part = Part(when, (Field("foo", grammar.INT),))
    assert list(fields_in([part], dialect)) == {"never": [], "always": [*part.fields], "sometimes": [part]}[printed]


def test_what_is_no_release_is_an_error() -> None:
    with pytest.raises(ValueError, match="no releases"):
        list(fields_in([Part("lately", ())], "3.3"))
