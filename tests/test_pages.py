"""What the pages for people say of tables, commands and files is what there is."""

import re
import runpy
from pathlib import Path

import pytest

from eo_audit.cli import app

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_page_of_tables_is_that_of_the_schemas() -> None:
    made = runpy.run_path(str(ROOT / ".ci" / "tables.py"))["page"](ROOT / "schemas")
    assert (ROOT / "docs" / "tables.md").read_text(encoding="utf-8") == made, "run `make tables`"


def test_the_readme_is_short_and_names_every_command() -> None:
    readme = PAGES[0].read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= 150
    commands = {command.name or command.callback.__name__ for command in app.registered_commands if command.callback}
    assert len(commands) > 10
    assert not {name for name in commands if not re.search(rf"^eo-audit .*\b{name}\b", readme, re.MULTILINE)}


def anchors(page: Path) -> set[str]:
    """The anchors that a page's headings make, as the usual renderers do."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            path, _, anchor = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            assert file.exists(), target
            assert not anchor or anchor in anchors(file), target
