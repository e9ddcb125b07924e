"""Producer histories of many batches, half of them of one producer: seconds, and the longest task of all.

Batches of four replica logs are written to Parquet as ingest leaves them; then producer_history is made of them, up to the span, and
written. Gaps and repeats are planted in the sequences of the busy producer, and must all be found.

    python -m benchmarks.sequences --batches 20000000
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from eo_audit.config import Config, load
from eo_audit.history.log_order import in_log_order
from eo_audit.history.sequences import producer_rows
from eo_audit.rebuild.step import CHUNK_BITS
from eo_audit.store.frames import no_rows
from eo_audit.store.schemas import schema
from eo_audit.store.session import session

LOGS = 4
HOT_LOG = 0.6  # of all batches; five of six of these are of one producer
RECORDS = 5  # a batch
TEXT_BYTES = 300  # a batch line
SEGMENT = 1_000_000  # batches

_NUMBERED = {
    "producer_id": "CASE WHEN log > 0 THEN log * 1000 + row % 500 WHEN row % 6 < 5 THEN 0L ELSE 1 + row DIV 6 % 250 END",
    "n": "CASE WHEN log > 0 THEN row DIV 500 WHEN row % 6 < 5 THEN row DIV 6 * 5 + row % 6 ELSE row DIV 1500 END",
    "is_hot": "producer_id = 0",
    "sent": "n - IF(is_hot AND n >= {first_repeat}, (n - {first_repeat}) DIV {repeat_every} + 1, 0)",
    "base": f"sent * {RECORDS} + IF(is_hot, sent DIV {{gap_every}} * 7, 0)",
}
_COLUMNS = {
    "section_id": f"log * 1000 + row DIV {SEGMENT}",
    "byte_offset": f"row % {SEGMENT} * {TEXT_BYTES}",
    "length": f"{TEXT_BYTES}",
    "replica_log_id": "log",
    "base_offset": f"row * {RECORDS}",
    "last_offset": f"row * {RECORDS} + {RECORDS - 1}",
    "count": f"{RECORDS}",
    "base_sequence": "base",
    "last_sequence": f"base + {RECORDS - 1}",
    "producer_id": "producer_id",
    "producer_epoch": "0",
    "partition_leader_epoch": "0",
    "is_transactional": "false",
    "is_control": "false",
    "timestamp_type": "'CreateTime'",
    "max_timestamp_ms": "1700000000000 + row",
    "magic": "2",
    "crc": "row",
    "crc_valid": "true",
}


@dataclass(frozen=True)
class Faults:
    """What is planted in the sequences of the busy producer, counted in its batches."""

    gap_every: int = 125_000
    repeat_every: int = 250_000
    first_repeat: int = 100


@dataclass(frozen=True)
class Measured:
    """What one run took, in seconds, and how many faults of each kind it found of how many."""

    batches: int
    seconds: float
    longest_task: float
    all_tasks: float
    tasks: int
    found: dict[str, int]
    planted: dict[str, int]


def batches_of(spark: SparkSession, total: int, faults: Faults) -> DataFrame:
    """The batches table. Of the busy producer's batches (n = 0, 1, ...) some are sent twice, and before some a gap is left."""
    hot = int(total * HOT_LOG)
    other = (total - hot) // (LOGS - 1)
    rows = spark.range(0, hot + other * (LOGS - 1), numPartitions=16).selectExpr(
        f"IF(id < {hot}, 0L, 1 + (id - {hot}) DIV {other}) AS log", f"IF(id < {hot}, id, (id - {hot}) % {other}) AS row"
    )
    for name, value in _NUMBERED.items():
        rows = rows.selectExpr("*", f"{value.format(**asdict(faults))} AS {name}")
    kinds = {str(field["name"]): field["type"] for field in schema("batches").fields}
    return rows.selectExpr(*[f"CAST({_COLUMNS.get(name, 'NULL')} AS {kind}) AS {name}" for name, kind in kinds.items()])


def replica_logs_of(spark: SparkSession, total: int) -> DataFrame:
    """The columns of replica_logs that the order of a log needs."""
    last_segment = int(total * HOT_LOG) // SEGMENT
    segment = f"struct(s * {SEGMENT * RECORDS}L AS base_offset, id * 1000 + s AS section_id)"
    return spark.range(LOGS).selectExpr(
        "id AS replica_log_id",
        "'bench' AS cluster",
        "false AS is_internal",
        "false AS compacted",
        "CAST(NULL AS BIGINT) AS uncleaned_from",
        "0L AS first_offset",
        "0L AS log_start",
        "true AS clean_end",
        "CAST(NULL AS BIGINT) AS leo",
        "CAST(array() AS ARRAY<BIGINT>) AS removed_before",
        "CAST(array() AS ARRAY<BIGINT>) AS missing_segments",
        "CAST(array() AS ARRAY<BIGINT>) AS short_ends",
        f"transform(sequence(0L, {last_segment}L), s -> {segment}) AS segments",
    )


def planted(total: int, faults: Faults) -> dict[str, int]:
    """How many faults the busy producer's batches hold."""
    rows = int(total * HOT_LOG)
    batches = rows // 6 * 5 + min(rows % 6, 5)
    repeats = (batches - faults.first_repeat - 1) // faults.repeat_every + 1
    return {"duplicate": repeats, "gap": (batches - 1 - repeats) // faults.gap_every}


def measure(spark: SparkSession, total: int, folder: Path) -> Measured:
    """Write the batches, make their histories, and see how long it took; times of tasks are Spark's own."""
    stored, made, faults = str(folder / "batches"), str(folder / "producer_history"), Faults()
    batches_of(spark, total, faults).write.parquet(stored)
    begun = time.time()
    nothing_told = no_rows(spark, schema("clusters").spark())
    ordered = in_log_order(spark.read.parquet(stored), replica_logs_of(spark, total), nothing_told, chunk_bits=CHUNK_BITS)
    producer_rows(ordered, chunked=True).write.parquet(made)
    seconds = time.time() - begun
    labels = spark.read.parquet(made).where("label NOT IN ('in_sequence', 'first_zero')").groupBy("label").count().collect()
    spark.stop()
    tasks = list(task_seconds(folder / "events", begun, begun + seconds))
    found = {str(row["label"]): int(row["count"]) for row in labels}
    return Measured(total, round(seconds, 1), max(tasks), round(sum(tasks), 1), len(tasks), found, planted(total, faults))


def task_seconds(events: Path, begun: float, ended: float) -> Iterator[float]:
    """Run times of the tasks of a stretch of time, from Spark's event log."""
    for line in (line for path in events.rglob("events*") if path.is_file() for line in path.read_text().splitlines()):
        event = json.loads(line)
        if event["Event"] == "SparkListenerTaskEnd":
            launched, finished = (event["Task Info"][name] / 1000 for name in ("Launch Time", "Finish Time"))
            if begun <= launched <= ended:
                yield finished - launched


def config_with_events(folder: Path) -> Config:
    """The settings for large inputs, with an event log."""
    config = load()
    folder.mkdir()
    events = {"spark.eventLog.enabled": "true", "spark.eventLog.compress": "false", "spark.eventLog.dir": folder.as_uri()}
    return replace(config, spark={**config.spark, **events})


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure once, and print the figures as JSON; `arguments` are those of the command line by default."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=20_000_000)
    total = parser.parse_args(arguments).batches
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spark = session(config_with_events(folder / "events"), input_bytes=total * TEXT_BYTES)
        sys.stdout.write(json.dumps(asdict(measure(spark, total, folder)), indent=1) + "\n")


if __name__ == "__main__":
    main()
