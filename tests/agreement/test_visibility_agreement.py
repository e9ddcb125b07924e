"""Spark and the model see the same: last stable offsets, what consumers get, and what the aborted index lacks, on random logs."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import astuple

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from eo_audit.history.aborted_index import aborted_index
from eo_audit.history.coverage import coverage
from eo_audit.history.log_order import in_log_order
from eo_audit.history.replica_logs import replica_logs
from eo_audit.history.sections import section_status
from eo_audit.history.sequences import producer_rows
from eo_audit.history.spans import transaction_spans
from eo_audit.history.visibility import mark_visibility, visibility
from eo_audit.history.visible_ranges import visible_ranges
from eo_audit.model.aborted_index import Seen, judge_index
from eo_audit.model.batches import ABORT, COMMIT, Batch
from eo_audit.model.lso import TransactionState, may_have_ended, replay, state_at_end
from eo_audit.model.visibility import IndexedLog, fetch, is_of_one_fetch, look_up_ends_before, read_committed, read_uncommitted
from tests.agreement.transactional_logs import TransactionalLog, transactional_logs
from tests.support.rows import table

OFTEN = 100
EVERYWHERE = 2**63 - 1
OUTCOMES = {COMMIT: "committed", ABORT: "aborted", None: "unknown"}
Rows = list[dict[str, object]]


def _section(log_id: int, number: int, **more: object) -> dict[str, object]:
    own = {"section_id": log_id * 1000 + number, "dump_file_id": log_id * 1000 + number, "length": 100, "end_reason": "eof"}
    place = {"cluster": str(log_id), "broker": 1, "topic": "orders", "partition": 0, "replica_log_id": log_id, "dir_kind": "normal"}
    return own | place | {"kind": "log", "dialect": "3.3", "deep": True} | more


def _sections(log_id: int, log: TransactionalLog) -> Rows:
    shallow = any(batch.kind == "marker" and batch.marker_type is None for batch in log.batches)
    rows = [_section(log_id, number, segment_base_offset=base, deep=not shallow) for number, base in enumerate(log.segments)]
    dumped = [base for base in log.segments if base not in log.unknown_indexes]
    rows += [_section(log_id, 100 + number, segment_base_offset=base, kind="txnindex") for number, base in enumerate(dumped)]
    if log.snapshot:
        rows.append(_section(log_id, 200, segment_base_offset=log.snapshot.offset, kind="snapshot"))
    broker = {"replica_log_id": None, "topic": None, "partition": None, "segment_base_offset": None}
    rows.append(_section(log_id, 300, kind="checkpoint", **broker))
    rows.append(_section(log_id, 301, kind="listing", **broker))
    return rows


def _batch_row(log_id: int, log: TransactionalLog, batch: Batch) -> dict[str, object]:
    own = {name: getattr(batch, name) for name in Batch.__dataclass_fields__ if name != "segment_base_offset"}
    section = log_id * 1000 + log.segments.index(batch.segment_base_offset)
    return own | {"replica_log_id": log_id, "section_id": section, "byte_offset": batch.base_offset * 10, "length": 10, "magic": 2}


def _facts(logs: list[TransactionalLog]) -> dict[str, Rows]:
    names = ["dump_sections", "dump_files", "batches", "records", "aborted_transactions", "producer_snapshots", "checkpoints"]
    facts: dict[str, Rows] = {name: [] for name in [*names, "listed_files", "manifest_entries"]}
    for log_id, log in enumerate(logs):
        own = {"replica_log_id": log_id, "cluster": str(log_id), "broker": 1, "topic": "orders", "partition": 0}
        sections, noted = _sections(log_id, log), {"dumped_at_ms": None if log.dumped_index is not None else 10_000}
        facts["dump_sections"] += sections
        facts["dump_files"] += [
            {"dump_file_id": row["dump_file_id"], "path": f"{_name(row)}.txt", "digest": str(row["section_id"])} | noted for row in sections
        ]
        facts["batches"] += [_batch_row(log_id, log, batch) for batch in log.batches]
        facts["records"] += [
            {"section_id": row["section_id"], "base_offset": row["base_offset"], "offset": offset}
            for row in facts["batches"]
            if row["replica_log_id"] == log_id
            for offset in log.kept.get(int(str(row["base_offset"])), ())
        ]
        facts["aborted_transactions"] += _entries(log_id, log, sections)
        facts["producer_snapshots"] += _open_in_snapshot(log_id, log)
        rows = [("log-start-offset", log.log_start), ("replication-offset", log.hw), ("cleaner-offset", log.uncleaned_from or None)]
        facts["checkpoints"] += [
            own | {"section_id": log_id * 1000 + 300, "checkpoint_kind": kind, "offset": offset}
            for kind, offset in rows
            if offset is not None
        ]
        listed = [f"{base:020}.log" for base in log.segments] + [f"{base:020}.txnindex" for base in log.unknown_indexes]
        facts["listed_files"] += [
            own
            | {"section_id": log_id * 1000 + 301, "file_name": name, "folder": "orders-0"}
            | {"file_bytes": 34 if name.endswith(".txnindex") else 0}
            | noted
            for name in listed
        ]
    return facts


def _name(row: dict[str, object]) -> str:
    names = {"checkpoint": "replication-offset-checkpoint", "listing": "listing"}
    return names.get(str(row["kind"]), f"{row['segment_base_offset']}.{row['kind']}")


def _entries(log_id: int, log: TransactionalLog, sections: Rows) -> Rows:
    section_of = {row["segment_base_offset"]: row["section_id"] for row in sections if row["kind"] == "txnindex"}
    return [
        {
            "section_id": section_of[base],
            "replica_log_id": log_id,
            "segment_base_offset": base,
            "entry_index": at,
            "producer_id": e.producer_id,
        }
        | {"first_offset": e.first_offset, "last_offset": e.last_offset, "last_stable_offset": e.last_stable_offset}
        for base, entries in (log.index if log.dumped_index is None else log.dumped_index).items()
        # Of some logs each line was collected twice.
        for at, e in enumerate(entry for entry in entries for _ in range(2 if log_id % 5 == 0 else 1))
    ]


def _open_in_snapshot(log_id: int, log: TransactionalLog) -> Rows:
    if log.snapshot is None:
        return []
    own = {"section_id": log_id * 1000 + 200, "replica_log_id": log_id, "snapshot_offset": log.snapshot.offset}
    return [own | {"producer_id": txn.producer_id, "current_txn_first_offset": txn.first_offset} for txn in log.snapshot.open]


def _decided(log_id: int, producer: int, span: int) -> str | None:
    """What the coordinator says of a span: nothing in most cases."""
    return {0: "COMMIT", 1: "ABORT"}.get((log_id + producer + span) % 8)


DECIDED = "element_at(map(0, 'COMMIT', 1, 'ABORT'), CAST(pmod(replica_log_id + producer_id + span_id, 8) AS INT))"


class Expected:
    """What the model says of one log."""

    def __init__(self, log_id: int, log: TransactionalLog) -> None:
        self.log_id, self.log = log_id, log
        self.state: TransactionState = state_at_end(log.batches, end_offset=log.end_offset, snapshot=log.snapshot)
        self.hw = log.end_offset if log.hw is None else max(min(log.hw, log.end_offset), log.log_start)
        self.lso = self._lso(self.hw)
        self.spans = self._spans()
        self.known_from = max([log.end_of(base) for base in log.unknown_indexes], default=0)
        self.outcome = {b.base_offset: self._outcome(b) for b in log.batches if b.kind == "data" and b.is_transactional}

    def is_bound(self, hw: int) -> bool:
        """The LSO lies where it seems to, or above. What a snapshot at the end of the log says is open is open, whatever is missing."""
        told = self.log.snapshot is not None and self.log.snapshot.offset == self.log.end_offset
        holder = self.state.holder(hw=hw)
        if told or holder is None or holder.first_offset >= hw:
            return False
        not_believed = [] if self.log.unjudged_from is None else [(self.log.unjudged_from, self.log.end_offset)]
        return may_have_ended(holder, [*self.log.holes, *not_believed])

    def _lso(self, hw: int) -> int:
        return self.state.last_stable_offset(hw=hw, log_start=self.log.log_start)

    def _spans(self) -> dict[int, int]:
        """First offset of the span of each transactional batch."""
        firsts: dict[int, int] = {}
        opened: dict[int, int] = {}
        for batch in self.log.batches:
            if batch.kind == "marker":
                opened.pop(batch.producer_id, None)
            elif batch.kind == "data" and batch.is_transactional:
                firsts[batch.base_offset] = opened.setdefault(batch.producer_id, batch.base_offset)
        return firsts

    def _outcome(self, batch: Batch) -> str:
        marker = self._marker_after(batch)
        return "open" if marker is None else OUTCOMES[marker.marker_type]

    def _marker_after(self, batch: Batch) -> Batch | None:
        later = (b for b in self.log.batches if b.kind == "marker" and b.producer_id == batch.producer_id)
        return next((b for b in later if b.base_offset > batch.base_offset), None)

    def truth(self, batch: Batch) -> str | None:
        """The column truth."""
        if batch.is_control:
            return None
        if not batch.is_transactional:
            return "plain"
        decided = _decided(self.log_id, batch.producer_id, self.spans[batch.base_offset])
        if decided:
            return OUTCOMES[decided]
        return "unknown" if not self.judged(batch) or self._in_doubt(batch) else self.outcome[batch.base_offset]

    def judged(self, batch: Batch) -> bool:
        """Not behind a bad checksum."""
        return self.log.unjudged_from is None or batch.base_offset < self.log.unjudged_from

    def _in_doubt(self, batch: Batch) -> bool:
        marker = self._marker_after(batch)
        if marker is not None and not self.judged(marker):
            return True
        end = self.log.end_offset if marker is None else marker.base_offset
        own = [b.base_offset for b in self.log.batches if b.producer_id == batch.producer_id and batch.base_offset < b.base_offset <= end]
        reached = max(own, default=batch.base_offset)
        return any(batch.base_offset < first <= reached for first, _ in self.log.holes)

    def returned(self, *, bounded: bool) -> dict[int, bool | None]:
        """The column returned, or returned_from_segment, by base offset."""
        got = read_committed(self._with_lost_markers(), log_start=self.log.log_start, lso=self.lso, bounded=bounded)
        bases = {batch.base_offset for batch in got}
        return {batch.base_offset: self._returned(batch, bases) for batch in self.log.batches}

    def _with_lost_markers(self) -> IndexedLog:
        """The consumer met the markers that lie in a hole, where the index says so."""
        lost = [
            Batch(e.last_offset, e.last_offset, e.producer_id, is_transactional=True, is_control=True, marker_type=ABORT)
            for entries in self.log.index.values()
            for e in entries
            if any(first <= e.last_offset <= last for first, last in self.log.holes)
        ]
        batches = sorted([*self.log.batches, *lost], key=lambda batch: batch.base_offset)
        return IndexedLog(batches, self.log.segments, self.log.index)

    def _returned(self, batch: Batch, bases: set[int]) -> bool | None:
        seen = self.log.log_start <= batch.last_offset < self.lso and not batch.is_control and self.judged(batch)
        known = not batch.is_transactional or batch.base_offset >= self.known_from
        return batch.base_offset in bases if seen and known else None

    def ranges(self) -> set[tuple[object, ...]]:
        """The rows of visible_ranges: view, reader, reader offset, first, last."""
        reads = {
            ("read_committed", "log_start"): self._seen(self.returned(bounded=True)),
            ("read_committed", "segment"): self._seen(self.returned(bounded=False)),
            ("read_uncommitted", "log_start"): read_uncommitted(self.log.indexed, log_start=self.log.log_start, hw=self.hw),
            ("truth_committed", "log_start"): [
                b for b in self.log.batches if self.truth(b) in ("committed", "plain") and self.log.log_start <= b.last_offset < self.hw
            ],
        }
        return {(view, reader, *run) for (view, reader), batches in reads.items() for run in self._runs(batches, reader)}

    def _seen(self, returned: dict[int, bool | None]) -> list[Batch]:
        """As far as the index is not known, a sound one hides what was not committed."""
        return [
            batch
            for batch in self.log.batches
            if not batch.is_control
            and self.log.log_start <= batch.last_offset
            and (returned[batch.base_offset] or self._sound(batch, returned))
        ]

    def _sound(self, batch: Batch, returned: dict[int, bool | None]) -> bool:
        unknown = returned[batch.base_offset] is None and batch.last_offset < self.lso
        return unknown and (not batch.is_transactional or self.outcome[batch.base_offset] == "committed")

    def _runs(self, batches: Iterable[Batch], reader: str) -> list[tuple[int, int, int]]:
        offsets = sorted(
            offset
            for batch in batches
            for offset in self.log.kept.get(batch.base_offset, range(batch.base_offset, batch.last_offset + 1))
            if offset >= self.log.log_start
        )
        runs: list[tuple[int, int, int]] = []
        for offset in offsets:
            base = max(max(s for s in self.log.segments if s <= offset), self.log.log_start) if reader == "segment" else self.log.log_start
            if runs and runs[-1][2] == offset - 1 and runs[-1][0] == base:
                runs[-1] = (base, runs[-1][1], offset)
            else:
                runs.append((base, offset, offset))
        return runs

    def index(self) -> Counter[tuple[tuple[int, int], str, str | None]]:
        """The rows of aborted_index: producer id and marker offset, state, reason."""
        unknown = [(base, self.log.end_of(base)) for base in self.log.unknown_indexes]
        seen = Seen(
            log_start=self.log.log_start,
            first_offset=self.log.segments[0],
            end_offset=self.log.end_offset,
            holes=self.log.holes,
            unknown=unknown,
            unjudged_from=self.log.unjudged_from,
            cleaned_below=self.log.uncleaned_from,
            may_lag=self.log.dumped_index is not None,
        )
        dumped = self.log.index if self.log.dumped_index is None else self.log.dumped_index
        entries = [entry for entries in dumped.values() for entry in entries]
        return Counter(judge_index(replay(self.log.batches).ended, entries, seen))


@pytest.fixture(scope="module")
def compared(spark: SparkSession) -> tuple[list[Expected], dict[str, DataFrame]]:
    """The model's word on all logs, and Spark's tables of them."""
    logs = transactional_logs(380, seed=11)
    facts = {name: table(spark, name, rows) for name, rows in _facts(logs).items()}
    sections = section_status(facts["dump_sections"], facts["dump_files"], facts["batches"]).localCheckpoint()
    known = replica_logs(sections, facts["checkpoints"], facts["listed_files"], facts["manifest_entries"]).localCheckpoint()
    empty = {name: table(spark, name, []) for name in ("clusters", "transaction_instances")}
    ordered = in_log_order(facts["batches"], known, empty["clusters"]).localCheckpoint()
    covered = coverage(ordered, sections, known).localCheckpoint()
    columns = {name: F.lit(None).cast("string") for name in ("instance_id", "instance_source", "registration", "late", "marker_role")}
    decided = F.when(F.col("row_kind") == "data", F.expr(DECIDED))
    rows = producer_rows(ordered).withColumns(columns | {"instance_decision": decided}).localCheckpoint()
    spans = transaction_spans(rows).localCheckpoint()
    others = {"section_status": sections, "clusters": empty["clusters"], "instances": empty["transaction_instances"]}
    seen = visibility(rows, spans, facts["producer_snapshots"], replica_logs=known, coverage=covered, **others).localCheckpoint()
    marked = mark_visibility(rows, seen, facts["aborted_transactions"], section_status=sections).localCheckpoint()
    tables = {
        "visibility": seen,
        "history": marked,
        "index": aborted_index(rows, spans, facts["aborted_transactions"], visibility=seen, section_status=sections),
        "ranges": visible_ranges(marked, facts["records"], seen, section_status=sections),
        "chunked": visible_ranges(marked, facts["records"], seen, section_status=sections, chunk_bits=3),
    }
    return [Expected(log_id, log) for log_id, log in enumerate(logs)], tables


Compared = tuple[list[Expected], dict[str, DataFrame]]


def test_last_stable_offsets(compared: Compared) -> None:
    expected, tables = compared
    found = {
        row.replica_log_id: (row.hw, row.lso, row.lso_if_hw_is_leo, row.lso_at_least, row.open_transactions, row.blocker_first_offset)
        for row in tables["visibility"].collect()
    }
    for one in expected:
        opened = [txn.first_offset for txn in one.state.open.values()]
        stable = one.state.last_stable_offset(hw=one.log.end_offset, log_start=one.log.log_start)
        lsos = {one.hw: one.lso, one.log.end_offset: stable}
        believed = [None if one.is_bound(hw) else lsos[hw] for hw in (one.hw, one.log.end_offset)]
        assert found[one.log_id] == (one.hw, *believed, one.lso, len(opened), min(opened, default=None)), one.log_id
    assert sum(one.is_bound(one.hw) for one in expected) >= 10
    assert sum(one.lso < one.hw for one in expected) >= OFTEN
    assert sum(one.log.snapshot is not None for one in expected) >= OFTEN
    assert sum(one.log.dumped_index is not None for one in expected) >= 10


def test_truth_and_what_is_returned(compared: Compared) -> None:
    expected, tables = compared
    columns = ("truth", "returned", "returned_from_segment")
    found = {(row.replica_log_id, row.base_offset): tuple(row[name] for name in columns) for row in tables["history"].collect()}
    often: Counter[object] = Counter()
    for one in expected:
        bounded, unbounded = one.returned(bounded=True), one.returned(bounded=False)
        for batch in one.log.batches:
            says = (one.truth(batch), bounded[batch.base_offset], unbounded[batch.base_offset])
            assert found[one.log_id, batch.base_offset] == says, (one.log_id, batch.base_offset)
            often.update([("truth", says[0]), ("returned", says[0], says[1])])
    assert all(often["truth", value] >= OFTEN for value in ("committed", "aborted", "open", "plain", "unknown"))
    assert all(often["returned", value, shown] >= OFTEN for value in ("committed", "aborted") for shown in (True, False, None))


def test_visible_ranges(compared: Compared) -> None:
    expected, tables = compared
    columns = ("view", "reader", "reader_offset", "first_offset", "last_offset")
    for name in ("ranges", "chunked"):
        found: dict[int, set[tuple[object, ...]]] = {one.log_id: set() for one in expected}
        for row in tables[name].collect():
            found[row.replica_log_id].add(tuple(row[column] for column in columns))
        assert {one.log_id: one.ranges() for one in expected} == found


def test_the_aborted_index(compared: Compared) -> None:
    expected, tables = compared
    found: dict[int, Counter[tuple[tuple[int, int], str, str | None]]] = {one.log_id: Counter() for one in expected}
    for row in tables["index"].collect():
        found[row.replica_log_id][(row.producer_id, row.marker_offset), row.state, row.reason] += 1
    often: Counter[tuple[str, str | None]] = Counter()
    for one in expected:
        assert one.index() == found[one.log_id], one.log_id
        often.update((state, reason) for _, state, reason in one.index().elements())
    reasons = ("index_not_dumped", "compacted", "below_start", "hole", "uncovered", "empty_abort")
    states = ("match", "missing", "extra", "wrong_first", "marker_is_commit")
    assert {
        what: count for what in [(s, None) for s in states] + [("not_judged", r) for r in reasons] if (count := often[what]) < OFTEN
    } == {}


def test_entries_that_a_look_up_may_miss(compared: Compared) -> None:
    expected, tables = compared
    found: dict[int, Counter[tuple[int, ...]]] = {one.log_id: Counter() for one in expected}
    for row in tables["index"].where("ends_at_offset IS NOT NULL").distinct().collect():
        entry = (row.producer_id, row.entry_first_offset, row.marker_offset, row.entry_last_stable_offset)
        found[row.replica_log_id][*entry, row.ends_at_offset, row.ends_at_stable_offset, row.ends_in_one_fetch] += 1
    for one in expected:
        missed = look_up_ends_before(one.log.indexed)
        ended = replay(one.log.batches).ended
        began = {(txn.producer_id, txn.marker_offset): txn.first_offset for txn in ended if txn.first_offset < txn.marker_offset}
        # Of an entry that begins too early (S03) nothing lies where no look-up finds it.
        says = {
            (*astuple(entry), at.last_offset, at.last_stable_offset, is_of_one_fetch(one.log.indexed, entry, at))
            for entry, at in missed.items()
            if at.last_stable_offset > began.get((entry.producer_id, entry.last_offset), entry.first_offset)
        }
        assert says == set(found[one.log_id]), one.log_id
    assert sum(bool(rows) for rows in found.values()) >= OFTEN
    assert sum(any(row[-1] for row in rows) for rows in found.values()) >= OFTEN // 5


def test_fetches_that_differ_by_their_bound(compared: Compared) -> None:
    """The two readers are not the same everywhere, or one of them would not be tested."""
    expected, _ = compared
    logs = [one for one in expected if one.log.segments]
    assert any(
        fetch(one.log.indexed, segment=base, fetch_offset=base, lso=one.lso)
        != fetch(one.log.indexed, segment=base, fetch_offset=base, lso=one.lso, bounded=False)
        for one in logs
        for base in one.log.segments
    )
