"""Where no dump tells of a transaction, half of the histories are not asked: what they would have said is what is written."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from eo_audit import pipeline
from eo_audit.history import text
from eo_audit.pipeline import Options
from eo_audit.rebuild import step
from eo_audit.rebuild.plain import OF_TRANSACTIONS, has_transactions
from eo_audit.store.schemas import table_names
from eo_audit.store.tables import Warehouse
from tests.jobs.test_pipeline import rows

ROOT = Path(__file__).parent.parent.parent
PLAIN = ROOT / "examples" / "duplicates-and-gaps" / "dumps"
CORPUS = ROOT / "tests" / "data" / "corpus" / "dumps"
UNASKED = {"coordinator_history", "transaction_instances", "paired_markers", "judged_events", "assigned_rows", *OF_TRANSACTIONS}


def ingested(out: Path, dumps: Path, *, small: bool = True) -> Warehouse:
    """A warehouse with the facts of some dumps, and no session."""
    with pipeline.writing(out, Options(), starts_spark=False) as warehouse:
        pipeline.ingest(warehouse, pipeline.discover([dumps], Options()), Options())
    return Warehouse(out, small=small)


def test_only_what_shows_no_transaction_at_all_is_plain(tmp_path: Path) -> None:
    assert not has_transactions(ingested(tmp_path / "plain", PLAIN))
    assert has_transactions(Warehouse(tmp_path / "plain", small=False)), "of large dumps it is not looked up"
    assert has_transactions(ingested(tmp_path / "coordinator", CORPUS / "clean_tv2"))
    data = CORPUS / "clean_tv2"
    alone = next(folder for folder in sorted(data.rglob("*-0")) if folder.is_dir() and not folder.name.startswith("__"))
    assert has_transactions(ingested(tmp_path / "markers", alone)), "a data log with markers, without a coordinator's"


def test_what_is_not_asked_would_have_had_no_rows(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []
    own: object = text._Run.rows
    monkeypatch.setattr(text._Run, "rows", lambda run, history, at: ran.append(history) or own(run, history, at))  # type: ignore[operator]
    told = []
    for name, asks in {"short": False, "whole": True}.items():
        if asks:
            monkeypatch.setattr(step, "has_transactions", lambda warehouse: True)
            monkeypatch.setattr(Warehouse, "is_empty", lambda warehouse, name: False)
        ran.clear()
        ingested(tmp_path / name, PLAIN)
        with pipeline.writing(tmp_path / name, Options(), spark=lambda: spark) as warehouse:
            pipeline.rebuild(warehouse, Options())
            told.append({table: rows(warehouse, table) for table in table_names("histories")})
        assert set(ran).isdisjoint(UNASKED) is not asks
        assert set(ran) >= UNASKED or not asks
    assert told[0] == told[1]
    assert [table for table in OF_TRANSACTIONS if told[0][table]] == [] and len(told[0]["producer_history"]) > 10
