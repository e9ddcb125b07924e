"""Blocks of producer ids, as collect-dumps.sh keeps them of the metadata of running brokers."""

import subprocess
from pathlib import Path

import pytest

from tests.broker.audits import audit, collect, environment
from tests.broker.brokers import Broker, Release
from tests.broker.clients import compile_clients, java_client
from tests.broker.fetched import JARS, fetch

pytestmark = pytest.mark.broker

ROOT = Path(__file__).parents[2]
SECRET = "778899001122"  # what a setting may hold that nobody else should read


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    fetch()
    folder = tmp_path_factory.mktemp("classes")
    compile_clients(JARS / "4.3.1", folder)
    return folder


@pytest.mark.parametrize("release", [Release("4.3.1", transaction_version=2), Release("3.9.1")], ids=lambda release: release.version)
def test_blocks_are_kept_and_settings_are_not(release: Release, classes: Path, tmp_path: Path) -> None:
    """A broker that is started anew asks for a block of its own; ids of both are in its logs."""
    broker = Broker(release, tmp_path / "broker", JARS)
    metadata = [
        "sh",
        str(ROOT / "collect-dumps.sh"),
        "--out",
        str(tmp_path / "metadata"),
        "--config",
        str(broker.config),
        "--cluster",
        "blocks",
    ]
    for name in ("first", "second"):
        with broker.running(), java_client(broker.bootstrap, JARS / "4.3.1", classes, tmp_path) as client:
            if name == "first":
                client.ask("topic", "orders", 1, 1, f"retention.ms={SECRET}")
            client.init(name)
            client.commit(name, ("orders", 0, 2))
            if name == "second":
                dumps = collect(broker, tmp_path / "dumps", "blocks")
                done = subprocess.run(
                    [*metadata, "__cluster_metadata"], env=environment(broker), capture_output=True, text=True, check=False
                )
                assert (done.returncode, done.stderr) == (0, "")
    kept = (tmp_path / "metadata/broker-1/__cluster_metadata-0/00000000000000000000.log.txt").read_text()
    assert SECRET not in kept and '{"type":"CONFIG_RECORD"}' in kept
    found = audit([dumps, tmp_path / "metadata"], tmp_path / "out")
    assert found.code == 0, found.said
    blocks = sorted(found.results.rows("producer_id_blocks"), key=lambda row: int(str(row["record_offset"])))
    assert [row["next_producer_id"] for row in blocks] == [1000, 2000]
    assert {row["producer_id"] for row in found.results.rows("producer_history", row_kind="data")} == {0, 1000}
    assert all(found.results.verdict["rules"][rule]["verdict"] == "pass" for rule in ("I03", "I04"))  # type: ignore[index]
    assert found.results.rows("id_allocation", row_kind="user")
