"""What the pages for people say of tables, commands and files is what there is."""

import re
import runpy
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from eo_audit.cli import app
from eo_audit.history.steps import histories
from eo_audit.rules.catalogue import BY_CODE, RULES
from tests.rules.conftest import case_files
from tests.rules.drawing.case import drawn

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RULE_PAGES = runpy.run_path(str(ROOT / ".ci" / "rule_pages.py"))


def test_the_page_of_tables_is_that_of_the_schemas() -> None:
    made = runpy.run_path(str(ROOT / ".ci" / "tables.py"))["page"](ROOT / "schemas")
    assert (ROOT / "docs" / "tables.md").read_text(encoding="utf-8") == made, "run `make tables`"


def test_every_history_stands_once_in_the_table_that_finds_it() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = [row.split("|")[2] for row in section(page, "How a history is written").splitlines() if row.startswith("| ")][1:]
    assert sorted(name.rstrip("/") for row in rows for name in re.findall(r"`([^`]+)`", row)) == sorted(histories())


def section(page: str, title: str) -> str:
    """A part of a page, up to the next one; nothing where it has no such part."""
    return page.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_each_rule_has_a_page_and_stands_in_the_index() -> None:
    folder = ROOT / "docs" / "rules"
    assert {path.name for path in folder.glob("*")} == {"README.md", *map(RULE_PAGES["name_of"], RULES)}, "run `make rules`"
    assert (folder / "README.md").read_text(encoding="utf-8") == RULE_PAGES["index"](), "run `make rules`"


@pytest.mark.parametrize(("stem", "content"), case_files(), ids=[stem for stem, _ in case_files()])
def test_the_page_of_a_rule_has_its_text_and_all_its_cases(stem: str, content: Mapping[str, Any]) -> None:
    """What the audit says of them is held by tests/rules/test_rule_pages.py, which asks it."""
    rule, prose = BY_CODE[content["rule"]], RULE_PAGES["prose"]
    page = (ROOT / "docs" / "rules" / RULE_PAGES["name_of"](rule)).read_text(encoding="utf-8")
    text = {"What it proves": rule.docs.proves, "What to do": rule.remedy, "A bad history": rule.docs.bad_history}
    for title, said in {**text, "Legal, and looks the same": rule.docs.look_alike}.items():
        assert said and section(page, title).strip().startswith(prose(said, own=rule.code)), f"{title}: run `make rules`"
    # The drawings of a page point at what is found; nobody found anything here.
    plain = re.sub(r"^> ", "  ", page, flags=re.MULTILINE)
    placed = {title: [case for case in content["cases"] if is_drawn(case, rule.code, section(plain, title))] for title in PARTS}
    assert sorted(case["name"] for cases in placed.values() for case in cases) == sorted(case["name"] for case in content["cases"])
    assert len(placed["A bad history"]) == 1 and placed["A bad history"][0]["expect"]
    assert placed["Legal, and looks the same"] == [case for case in content["cases"] if not case["expect"]] != []


PARTS = ("A bad history", "Legal, and looks the same", "Told as an info, and accuses nobody", "More histories that break it")


def is_drawn(case: Mapping[str, Any], code: str, text: str) -> bool:
    """A part of a page shows a case under its name."""
    name = case["name"][:1].upper() + case["name"][1:]
    return f"### {name}\n\n{RULE_PAGES['prose'](case['why'], own=code)}\n\n```text\n{drawn(case, code, [])}\n```\n" in text


def test_the_readme_is_short_and_names_every_command() -> None:
    readme = PAGES[0].read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= 150
    commands = {command.name or command.callback.__name__ for command in app.registered_commands if command.callback}
    assert len(commands) > 10
    assert not {name for name in commands if not re.search(rf"^eo-audit .*\b{name}\b", readme, re.MULTILINE)}


@cache
def anchors(page: Path) -> set[str]:
    """The anchors that a page's headings make, as the usual renderers do."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            path, _, anchor = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            assert file.exists(), target
            assert not anchor or anchor in anchors(file), target
