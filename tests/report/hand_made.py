"""A report from rows made by hand: no Spark, no dumps."""

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from eo_audit.report.content import build_content
from eo_audit.report.html import render
from eo_audit.report.pictures import with_pictures

Row = dict[str, object]
NOW = 1795238715265
COMMAND = "kafka-transactions.sh --bootstrap-server $BOOTSTRAP abort --topic orders --partition 0 --start-offset 6"
LINE = "baseOffset: 6 lastOffset: 8 count: 3 baseSequence: 2 lastSequence: 4 producerId: 1 producerEpoch: 0 isvalid: true"


def finding(name: str, rule: str = "T01", **changed: object) -> Row:
    row: Row = {
        "finding_id": name.ljust(64, "0"), "incident_id": name.ljust(64, "0"), "rule": rule, "slug": "hanging-txn", "severity": "critical",
        "certainty": "definite", "cluster": "eu", "topic": "orders", "partition": 0, "brokers": [1], "transactional_id": "late-writer-0",
        "group": None, "producer_id": 1, "producer_epoch": 0, "first_offset": 6, "last_offset": 8, "offset_ranges": [], "record_count": 3,
        "timestamp_ms": NOW - 3_600_000, "message": "The transaction of producer 1 has been open since offset 6", "cause": "a late write",
        "remedy": f"Abort it: `{COMMAND}`. Then upgrade.", "details": "{}",
        "evidence": [{"dump_file": "broker-1/orders-0/00000000000000000000.log.txt", "byte_offset": 2931, "length": 9, "offset": 6}],
    }  # fmt: skip
    return row | changed


def partition(number: int = 0, **changed: object) -> Row:
    row: Row = {
        "cluster": "eu", "broker": 1, "topic": "orders", "partition": number, "log_start": 0, "hw": 14, "hw_source": "checkpoint",
        "leo": 14, "lso": 6, "lso_source": "snapshot", "blocker": {"producer_id": 1, "first_offset": 6}, "held_back_records": 3,
        "coverage": "full", "index_state": "dumped",
    }  # fmt: skip
    return row | changed


def verdict(**changed: object) -> Row:
    rule = {"verdict": "fail", "findings": 1, "failing": 1, "accepted": 0, "judged_partitions": 1, "unknown_why": None, "bring": None}
    row: Row = {
        "schema": 1, "run_id": "0f", "verdict": "fail", "exit_code": 1, "as_of_ms": NOW, "as_of_source": "manifest",
        "code_version": "0.1.0", "rule_set": "ab", "policy": "default", "transactions": [], "accepted": [],
        "rules": {"T01": rule, "L01": rule, "P04": rule | {"failing": 0}}, "partitions": [partition()],
        "inputs": [{"path": "/dumps", "digest": "ab" * 32, "bytes": 23895, "unread_bytes": 0}],
    }  # fmt: skip
    return row | changed


def unseen(why: str, bring: str) -> Row:
    return {"verdict": "unknown", "findings": 0, "failing": 0, "accepted": 0, "judged_partitions": 0, "unknown_why": why, "bring": bring}


def batch(offset: int, producer: int, **changed: object) -> Row:
    row: Row = {
        "base_offset": offset, "last_offset": offset + 1, "row_kind": "data", "producer_id": producer, "producer_epoch": 0,
        "base_sequence": offset, "last_sequence": offset + 1, "truth": "committed", "marker_type": None, "span_id": offset,
        "span_outcome": "committed",
    }  # fmt: skip
    return row | changed


def marker(offset: int, producer: int, kind: str, span: int) -> Row:
    control = {"row_kind": "marker", "last_offset": offset, "marker_type": kind, "truth": None, "span_outcome": None}
    return batch(offset, producer, **control, span_id=span)


def step(offset: int, status: str, at: int, **changed: object) -> Row:
    row: Row = {
        "entry_offset": offset, "batch_timestamp_ms": NOW - 3_600_000 + at, "transactional_id": "late-writer-0", "status": status,
        "tombstone": False, "producer_epoch": 0, "previous_epoch": 0, "step": "legal", "step_reason": None, "epoch_step": "ok",
        "field_change": None,
    }  # fmt: skip
    return row | changed


