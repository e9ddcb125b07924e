"""collect-dumps.sh on a log directory made from a recorded one, with a dump tool that replays what the real one printed of it."""

import gzip
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
RECORDED = ROOT / "tests/data/corpus/dumps/hanging_txn_k39"

# The tool's own rules: one file, a decoder only for its own topic; a file nobody recorded makes it fail as a damaged segment does.
REPLAY = """#!{python}
import pathlib, sys
if "--version" in sys.argv:
    print("3.9.1 (Commit:f745dfdcee2b9851)")
    raise SystemExit
path = pathlib.Path(sys.argv[sys.argv.index("--files") + 1])
pathlib.Path("{calls}").open("a").write(" ".join(sys.argv[1:-2]) + " " + path.parent.name + "/" + path.name + chr(10))
text = pathlib.Path("{recorded}") / path.parent.name / (path.name + ".txt")
if not text.exists():
    print("Dumping " + str(path))
    raise SystemExit("CorruptRecordException: Found record size 0")
sys.stdout.buffer.write(text.read_bytes())
"""


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """The recorded log directory: its listing tells names and sizes; the folder's own name has a space."""
    folder = tmp_path / "kafka logs"
    for line in (RECORDED / "broker-1/listing.txt").read_text().splitlines():
        size, name = line.split(" ", 1)
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        recorded = RECORDED / "broker-1" / name
        path.write_bytes(recorded.read_bytes() if recorded.is_file() else bytes(int(size)))
    (folder / "meta.properties").write_text("node.id=1\ncluster.id=hanging_txn_k39\n#".ljust(122, "-"))
    return folder


@pytest.fixture
def tool(tmp_path: Path) -> Path:
    path = tmp_path / "bin dir" / "kafka-dump-log"
    path.parent.mkdir()
    path.write_text(REPLAY.format(python=sys.executable, recorded=RECORDED / "broker-1", calls=tmp_path / "calls"))
    path.chmod(0o755)
    return path


