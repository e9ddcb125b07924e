"""The windows and the model give the same rows, on random logs that contain every label often."""

import random
from collections import Counter
from dataclasses import astuple, fields
from operator import itemgetter

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from eo_audit.history.log_order import in_log_order
from eo_audit.history.sequences import producer_rows
from eo_audit.history.spans import transaction_spans
from eo_audit.model.batches import Batch
from eo_audit.model.producer_history import HistoryRow, histories
from eo_audit.store.schemas import schema
from tests.agreement.generated import LogWriter, logs
from tests.support.rows import table

COLUMNS = [field.name for field in fields(HistoryRow)]
LABELS = {
    *["in_sequence", "first_zero", "first_nonzero", "gap", "duplicate", "overlap", "out_of_order", "new_epoch", "new_epoch_nonzero"],
    *["epoch_regression", "after_hole", "not_sequenced", "marker", "empty_marker", "plain", "control"],
}
OFTEN = 100
EVERYWHERE = 2**63 - 1


def fact(log_id: int, batch: Batch, *, section_id: int, byte_offset: int) -> dict[str, object]:
    """A row of the batches table."""
    own = {name: getattr(batch, name) for name in Batch.__dataclass_fields__ if name != "segment_base_offset"}
    address = {"replica_log_id": log_id, "section_id": section_id, "byte_offset": byte_offset, "length": 100}
    return {**own, **address, "magic": 2, "timestamp_type": "CreateTime", "crc": 1}


def facts(written: list[LogWriter]) -> list[dict[str, object]]:
    """Batches of all logs, each segment a section; sections are numbered against the order of segments."""
    rows = []
    for log_id, log in enumerate(written):
        bases = sorted({batch.segment_base_offset for batch in log.batches})
        at = dict.fromkeys(bases, 0)
        for batch in log.batches:
            base = batch.segment_base_offset
            rows.append(fact(log_id, batch, section_id=section_id(log_id, bases, base), byte_offset=at[base]))
            at[base] += 100
    return rows


def section_id(log_id: int, bases: list[int], base: int) -> int:
    return log_id * 1000 + 999 - bases.index(base)


def known_logs(written: list[LogWriter]) -> list[dict[str, object]]:
    """Rows of replica_logs."""
    rows: list[dict[str, object]] = []
    for log_id, log in enumerate(written):
        bases = sorted({batch.segment_base_offset for batch in log.batches})
        segments = [(base, None, section_id(log_id, bases, base)) for base in bases]
        known = {
            "cluster": "c",
            "log_start": log.log_start,
            "compacted": log.compacted,
            "uncleaned_from": log.cleaned_below,
            "is_internal": log.topic.startswith("__"),
        }
        rows.append({"replica_log_id": log_id, "segments": segments, **known})
    return rows


@pytest.fixture(scope="module")
def written() -> list[LogWriter]:
    return logs(20261121, count=120, deeds=60)


@pytest.fixture(scope="module")
def frames(spark: SparkSession, written: list[LogWriter]) -> tuple[DataFrame, DataFrame, DataFrame]:
    """batches, in any order, replica_logs, and clusters."""
    rows = facts(written)
    random.Random(1).shuffle(rows)
    batches = pa.Table.from_pylist(rows, schema=schema("batches").arrow())
    return spark.createDataFrame(batches).repartition(2), table(spark, "replica_logs", known_logs(written)), table(spark, "clusters", [])


def model_rows(log: LogWriter) -> list[HistoryRow]:
    below = EVERYWHERE if log.cleaned_below is None else log.cleaned_below
    cleaned_below = below if log.compacted else None
    return histories(log.batches, sequenced=log.topic == "orders", cleaned_below=cleaned_below, forgets_below=log.log_start)


def expected(written: list[LogWriter]) -> list[tuple[object, ...]]:
    """What the model says, log by log."""
    return [(log_id, *astuple(row)) for log_id, log in enumerate(written) for row in model_rows(log)]


def computed(frames: tuple[DataFrame, DataFrame, DataFrame], chunk_bits: int | None) -> list[tuple[object, ...]]:
    """What the windows say, in the order of the logs."""
    ordered = in_log_order(*frames, chunk_bits=chunk_bits)
    rows = producer_rows(ordered, chunked=chunk_bits is not None)
    in_order = rows.select("replica_log_id", *COLUMNS, (-F.col("section_id")).alias("segment"), "byte_offset")
    table = in_order.toArrow().sort_by([(name, "ascending") for name in ("replica_log_id", "segment", "byte_offset")])
    return [tuple(row.values())[:-2] for row in table.to_pylist()]


def test_every_label_occurs_often(written: list[LogWriter]) -> None:
    counted = Counter(row[1 + COLUMNS.index("label")] for row in expected(written))
    assert set(counted) == LABELS
    assert not {label: often for label, often in counted.items() if often < OFTEN}


def spans_of(log_id: int, log: LogWriter, history: list[HistoryRow]) -> list[dict[str, object]]:
    """The judged spans of a log, from the model's rows."""
    members: dict[tuple[int, int], list[tuple[Batch, HistoryRow]]] = {}
    for batch, row in zip(log.batches, history, strict=True):
        if row.span_id is not None:
            members.setdefault((batch.producer_id, row.span_id), []).append((batch, row))
    return [
        {
            "replica_log_id": log_id,
            "producer_id": producer_id,
            "span_id": span_id,
            "first_offset": written[0][0].base_offset,
            "last_offset": max(batch.last_offset for batch, row in written if row.row_kind == "data"),
            "batches": sum(row.row_kind == "data" for _, row in written),
            "records": sum(batch.count for batch, row in written if row.row_kind == "data"),
            "marker_offset": next((batch.base_offset for batch, row in written if row.row_kind == "marker"), None),
            "marker_type": next((batch.marker_type for batch, row in written if row.row_kind == "marker"), None),
            "outcome": written[0][1].span_outcome,
            "complete_past": all(row.predecessor in ("observed", "not_observed") for _, row in written),
        }
        for (producer_id, span_id), written in members.items()
        if all(row.judged for _, row in written)
    ]


def test_spans_and_model_agree(written: list[LogWriter], frames: tuple[DataFrame, DataFrame, DataFrame]) -> None:
    expected_spans = [span for log_id, log in enumerate(written) for span in spans_of(log_id, log, model_rows(log))]
    rows = producer_rows(in_log_order(*frames))
    found = transaction_spans(rows).where("judged").select(*expected_spans[0]).toArrow().to_pylist()
    by_id = itemgetter("replica_log_id", "producer_id", "span_id")
    assert sorted(found, key=by_id) == sorted(expected_spans, key=by_id)
    assert {span["outcome"] for span in found} == {"committed", "aborted", "open", "unknown"}


@pytest.mark.parametrize("chunk_bits", [None, 10], ids=["in one piece", "in chunks of ten batches"])
def test_windows_and_model_agree(written: list[LogWriter], frames: tuple[DataFrame, DataFrame, DataFrame], chunk_bits: int | None) -> None:
    pairs = zip(expected(written), computed(frames, chunk_bits), strict=True)
    different = [dict(zip(["log", *COLUMNS], zip(*pair, strict=True), strict=True)) for pair in pairs if pair[0] != pair[1]]
    assert not different[:3]
