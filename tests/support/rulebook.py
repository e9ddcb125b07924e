"""The rules that the rulebook names; a team may have rules of its own beside them."""

from pathlib import Path

from tests.support.yaml_text import read_yaml

PATH = Path(__file__).parent.parent / "rules" / "rulebook.yaml"


def codes() -> set[str]:
    """Their codes."""
    return {str(rule["code"]) for rule in read_yaml(PATH)["rules"]}
