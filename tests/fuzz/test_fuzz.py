"""A share of `make fuzz`, and that it would see what it looks for."""

import pytest

from tests.fuzz.__main__ import TOLERATED, main, tried
from tests.fuzz.checks import faults
from tests.fuzz.mutants import DATA, TOOL, mutant

SEEDS = range(0, 160, 40)
# Seeds that once invented a fact, or lost one.
MENDED = (1000526, 1002395, 1002673, 1004688, 1005212, 2005440, 2005502, 2012079, 3003616, 3024053, 3049474)
# Header keys behind the last batch of a compressed log; damage to a text whose payloads forge the lines that were damaged.
SEEDS_OF_ONE_TEXT_WITH_TWO_HISTORIES = (365, 40410, 40469, 40808, 50711)
# Seeds that had a fact from a payload, behind damage or behind the end of a segment.
SEEDS_WITHOUT_A_FACT_FROM_A_PAYLOAD = (
    38,
    45,
    126,
    271,
    333,
    378,
    379,
    382,
    436,
    511,
    541,
    563,
    623,
    662,
    718,
    1510,
    1568,
    40007,
    40012,
    40118,
    40149,
    40196,
    40208,
    40220,
    40241,
    40249,
    40273,
    40337,
    40367,
    40390,
    40489,
    40495,
    40526,
    40571,
    40587,
    40606,
    40663,
    40764,
    40798,
    40837,
    40838,
    40864,
    40885,
    40988,
    40996,
    50004,
    50051,
    50074,
    50085,
    50256,
    50323,
    50371,
    50390,
    50408,
    50462,
    50513,
    50812,
    50866,
    50873,
    50928,
    5008079,
    5011318,
    5012497,
    6011731,
    6017543,
    6022773,
    7000177,
)


@pytest.fixture(scope="module")
def found() -> list[tuple[int, str, str, str]]:
    return [fault for first in SEEDS for fault in tried(first, 40)[0]]


def test_nothing_is_lost_and_nothing_invented_and_all_readers_agree(found: list[tuple[int, str, str, str]]) -> None:
    assert [fault for fault in found if fault[1] not in TOLERATED] == []


@pytest.mark.parametrize("seed", MENDED)
def test_what_was_mended(seed: int) -> None:
    assert {fault.kind for fault in faults(mutant(seed), seed)} <= TOLERATED


@pytest.mark.parametrize("seed", SEEDS_OF_ONE_TEXT_WITH_TWO_HISTORIES)
def test_what_is_tolerated(seed: int) -> None:
    kinds = {fault.kind for fault in faults(mutant(seed), seed)}
    assert len(kinds) == 1 and kinds < TOLERATED


@pytest.mark.parametrize("seed", SEEDS_WITHOUT_A_FACT_FROM_A_PAYLOAD)
def test_what_is_no_longer_believed(seed: int) -> None:
    assert list(faults(mutant(seed), seed)) == []


def test_a_seed_makes_the_same_mutant_again() -> None:
    for seed in range(60):
        made, again = mutant(seed), mutant(seed)
        assert made.text == again.text and (made.origins == again.origins).all()
        assert len(made.origins) == len(made.text) and made.made_by == again.made_by
        if made.undamaged and "header" not in made.made_by:
            assert TOOL in made.origins and (DATA in made.origins or b" payload: " not in made.text)


def test_a_fact_from_a_payload_is_seen() -> None:
    made = next(made for made in map(mutant, range(100)) if made.undamaged and not list(faults(made, 0)))
    made.origins[:] = DATA
    made.made_by[0] = "value"
    assert {fault.kind for fault in faults(made, 0)} == {"a fact from a payload"}
    made.undamaged = False
    assert {fault.kind for fault in faults(made, 0)} < TOLERATED


def test_the_command_prints_its_seeds_and_goes_through(capsys: pytest.CaptureFixture[str]) -> None:
    clean = next(seed for seed in range(100) if not list(faults(mutant(seed), seed)))
    assert main(["--seed", str(clean), "--count", "1"]) == 0
    said = capsys.readouterr().out
    assert f"seeds {clean} to {clean}" in said and "1 mutants" in said and "no fault" in said