def collect(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = ["sh", ROOT / "collect-dumps.sh", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": os.environ["PATH"]})


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_whole_broker_becomes_the_recorded_input(log_dir: Path, tool: Path, tmp_path: Path) -> None:
    done = collect("--out", tmp_path / "out dir", "--log-dir", log_dir, "--kafka-dump-log", tool)
    assert done.returncode == 0, done.stderr
    collected, recorded = files(tmp_path / "out dir"), files(RECORDED)
    manifest = yaml.safe_load(collected.pop("manifest.yaml"))
    recorded.pop("manifest.yaml")
    assert collected == recorded
    assert manifest == {"cluster": "hanging_txn_k39", "dumped_at": manifest["dumped_at"], "kafka_version": "3.9.1"}


def test_the_coordinators_log_comes_last(log_dir: Path, tool: Path, tmp_path: Path) -> None:
    """On a running broker it then tells of all that the other dumps show."""
    done = collect("--out", tmp_path / "out", "--log-dir", log_dir, "--kafka-dump-log", tool)
    topics = [line.rpartition("-")[0] for line in done.stdout.splitlines() if line.rpartition("-")[2].isdigit()]
    order = {"__transaction_state": 2, "__consumer_offsets": 1}
    turns = [order.get(topic, 0) for topic in topics]
    assert turns == sorted(turns) and {0, 2} <= set(turns)


def test_each_topic_gets_its_flags(log_dir: Path, tool: Path, tmp_path: Path) -> None:
    for internal in ("__consumer_offsets-0", "__share_group_state-3", "__cluster_metadata-0"):
        shutil.copytree(log_dir / "orders-2", log_dir / internal)
    collect("--out", tmp_path / "out", "--log-dir", log_dir, "--kafka-dump-log", tool)
    calls = set((tmp_path / "calls").read_text().splitlines())
    assert "--deep-iteration --print-data-log orders-0/00000000000000000000.log" in calls
    assert "--transaction-log-decoder --deep-iteration __transaction_state-1/00000000000000000000.log" in calls
    assert "--offsets-decoder --deep-iteration __consumer_offsets-0/00000000000000000000.log" in calls
    assert "--deep-iteration __share_group_state-3/00000000000000000000.log" in calls
    assert " orders-0/00000000000000000014.snapshot" in calls
    assert not [call for call in calls if "__cluster_metadata" in call]


def test_no_payloads_and_chosen_topics(log_dir: Path, tool: Path, tmp_path: Path) -> None:
    collect("--out", tmp_path / "out", "--log-dir", log_dir, "--kafka-dump-log", tool, "--no-payloads", "orders-1", "nowhere")
    folders = {path.name for path in (tmp_path / "out/broker-1").iterdir() if path.is_dir()}
    assert folders == {"orders-1", "__transaction_state-0", "__transaction_state-1", "__transaction_state-2"}
    assert "--print-data-log" not in (tmp_path / "calls").read_text()


def test_settings_and_directories_come_from_the_brokers_own_file(log_dir: Path, tool: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    shutil.copytree(log_dir / "orders-0", second / "orders-7")
    (second / "replication-offset-checkpoint").write_text("0\n1\norders 7 14\n")
    for empty in (log_dir, second):
        (empty / "cleaner-offset-checkpoint").touch()
    config = tmp_path / "server.properties"
    settings = ["transaction.state.log.num.partitions = 3", "ssl.key.password=secret", "log.cleaner.enable=false"]
    config.write_text("\n".join([f"log.dirs={log_dir},{second}", *settings]))
    done = collect("--out", tmp_path / "out", "--config", config, "--kafka-dump-log", tool)
    assert done.returncode == 1, "nothing was recorded of orders-7: the tool fails on it, the rest is dumped"
    manifest = yaml.safe_load((tmp_path / "out/manifest.yaml").read_text())
    assert manifest["transaction_state_partitions"] == 3
    assert manifest["broker_config"] == {"transaction.state.log.num.partitions": "3", "log.cleaner.enable": "false"}
    checkpoint = (tmp_path / "out/broker-1/replication-offset-checkpoint").read_text().splitlines()
    assert checkpoint[:2] == ["0", "7"]
    assert "orders 7 14" in checkpoint
    assert (tmp_path / "out/broker-1/cleaner-offset-checkpoint").read_text() == ""
    assert "CorruptRecord" in (tmp_path / "out/broker-1/orders-7/00000000000000000000.log.err.txt").read_text()
    assert "orders-7/00000000000000000000.log" in done.stderr


def test_gzip(log_dir: Path, tool: Path, tmp_path: Path) -> None:
    done = collect("--out", tmp_path / "out", "--log-dir", log_dir, "--kafka-dump-log", tool, "--gzip")
    assert done.returncode == 0
    name = "broker-1/orders-0/00000000000000000000.log.txt"
    assert gzip.decompress((tmp_path / "out" / f"{name}.gz").read_bytes()) == (RECORDED / name).read_bytes()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "say where to write"),
        (["--out", "OUT"], "say where the logs are"),
        (["--out", "OUT", "--log-dir", "/nowhere"], "there is no log directory /nowhere"),
        (["--out", "OUT", "--log-dir", "LOGS", "--kafka-dump-log", "/no/tool"], "cannot run /no/tool"),
        (["--out", "OUT", "--log-dir", "LOGS", "--fast"], "unknown option --fast"),
        (["--out"], "--out needs a value"),
    ],
)
def test_bad_arguments_do_nothing(arguments: list[str], said: str, log_dir: Path, tool: Path, tmp_path: Path) -> None:
    places = {"OUT": str(tmp_path / "out"), "LOGS": str(log_dir)}
    tail = [] if "--kafka-dump-log" in arguments or "--out" not in arguments[:-1] else ["--kafka-dump-log", str(tool)]
    done = collect(*tail, *[places.get(argument, argument) for argument in arguments])
    assert done.returncode == 2
    assert said in done.stderr
    assert not (tmp_path / "out").exists()


def test_nothing_is_overwritten(log_dir: Path, tool: Path, tmp_path: Path) -> None:
    arguments = ["--out", tmp_path / "out", "--log-dir", log_dir, "--kafka-dump-log", tool]
    collect(*arguments)
    before = files(tmp_path / "out")
    again = collect(*arguments)
    assert again.returncode == 2
    assert "exists: nothing is overwritten" in again.stderr
    assert files(tmp_path / "out") == before
