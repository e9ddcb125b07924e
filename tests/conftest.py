"""One Spark session for all tests of a process: real Spark, Delta on, one shuffle partition, the small profile of `conf/local.yaml`.

`make quick` runs the tests that have neither mark, where no Java can be found: a test that starts one without saying so fails there.
"""

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import SparkSession

from eo_audit import pipeline
from tests.support.canaries import EXAMPLE, WholeRun, canary_dumps, run_whole
from tests.support.lasting import lasting_session

if TYPE_CHECKING:
    from tests.support.together import Together

TESTS = Path(__file__).parent
EXAMPLES = TESTS.parent / "examples"
# Fixtures that start Java: the session, and a run of the program in a process of its own.
START_JAVA = {"spark", "whole_run"}
# Histories of random and large logs: like those who look at the one audit of hundreds of clusters (`one_audit`), they have a session of
# their own in the other half, so that both halves of the suite take about as long.
OWN_SESSION = ("agreement/test_coordinator_agreement.py", "benchmarks/test_sequences.py")
# Files that take more than some seconds without it: browsers, shells, a copy of the program, thousands of damaged dumps.
SLOW = (
    "cli/test_ctrl_c.py",
    *(
        "dump/test_framing_damage.py",
        "dump/test_framing_forged.py",
        "dump/test_framing_ranges.py",
        "dump/test_kernel.py",
        "dump/test_kernel_entries.py",
    ),
    *("dump/test_payloads.py", "fuzz/test_fuzz.py", "jobs/test_ingest.py", "jobs/test_machines.py", "report/test_page.py"),
    *("rules/test_new_rule.py", "test_collect_dumps.py"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that takes the session or what is made with it, those that start Java in another way, and those that take long."""
    for item in items:
        name = item.path.relative_to(TESTS).as_posix()
        fixtures = set(getattr(item, "fixturenames", ()))
        if fixtures & START_JAVA:
            item.add_marker("spark")
        if "one_audit" in fixtures or name in OWN_SESSION:
            item.add_marker("own_session")
        if name in SLOW:
            item.add_marker("slow")


def pytest_collection_finish() -> None:
    """Thousands of tests, and all they import, live to the end: collections need not look through them (11 % of tests without Spark)."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """At its end a library counts what nobody collected, and calls it leaks."""
    gc.unfreeze()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session of all tests. Tests that change a setting put it back (`spark.conf.set`, then `unset`)."""
    started = lasting_session()
    yield started
    started.stop()


@pytest.fixture(scope="session")
def hanging_example(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One audit of the example with a hanging transaction, for all who look at it; who changes something copies the folder."""
    out = tmp_path_factory.mktemp("example")
    pipeline.run(out, [EXAMPLES / "hanging-transaction" / "dumps"], pipeline.Options(), spark=lambda: spark)
    return out


@pytest.fixture(scope="session")
def all_examples(whole_run: WholeRun) -> Path:
    """One audit of all examples together, each a cluster of its own."""
    return whole_run.out


@pytest.fixture(scope="session")
def one_audit(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> "Together":
    """One audit of the dumps of all files of this run whose tests look at it."""
    from tests.support.together import audit

    modules = {item.module.__name__: item.module for item in request.session.items if "one_audit" in getattr(item, "fixturenames", ())}
    return audit(spark, [modules[name] for name in sorted(modules)], tmp_path_factory.mktemp("together"))


@pytest.fixture(scope="session")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> WholeRun:
    """One run of the program in a process of its own over all examples, one of them with answers of live brokers, texts of console
    consumers and logs with canaries beside its dumps; 28 CPU seconds, so for all who look."""
    from tests.cli import test_answers, test_console

    folder = tmp_path_factory.mktemp("whole")
    incident = test_console.written(test_answers.answers(canary_dumps(folder / "dumps")))
    return run_whole([incident, *sorted(path for path in EXAMPLES.glob("*/dumps") if path != EXAMPLE)], folder)


@pytest.fixture(scope="session", autouse=True)
def _own_keys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keys of hashes go into a configuration folder of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        yield


@pytest.fixture(autouse=True)
def _leave_no_cache(request: pytest.FixtureRequest) -> Iterator[None]:
    """Nothing that one test cached or named reaches the next."""
    yield
    if "spark" in request.fixturenames:
        started: SparkSession = request.getfixturevalue("spark")
        started.catalog.clearCache()
