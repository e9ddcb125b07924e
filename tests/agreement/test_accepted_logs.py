"""What a broker accepted gives no finding: random logs that a leader let in batch by batch, judged by the law and by the rules' own SQL.

`model.producer_state` says what a leader takes, `model.producer_history` and `model.visibility` what a log then shows. Neither knows the
other, so where they disagree one of them misreads Kafka.
"""

from collections import Counter
from dataclasses import fields
from functools import cache

import duckdb
import pyarrow as pa

from eo_audit.model.aborted_index import Seen, judge_index
from eo_audit.model.lso import replay
from eo_audit.model.producer_history import HistoryRow, histories
from eo_audit.model.producer_state import GENERATIONS, Answer, Partition
from eo_audit.model.visibility import IndexedLog, index_of, read_committed
from eo_audit.rules.catalogue import RULES
from tests.support.accepted_logs import AcceptedLog, accepted_log

SEEDS, DEEDS = 2000, 60
# What a leader checks: sequences, epochs and open transactions. The other P rules look at the shape of batches, at payloads and at clocks.
JUDGED = [rule for rule in RULES if "P01" <= rule.code <= "P08" and rule.where is not None]
FIRST_NOT_ZERO = "P07"  # what a leader may accept of a producer that it does not know; the rule tells it as information


@cache
def logs(*, forgetful: bool = False) -> list[AcceptedLog]:
    """The random logs; a tenth as many where leaders forget."""
    return [accepted_log(seed, deeds=DEEDS, forgetful=forgetful) for seed in range(SEEDS // 10 if forgetful else SEEDS)]


def hits(judged: list[AcceptedLog]) -> dict[str, set[tuple[int, int]]]:
    """By rule: the producers of logs (by number) that its own `where` finds."""
    names = [column.name for column in fields(HistoryRow)]
    rows = [
        {"log": number, "producer_id": batch.producer_id, "is_transactional": batch.is_transactional}
        | {name: getattr(row, name) for name in names}
        for number, log in enumerate(judged)
        for batch, row in zip(log.partition.log, histories(log.partition.log), strict=True)
    ]
    assert all(row["judged"] for row in rows)
    told = duckdb.connect().from_arrow(pa.Table.from_pylist(rows))
    return {rule.code: set(told.filter(str(rule.where)).project("log, producer_id").fetchall()) for rule in JUDGED}


def test_what_a_broker_accepted_gives_no_finding() -> None:
    found = hits(logs())
    started = {(number, producer) for number, log in enumerate(logs()) for producer in log.started_anywhere}
    assert found.pop(FIRST_NOT_ZERO) == started
    assert not any(found.values()), {code: sorted(where)[:3] for code, where in found.items() if where}


def test_leaders_that_forget_give_every_finding() -> None:
    """Else the test above would not see what it looks for."""
    assert all(hits(logs(forgetful=True)).values())


def test_leaders_are_asked_everything() -> None:
    answers: dict[str, Counter[Answer]] = {release: Counter() for release in GENERATIONS}
    for log in logs():
        answers[log.release] += log.answers
    assert all(min(told[answer] for answer in Answer if answer is not Answer.UNKNOWN_PRODUCER) > 50 for told in answers.values()), answers
    assert answers["1.0"][Answer.UNKNOWN_PRODUCER] > 50
    wrapped = sum(batch.last_sequence < batch.base_sequence for log in logs() for batch in log.partition.log)
    assert wrapped > 200


def test_replicas_take_what_the_leader_accepted() -> None:
    for log in logs():
        replica = Partition(log.partition.law)
        for batch in log.partition.log:
            assert replica.replicate(batch) is Answer.APPENDED, batch
        known = {producer_id: entry for producer_id, entry in log.partition.entries.items() if entry.epoch >= 0}
        assert {producer_id: replica.entries[producer_id] for producer_id in known} == known


def test_consumers_get_what_was_committed() -> None:
    """The index that a correct broker writes says what the log says, and a read_committed consumer gets all below the LSO but what was
    aborted: by the spans of the history, which know neither index nor LSO."""
    for log in logs():
        batches, segments, end = log.partition.log, log.segments, log.end_offset
        state = replay(batches)
        index = index_of(state.ended, segments)
        judged = judge_index(state.ended, [entry for base in segments for entry in index[base]], Seen(0, 0, end))
        assert {told for _, told, _ in judged} <= {"match"}
        lso = state.last_stable_offset(hw=end, log_start=0)
        outcomes = zip(batches, histories(batches), strict=True)
        wanted = [b for b, row in outcomes if not b.is_control and b.last_offset < lso and row.span_outcome in (None, "committed")]
        for bounded in (True, False):
            assert read_committed(IndexedLog(batches, segments, index), log_start=0, lso=lso, bounded=bounded) == wanted
