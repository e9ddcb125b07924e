"""The session: Delta works, one clear sentence when Java is missing, too old or too new."""

import io
import logging
import re
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.errors import ArithmeticException
from pyspark.sql import SparkSession

from eo_audit.config import load
from eo_audit.errors import ConfigurationError
from eo_audit.store import jars, session
from eo_audit.store.scratch import own_folder


def test_delta_is_on(spark: SparkSession, tmp_path: Path) -> None:
    table = str(tmp_path / "table")
    spark.range(3).write.format("delta").save(table)
    assert spark.read.format("delta").load(table).count() == 3


def test_the_clock_of_the_session_is_utc(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"


def test_spark_makes_no_folder_in_the_current_one(spark: SparkSession) -> None:
    warehouse = Path(spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:"))  # type: ignore[union-attr]
    assert warehouse.is_relative_to(own_folder())


def test_no_java_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ConfigurationError, match="needs Java 17 to 22, and JAVA_HOME="):
        session.require_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigurationError, match="none on the PATH"):
        session.require_java()


@pytest.mark.parametrize("version", ["1.8.0_412", "11.0.2", "23", "25.0.3"])
def test_a_java_that_spark_cannot_use_is_one_sentence(version: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ConfigurationError, match=f"Java 17 to 22, but .* is Java {re.escape(version)}"):
        session.require_java()


def test_a_jar_that_is_not_the_pinned_one_is_refused(tmp_path: Path) -> None:
    fetched = tmp_path / "fetched.jar"
    fetched.write_bytes(b"something else")
    with pytest.raises(ConfigurationError, match="not the pinned file"):
        jars.keep(fetched, "0" * 64, tmp_path / "kept.jar")
    assert not (tmp_path / "kept.jar").exists()


def test_a_setting_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "conf.yaml"
    path.write_text("mode: local\nmastre: local[1]\n")
    with pytest.raises(ConfigurationError, match="mastre"):
        load(path)


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("mode: foo", "mode must be local or cluster, not foo"),
        ("small: {driver_memory: 40m}", "driver_memory must be .* 512m at least, not 40m"),
        ("large: {driver_memory: lots}", "driver_memory must be a number with its unit such as 2g"),
        ('medium: {driver_memory: "2048"}', "driver_memory must be a number with its unit"),
        ("range_bytes: -1", "range_bytes must be a whole number that is not below 0, not -1"),
        ("keep_audits: 0", "keep_audits must be above 0"),
    ],
)
def test_a_value_that_no_run_can_have_is_refused(setting: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "conf.yaml"
    path.write_text(f"{setting}\n")
    with pytest.raises(ConfigurationError, match=told):
        load(path)


@pytest.mark.parametrize("memory", ["512m", "2g", "1T", "600000k"])
def test_memory_as_java_takes_it(memory: str, tmp_path: Path) -> None:
    path = tmp_path / "conf.yaml"
    path.write_text(f"small: {{driver_memory: {memory}}}\n")
    assert load(path).small.driver_memory == memory


def test_what_spark_refuses_is_one_sentence(spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    with pytest.raises(ConfigurationError, match=r"did not start with these settings \(--config\): .*shuffle\.partitions") as raised:
        session._start({"spark.sql.shuffle.partitions": "many"})
    assert "\n" not in str(raised.value) and spark.conf.get("spark.sql.shuffle.partitions") == before


def test_a_refused_query_writes_no_json(spark: SparkSession) -> None:
    session._without_json()
    heard, logger = logging.StreamHandler(io.StringIO()), logging.getLogger("SQLQueryContextLogger")
    logger.addHandler(heard)
    try:
        with pytest.raises(ArithmeticException):
            spark.sql("SELECT 1 / (id - id) AS nothing FROM range(1)").collect()
    finally:
        logger.removeHandler(heard)
    assert not heard.stream.getvalue()


@pytest.mark.parametrize("other", [{"spark.sql.ansi.enabled": "false"}, {"spark.sql.parser.escapedStringLiterals": "true"}])
def test_a_clusters_own_defaults_change_no_result(other: dict[str, str], spark: SparkSession) -> None:
    """Its `spark-defaults.conf` may hold any; what our SQL means must not hang on it."""
    asked = r"SELECT size(CAST(NULL AS array<int>)) AS n, split('2.4', '\\.')[0] AS release"
    before = {name: spark.conf.get(name) for name in session.OF_RESULTS}
    try:
        for name, value in other.items():
            spark.conf.set(name, value)
        assert tuple(spark.sql(asked).first() or ()) != (None, "2")
        assert tuple(session._submitted(load()).sql(asked).first() or ()) == (None, "2")
        assert {name: spark.conf.get(name) for name in session.OF_RESULTS} == session.OF_RESULTS == before
    finally:
        for name, value in session.OF_RESULTS.items():
            spark.conf.set(name, value)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (
            "WARNING: Using incubator modules: jdk.incubator.vector\nInvalid maximum heap size: -Xmxlots\n"
            "Error: Could not create the Java Virtual Machine.\nError: A fatal exception has occurred. Program will exit.\n",
            "Invalid maximum heap size: -Xmxlots",
        ),
        (
            'Exception in thread "main" org.apache.spark.SparkException: Master must either be yarn\n'
            "\tat org.apache.spark.util.SparkErrorUtils.error(SparkErrorUtils.scala:68)\n\t... 7 more\n",
            'Exception in thread "main" org.apache.spark.SparkException: Master must either be yarn',
        ),
        ("there is no such file\n", "there is no such file"),
        ("", ""),
    ],
)
def test_the_line_that_says_why_java_did_not_start(said: str, why: str) -> None:
    assert session._why_not(said) == why


@pytest.mark.parametrize(("most", "partitions"), [(0, "5"), (8, "1")])
def test_rows_are_shuffled_into_a_partition_for_each_core(
    most: int, partitions: str, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, before = "spark.sql.shuffle.partitions", spark.conf.get("spark.sql.shuffle.partitions")
    assert spark.sparkContext.defaultParallelism == 1  # of the session that runs; another one cannot be had in this process
    monkeypatch.setattr(session, "_start", lambda settings: spark)
    config = load()
    try:
        spark.conf.set(name, "5")
        session.session(replace(config, small=replace(config.small, most_partitions=most)), input_bytes=0)
        assert spark.conf.get(name) == partitions
    finally:
        spark.conf.set(name, str(before))
