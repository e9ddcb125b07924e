"""The pages of docs/rules/ are what `make rules` makes of this audit; what they draw is held by tests/test_pages.py, without Java."""

import runpy
from pathlib import Path

from tests.rules.conftest import Audited, case_files

ROOT = Path(__file__).resolve().parents[2]


def test_the_pages_say_what_the_audit_says(audited: Audited) -> None:
    made = runpy.run_path(str(ROOT / ".ci" / "rule_pages.py"))["pages"](case_files(), audited.of_cluster)
    different = [name for name, text in made.items() if (ROOT / "docs" / "rules" / name).read_text(encoding="utf-8") != text]
    assert not different, "run `make rules`"
