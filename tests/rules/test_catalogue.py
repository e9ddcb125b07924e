"""The catalogue: which rules there are, what each must say, and its fingerprint."""

import random
import re
from dataclasses import replace

import pytest

from eo_audit.rules.catalogue import RULES, fingerprint
from eo_audit.rules.needs import NEEDS
from eo_audit.rules.rule import SEVERITIES, Rule
from eo_audit.rules.sources import SOURCES
from eo_audit.rules.subjects import SUBJECTS
from eo_audit.schemas import schema

RELEASE = (
    "P01 P02 P03 P04 P05 P06 P07 P08 P12 T01 T02 T05 T06 T07 T10 T12 T13 T15 C01 C02 C03 C04 C08 C09 C11 C12 L01 L02 L03 S02 S03 "
    "R02 R03 R04 R07 I06"
)


def test_the_rules_of_this_release() -> None:
    assert [rule.code for rule in RULES] == RELEASE.split()
    assert len({rule.slug for rule in RULES}) == len(RULES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_rule_is_whole(rule: Rule) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.slug) and rule.severity in SEVERITIES
    assert rule.where or rule.find
    assert set(rule.subject.split()) <= set(SUBJECTS) and set(rule.needs) <= NEEDS
    assert rule.reads[0] in SOURCES
    assert not rule.where or not rule.by or rule.by in schema(rule.reads[0]).columns
    assert all(len(text) > 15 for text in (*vars(rule.docs).values(), rule.cause, rule.remedy))


@pytest.mark.parametrize("table", SOURCES)
def test_sources_name_columns_of_their_tables(table: str) -> None:
    source, columns = SOURCES[table], set(schema(table).columns)
    named = set(source.row.split()) | {offset for _, offset in source.addresses}
    named |= {f"{prefix}{part}" for prefix, _ in source.addresses for part in ("section_id", "byte_offset", "length")}
    assert named <= columns


def test_the_fingerprint_is_free_of_order_and_sees_every_change() -> None:
    shuffled = random.Random(7).sample(RULES, len(RULES))
    assert fingerprint(shuffled) == fingerprint(RULES)
    assert fingerprint(RULES[1:]) != fingerprint(RULES)
    assert fingerprint((replace(RULES[0], where="true"), *RULES[1:])) != fingerprint(RULES)


def test_no_remedy_offers_an_abort_where_the_coordinator_lists_the_partition() -> None:
    offers = {rule.code for rule in RULES if "kafka-transactions.sh" in rule.remedy and " abort " in rule.remedy}
    assert offers == set()


def test_what_the_coordinator_wrote_wrongly_is_no_proof_about_delivery() -> None:
    """Markers and data may be right all the same: only T and L rules judge those."""
    assert {rule.code for rule in RULES if not rule.proves_delivery_wrong} == {"C03", "C04", "C08", "C11"}
    assert all("does not prove that delivery was wrong" in rule.docs.proves for rule in RULES if not rule.proves_delivery_wrong)
