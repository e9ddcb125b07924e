"""docs/add-a-rule.md, done: its three edits in a copy of the program, and the rule is found, documented and tested."""

import re
import runpy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module, invalidate_caches
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.program_copy import ROOT, copied, run

COPIED = ("eo_audit", "schemas", "conf", "pyproject.toml", "tests/conftest.py", "tests/support", "tests/rules")
DOCUMENT = (ROOT / "docs" / "add-a-rule.md").read_text(encoding="utf-8")
PAGE, CASES, CATALOGUE = "eo_audit/rules/producers/idle_return.py", "tests/rules/cases/idle-return.yaml", "eo_audit/rules/catalogue.py"


def block(language: str) -> str:
    """The one code block of a language in the document."""
    (text,) = re.findall(rf"^```{language}\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)
    return str(text)


def edit_of_catalogue() -> tuple[str, str]:
    """The line before the new one, and the new one."""
    before, line = (text[1:] for text in block("diff").splitlines())
    return before, line


def without_the_rule() -> str:
    """The catalogue as it is, or was before somebody followed the document."""
    return (ROOT / CATALOGUE).read_text(encoding="utf-8").replace(f"{edit_of_catalogue()[1]}\n", "")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program and the cases of its rules, with the three edits and no other, also where somebody has made them in the tree itself."""
    folder = copied(COPIED, tmp_path_factory.mktemp("copy"))
    (folder / PAGE).write_text(block("python"), encoding="utf-8")
    (folder / CASES).write_text(block("yaml"), encoding="utf-8")
    before, line = edit_of_catalogue()
    catalogue = without_the_rule()
    assert catalogue.count(f"{before}\n") == 1
    (folder / CATALOGUE).write_text(catalogue.replace(f"{before}\n", f"{before}\n{line}\n"), encoding="utf-8")
    return folder


@contextmanager
def imported_from(copy: Path) -> Iterator[None]:
    """Modules of the program and of these tests come from the copy, in this process, so that it need not start a Spark of its own."""
    ours = [name for name in sys.modules if name.split(".")[0] in ("eo_audit", "tests")]
    kept = {name: sys.modules.pop(name) for name in ours}
    sys.path.insert(0, str(copy))
    try:
        yield
    finally:
        sys.path.remove(str(copy))
        for name in [name for name in sys.modules if name.split(".")[0] in ("eo_audit", "tests")]:
            del sys.modules[name]
        sys.modules.update(kept)


def test_the_document_names_the_files_of_the_three_edits() -> None:
    assert f"`{PAGE}`:\n\n```python" in DOCUMENT and f"`{CASES}`:\n\n```yaml" in DOCUMENT
    assert f"`{CATALOGUE}`\n\n```diff" in DOCUMENT


def test_the_rule_is_found_and_documented(copy: Path) -> None:
    shown = run(copy, "-c", "from eo_audit.cli import main; main()", "rules", "P90")
    assert shown.returncode == 0, shown.stderr
    assert "P90 idle-return  (info)" in shown.stdout and "two days of silence" in " ".join(shown.stdout.split())


def test_its_cases_are_tested_and_find_what_they_expect(copy: Path, spark: SparkSession) -> None:
    with imported_from(copy):
        cases, catalogue, compact, conftest = (
            import_module(f"tests.rules.{name}") for name in ("test_cases", "test_catalogue", "compact", "conftest")
        )
        assert cases.__file__ == str(copy / "tests/rules/test_cases.py")
        own = [(stem, code, case) for stem, code, case in cases.ALL if stem == "idle-return"]
        tables = compact.Tables()
        for stem, _, case in own:
            tables.add_case(f"{stem}: {case['name']}", case)
        audited = conftest.audit(conftest.InMemory(spark, tables.rows))
        assert not audited.crashed and sum(map(len, audited.of_cluster.values())) == 1
        for stem, code, case in own:
            cases.test_case(audited, stem, code, case)
        rule = cases.BY_CODE["P90"]
        make_page = runpy.run_path(str(ROOT / ".ci" / "rule_pages.py"))["page"]
        page = make_page(
            rule, [case for *_, case in own], {case["name"]: audited.of_cluster.get(f"{stem}: {case['name']}", ()) for stem, _, case in own}
        )
        told = ("## A bad history", "### Two days of silence", "> P90 info: A batch of", "## Legal, and looks", "### One hour of silence")
        assert sorted(told, key=page.index) == list(told), "its page in docs/rules/ is made without a fourth edit"
        cases.test_every_rule_is_documented_and_has_both_kinds_of_cases(rule)
        catalogue.test_a_rule_is_whole(rule)
        catalogue.test_a_page_begins_with_the_name_of_its_rule(copy / PAGE)
        catalogue.test_codes_and_names_are_used_once()


def failing(copy: Path) -> list[str]:
    """What fails of the tests that look at every page and at every rule; a module that cannot be imported fails all of them."""
    invalidate_caches()
    with imported_from(copy):
        try:
            catalogue, cases = (import_module(f"tests.rules.{name}") for name in ("test_catalogue", "test_cases"))
        except ImportError as error:
            return [str(error)]
        tests = [catalogue.test_every_page_is_in_the_catalogue_and_called_as_its_rule]
        tests += [partial(cases.test_every_rule_is_documented_and_has_both_kinds_of_cases, rule) for rule in cases.RULES]
        told = []
        for test in tests:
            try:
                test()
            except AssertionError as error:
                told.append(f"{getattr(test, '__name__', test)}: {error}")
        return told


def test_with_all_of_them_the_tests_pass(copy: Path) -> None:
    assert failing(copy) == []


@pytest.mark.parametrize(
    ("without", "told"),
    [(PAGE, "idle_return"), (CASES, r"tests/rules/cases/idle-return\.yaml"), (CATALOGUE, "test_every_page_is_in_the_catalogue")],
)
def test_without_one_of_them_the_tests_fail(copy: Path, without: str, told: str) -> None:
    """No page: the catalogue cannot be read. No line: a page that no catalogue names. No cases: a rule that nobody tested."""
    kept = (copy / without).read_text(encoding="utf-8")
    try:
        (copy / without).unlink()
        if without == CATALOGUE:
            (copy / without).write_text(without_the_rule(), encoding="utf-8")
        (failed,) = failing(copy)
        assert re.search(told, failed)
    finally:
        (copy / without).write_text(kept, encoding="utf-8")
