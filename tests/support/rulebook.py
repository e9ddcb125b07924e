"""The rules that the rulebook names; a team may have rules of its own beside them."""

from pathlib import Path

import yaml

PATH = Path(__file__).parent.parent / "rules" / "rulebook.yaml"


def codes() -> set[str]:
    """Their codes."""
    return {str(rule["code"]) for rule in yaml.safe_load(PATH.read_text(encoding="utf-8"))["rules"]}
