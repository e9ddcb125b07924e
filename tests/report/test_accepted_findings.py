"""Accepted findings: what a file may hold, and how long it holds."""

from datetime import date
from pathlib import Path

import pytest

from eo_audit.audit.accepted_findings import Accepted, accept, entry, load, of_same_incidents
from eo_audit.audit.sentences import acceptances
from eo_audit.errors import ArgumentError, ConfigurationError
from tests.report.hand_made import finding

LAST_MS = 1798761599999  # the last millisecond of 2026-12-31, UTC
KNOWN = Accepted("a1", "T01 orders-0", "ana", "ticket 4711", date(2026, 12, 31))


@pytest.mark.parametrize(("now", "holds"), [(0, True), (LAST_MS, True), (LAST_MS + 1, False), (None, False)])
def test_the_last_day_counts_as_a_whole(now: int | None, holds: bool) -> None:
    assert KNOWN.holds(now) is holds
    assert entry(KNOWN, now)["expired"] is not holds


def test_accepting_again_replaces(tmp_path: Path) -> None:
    file = tmp_path / "accepted.yaml"
    accept(file, finding("a1"), who="ana", why="one", until="2026-12-31")
    accept(file, finding("b2"), who="bo", why="two: {x} #y", until="2027-01-31")
    accept(file, finding("a1"), who="ana", why="three", until="2027-12-31")
    assert [(e.what, e.who, e.why, e.until.isoformat()) for e in load(file)] == [
        ("T01 orders-0", "bo", "two: {x} #y", "2027-01-31"),
        ("T01 orders-0", "ana", "three", "2027-12-31"),
    ]


@pytest.mark.parametrize("wrong", [{"who": " "}, {"why": ""}, {"until": "soon"}, {"until": "31.12.2026"}])
def test_who_why_and_until_must_be_said(tmp_path: Path, wrong: dict[str, str]) -> None:
    with pytest.raises(ArgumentError):
        accept(tmp_path / "accepted.yaml", finding("a1"), **{"who": "ana", "why": "x", "until": "2026-12-31", **wrong})
    assert not list(tmp_path.iterdir())


def test_a_day_that_is_over_is_not_accepted(tmp_path: Path) -> None:
    file = tmp_path / "accepted.yaml"
    with pytest.raises(ArgumentError, match="is over already: the audit was judged as of 2027-01-01 00:00:00 UTC"):
        accept(file, finding("a1"), who="ana", why="x", until="2026-12-31", as_of_ms=LAST_MS + 1)
    assert not file.exists()
    assert accept(file, finding("a1"), who="ana", why="x", until="2026-12-31", as_of_ms=LAST_MS).until == date(2026, 12, 31)


NO_DAY = "accepted:\n- {finding_id: x, what: y, who: z, why: w, until: soon}"


@pytest.mark.parametrize("text", ["accepted: 3", "other: []", "- a", "accepted: [a]", "accepted: [{finding_id: x}]", "a: [", NO_DAY])
def test_a_file_that_says_something_else_is_not_believed(tmp_path: Path, text: str) -> None:
    file = tmp_path / "accepted.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"accepted\.yaml"):
        load(file)


def test_no_file_and_an_empty_file_accept_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").write_text("", encoding="utf-8")
    assert load(tmp_path / "none.yaml") == load(tmp_path / "empty.yaml") == ()


def test_the_rest_of_an_incident_is_named() -> None:
    rows = [finding("a1"), finding("b2", incident_id="a1".ljust(64, "0")), finding("c3")]
    known = Accepted("a1".ljust(64, "0"), "T01 orders-0", "ana", "x", date(2026, 12, 31))
    assert of_same_incidents(rows, [known]) == ["b20000000000"]


def test_acceptances_in_sentences() -> None:
    entries = [entry(KNOWN, 0), entry(KNOWN, 0), entry(KNOWN, LAST_MS + 1)]
    assert acceptances(entries) == [
        "2 accepted by ana until 2026-12-31: ticket 4711",
        "1 accepted by ana expired on 2026-12-31 and counts again: ticket 4711",
    ]
