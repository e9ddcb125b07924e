"""A rule that no real dump of the corpus breaks finds its case in one in which one thing was changed (mutated.yaml).

All in one audit (`one_audit` in conftest.py)."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from eo_audit.rules.catalogue import BY_CODE
from tests.support import together
from tests.support.mutated import mutated
from tests.support.together import Part, Together
from tests.support.yaml_text import read_yaml

HERE = Path(__file__).parent
DUMPS = HERE.parent / "data" / "corpus" / "dumps"
CASES = read_yaml(HERE / "mutated.yaml")["cases"]
Findings = Mapping[str, list[dict[str, Any]]]


def named(case: Mapping[str, Any]) -> str:
    return f"{case['rule']}.{case['input']}"


def as_it_is(case: Mapping[str, Any]) -> str:
    return f"{case['input']}.as_is"


def dumps_of_tests(folder: Path) -> Part:
    """Each case, and each input as it is, as a folder and a cluster of that name."""
    for case in CASES:
        mutated(DUMPS / case["input"], folder / named(case), case["edits"])
        together.as_it_is(DUMPS / case["input"], folder / as_it_is(case))
    return Part([folder / name(case) for case in CASES for name in (named, as_it_is)])


@pytest.fixture(scope="module")
def found(one_audit: Together) -> Findings:
    """What was found in each case, and in the inputs as they are, by cluster."""
    by_cluster = defaultdict(list)
    for finding in one_audit.results.findings:
        by_cluster[str(finding["cluster"])].append(finding)
    return by_cluster


def fits(finding: Mapping[str, Any], case: Mapping[str, Any]) -> bool:
    return finding["rule"] == case["rule"] and all(finding[name] == value for name, value in case["finds"].items())


@pytest.mark.parametrize("case", CASES, ids=named)
def test_the_change_is_found_and_the_input_does_not_have_it(found: Findings, case: Mapping[str, Any]) -> None:
    (finding,) = (one for one in found[named(case)] if fits(one, case))
    assert finding["severity"] == case.get("severity", BY_CODE[case["rule"]].severity)
    assert not [one for one in found[as_it_is(case)] if one["rule"] == case["rule"]]
    assert not [one for one in found[named(case)] if one["rule"] in case.get("lacks", ())]


def test_a_case_changes_one_input_in_one_way_and_says_why() -> None:
    assert len({named(case) for case in CASES}) == len(CASES)
    assert all(len(case["why"]) > 30 and case["finds"] and case["edits"] for case in CASES)
