"""Every rule against its cases: histories that break it, and legal ones that look the same."""

import re
from collections.abc import Mapping, Sequence

import pytest

from eo_audit.audit.findings import Finding
from eo_audit.rules.catalogue import BY_CODE, RULES
from tests.rules.conftest import Audited, case_files

ALL = [(stem, content["rule"], case) for stem, content in case_files() for case in content["cases"]]  # type: ignore[index]


@pytest.mark.parametrize(("stem", "code", "case"), ALL, ids=[f"{stem}: {case['name']}" for stem, _, case in ALL])
def test_case(audited: Audited, stem: str, code: str, case: Mapping[str, object]) -> None:
    told = audited.of_cluster.get(f"{stem}: {case['name']}", [])
    mine = [finding for finding in told if finding.rule == code]
    expected = case.get("expect") or []
    assert isinstance(expected, list)
    assert len(mine) == len(expected), [f"{f.severity} {f.message}" for f in mine]
    for finding, wanted in zip(sorted(mine, key=lambda f: (f.topic or "", f.partition or 0, f.first_offset or 0)), expected, strict=True):
        assert_says(finding, wanted, told)
    others = {finding.rule for finding in told if finding.rule != code and finding.severity != "info"}
    assert others == set(case.get("also") or []), "what other rules say above info"  # type: ignore[call-overload]


def assert_says(finding: Finding, wanted: Mapping[str, object], told: Sequence[Finding]) -> None:
    row = finding.row()
    assert finding.evidence and all(place.dump_file != "unknown" for place in finding.evidence)
    for name, value in wanted.items():
        if name in ("says", "cause_says", "remedy_says"):
            text = {"says": finding.message, "cause_says": finding.cause, "remedy_says": finding.remedy}[name]
            assert re.search(str(value), text), text
        elif name == "effects":
            incident = {other.rule for other in told if other.incident_id == finding.finding_id} - {finding.rule}
            assert incident == set(value), "what it is the cause of"  # type: ignore[call-overload]
        elif name == "evidence_at":
            assert [place.offset for place in finding.evidence] == value, "the offsets that its lines speak of"
        elif name == "offset_ranges":
            assert [[r["first"], r["last"]] for r in row[name]] == value  # type: ignore[attr-defined]
        else:
            assert row[name] == value, name


def test_a_case_holds_nothing_that_nobody_reads() -> None:
    known = {"name", "why", "history", "logs", "cluster", "expect", "also"}
    assert not [(stem, case["name"]) for stem, _, case in ALL if not known.issuperset(case)]


def test_no_rule_crashes_on_its_cases(audited: Audited) -> None:
    assert not audited.crashed


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_every_rule_is_documented_and_has_both_kinds_of_cases(rule: object) -> None:
    assert rule is BY_CODE[rule.code]  # type: ignore[attr-defined]
    found = [content for stem, content in case_files() if stem == rule.slug]  # type: ignore[attr-defined]
    assert len(found) == 1, f"tests/rules/cases/{rule.slug}.yaml"  # type: ignore[attr-defined]
    cases = found[0]["cases"]
    assert found[0]["rule"] == rule.code  # type: ignore[attr-defined]
    assert all(str(case["why"]).strip() for case in cases)  # type: ignore[attr-defined]
    assert any(case.get("expect") for case in cases), "a history that breaks it"  # type: ignore[attr-defined]
    assert any(not case.get("expect") for case in cases), "a legal history"  # type: ignore[attr-defined]
    texts = (*vars(rule.docs).values(), rule.cause, rule.remedy)  # type: ignore[attr-defined]
    assert all(text.strip().endswith((".", ")")) or text for text in texts)
