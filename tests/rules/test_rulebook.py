"""Every rule of the rulebook is in the catalogue, or said to be missing."""

from collections import Counter
from pathlib import Path

import pytest

from eo_audit.rules.catalogue import BY_CODE, RULES
from eo_audit.rules.rule import SEVERITIES
from tests.support.yaml_text import read_yaml

BOOK = read_yaml(Path(__file__).parent / "rulebook.yaml")
NAMED = {rule["code"]: rule for rule in BOOK["rules"]}
MISSING = BOOK.get("missing") or {}


def test_each_rule_is_named_once() -> None:
    assert not [code for code, times in Counter(rule["code"] for rule in BOOK["rules"]).items() if times > 1]
    assert MISSING.keys() <= NAMED.keys() and all(len(why) > 15 for why in MISSING.values())


def test_the_catalogue_has_what_the_rulebook_names_and_is_not_said_to_be_missing() -> None:
    # A team may have rules of its own beside them.
    codes = {rule.code for rule in RULES}
    assert not NAMED.keys() - MISSING.keys() - codes, "named, not missing, and not there"
    assert not MISSING.keys() & codes, "said to be missing, and there"


@pytest.mark.parametrize("code", sorted(NAMED.keys() - MISSING.keys()))
def test_a_rule_has_the_name_and_the_severity_of_the_rulebook_or_says_why_not(code: str) -> None:
    named, rule = NAMED[code], BY_CODE[code]
    assert rule.slug == named["slug"]
    allowed = [severity for severity in SEVERITIES if severity in named["severity"]]
    if "here" in named:
        assert rule.severity == named["here"] not in allowed and len(named["why"]) > 30
    else:
        assert rule.severity in allowed
