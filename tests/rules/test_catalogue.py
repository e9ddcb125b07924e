"""The catalogue: which rules there are, what each must say, and its fingerprint."""

import random
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

import eo_audit.rules
from eo_audit.rules.catalogue import BY_CODE, RULES
from eo_audit.rules.context import ASKED
from eo_audit.rules.fingerprint import fingerprint
from eo_audit.rules.needs import NEEDS
from eo_audit.rules.rule import SEVERITIES, Docs, Rule
from eo_audit.rules.sources import SOURCES
from eo_audit.rules.subjects import SUBJECTS
from eo_audit.store.schemas import schema

PAGES = {path for path in Path(eo_audit.rules.__file__).parent.glob("*/*.py") if "\nRULE = " in path.read_text(encoding="utf-8")}
WAITING = {"", "for_ever", "overdue", "stuck", "open"}


def test_codes_and_names_are_used_once() -> None:
    assert not [code for code, times in Counter(rule.code for rule in RULES).items() if times > 1]
    assert not [slug for slug, times in Counter(rule.slug for rule in RULES).items() if times > 1]
    assert not [rule.code for rule in RULES if not re.fullmatch("[A-Z][0-9]{2}", rule.code)]


def test_every_page_is_in_the_catalogue_and_called_as_its_rule() -> None:
    assert sorted(path.stem.replace("_", "-") for path in PAGES) == sorted(rule.slug for rule in RULES)


@pytest.mark.parametrize("path", sorted(PAGES), ids=lambda path: path.stem)
def test_a_page_begins_with_the_name_of_its_rule(path: Path) -> None:
    (rule,) = (rule for rule in RULES if rule.slug == path.stem.replace("_", "-"))
    assert path.read_text(encoding="utf-8").startswith(f'"""{rule.code} {rule.slug}: ')


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_rule_is_whole(rule: Rule) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.slug) and rule.severity in SEVERITIES
    assert rule.where or rule.find
    assert set(rule.subject.split()) <= set(SUBJECTS) and set(rule.needs) <= NEEDS
    assert rule.reads[0] in SOURCES
    assert not rule.where or not rule.by or set(rule.by.split()) <= set(schema(rule.reads[0]).columns)
    assert set(rule.columns.split()) <= set(schema(rule.reads[0]).columns)
    assert set(rule.asks) <= set(ASKED) and rule.waiting in WAITING
    assert {*rule.caused_by, *rule.silences, *rule.speaks_for} <= set(BY_CODE)
    assert all(len(text) > 15 for text in (*vars(rule.docs).values(), rule.cause, rule.remedy))


@pytest.mark.parametrize("table", SOURCES)
def test_sources_name_columns_of_their_tables(table: str) -> None:
    source, columns = SOURCES[table], set(schema(table).columns)
    named = set(source.about.split()) | {offset for _, offset in source.addresses}
    named |= {f"{prefix}{part}" for prefix, _ in source.addresses for part in ("section_id", "byte_offset", "length")}
    assert named <= columns


def test_the_fingerprint_is_free_of_order_and_sees_every_change() -> None:
    shuffled = random.Random(7).sample(RULES, len(RULES))
    assert fingerprint(shuffled) == fingerprint(RULES)
    assert fingerprint(RULES[1:]) != fingerprint(RULES)
    assert fingerprint((replace(RULES[0], where="true"), *RULES[1:])) != fingerprint(RULES)
    assert fingerprint([replace(rule, together=None) for rule in RULES]) != fingerprint(RULES)


def test_a_page_without_a_part_of_its_docstring_shows() -> None:
    assert Docs.of("X01 x: y.\n\nProves: this\nand that.\n\nLegal look-alike: other.\n") == Docs("this and that.", "", "other.")
    assert Docs.of(None) == Docs()


def test_no_remedy_offers_an_abort_where_the_coordinator_lists_the_partition() -> None:
    offers = {rule.code for rule in RULES if "kafka-transactions.sh" in rule.remedy and " abort " in rule.remedy}
    assert offers == set()


def test_what_the_coordinator_wrote_wrongly_is_no_proof_about_delivery() -> None:
    """Markers and data may be right all the same: only T and L rules judge those."""
    assert {rule.code for rule in RULES if not rule.proves_delivery_wrong} == {
        *("C03", "C04", "C05", "C06", "C07", "C08", "C10", "C11", "C13", "C14", "C16", "C17"),
        *("I01", "I02", "I03", "I04", "I05", "I07", "O02", "O04", "O06", "T14"),
        # Damaged files: what brokers made of them S01, S02, L02 and R04 tell.
        *("S04", "S05", "R06", "C15", "X01"),
    }
    assert all("does not prove that delivery was wrong" in rule.docs.proves for rule in RULES if not rule.proves_delivery_wrong)
