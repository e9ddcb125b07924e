"""What a rule did not ask for, its words cannot read: neither a column nor a part of the context, and never without a word."""

from dataclasses import replace

import pytest

from eo_audit.collect import collect
from eo_audit.findings import findings
from eo_audit.rules.catalogue import BY_CODE
from eo_audit.rules.context import ASKED, Context, NotAsked
from eo_audit.rules.row import Row, UnaskedColumn
from tests.rules.conftest import Audited, InMemory


def test_a_row_gives_what_was_asked_null_or_not() -> None:
    row = Row({"first": 1}, frozenset({"first", "second"}))
    assert (row.maybe("first"), row.maybe("second")) == (1, None)


@pytest.mark.parametrize("read", ["maybe", "number", "text", "word", "flag", "rows", "numbers", "texts", "partitions"])
def test_a_row_refuses_what_was_not_asked(read: str) -> None:
    row = Row({"first": 1, "other": 2}, frozenset({"first"}))
    with pytest.raises(UnaskedColumn, match=r"other is not among the columns that the rule asks for: first"):
        getattr(row, read)("other")
    assert row.lenient.maybe("other") == 2 and row.lenient.maybe("third") is None


@pytest.mark.parametrize("part", ASKED)
def test_a_context_refuses_what_was_not_asked(part: str) -> None:
    context = Context(logs={}, clusters={})
    with pytest.raises(NotAsked, match=part):
        getattr(context.limited_to(()), part).get("key")
    assert getattr(context.limited_to((part,)), part).get("key") is None


def test_a_rule_that_reads_a_column_it_did_not_ask_for_crashes_on_its_first_case(
    histories: InMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgetful = replace(BY_CODE["P04"], columns="base_offset base_sequence")
    monkeypatch.setitem(BY_CODE, "P04", forgetful)
    told, crashed = findings(collect(histories, [forgetful]))
    assert not told and crashed["P04"].startswith("UnaskedColumn: skipped_sequences is not among the columns")


def test_a_rule_that_looks_into_a_context_it_did_not_ask_for_crashes_on_its_first_case(
    audited: Audited, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(BY_CODE, "L02", replace(BY_CODE["L02"], asks=()))
    _, crashed = findings(audited.collected)
    assert crashed == {"L02": "NotAsked: the rule looks into missed_entries and does not ask for it"}
