"""Producer histories of real dumps: the labels that the truth beside them asks for, and no other; every row as the model has it."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from eo_audit.history.edges import producer_edges
from eo_audit.history.log_order import in_log_order
from eo_audit.history.replica_logs import replica_logs
from eo_audit.history.sections import section_status
from eo_audit.history.sequences import producer_rows
from eo_audit.history.spans import transaction_spans
from eo_audit.model.batches import Batch
from eo_audit.model.producer_history import HistoryRow, histories
from eo_audit.store.schemas import schema
from tests.support.facts import CORPUS, facts_of
from tests.support.rows import table

LEGAL = {"plain", "control", "marker", "empty_marker", "in_sequence", "first_zero", "new_epoch", "not_sequenced"}
# Input -> what of it is not LEGAL: (topic, partition, base offset, label).
FAULTS: dict[str, list[tuple[str, int, int, str]]] = {
    "clean_k28": [],
    "clean_tv2": [],
    "hostile": [],
    "idempotent_retry": [],
    "epoch_exhaustion_k39": [],
    "syn_offset_overlap": [],
    "dup_business": [],
    "compressed": [],
    "seq_wrap": [("orders", 0, 0, "first_nonzero"), ("orders", 1, 0, "first_nonzero")],
    "state_expired_k39": [
        ("orders", 0, 6, "duplicate"),
        ("orders", 1, 4, "gap"),
        ("orders", 2, 2, "epoch_regression"),
        ("orders", 3, 2, "new_epoch_nonzero"),
        ("orders", 4, 5, "overlap"),
    ],
    "syn_gap": [("orders", 0, 14, "gap")],
    "syn_dup_batch": [("orders", 0, 23, "duplicate")],
    "syn_data_epoch_back": [("orders", 0, 16, "epoch_regression"), ("orders", 0, 21, "epoch_regression")],
    "syn_crc": [],
    "retention_head_k39": [("retained", 0, 35, "first_nonzero"), ("retained", 0, 38, "first_nonzero")],
    "compaction_k39": [("customers", 0, offset, "first_nonzero") for offset in (75, 101, 107)],
    "power_outage_k39": [],
}


@dataclass(frozen=True)
class Histories:
    """Facts of all inputs, and what Spark makes of them."""

    facts: dict[str, pa.Table]
    logs: list[dict[str, object]]
    ordered: list[dict[str, object]]
    rows: list[dict[str, object]]
    spans: list[dict[str, object]]
    edges: list[dict[str, object]]

    def of(self, cluster: str) -> Iterator[tuple[dict[str, object], dict[str, object]]]:
        """The rows of one input, each with its replica log."""
        logs = {log["replica_log_id"]: log for log in self.logs if log["cluster"] == cluster}
        return ((logs[row["replica_log_id"]], row) for row in self.rows if row["replica_log_id"] in logs)


def materialised(spark: SparkSession, frame: DataFrame) -> tuple[DataFrame, list[dict[str, object]]]:
    """A frame that is not computed again, and its rows."""
    table = frame.toArrow().combine_chunks()
    return spark.createDataFrame(table), table.to_pylist()


@pytest.fixture(scope="module")
def built(spark: SparkSession) -> Histories:
    inputs = [facts_of([CORPUS / "dumps" / name], cluster=name) for name in FAULTS]
    # One chunk each: of a table with an empty chunk, Spark reads what stands before it.
    facts = {name: pa.concat_tables([tables[name] for tables in inputs]).combine_chunks() for name in inputs[0]}
    frames = {name: spark.createDataFrame(table) for name, table in facts.items()}
    status, _ = materialised(spark, section_status(frames["dump_sections"], frames["dump_files"], frames["batches"]))
    known = replica_logs(status, frames["checkpoints"], frames["listed_files"], frames["manifest_entries"])
    logs, log_rows = materialised(spark, known)
    ordered, ordered_rows = materialised(spark, in_log_order(frames["batches"], logs, table(spark, "clusters", [])))
    rows, history_rows = materialised(spark, producer_rows(ordered))
    edges = producer_edges(rows.selectExpr("*", "CAST(NULL AS BOOLEAN) AS returned"), frames["records"], logs)
    return Histories(
        facts, log_rows, ordered_rows, history_rows, transaction_spans(rows).toArrow().to_pylist(), edges.toArrow().to_pylist()
    )


@pytest.mark.parametrize("cluster", FAULTS)
def test_labels_are_what_the_truth_asks_for(built: Histories, cluster: str) -> None:
    found = [
        (log["topic"], log["partition"], row["base_offset"], row["label"])
        for log, row in built.of(cluster)
        if row["label"] not in LEGAL and log["topic"] not in ("__transaction_state", "__consumer_offsets")
    ]
    assert sorted(found) == sorted(FAULTS[cluster])


def test_a_broken_log_is_judged_up_to_the_break(built: Histories) -> None:
    judged = {
        (log["topic"], log["partition"], row["base_offset"], row["row_kind"]): row["judged"]
        for cluster in ("syn_offset_overlap", "syn_crc")
        for log, row in built.of(cluster)
        if log["topic"] == "orders" and log["cluster"] == cluster and log["partition"] == (1 if cluster == "syn_offset_overlap" else 0)
    }
    assert judged["orders", 1, 0, "data"] and judged["orders", 1, 2, "marker"]
    assert not judged["orders", 1, 2, "data"] and not judged["orders", 1, 8, "marker"]
    assert not any(judged[place] for place in judged if place[1] == 0)


def test_every_batch_of_a_section_that_is_read_has_one_row(built: Histories) -> None:
    read = {segment["section_id"] for log in built.logs for segment in log["segments"]}
    wanted = Counter(row["section_id"] for row in built.facts["batches"].to_pylist() if row["section_id"] in read)
    assert Counter(row["section_id"] for row in built.rows) == wanted
    assert set(built.rows[0]) == set(schema("producer_history").columns[: schema("producer_history").columns.index("span_outcome") + 1])


def model_batch(row: dict[str, object]) -> Batch:
    return Batch(**{name: row[name] for name in Batch.__dataclass_fields__})  # type: ignore[arg-type]


def test_the_model_says_the_same_of_real_dumps(built: Histories) -> None:
    columns = [field.name for field in fields(HistoryRow)]
    computed = {(row["section_id"], row["byte_offset"]): tuple(row[name] for name in columns) for row in built.rows}
    logs: dict[object, list[dict[str, object]]] = {}
    for row in sorted(built.ordered, key=lambda row: row["position_in_log"]):  # type: ignore[arg-type,return-value]
        logs.setdefault(row["replica_log_id"], []).append(row)
    expected = {
        (fact["section_id"], fact["byte_offset"]): astuple(row)
        for of_log in logs.values()
        for fact, row in zip(of_log, histories_of(of_log), strict=True)
    }
    assert computed == expected


def histories_of(rows: list[dict[str, object]]) -> list[HistoryRow]:
    batches = [model_batch(row) for row in rows]
    said = {name: rows[0][name] for name in ("cleaned_below", "forgets_below")}
    return histories(batches, sequenced=bool(rows[0]["sequenced"]), **said)  # type: ignore[arg-type]


def test_every_transaction_of_a_clean_cluster_is_a_span(built: Histories) -> None:
    spans = Counter(
        span["outcome"]
        for span in built.spans
        for log in built.logs
        if log["replica_log_id"] == span["replica_log_id"] and log["cluster"] == "clean_k28"
    )
    markers = Counter(row["label"] for _, row in built.of("clean_k28"))
    assert spans["open"] == spans["unknown"] == 0
    assert spans["committed"] > spans["aborted"] > 0
    assert sum(spans.values()) == markers["marker"]


def test_edges_show_what_was_sent_again(built: Histories) -> None:
    logs = {log["partition"]: log["replica_log_id"] for log in built.logs if log["cluster"] == "dup_business"}
    edges = {(edge["producer_id"], edge["producer_epoch"]): edge for edge in built.edges if edge["replica_log_id"] == logs[0]}
    values = [record["value_hash"] for record in edges[-1, -1]["head"]]
    assert len(values) == 8 and values[2:5] == values[5:8] and None not in values
    assert not [
        edge for edge in built.edges for log in built.logs if log["replica_log_id"] == edge["replica_log_id"] and log["is_internal"]
    ]
