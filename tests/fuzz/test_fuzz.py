"""A share of `make fuzz`, and that it would see what it looks for."""

import re
from collections.abc import Callable

import pytest

from eo_audit.dump.parse import State, parse_range
from tests.fuzz.__main__ import TOLERATED, main, tried
from tests.fuzz.checks import CONTEXT, faults
from tests.fuzz.coordinator import coordinator_mutant
from tests.fuzz.honest import is_honest
from tests.fuzz.mutants import CLEANED_SEEDS, DATA, FLAT_SEEDS, LOSSY_SEEDS, TOOL, Mutant, mutant

SEEDS, COUNT = (*range(0, 160, 40), FLAT_SEEDS, CLEANED_SEEDS, LOSSY_SEEDS), 20  # first ones, and how many from each on
# Seeds that once invented a fact, or lost one.
MENDED = (1000526, 1002395, 1002673, 1004688, 1005212, 2005440, 2005502, 2012079, 3003616, 3024053, 3049474, 30003602, 30008746, 30031919)
# What no reader can know: each kind that is tolerated, and seeds that show it.
TOLERATED_SEEDS = {
    "a fact from a header key, behind the last line of a log": (365,),
    "a fact from a payload, in text that an honest tool prints": (
        40410,
        40808,
        11007882,
        50711,
        11004687,
        11012985,
        11014448,
        11019062,
        47009172,
        47012817,
        47040496,
    ),
    "a fact from a payload, behind damage in the last batch of a log": (12002181,),
    "a path from a payload, in the head of a text": (11015061, 11016331, 11016680),
    "a message from a payload, in the head of a text": (48040506,),
}
# Seeds that had a fact from a payload, behind damage or behind the end of a segment.
SEEDS_WITHOUT_A_FACT_FROM_A_PAYLOAD = (
    12000399,
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
    40469,
    11000279,
    11000419,
    11000428,
    11000951,
    11001976,
    11003165,
    11003545,
    11005269,
    11005662,
    11005856,
    11008974,
    11010330,
    11010859,
    11011988,
    11012087,
    11012409,
    11012442,
    11013196,
    11013390,
    11013968,
    11015704,
    11016334,
    11016487,
    11017720,
    11018903,
    11018927,
    11019360,
    11000096,
    11001072,
    11002742,
    11004130,
    11004973,
    11007183,
    11009030,
    11010363,
    11011801,
    11014070,
    11016064,
    11018822,
    11019546,
    12000533,
    12000940,
    12002206,
    12001607,
    13002174,
    20002261,
    20005310,
    20006435,
    20012420,
    20015611,
    20017464,
    20017998,
    20023534,
    20024795,
    20033894,
    20038660,
    20038840,
    20039282,
    20045559,
    20050317,
    20054773,
    20055717,
    42001994,
    44015878,
    44052387,
    11006449,
    46010844,
    46032823,
    46051665,
    46055280,
    47005649,
    47007380,
    48019492,
    11001367,
    1796045646899,
)


@pytest.fixture(scope="module")
def found() -> list[tuple[int, str, str, str]]:
    return [fault for first in SEEDS for fault in tried(first, COUNT)[0]]


def test_nothing_is_lost_and_nothing_invented_and_all_readers_agree(found: list[tuple[int, str, str, str]]) -> None:
    assert [fault for fault in found if fault[1] not in TOLERATED] == []


@pytest.mark.parametrize("seed", MENDED)
def test_what_was_mended(seed: int) -> None:
    assert {fault.kind for fault in faults(mutant(seed), seed)} <= TOLERATED


@pytest.mark.parametrize(("kind", "seed"), [(kind, seed) for kind, seeds in TOLERATED_SEEDS.items() for seed in seeds])
def test_what_is_tolerated(kind: str, seed: int) -> None:
    assert {fault.kind for fault in faults(mutant(seed), seed)} == {kind}
    assert TOLERATED_SEEDS.keys() == TOLERATED


@pytest.mark.parametrize("seed", SEEDS_WITHOUT_A_FACT_FROM_A_PAYLOAD)
def test_what_is_no_longer_believed(seed: int) -> None:
    assert list(faults(mutant(seed), seed)) == []


@pytest.mark.parametrize("make", [mutant, coordinator_mutant])
def test_a_seed_makes_the_same_mutant_again(make: Callable[[int], Mutant]) -> None:
    for seed in range(60):
        made, again = make(seed), make(seed)
        assert made.text == again.text and (made.origins == again.origins).all()
        assert len(made.origins) == len(made.text) and made.made_by == again.made_by
        if made.undamaged and "header" not in made.made_by:
            assert TOOL in made.origins and (DATA in made.origins or b" payload: " not in made.text)


def test_a_fact_from_a_payload_is_seen() -> None:
    made = next(made for made in map(mutant, range(100)) if made.undamaged and not list(faults(made, 0)))
    made.origins[:] = DATA
    made.made_by[0] = "value"
    assert {fault.kind for fault in faults(made, 0)} == {"a fact from a payload"}


# A number of an honest text that fits no other value.
NUMBERS = (
    rb" lastSequence: (\d+) ",
    rb" count: (\d+) ",
    rb"isControl: false [^\n]*\n\| offset: [^\n]*? sequence: (\d+) ",
    rb"isControl: false [^\n]*\n\| offset: (\d+) ",
    rb"isControl: false [^\n]*\n\| offset: [^\n]*? value[sS]ize: (\d+) ",
    rb"position: (\d+) [^\n]* magic: 2",
)


@pytest.fixture(scope="module")
def honest() -> Mutant:
    """An undamaged dump of plain text, read whole."""
    plain = (made for made in map(mutant, range(100)) if made.undamaged and made.made_by[0] == "random" and b"?" not in made.text)
    return next(made for made in plain if all(re.search(number, made.text) for number in NUMBERS) and _is_proved(made, made.text))


def _is_proved(made: Mutant, text: bytes) -> bool:
    """Would the facts of the text of a mutant be proved to be an honest tool's?"""
    result = parse_range(text, context=CONTEXT, base=0, start=0, stop=len(text), state=State.initial(), final=True)
    if result.ledger.unread or "batches" not in result.facts:
        return False
    changed = Mutant(text, made.origins, made.made_by, undamaged=False)
    return all(is_honest(changed, result, start) for start in result.facts["batches"]["byte_offset"].to_pylist())


@pytest.mark.parametrize("number", NUMBERS)
def test_a_proof_that_a_tool_printed_a_text_fails_by_one_number(honest: Mutant, number: bytes) -> None:
    start, stop = list(re.finditer(number, honest.text))[-1].span(1)
    text = honest.text[:start] + b"%d" % (int(honest.text[start:stop]) + 1) + honest.text[stop:]
    assert _is_proved(honest, honest.text) and not _is_proved(honest, text)


def test_the_command_prints_its_seeds_and_goes_through(capsys: pytest.CaptureFixture[str]) -> None:
    clean = next(seed for seed in range(100) if not tried(seed, 1)[0])
    assert main(["--seed", str(clean), "--count", "1"]) == 0
    said = capsys.readouterr().out
    assert f"seeds {clean} to {clean}" in said and "1 mutants of data logs" in said and "no fault" in said