HANGING = [
    batch(0, 0), marker(2, 0, "COMMIT", 0),
    batch(3, 1, truth="aborted", span_outcome="aborted"), marker(5, 1, "ABORT", 3),
    batch(6, 1, last_offset=8, truth="open", span_outcome="open"),
    batch(9, -1, truth="plain", span_id=None), batch(11, 2), marker(13, 2, "COMMIT", 11),
]  # fmt: skip
STEPS = [step(0, "Empty", 0), step(1, "Ongoing", 3), step(2, "PrepareAbort", 7), step(3, "CompleteAbort", 31)]


class Rows:
    """The rows that a report reads (`report.content.Reader`), held in memory.

    Attributes:
        batches: of every partition, in offset order.
        steps_of: transactional id -> its coordinator entries.
    """

    def __init__(self, logs: Sequence[Row], batches: Sequence[Row] = (), steps_of: Mapping[str, Sequence[Row]] | None = None) -> None:
        self.logs = [log | {"replica_log_id": number} for number, log in enumerate(logs)]
        self.batches = batches
        self.steps_of = steps_of or {}

    def rows(self, table: str, **equal: object) -> list[Row]:
        assert table == "visibility"
        return [log for log in self.logs if all(log[name] == value for name, value in equal.items())]

    def window(self, replica_log_id: int, *, first_offset: int, last_offset: int) -> list[Row]:
        return [dict(row) for row in self.batches if first_offset <= row["base_offset"] <= last_offset]  # type: ignore[operator]

    def shares(self, replica_log_id: int, *, start: int, end: int, stretches: int) -> dict[str, np.ndarray]:
        return {"committed": np.full(stretches, 3, np.int64), "aborted": np.arange(stretches)}

    def steps(self, ids: Collection[tuple[str, str]]) -> dict[tuple[str, str], tuple[list[Row], list[Row]]]:
        aborts: list[Row] = [{"prepare_offset": 2, "abort_cause": "client_abort"}]
        return {key: ([dict(row) for row in self.steps_of[key[1]]], aborts) for key in ids if key[1] in self.steps_of}

    def open_intervals(self, as_of_ms: int) -> tuple[np.ndarray, np.ndarray]:
        begins = np.array([NOW - 3_600_000, NOW - 3_500_000], np.int64)
        return begins, np.array([NOW - 3_400_000, NOW], np.int64)


def page(about: Row, findings: Sequence[Row], reader: Rows | None = None, *, quoted: str | None = LINE) -> str:
    """The HTML of a report, with pictures where there is a reader."""
    content = build_content(about, findings, lambda *_: quoted)
    return render(with_pictures(content, findings, reader) if reader else content, {"T01": "hanging-txn", "L01": "lso-stuck"})


def incident() -> tuple[Row, list[Row], Rows]:
    """A hanging transaction on a partition and what follows from it, with everything that a page shows."""
    elsewhere = {"topic": "payments", "partition": 2, "transactional_id": None, "first_offset": 4, "last_offset": None}
    findings = [
        finding("a1"),
        finding("b2", "L01", slug="lso-stuck", incident_id="a1".ljust(64, "0"), last_offset=13, transactional_id=None),
        finding("c3", "P04", slug="seq-gap", severity="warning", **elsewhere),
    ]
    rules = {"S02": unseen("The aborted index of orders-0 was not dumped", "Dump the .txnindex files of orders-0")}
    about = verdict()
    about["rules"] |= rules  # type: ignore[operator]
    about["partitions"] = [partition(), partition(1, lso=14, blocker=None, held_back_records=0), partition(2, topic="payments", lso=14)]
    return about, findings, Rows(about["partitions"], HANGING, {"late-writer-0": STEPS})  # type: ignore[arg-type]


@cache
def incident_page() -> str:
    """Its page, made once: a quarter of a second, most of it the charts."""
    return page(*incident())


def write(folder: Path, html: str) -> str:
    """Put a page into a folder; its address."""
    path = folder / "report.html"
    path.write_text(html, encoding="utf-8")
    return path.as_uri()
