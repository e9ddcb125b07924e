"""One Spark session for the whole suite: real Spark, Delta on, one shuffle partition, the small profile of `conf/local.yaml`.

A test that takes it has the mark `spark`; one that starts Java in another way says so itself. `make quick` runs those without the mark, where no Java
can be found, so that one that forgets the mark fails there.
"""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from eo_audit.config import load
from eo_audit.store.session import session


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that takes the session, or what is made with it."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session of all tests. Tests that change a setting put it back (`spark.conf.set`, then `unset`)."""
    started = session(load(master="local[2]"), input_bytes=0)
    yield started
    started.stop()


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
