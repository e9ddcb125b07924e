"""Where an id lives, and that the tables of the law fit together."""

import pytest

from eo_audit.model import states as law

# Computed by a JVM; with n = 50 as by default, and with n = 5 as in a cluster that really held these ids.
HOMES_OF_50 = {
    "kafka-txn-0": 30,
    "my-group": 12,
    "anyValue": 23,
    "TEST-TID-0": 7,
    "TEST-TID-2": 9,
    "TID-BLAST": 24,
    "polygenelubricants": 0,
}
HOMES_OF_5 = {
    **{"order-writer-0": 3, "order-writer-1": 4, "kafka-txn-0": 0, "settlement:eu,west": 1, "TxnMetadata(": 3},
    **{"Zażółć-gęślą-0": 1, "emoji-😀-0": 2, "a b  c": 1, "polygenelubricants": 0},
}


@pytest.mark.parametrize(("name", "home"), HOMES_OF_50.items())
def test_partition_among_fifty(name: str, home: int) -> None:
    assert law.partition_for(name, 50) == home


@pytest.mark.parametrize(("name", "home"), HOMES_OF_5.items())
def test_partition_among_five(name: str, home: int) -> None:
    assert law.partition_for(name, 5) == home


def test_the_hash_is_signed_and_counts_surrogates_twice() -> None:
    assert law.java_hash("polygenelubricants") == -(2**31)
    assert law.java_hash("😀") == 31 * 0xD83D + 0xDE00
    assert law.java_hash("") == 0


@pytest.mark.parametrize("protocol", law.PROTOCOLS)
def test_nothing_follows_a_state_that_is_never_written(protocol: str) -> None:
    table = law.VALID_PREVIOUS[protocol]
    assert law.TRANSIENT.isdisjoint(table)
    assert set(table) == law.KNOWN - law.TRANSIENT | {law.TOMBSTONE}


def test_only_the_new_protocol_aborts_what_was_never_begun() -> None:
    assert law.EXPIRABLE.isdisjoint(law.VALID_PREVIOUS[law.TV0][law.PREPARE_ABORT])
    assert law.VALID_PREVIOUS[law.TV2][law.PREPARE_ABORT] >= law.EXPIRABLE
    assert law.EXPIRABLE.isdisjoint(law.VALID_PREVIOUS[law.TV2][law.PREPARE_COMMIT])


@pytest.mark.parametrize(
    ("version", "may"), [("2.3.1", True), ("2.5.0", True), ("2.6.0", False), ("3.9.1", False), ("10.0.0", False), (None, True), ("x", True)]
)
def test_failed_fences_burn_epochs_before_2_6(version: str | None, may: bool) -> None:
    assert law.fence_may_jump(version) is may
