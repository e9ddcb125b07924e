"""conf/policy.yaml: which findings fail a run, which unknowns leave it open; a bad file is a configuration error."""

from pathlib import Path

import pytest

from eo_audit.errors import ConfigurationError
from eo_audit.policy import load, parse
from eo_audit.rules.catalogue import RULES
from eo_audit.rules.needs import REASONS
from eo_audit.rules.rule import SEVERITIES

LINE = {"fails": True, "reason": "r"}
OPEN = {"makes_unknown": True, "reason": "r"}


def test_the_default_policy_decides_everything() -> None:
    policy = load()
    decided = {(rule.code, severity): policy.fails(rule.code, severity) for rule in RULES for severity in SEVERITIES}
    assert decided["P04", "error"] and decided["L02", "critical"] and decided["T01", "warning"]
    assert not decided["P12", "warning"] and not decided["T12", "info"]
    assert all(isinstance(policy.leaves_open(rule.code, because), bool) for rule in RULES for because in (*REASONS, "crashed"))
    assert policy.leaves_open("T01", "no_coordinator") and not policy.leaves_open("P12", "payload_not_printed")


def test_the_first_line_that_fits_decides() -> None:
    lines = [{"rules": ["P04"], "severity": ["error"], "fails": False, "reason": "known gap"}, LINE]
    policy = parse({"name": "ours", "findings": lines, "unknowns": [OPEN]}, "ours.yaml")
    assert not policy.fails("P04", "error") and policy.fails("P04", "critical") and policy.fails("P05", "error")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ([], "must be names with values"),
        ({"name": "x", "findings": [LINE], "unknowns": [OPEN], "more": 1}, "unknown name more"),
        ({"name": "", "findings": [LINE], "unknowns": [OPEN]}, "name must be a word"),
        ({"name": "x", "findings": [], "unknowns": [OPEN]}, "must be a list of lines"),
        ({"name": "x", "findings": [{"fails": True}], "unknowns": [OPEN]}, "line 1: a reason is missing"),
        ({"name": "x", "findings": [{"fails": "yes", "reason": "r"}], "unknowns": [OPEN]}, "fails must be true or false"),
        ({"name": "x", "findings": [{"rules": ["P99"], **LINE}, LINE], "unknowns": [OPEN]}, "P99 is not one of"),
        ({"name": "x", "findings": [{"severity": "bad", **LINE}, LINE], "unknowns": [OPEN]}, "bad is not one of"),
        ({"name": "x", "findings": [{"severity": [], **LINE}, LINE], "unknowns": [OPEN]}, "an empty list"),
        ({"name": "x", "findings": [{"rules": ["P04"], **LINE}], "unknowns": [OPEN]}, "the last line must fit everything"),
        ({"name": "x", "findings": [{"severity": ["error"], **LINE}], "unknowns": [OPEN]}, "the last line must fit everything"),
        ({"name": "x", "findings": [LINE], "unknowns": [{"because": ["nothing"], **OPEN}, OPEN]}, "nothing is not one of"),
        ({"name": "x", "findings": [LINE], "unknowns": [OPEN], "unread_bytes": []}, "unread_bytes: must be a list of lines"),
        ({"name": "x", "findings": [LINE], "unknowns": [OPEN], "unread_bytes": [{"kind": ["cat"], **OPEN}, OPEN]}, "cat is not one of"),
        ({"name": "x", "findings": [LINE], "unknowns": [OPEN], "unread_bytes": [{"up_to_bytes": "8", **OPEN}, OPEN]}, "a number of bytes"),
        ({"name": "x", "findings": [LINE], "unknowns": [OPEN], "unread_bytes": [{"up_to_bytes": 8, **OPEN}]}, "must fit everything"),
        ({"name": "x", "findings": [LINE], "unknowns": [OPEN], "unread_bytes": [{"makes_unknown": True}]}, "a reason is missing"),
    ],
)
def test_a_bad_policy_is_named(content: object, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says) as raised:
        parse(content, "bad.yaml")
    assert raised.value.exit_code == 12


def test_a_policy_that_cannot_be_read(tmp_path: Path) -> None:
    broken = tmp_path / "policy.yaml"
    broken.write_text("name: [")
    for path in (broken, tmp_path / "none.yaml"):
        with pytest.raises(ConfigurationError, match="cannot be read"):
            load(path)
