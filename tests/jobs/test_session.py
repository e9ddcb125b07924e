"""The session: Delta works, one clear sentence when Java is missing, too old or too new."""

import io
import logging
import re
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark import SparkConf
from pyspark.errors import ArithmeticException, PySparkException
from pyspark.sql import SparkSession

from eo_audit.config import load
from eo_audit.errors import ConfigurationError
from eo_audit.store import jars, meaning, session
from eo_audit.store.scratch import own_folder

ROOT = Path(__file__).parent.parent.parent


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


@pytest.mark.own_session
@pytest.mark.parametrize("setting", ["spark.sql.shuffle.partitions: 0", "spark.default.parallelism: x"])
def test_what_the_first_session_refuses_is_one_sentence(setting: str, tmp_path: Path) -> None:
    """A process that has no session yet: nothing can tell how errors are worded there."""
    conf, dumps = tmp_path / "conf.yaml", ROOT / "examples" / "clean" / "dumps"
    conf.write_text(f"spark: {{{setting}}}\n")
    command = [sys.executable, "-c", "from eo_audit.cli import main; main()", "run", dumps, "--out", tmp_path / "out", "--config", conf]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == ConfigurationError.exit_code, done.stderr[-2000:]
    assert done.stderr.count("\n") == 1 and setting.split(":")[0] in done.stderr


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


@pytest.mark.parametrize(
    ("name", "other", "asked", "means"),
    [
        ("ansi.enabled", "false", "SELECT size(CAST(NULL AS array<int>))", None),
        ("ansi.doubleQuotedIdentifiers", "true", 'SELECT "a"', "a"),
        ("parser.escapedStringLiterals", "true", r"SELECT split('2.4', '\\.')[0]", "2"),
        ("parser.quotedRegexColumnNames", "true", "SELECT `a.` FROM (SELECT 2 AS ab, 1 AS `a.`)", 1),
        ("caseSensitive", "true", "SELECT a FROM (SELECT 1 AS A)", 1),
        ("groupByAliases", "false", "SELECT id + 1 AS one FROM range(1) GROUP BY one", 1),
        ("legacy.createEmptyCollectionUsingStringType", "true", "SELECT typeof(array())", "array<void>"),
        ("legacy.followThreeValuedLogicInArrayExists", "false", "SELECT exists(array(1, NULL), x -> x > 1)", None),
        ("legacy.setopsPrecedence.enabled", "true", "SELECT count(*) FROM (SELECT 1 UNION ALL SELECT 2 INTERSECT SELECT 3)", 1),
        ("legacy.parser.havingWithoutGroupByAsWhere", "true", "SELECT count(*) FROM (SELECT 1 AS one FROM range(2) HAVING true)", 1),
    ],
)
def test_a_clusters_own_defaults_change_no_result(name: str, other: str, asked: str, means: object, spark: SparkSession) -> None:
    """Its `spark-defaults.conf` may hold any; what our SQL means must not hang on it."""

    def answer() -> object:
        try:
            return (spark.sql(asked).first() or [])[0]
        except PySparkException:
            return "refused"

    before = {name: spark.conf.get(name) for name in meaning.OF_RESULTS}
    try:
        spark.conf.set(f"spark.sql.{name}", other)
        assert answer() != means
        session._submitted(load())
        assert answer() == means
        assert {name: spark.conf.get(name) for name in meaning.OF_RESULTS} == meaning.OF_RESULTS == before
    finally:
        meaning.as_ours(spark)


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("spark.sql.caseSensitive: true", r"must not set spark\.sql\.caseSensitive, on which results depend: it is false, leave it out"),
        ("spark.sql.legacy.timeParserPolicy: LEGACY", r"must not set spark\.sql\.legacy\.timeParserPolicy, .*: leave it out"),
    ],
)
@pytest.mark.parametrize("where", ["spark: {{{}}}", "large: {{spark: {{{}}}}}"])
def test_a_configuration_that_changes_results_is_refused(where: str, setting: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "conf.yaml"
    path.write_text(where.format(setting))
    with pytest.raises(ConfigurationError, match=told):
        session.session(load(path))
    path.write_text(where.format("spark.sql.caseSensitive: false"))
    meaning.refuse_other_meanings({**load(path).spark, **load(path).large.spark})


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


def test_a_java_that_only_tells_something_is_not_waited_for(spark: SparkSession) -> None:
    conf = SparkConf(loadDefaults=False).set("spark.driver.extraJavaOptions", "-version")
    with tempfile.TemporaryFile() as log, pytest.raises(ConfigurationError, match=r"ended at once, without an error: .*java_options"):
        session._gateway(conf, log)


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
