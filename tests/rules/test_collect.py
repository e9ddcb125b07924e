"""The audit's queries: what they give for the few, what they do with many, and a rule that cannot be run."""

from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from eo_audit.audit.collect import collect
from eo_audit.audit.findings import findings
from eo_audit.rules.cases import MOST_TELLING
from eo_audit.rules.catalogue import BY_CODE
from tests.rules.compact import Tables
from tests.rules.conftest import Audited, InMemory


def test_a_rule_that_cannot_be_run_takes_no_other_with_it(histories: InMemory, audited: Audited) -> None:
    broken = replace(BY_CODE["P03"], where="no_such_column = 1")
    collected = collect(histories, [BY_CODE["P04"], broken, BY_CODE["P05"]])
    assert set(collected.crashed) == {"P03"} and "no_such_column" in collected.crashed["P03"]
    wanted = [case for case in audited.collected.cases if case.rule in ("P04", "P05")]
    assert [(case.rule, case.key, case.hits) for case in collected.cases] == [(case.rule, case.key, case.hits) for case in wanted]


@pytest.fixture(scope="module")
def many(spark: SparkSession) -> InMemory:
    """Forty gaps of one producer, the widest last, each in a batch of two records."""
    gap = "orders-0 {0}-{1} data pid=2 epoch=0 seq=0-1 label=gap skipped_sequences={2}"
    lines = [gap.format(10 * n, 10 * n + 1, n + 1) for n in range(40)]
    tables = Tables()
    tables.add_case("many", {"history": {"producer_history": lines}})
    return InMemory(spark, tables.rows)


def test_one_cause_is_one_finding_with_its_count_and_its_most_telling_rows(many: InMemory) -> None:
    told, _ = findings(collect(many, [BY_CODE["P04"]]))
    (finding,) = told
    assert (finding.first_offset, finding.last_offset, finding.record_count) == (0, 391, 80)
    assert "40 records" in finding.message and "the largest of 40 gaps" in finding.message
    assert finding.offset_ranges == tuple((10 * n, 10 * n + 1) for n in range(20, 40))
    assert len(finding.evidence) == MOST_TELLING
    assert [place.byte_offset for place in finding.evidence] == sorted(place.byte_offset for place in finding.evidence)


@pytest.mark.parametrize(("decoder", "is_printed"), [("other", True), (None, False)])
def test_text_of_another_encoding_was_printed(many: InMemory, decoder: str | None, is_printed: bool) -> None:
    rows = [row | {"is_read": True, "decoder": decoder, "payload_printed": None} for row in many.rows["section_status"]]
    collected = collect(InMemory(many.spark, many.rows | {"section_status": rows}), [BY_CODE["P04"]])
    assert {log.prints_payloads for log in collected.context.logs.values()} == {is_printed}


def test_the_order_of_rows_does_not_show(many: InMemory) -> None:
    backwards = InMemory(many.spark, {name: rows[::-1] for name, rows in many.rows.items()})
    first, second = (findings(collect(tables, [BY_CODE["P04"]]))[0] for tables in (many, backwards))
    assert first == second
