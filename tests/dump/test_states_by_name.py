"""4.4 prints the states of coordinator entries by name (KAFKA-20712), 4.1 to 4.3 their numbers: of one log both say the same."""

import re
from pathlib import Path

import pyarrow as pa
import pytest

from eo_audit.dump.parse import FileContext, RangeResult
from eo_audit.words import NEVER_TIMES_OUT
from tests.support.coordinator_text import STATES
from tests.support.readers import assert_same, read

DUMPS = Path(__file__).parent.parent / "data" / "corpus" / "dumps"
_STATUS = re.compile(rb'(?<="transactionStatus":)(-?\d+)(?=,)')
LOGS = {
    path.relative_to(DUMPS).as_posix(): text
    for path in sorted(DUMPS.rglob("__transaction_state-*/*.log.txt"))
    if _STATUS.search(text := path.read_bytes())
}
UNPLACED = ("byte_offset", "length")  # a name is longer than a number, so all that follows lies further on


def by_name(text: bytes) -> bytes:
    """The same text as 4.4 prints it; a number that has no name is printed as text."""
    return _STATUS.sub(lambda found: b'"%s"' % (STATES[n].encode() if (n := int(found[1])) in range(len(STATES)) else found[1]), text)


def told(result: RangeResult, table: str) -> pa.Table:
    return result.facts[table].drop_columns(list(UNPLACED))


@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("fast", [True, False])
def test_a_coordinator_log_says_the_same_by_name_and_by_number(name: str, fast: bool) -> None:
    context = FileContext("c", f"broker-1/{'/'.join(name.split('/')[-2:])}", 1)
    numbers, names = (read(text, context, fast=fast) for text in (LOGS[name], by_name(LOGS[name])))
    assert names.ledger.unread == numbers.ledger.unread == 0
    assert names.facts.keys() == numbers.facts.keys()
    for table in ("batches", "coordinator_entries"):
        assert told(names, table).equals(told(numbers, table)), table
    assert set(names.facts["coordinator_entries"]["status"].to_pylist()) <= {*STATES, None}


@pytest.mark.parametrize("name", sorted(LOGS)[::5])
def test_both_readers_read_names_alike(name: str) -> None:
    assert_same(by_name(LOGS[name]), FileContext("c", f"broker-1/{'/'.join(name.split('/')[-2:])}", 1))


@pytest.mark.parametrize("fast", [True, False])
def test_what_4_4_0_printed_of_two_ids_is_read_to_the_end(fast: bool) -> None:
    """Of a real log; flink-0 asked for transactions of two phases (KIP-939), which never time out."""
    text = (DUMPS.parents[1] / "printed" / "4.4.0-transaction-state.txt").read_bytes()
    found = read(text, FileContext("c", "broker-1/__transaction_state-0/00000000000000000000.log.txt", 1), fast=fast)
    assert found.ledger.unread == 0
    entries = found.facts["coordinator_entries"].to_pylist()
    told = {id_: [(e["status"], e["timeout_ms"]) for e in entries if e["transactional_id"] == id_] for id_ in ("app", "flink-0")}
    ended = ["Ongoing", "PrepareCommit", "CompleteCommit"]
    assert told["app"] == [(status, 120_000) for status in ("Empty", *ended, *ended)]
    assert told["flink-0"] == [(status, NEVER_TIMES_OUT) for status in ("Empty", *ended, "Empty", "Ongoing")]


def test_there_are_entries_of_many_states_and_a_number_without_a_name_is_told_as_one() -> None:
    text = b"".join(LOGS.values())
    assert {int(number) for number in _STATUS.findall(text)} >= {0, 1, 2, 3, 4, 5}
    name, log = next(iter(LOGS.items()))
    odd = by_name(re.sub(rb'"transactionStatus":1,', b'"transactionStatus":9,', log))
    assert b'"transactionStatus":"9",' in odd
    entries = read(odd, FileContext("c", f"broker-1/{'/'.join(name.split('/')[-2:])}", 1), fast=True).facts["coordinator_entries"]
    assert "Unknown(9)" in entries["status"].to_pylist()
