"""conf/policy.yaml: which findings fail a run, which unknowns leave it open; a bad file is a configuration error."""

from pathlib import Path

import pytest

from eo_audit.audit.policy import load, parse
from eo_audit.errors import ConfigurationError
from eo_audit.rules.catalogue import RULES
from eo_audit.rules.reasons import REASONS
from eo_audit.rules.rule import SEVERITIES

LINE = {"fails": True, "reason": "r"}
OPEN = {"makes_unknown": True, "reason": "r"}
WHOLE = {"name": "x", "findings": [LINE], "unknowns": [OPEN]}


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


def test_the_default_policy_minds_no_rule_that_only_informs() -> None:
    policy = load()
    minded = {rule.code for rule in RULES if policy.leaves_open(rule.code, "missing_segments")}
    assert {rule.code for rule in RULES} - minded == {rule.code for rule in RULES if rule.informs}
    assert "T01" in minded and "T12" not in minded


def test_a_line_may_name_the_rules_that_inform_beside_others() -> None:
    line = {"informs": True, "rules": ["P04"], "makes_unknown": False, "reason": "r"}
    policy = parse({"name": "x", "findings": [LINE], "unknowns": [line, OPEN]}, "x.yaml")
    assert not policy.leaves_open("T12", "crashed") and not policy.leaves_open("P04", "crashed") and policy.leaves_open("P05", "crashed")


def test_the_default_policy_warns_of_a_long_wait_and_fails_none() -> None:
    held = load().held_back
    assert held.decides(15 * 60 - 1, 10**9) == (None, None)
    assert held.decides(15 * 60, 1) == ("warning", "warn_after_minutes: 15")
    assert held.decides(10**6, 10**9)[0] == "warning"
    assert held.decides(None, 10**9) == (None, None)


def test_a_wait_that_fails_a_run() -> None:
    limits = {"warn_after_minutes": 1, "fail_after_minutes": 30.5, "fail_after_offsets": 1000, "reason": "our consumers are payments"}
    held = parse({"name": "ours", "findings": [LINE], "unknowns": [OPEN], "held_back": limits}, "ours.yaml").held_back
    assert held.decides(1831, 5) == ("fail", "fail_after_minutes: 30.5")
    assert held.decides(10, 1000) == ("fail", "fail_after_offsets: 1000")
    assert held.decides(None, 1000)[0] == "fail"
    assert held.decides(61, 5) == ("warning", "warn_after_minutes: 1")


def test_a_policy_without_held_back_minds_no_wait() -> None:
    assert parse({"name": "ours", "findings": [LINE], "unknowns": [OPEN]}, "ours.yaml").held_back.decides(10**9, 10**9) == (None, None)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ([], "must be names with values"),
        ({"name": "x", "findings": [LINE], "unknowns": [OPEN], "more": 1}, "unknown name more"),
        ({"name": "", "findings": [LINE], "unknowns": [OPEN]}, "name must be a word"),
        ({"name": "x", "findings": [], "unknowns": [OPEN]}, "must be a list of lines"),
        ({"name": "x", "findings": [{"fails": True}], "unknowns": [OPEN]}, "line 1: a reason is missing"),
        ({"name": "x", "findings": [{"informs": False, **LINE}, LINE], "unknowns": [OPEN]}, "line 1: informs must be true"),
        ({"name": "x", "findings": [{"fails": "yes", "reason": "r"}], "unknowns": [OPEN]}, "fails must be true or false"),
        ({"name": "x", "findings": [{"rules": ["P99"], **LINE}, LINE], "unknowns": [OPEN]}, "P99 is not one of"),
        ({"name": "x", "findings": [{"severity": "bad", **LINE}, LINE], "unknowns": [OPEN]}, "bad is not one of"),
        ({"name": "x", "findings": [{"severity": [], **LINE}, LINE], "unknowns": [OPEN]}, "an empty list"),
        ({"name": "x", "findings": [{"rules": ["P04"], **LINE}], "unknowns": [OPEN]}, "the last line must fit everything"),
        ({"name": "x", "findings": [{"severity": ["error"], **LINE}], "unknowns": [OPEN]}, "the last line must fit everything"),
        ({**WHOLE, "held_back": {"warn_after_minutes": 5}}, "held_back: a reason is missing"),
        ({**WHOLE, "held_back": {"warn_after_hours": 5, "reason": "r"}}, "unknown name warn_after_hours"),
        ({**WHOLE, "held_back": {"fail_after_minutes": "5", "reason": "r"}}, "fail_after_minutes must be a number that is not below 0"),
        ({**WHOLE, "held_back": {"fail_after_minutes": True, "reason": "r"}}, "fail_after_minutes must be a number"),
        ({**WHOLE, "held_back": {"warn_after_minutes": -1, "reason": "r"}}, "warn_after_minutes must be a number that is not below 0"),
        ({**WHOLE, "held_back": {"warn_after_offsets": 1.5, "reason": "r"}}, "warn_after_offsets must be a whole number"),
        ({**WHOLE, "held_back": 5}, "held_back: must be names with values"),
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
