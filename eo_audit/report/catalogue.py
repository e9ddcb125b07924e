"""`eo-audit rules [CODE]`: what each rule proves, a bad history, a legal look-alike."""

from collections.abc import Iterator

from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from eo_audit.errors import ArgumentError
from eo_audit.rules.catalogue import RULES
from eo_audit.rules.rule import Rule


def show_rules(code: str | None, screen: Console) -> None:
    """Print one rule, or the list of all.

    Raises:
        ArgumentError: there is no such rule.
    """
    if code is None:
        screen.print(_list())
        return
    found = [rule for rule in RULES if code.upper() == rule.code or code.lower() == rule.slug]
    if not found:
        raise ArgumentError(f"there is no rule {code}; the rules are {', '.join(sorted(rule.code for rule in RULES))}")
    for block in _rule(found[0]):
        screen.print(block)


def _list() -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=True)
    for column in ("rule", "name", "severity"):
        table.add_column(column, no_wrap=True)
    table.add_column("what a finding proves", ratio=1)
    for rule in sorted(RULES, key=lambda rule: rule.code):
        table.add_row(rule.code, rule.slug, rule.severity, rule.docs.proves)
    return table


def _rule(rule: Rule) -> Iterator[RenderableType]:
    yield Text(f"{rule.code} {rule.slug}  ({rule.severity})", "bold")
    parts = {
        "proves": rule.docs.proves,
        "a bad history": rule.docs.bad_history,
        "a legal look-alike": rule.docs.look_alike,
        "likely cause": rule.cause,
        "what to do": rule.remedy,
        "reads": ", ".join(rule.reads),
        "needs covered": ", ".join(rule.needs),
    }
    for name, text in parts.items():
        if text:
            yield Text(f"\n{name}")
            yield Padding(Text(text), (0, 0, 0, 2))
