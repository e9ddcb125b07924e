"""Which marker ended which transaction, where places or clocks leave a choice."""

import pytest

from eo_audit.model.alignment import Decided, Marker, Producer, align

PERIOD_MS = 200


def decided(types: str) -> list[Decided]:
    """Transactions of one epoch, one after the other: C a COMMIT, A an ABORT."""
    names = {"C": "COMMIT", "A": "ABORT"}
    return [
        Decided(place=at, epoch=0, decision=names[kind], decided_ms=PERIOD_MS * at, until_ms=PERIOD_MS * at + 10)
        for at, kind in enumerate(types)
    ]


def marker(at: int, kind: str, *, ahead_ms: int = 0, epoch: int = 0) -> Marker:
    """The marker of the transaction `at`, by a clock that is so far ahead."""
    name = {"C": "COMMIT", "A": "ABORT"}[kind]
    return Marker(offset=10 * at, type=name, epoch=epoch, at_ms=PERIOD_MS * at + 5 + ahead_ms, closes=True, odd=epoch > 2)


def told(markers: list[Marker], transactions: str, **ends: bool) -> list[int | None]:
    """The transaction of each marker; none of them may be doubtful."""
    (matches,) = align({1: Producer(markers, decided(transactions), **ends)}, skew_ms=2000).values()
    assert not any(match.doubtful for match in matches)
    return [match.decided for match in matches]


@pytest.mark.parametrize("ahead_ms", [-30_000, -300, 0, 300, 2_500, 30_000])
def test_order_tells_whatever_the_clocks_say(ahead_ms: int) -> None:
    kinds = "CCACACCCAC"
    assert told([marker(at, kind, ahead_ms=ahead_ms) for at, kind in enumerate(kinds)], kinds) == list(range(10))


def test_a_marker_that_was_lost_leaves_its_transaction_without_one() -> None:
    kinds = "CCACACCCAC"
    assert told([marker(at, kind) for at, kind in enumerate(kinds) if at != 4], kinds, newer_markers=False) == [0, 1, 2, 3, 5, 6, 7, 8, 9]


def test_a_marker_of_the_other_type_is_still_its_transactions() -> None:
    assert told([marker(at, "C") for at in range(6)], "CCACCC", newer_markers=False, newer_decided=False) == list(range(6))


@pytest.mark.parametrize("odd", range(3))
def test_a_marker_of_an_impossible_epoch_stands_for_its_transaction_and_ends_none(odd: int) -> None:
    markers = [marker(at, kind, epoch=3 if at == odd else 0) for at, kind in enumerate("CAC")]
    assert told(markers, "CAC") == [None if at == odd else at for at in range(3)]
