"""The now that a person gives: it is before no evidence of the dumps, and only the rebuild takes one."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from eo_audit import cli, pipeline
from eo_audit.errors import ArgumentError
from eo_audit.rebuild.as_of import refuse_before_dumps
from eo_audit.rebuild.looking import step_of
from eo_audit.store.tables import Warehouse

DUMPS = Path(__file__).parent.parent / "data" / "corpus" / "dumps"
SKEW_MS = 2_000
NEWEST_MS = 1_795_000_000_000


def refuse(as_of_ms: int, *, clock_ms: int | None = NEWEST_MS, made_ms: int | None = None) -> None:
    clusters = [{"cluster": "other", "dumped_at_ms": None, "skew_ms": 0}, {"cluster": "c", "dumped_at_ms": made_ms, "skew_ms": SKEW_MS}]
    clocks = [("c", clock_ms), ("c", None), ("c", 5), ("other", 7), ("other", None)]
    logs = [{"cluster": cluster, "newest_broker_clock_ms": at_ms} for cluster, at_ms in clocks]
    refuse_before_dumps(as_of_ms, clusters=pa.Table.from_pylist(clusters), logs=pa.Table.from_pylist(logs))


def test_a_now_before_what_the_brokers_wrote_is_refused() -> None:
    with pytest.raises(ArgumentError) as refused:
        refuse(NEWEST_MS - SKEW_MS - 1)
    assert str(refused.value) == (
        "--as-of 2026-11-18 11:06:37 UTC is before the newest broker clock in the dumps of c, 2026-11-18 11:06:40 UTC: "
        "it does not cut the dumps off; leave it out, or name a time that is not before them"
    )


def test_a_now_is_taken_as_far_back_as_clocks_differ_and_where_no_broker_shows_one() -> None:
    refuse(NEWEST_MS - SKEW_MS)
    refuse(100, clock_ms=None)
    with pytest.raises(ArgumentError, match="of other, "):
        refuse(6, clock_ms=None)


def test_the_time_at_which_a_collection_began_is_taken_though_brokers_wrote_on() -> None:
    made_ms = NEWEST_MS - 3_600_000
    refuse(made_ms, made_ms=made_ms)
    with pytest.raises(ArgumentError):
        refuse(made_ms - 1, made_ms=made_ms)


def test_a_rebuild_refuses_it_and_publishes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    dumps = [DUMPS / "hanging_txn_k39"]
    with pytest.raises(ArgumentError, match=r"--as-of 2026-10-01 .* hanging_txn_k39, 2026-11-21"):
        pipeline.run(tmp_path, dumps, pipeline.Options(as_of_ms=cli.parse_moment("2026-10-01")), spark=lambda: spark)
    assert [run["step"] for run in Warehouse(tmp_path).runs()] == ["ingest"]


def test_a_step_of_a_history_is_looked_at_with_the_now_of_each_cluster(spark: SparkSession, all_examples: Path) -> None:
    nows = {row["cluster"]: row["as_of_ms"] for row in Warehouse(all_examples).arrow("clusters").to_pylist()}
    assert len(set(nows.values())) > 1
    rows = step_of("clusters.with_inferred", all_examples, lambda: spark, small=True).collect()
    assert {row.cluster: row.as_of_ms for row in rows} == nows


def test_an_audit_takes_no_now_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run_command(["audit", "--as-of", "2026-11-21"]) == 10
    assert "--as-of" in capsys.readouterr().err
    assert cli.run_command(["audit", "--help"]) == 0
    assert "eo-audit rebuild --as-of" in capsys.readouterr().out
