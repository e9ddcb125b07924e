"""collect-dumps.sh on a log directory made from a recorded one, with a dump tool that replays what the real one printed of it."""

import gzip
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from eo_audit.dump.files.discovery import discover

ROOT = Path(__file__).resolve().parent.parent
RECORDED = ROOT / "tests/data/corpus/dumps/hanging_txn_k39"
EMPTY = ("__transaction_state-0", "__transaction_state-2")
RECORD = "| offset: 86 CreateTime: 1795234710707 keySize: -1 valueSize: 24 sequence: -1 headerKeys: []"

# The tool's own rules: it goes through its files until one fails, and says "Dumping" with the path it was given. A file nobody recorded
# makes it fail as a damaged segment does, one that is gone as a missing one; an index that is gone it takes for one without entries. A hook
# does to the log directory what a running broker does; only then is pathlib imported, which takes as long as all else.
REPLAY = """#!{python} -IS
import os, sys
if "--version" in sys.argv:
    print("3.9.1 (Commit:f745dfdcee2b9851)")
    raise SystemExit
if "--help" in sys.argv:
    raise SystemExit("--cluster-metadata-decoder  if set, log data will be parsed as cluster metadata records.")
flags = sys.argv[1:sys.argv.index("--files")]
names = sys.argv[sys.argv.index("--files") + 1].split(",")
if "--max-bytes" in flags:
    for name in names:
        print("x" * 2 * os.stat(name).st_size)
    raise SystemExit
log = open("{calls}", "a+")
log.seek(0)
before = len(log.readlines())
for name in names:
    short = "/".join(name.split("/")[-2:])
    log.write(str(before) + "|" + " ".join([*flags, short]) + chr(10))
    log.flush()
    if os.path.exists("{calls}.hook"):
        import pathlib
        path = pathlib.Path(name)
        exec(open("{calls}.hook").read())
    print("Dumping " + name, flush=True)
    if name.endswith(".txnindex") and not os.path.exists(name):
        continue
    if not os.path.exists(name):
        raise SystemExit('Exception in thread "main" java.nio.file.NoSuchFileException: ' + name)
    text = "{recorded}/" + short + ".txt"
    if not os.path.exists(text):
        raise SystemExit("CorruptRecordException: Found record size 0")
    sys.stdout.buffer.write(open(text, "rb").read().partition(bytes([10]))[2])
    sys.stdout.buffer.flush()
"""


def whole_log_dir(at: Path) -> Path:
    """The recorded log directory: its listing tells names and sizes; the folder's own name has a space."""
    folder = at / "kafka logs"
    for line in (RECORDED / "broker-1/listing.txt").read_text().splitlines():
        size, name = line.split(" ", 1)
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        recorded = RECORDED / "broker-1" / name
        path.write_bytes(recorded.read_bytes() if recorded.is_file() else bytes(int(size)))
    (folder / "meta.properties").write_text("node.id=1\ncluster.id=hanging_txn_k39\n#".ljust(122, "-"))
    return folder


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """The same without two partitions that hold nothing: the script starts a dozen processes for each."""
    folder = whole_log_dir(tmp_path)
    for name in EMPTY:
        shutil.rmtree(folder / name)
    return folder


def replaying(at: Path) -> Path:
    path = at / "bin dir" / "kafka-dump-log"
    path.parent.mkdir()
    path.write_text(REPLAY.format(python=sys.executable, recorded=RECORDED / "broker-1", calls=at / "calls"))
    path.chmod(0o755)
    return path


@pytest.fixture
def tool(tmp_path: Path) -> Path:
    return replaying(tmp_path)


def collect(*arguments: str | Path, programs: str = os.environ["PATH"]) -> subprocess.CompletedProcess[str]:
    command = ["sh", ROOT / "collect-dumps.sh", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": programs})


def smallest_image(at: Path) -> str:
    """A PATH without what minimal images of a broker lack, as those that are built of Red Hat's ubi-minimal."""
    at.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        for program in Path(folder).glob("*"):
            if program.name not in {"find", "xargs", "ionice", "ps", "which", "hostname"} and not (at / program.name).exists():
                (at / program.name).symlink_to(program)
    return str(at)


def calls(tmp_path: Path) -> list[str]:
    """What the tool was told, a line for each file."""
    return [line.partition("|")[2] for line in (tmp_path / "calls").read_text().splitlines()]


def processes(tmp_path: Path) -> int:
    """How many Java processes that took."""
    return len({line.partition("|")[0] for line in (tmp_path / "calls").read_text().splitlines()})


def recorded(log_dir: Path) -> dict[str, bytes]:
    """The recorded input, as if it had been dumped from this log directory."""
    gone = [name.encode() for name in EMPTY if not (log_dir / name).exists()]
    found = {name: content for name, content in files(RECORDED).items() if not any(part in os.fsencode(name) for part in gone)}
    for name, content in found.items():
        first, _, rest = content.partition(b"\n")
        if first.startswith(b"Dumping "):
            source = log_dir / name.removeprefix("broker-1/").removesuffix(".txt")
            found[name] = b"Dumping " + os.fsencode(source) + b"\n" + rest
    listed = found["broker-1/listing.txt"].splitlines(keepends=True)
    found["broker-1/listing.txt"] = b"".join(line for line in listed if not any(part in line for part in gone))
    return found


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@dataclass(frozen=True)
class Whole:
    """One collection of a whole broker, for all who look at it: where it was made, its arguments, and how it ended."""

    at: Path
    arguments: tuple[str | Path, ...]
    done: subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    at = tmp_path_factory.mktemp("whole")
    arguments = ("--out", at / "out dir", "--log-dir", whole_log_dir(at), "--kafka-dump-log", replaying(at))
    return Whole(at, arguments, collect(*arguments, programs=smallest_image(at / "programs")))


def test_a_whole_broker_becomes_the_recorded_input(whole: Whole) -> None:
    assert whole.done.returncode == 0, whole.done.stderr
    collected, expected = files(whole.at / "out dir"), recorded(whole.at / "kafka logs")
    manifest = yaml.safe_load(collected.pop("broker-1/manifest.yaml"))
    expected.pop("manifest.yaml")
    times = collected.pop("broker-1/dumped-at.txt").decode().splitlines()
    assert collected == expected
    assert manifest == {"cluster": "hanging_txn_k39", "dumped_at": manifest["dumped_at"], "kafka_version": "3.9.1"}
    dumped = {name.removeprefix("broker-1/").removesuffix(".txt") for name in expected if "-0/" in name or name.endswith(".txt")}
    assert {line.split()[1] for line in times} == {name for name in dumped if name.endswith((".log", ".snapshot", ".txnindex"))}
    assert all(manifest["dumped_at"] <= int(line.split()[0]) < manifest["dumped_at"] + 600_000 for line in times)


def test_the_coordinators_log_comes_last(whole: Whole) -> None:
    """On a running broker it then tells of all that the other dumps show."""
    topics = [line.rpartition("-")[0] for line in whole.done.stdout.splitlines() if line.rpartition("-")[2].isdigit()]
    order = {"__transaction_state": 2, "__consumer_offsets": 1}
    turns = [order.get(topic, 0) for topic in topics]
    assert turns == sorted(turns) and {0, 2} <= set(turns)


def test_each_topic_gets_its_flags(log_dir: Path, tool: Path, tmp_path: Path) -> None:
    for internal in ("__consumer_offsets-0", "__share_group_state-3", "__cluster_metadata-0"):
        shutil.copytree(log_dir / "orders-2", log_dir / internal)
    collect("--out", tmp_path / "out", "--log-dir", log_dir, "--kafka-dump-log", tool)
    told = calls(tmp_path)
    assert "--deep-iteration orders-0/00000000000000000000.log" in told
    assert "--transaction-log-decoder --deep-iteration __transaction_state-1/00000000000000000000.log" in told
    assert "--offsets-decoder --deep-iteration __consumer_offsets-0/00000000000000000000.log" in told
    assert "--deep-iteration __share_group_state-3/00000000000000000000.log" in told
    assert not [call for call in told if "__cluster_metadata" in call]


def with_metadata(log_dir: Path, tool: Path, tmp_path: Path) -> Path:
    """The log directory has the cluster's metadata too, as a tool of 3.9 prints them, with the hash of a password in it; their text."""
    shutil.copytree(log_dir / "orders-2", log_dir / "__cluster_metadata-0")
    for index in (log_dir / "__cluster_metadata-0").glob("*.txnindex"):
        index.unlink()
    recorded = shutil.copytree(RECORDED / "broker-1", tmp_path / "recorded")
    text = recorded / "__cluster_metadata-0/00000000000000000000.log.txt"
    shutil.copytree(ROOT / "tests/data/corpus/dumps/clean_k39/broker-1/__cluster_metadata-0", text.parent)
    for snapshot in (log_dir / "__cluster_metadata-0").glob("*.snapshot"):
        (text.parent / f"{snapshot.name}.txt").write_text("Dumping it\n")
    scram = '"name":"ana","mechanism":1,"salt":"c2FsdA==","storedKey":"c3RvcmVk","serverKey":"c2VydmVy","iterations":4096'
    said = text.read_text().replace(
        '{"type":"ZK_MIGRATION_STATE_RECORD","version":0,"data":{', f'{{"type":"SCRAM","version":0,"data":{{{scram},'
    )
    assert scram in said
    text.write_text(said)
    tool.write_text(tool.read_text().replace(str(RECORDED / "broker-1"), str(recorded)))
    return text


@pytest.mark.parametrize("alone", [True, False])
def test_of_the_clusters_metadata_only_blocks_of_producer_ids_are_printed(alone: bool, log_dir: Path, tool: Path, tmp_path: Path) -> None:
    """Its other records hold settings and hashes of passwords (SCRAM), which are written nowhere, of one segment or of two at once."""
    printed = with_metadata(log_dir, tool, tmp_path)
    if not alone:
        shutil.copy(log_dir / "orders-2/00000000000000000000.log", log_dir / "__cluster_metadata-0/00000000000000000086.log")
        (printed.parent / "00000000000000000086.log.txt").write_text(f"Dumping it\n{RECORD} payload: Error at 86, skipping. c3RvcmVk\n")
    done = collect("--out", tmp_path / "out", "--log-dir", log_dir, "--kafka-dump-log", tool, "--payloads", "__cluster_metadata")
    assert done.returncode == 0, done.stderr
    told = calls(tmp_path)
    assert told[-1 if alone else -2] == "--cluster-metadata-decoder --deep-iteration __cluster_metadata-0/00000000000000000000.log"
    collected = files(tmp_path / "out/broker-1/__cluster_metadata-0")
    assert not [name for name, text in collected.items() if b"c3RvcmVk" in text]
    text = collected["00000000000000000000.log.txt"].decode().splitlines()
    whole = printed.read_text().splitlines()
    assert len(text) == len(whole) == 151
    for line, full in zip(text[1:], whole[1:], strict=True):
        kept, _, payload = full.partition(" payload: ")
        if "PRODUCER_IDS_RECORD" in payload or not payload:
            assert line == full
        else:
            assert line == kept + " payload: " + payload.partition(",")[0] + "}"
    assert len([line for line in text if '"nextProducerId":1000' in line]) == 1
    if not alone:
        assert collected["00000000000000000086.log.txt"].decode().splitlines()[1:] == [f"{RECORD} payload: not decoded"]


def test_a_tool_that_cannot_decode_the_clusters_metadata_prints_their_batches(log_dir: Path, tool: Path, tmp_path: Path) -> None:
    """Up to 2.7 it has no decoder for them."""
    with_metadata(log_dir, tool, tmp_path)
    tool.write_text(tool.read_text().replace("--cluster-metadata-decoder ", ""))
    done = collect("--out", tmp_path / "out", "--log-dir", log_dir, "--kafka-dump-log", tool, "__cluster_metadata")
    assert done.returncode == 0, done.stderr
    assert calls(tmp_path)[-1] == "--deep-iteration __cluster_metadata-0/00000000000000000000.log"


def test_the_text_of_metadata_is_known_to_be_long(log_dir: Path, tool: Path, tmp_path: Path) -> None:
    with_metadata(log_dir, tool, tmp_path)
    (log_dir / "__cluster_metadata-0/00000000000000000000.log").write_bytes(bytes(10 << 20))
    arguments = ["--out", tmp_path / "out", "--log-dir", log_dir, "--kafka-dump-log", tool, "--dry-run"]
    for options, megabytes in (((), "63.0"), (("--gzip",), "4.0")):
        said = collect(*arguments, *options, "__cluster_metadata").stdout
        assert f": about {megabytes} MB of text; " in said, said


def test_few_java_processes_dump_many_files(whole: Whole) -> None:
    """Snapshots before the logs, so that none lies beyond their end; indexes behind them, so that no abort is missing from them."""
    told = [call.split()[-1] for call in calls(whole.at)]
    assert processes(whole.at) <= 4 < len(told)
    for partition in {name.rpartition("/")[0] for name in told}:
        kinds = [name.rpartition(".")[2] for name in told if name.startswith(partition + "/")]
        assert kinds == sorted(kinds, key=["snapshot", "log", "txnindex"].index)


@pytest.mark.parametrize("end", [b"", b"without line end"])
def test_a_payload_cannot_forge_the_line_at_which_texts_are_cut(end: bytes, log_dir: Path, tool: Path, tmp_path: Path) -> None:
    lines = (b"Log starting offset: 0", b"\0\xff", *(b"Dumping %s/%s.log" % (at, b"0" * 20) for at in (b"orders-1", b"dump-00/orders-1")))
    forged = b"".join(line + b"\n" for line in lines)
    tool.write_text(tool.read_text().replace('open(text, "rb").read()', f"(b'first' + bytes([10]) + {forged + end!r})"))
    collect("--out", tmp_path / "out", "--log-dir", log_dir, "--kafka-dump-log", tool)
    texts = {name: text for name, text in files(tmp_path / "out/broker-1").items() if name.endswith(".log.txt")}
    assert len(texts) == 4
    for name, text in texts.items():
        assert text == b"Dumping " + os.fsencode(log_dir / name.removesuffix(".txt")) + b"\n" + forged + end


def test_chosen_topics(log_dir: Path, tool: Path, tmp_path: Path) -> None:
    collect("--out", tmp_path / "out", "--log-dir", log_dir, "--kafka-dump-log", tool, "orders-1")
    folders = {path.name for path in (tmp_path / "out/broker-1").iterdir() if path.is_dir()}
    assert folders == {"orders-1", "__transaction_state-1"}


def test_payloads_are_printed_only_when_asked_for(log_dir: Path, tool: Path, tmp_path: Path) -> None:
    """And of no internal topic then; `--no-payloads` was an option once, and scripts may still say it."""
    shutil.copytree(log_dir / "orders-2", log_dir / "__share_group_state-3")
    for name, options in (("default", ()), ("no", ("--no-payloads",)), ("asked", ("--payloads",))):
        done = collect("--out", tmp_path / name, "--log-dir", log_dir, "--kafka-dump-log", tool, *options)
        assert done.returncode < 2, done.stderr
        with_payloads = {call.split()[-1].partition("-")[0] for call in calls(tmp_path) if "--print-data-log" in call}
        assert with_payloads == ({"orders"} if name == "asked" else set())
        (tmp_path / "calls").unlink()


def test_settings_and_directories_come_from_the_brokers_own_file(log_dir: Path, tool: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    shutil.copytree(log_dir / "orders-0", second / "orders-7")
    (second / "replication-offset-checkpoint").write_text("0\n1\norders 7 14\n")
    for empty in (log_dir, second):
        (empty / "cleaner-offset-checkpoint").touch()
    config = tmp_path / "server.properties"
    settings = ["transaction.state.log.num.partitions = 3", "ssl.key.password=secret", "log.cleaner.enable=false"]
    settings.append("remote.log.storage.system.enable=true")
    config.write_text("\n".join([f"log.dirs={log_dir},{second}", *settings]))
    done = collect("--out", tmp_path / "out", "--config", config, "--kafka-dump-log", tool)
    assert done.returncode == 1, "nothing was recorded of orders-7: the tool fails on it, the rest is dumped"
    manifest = yaml.safe_load((tmp_path / "out/broker-1/manifest.yaml").read_text())
    assert manifest["transaction_state_partitions"] == 3
    assert manifest["broker_config"] == {
        "transaction.state.log.num.partitions": "3",
        "log.cleaner.enable": "false",
        "remote.log.storage.system.enable": "true",
    }
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
    assert gzip.decompress((tmp_path / "out" / f"{name}.gz").read_bytes()) == recorded(log_dir)[name]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "say where to write"),
        (["--out", "OUT"], "say where the logs are"),
        (["--out", "OUT", "--log-dir", "/nowhere"], "there is no log directory /nowhere"),
        (["--out", "OUT", "--log-dir", "LOGS", "--kafka-dump-log", "/no/tool"], "cannot run /no/tool"),
        (["--out", "OUT", "--log-dir", "LOGS", "--fast"], "unknown option --fast"),
        (["--out"], "--out needs a value"),
        (["--out", "OUT", "--log-dir", "LOGS", "order"], "holds no order (near: orders): nothing was dumped"),
        (["--out", "OUT", "--log-dir", "LOGS", "orders-9"], "holds no orders-9 (it holds other partitions of orders): nothing was dumped"),
        (["--out", "OUT", "--log-dir", "LOGS", "zebra", "odrers"], "holds no zebra; odrers (near: orders): nothing was dumped"),
        (["--out", "OUT", "--log-dir", "LOGS", ""], "a topic without a name"),
        (["--out", "OUT", "--log-dir", "LOGS", "orders", ""], "a topic without a name"),
        (["--out", "FILE", "--log-dir", "LOGS"], "is a file: name a folder for the dumps"),
        (["--out", "FILE", "--log-dir", "LOGS", "--dry-run"], "is a file: name a folder for the dumps"),
        (["--out", "FILE/below", "--log-dir", "LOGS"], "cannot make "),
    ],
)
def test_bad_arguments_do_nothing(arguments: list[str], said: str, log_dir: Path, tool: Path, tmp_path: Path) -> None:
    (file := tmp_path / "a file").write_text("held")
    places = {"OUT": str(tmp_path / "out"), "LOGS": str(log_dir), "FILE": str(file), "FILE/below": str(file / "below")}
    tail = [] if "--kafka-dump-log" in arguments or "--out" not in arguments[:-1] else ["--kafka-dump-log", str(tool)]
    done = collect(*tail, *[places.get(argument, argument) for argument in arguments])
    assert done.returncode == 2
    assert said in done.stderr and len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists() and not (tmp_path / "calls").exists() and file.read_text() == "held"


def test_what_is_there_is_dumped_where_one_name_is_wrong(log_dir: Path, tool: Path, tmp_path: Path) -> None:
    """Each broker holds some partitions; whoever mistypes a name wants the rest, and to be told at the end."""
    arguments = ["--out", tmp_path / "out", "--log-dir", log_dir, "--kafka-dump-log", tool, "odrers", "orders-0", "orders-9"]
    lacks = "odrers (near: orders); orders-9 (it holds other partitions of orders)"
    tried = collect(*arguments, "--dry-run")
    assert tried.returncode == 1 and f"Broker 1 holds no {lacks}: the rest is dumped." in tried.stderr
    done = collect(*arguments)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [f"Broker 1 holds no {lacks}: the rest is dumped.", f"Not on broker 1, so not dumped: {lacks}."]
    right = collect("--out", tmp_path / "right", "--log-dir", log_dir, "--kafka-dump-log", tool, "orders-0")
    assert right.returncode == 0 and right.stderr == ""
    found, expected = (files(tmp_path / name) for name in ("out", "right"))
    for name in ("broker-1/manifest.yaml", "broker-1/dumped-at.txt"):
        assert found.pop(name) and expected.pop(name)
    assert found == expected


def test_what_fails_on_the_way_is_not_taken_for_partial(log_dir: Path, tool: Path, tmp_path: Path) -> None:
    """A shell that stops at a failed command ends with 1 or 2."""
    (tmp_path / "calls.hook").write_text(
        f"listing = pathlib.Path({str(tmp_path / 'out/broker-1/listing.txt')!r})\nif listing.is_file(): listing.unlink(); listing.mkdir()"
    )
    done = collect("--out", tmp_path / "out", "--log-dir", log_dir, "--kafka-dump-log", tool)
    assert done.returncode == 3, done.stderr
    assert done.stderr.splitlines()[-1].startswith("collect-dumps.sh: failed, see above: unfinished; the same command goes on")
    assert (tmp_path / "out/broker-1/unfinished.txt").exists()


def test_nothing_is_overwritten(whole: Whole) -> None:
    before = files(whole.at / "out dir")
    again = collect(*whole.arguments)
    assert again.returncode == 2
    assert "exists: nothing is overwritten" in again.stderr
    assert before and files(whole.at / "out dir") == before


def test_a_dry_run_says_what_there_is_to_do_and_does_nothing(log_dir: Path, tool: Path, tmp_path: Path) -> None:
    done = collect("--out", tmp_path / "out", "--log-dir", log_dir, "--kafka-dump-log", tool, "--dry-run", "orders-0")
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    sizes = [path.stat().st_size for path in (log_dir / "orders-0").iterdir() if path.suffix in (".log", ".snapshot", ".txnindex")]
    assert f"  orders-0: {len(sizes)} files, {sum(sizes)} bytes" in said
    assert said[0].startswith("2 partitions, ") and " of text; " in said[0] and f"are free at {tmp_path / 'out'}" in said[0]
    assert not (tmp_path / "out").exists() and not (tmp_path / "calls").exists()


def test_a_run_says_how_much_it_will_be_before_it_begins(log_dir: Path, tool: Path, tmp_path: Path) -> None:
    """It ends at the first call of the tool, so what it has said by then it said before. The sample makes of each byte two."""
    (tmp_path / "calls.hook").write_text("import os, signal; os.killpg(0, signal.SIGKILL)")
    arguments = ["--out", tmp_path / "out", "--log-dir", log_dir, "--kafka-dump-log", tool, "orders-0"]
    process = subprocess.run(["sh", ROOT / "collect-dumps.sh", *arguments], capture_output=True, text=True, check=False, process_group=0)
    assert process.returncode == -signal.SIGKILL
    said = re.match(r"2 partitions, (\d+) files, ([\d.]+ \wB): about ([\d.]+ \wB) of text; ([\d.]+ \wB) are free at ", process.stdout)
    assert said is not None, process.stdout
    taken = {"orders-0", *(path.name for path in log_dir.glob("__[tc]*"))}
    dumped = [path for path in log_dir.glob("*/*") if path.parent.name in taken and path.suffix in (".log", ".snapshot", ".txnindex")]
    kilobytes = sum(path.stat().st_size for path in dumped) / 1024
    assert int(said[1]) == len(dumped)
    assert said[2] == f"{kilobytes:.0f} KB" and said[3] == f"{2 * kilobytes:.0f} KB"


def test_what_does_not_fit_is_not_begun(log_dir: Path, tool: Path, tmp_path: Path) -> None:
    """A segment with a hole in it (sparse) of more bytes than any disk has room for; its sample says that text is twice as much."""
    os.truncate(log_dir / "orders-0/00000000000000000000.log", 1 << 43)
    arguments = ["--out", tmp_path / "out", "--log-dir", log_dir, "--kafka-dump-log", tool]
    done = collect(*arguments)
    assert done.returncode == 2 and "that does not fit" in done.stderr
    assert not (tmp_path / "out").exists()
    assert collect(*arguments, "--force").returncode == 0


def interrupted(tmp_path: Path, log_dir: Path, tool: Path, at: str) -> list[str | Path]:
    """A collection that was killed, without a last word, when the tool came to a file; its arguments."""
    (tmp_path / "calls.hook").write_text(f"import os, signal\nif name.endswith({at!r}): os.killpg(0, signal.SIGKILL)")
    arguments: list[str | Path] = ["--out", tmp_path / "out", "--log-dir", log_dir, "--kafka-dump-log", tool]
    command = ["sh", ROOT / "collect-dumps.sh", *arguments]
    done = subprocess.run(command, capture_output=True, check=False, env={"PATH": os.environ["PATH"]}, start_new_session=True)
    assert done.returncode < 0
    (tmp_path / "calls.hook").unlink()
    return arguments


def test_an_interrupted_run_says_so_and_goes_on(log_dir: Path, tool: Path, tmp_path: Path) -> None:
    arguments = interrupted(tmp_path, log_dir, tool, "__transaction_state-1/00000000000000000000.log")
    broker = tmp_path / "out/broker-1"
    assert "did not finish" in (broker / "unfinished.txt").read_text()
    manifest = (tmp_path / "out/broker-1/manifest.yaml").read_bytes()
    finished = {name for name in files(broker) if name.startswith("orders-")}
    assert {name.partition("/")[0] for name in finished} == {"orders-0", "orders-1", "orders-2"}
    (tmp_path / "calls").unlink()

    other = collect(*arguments, "--payloads")
    assert other.returncode == 2 and "begun with other topics or options" in other.stderr
    done = collect(*arguments, "--no-payloads")  # what is done anyway
    assert done.returncode == 0, done.stderr
    assert not [call for call in calls(tmp_path) if "orders" in call]
    collected, expected = files(tmp_path / "out"), recorded(log_dir)
    assert collected.pop("broker-1/manifest.yaml") == manifest
    times = collected.pop("broker-1/dumped-at.txt").decode().splitlines()
    assert len(times) == len({line.split()[1] for line in times}) >= len(finished) - 3
    expected.pop("manifest.yaml")
    assert collected == expected


def test_ctrl_c_is_one_sentence(log_dir: Path, tool: Path, tmp_path: Path) -> None:
    (tmp_path / "calls.hook").write_text("import os, signal\nos.kill(os.getppid(), 0)\nos.killpg(0, signal.SIGINT)")
    command = ["sh", ROOT / "collect-dumps.sh", "--out", tmp_path / "out", "--log-dir", log_dir, "--kafka-dump-log", tool]
    # Who starts the tests in the background hands down that interrupts are ignored, and a shell cannot take that back.
    heeds = {"start_new_session": True, "preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": os.environ["PATH"]}, **heeds)
    assert done.returncode == 130
    assert "interrupted: unfinished; the same command goes on where it stopped" in done.stderr
    assert (tmp_path / "out/broker-1/unfinished.txt").exists()


SECOND = "orders-1/00000000000000000100"


@pytest.fixture
def rolled(log_dir: Path) -> Path:
    """orders-1 has a second segment, with index and snapshot; nothing of it was recorded, so the tool fails on it unless it is gone."""
    for suffix in ("log", "txnindex", "snapshot"):
        (log_dir / f"{SECOND}.{suffix}").write_bytes(b"1" * 70)
    return log_dir


def test_a_damaged_segment_does_not_hide_the_files_behind_it(rolled: Path, tool: Path, tmp_path: Path) -> None:
    done = collect("--out", tmp_path / "out", "--log-dir", rolled, "--kafka-dump-log", tool)
    assert done.returncode == 1
    assert "failed on 3 file(s)" in done.stderr and f"{SECOND}.log" in done.stderr
    collected = files(tmp_path / "out")
    assert b"CorruptRecord" in collected[f"broker-1/{SECOND}.log.err.txt"]
    assert {name for name in collected if name.endswith(".err.txt")} == {
        f"broker-1/{SECOND}.{suffix}.err.txt" for suffix in ("log", "txnindex", "snapshot")
    }
    assert {name: collected[name] for name in recorded(rolled) if "/orders-2/" in name} == {
        name: text for name, text in recorded(rolled).items() if "/orders-2/" in name
    }


@pytest.mark.parametrize(("also_without", "code"), [(False, 0), (True, 1)])
def test_offsets_that_the_decoder_dies_of_are_dumped_without_it(
    log_dir: Path, tool: Path, tmp_path: Path, also_without: bool, code: int
) -> None:
    """Batches and markers are told all the same; a tool of 2.3 dies of each group that a newer client is a member of."""
    segment = "__consumer_offsets-0/00000000000000000000.log"
    shutil.copytree(log_dir / "orders-0", log_dir / "__consumer_offsets-0")
    shutil.copytree(RECORDED / "broker-1", tmp_path / "recorded")
    shutil.copytree(RECORDED / "broker-1/orders-0", tmp_path / "recorded/__consumer_offsets-0")
    tool.write_text(tool.read_text().replace(str(RECORDED / "broker-1"), str(tmp_path / "recorded")))
    asked = f"name.endswith({segment!r})" + ("" if also_without else " and '--offsets-decoder' in flags")
    (tmp_path / "calls.hook").write_text(
        f"if {asked}: raise SystemExit(print('Dumping ' + name, flush=True) or 'java.lang.NullPointerException')"
    )
    done = collect("--out", tmp_path / "out", "--log-dir", log_dir, "--kafka-dump-log", tool)
    assert done.returncode == code, done.stderr
    assert done.stderr.count(f"decoder of the dump tool failed on {log_dir}/{segment}: dumped without it") == 1
    collected = files(tmp_path / "out")
    assert [name for name in collected if name.endswith(".err.txt")] == [f"broker-1/{segment}.err.txt"] * also_without
    whole = (RECORDED / "broker-1/orders-0/00000000000000000000.log.txt").read_bytes().partition(b"\n")[2]
    assert collected[f"broker-1/{segment}.txt"].partition(b"\n")[2] == (b"" if also_without else whole)
    assert [line for line in calls(tmp_path) if segment in line] == [
        f"--offsets-decoder --deep-iteration {segment}",
        f"--deep-iteration {segment}",
    ]


@pytest.mark.parametrize(("died_of", "hints"), [("java.lang.NullPointerException", 1), ("java.lang.IllegalStateException", 0)])
def test_whom_to_ask_when_the_tool_dies_of_an_id_that_was_removed(
    log_dir: Path, tool: Path, tmp_path: Path, died_of: str, hints: int
) -> None:
    """KAFKA-9293: a tool up to 2.4.0 will die of it the next time, too."""
    segment = "__transaction_state-0/00000000000000000000.log"
    shutil.copytree(log_dir / "orders-0", log_dir / "__transaction_state-0", dirs_exist_ok=True)
    (tmp_path / "calls.hook").write_text(
        f"if name.endswith({segment!r}): raise SystemExit(print('Dumping ' + name, flush=True) or {died_of!r})"
    )
    done = collect("--out", tmp_path / "out", "--log-dir", log_dir, "--kafka-dump-log", tool)
    assert done.returncode == 1
    assert done.stderr.count("name the tool of 2.4.1 or later with --kafka-dump-log") == hints


def test_what_retention_takes_away_meanwhile_is_neither_a_failure_nor_listed(rolled: Path, tool: Path, tmp_path: Path) -> None:
    remove = "".join(
        f"(path.parent.parent / {f'{SECOND}.{suffix}'!r}).unlink(missing_ok=True);" for suffix in ("log", "txnindex", "snapshot")
    )
    (tmp_path / "calls.hook").write_text(remove)
    done = collect("--out", tmp_path / "out", "--log-dir", rolled, "--kafka-dump-log", tool)
    assert done.returncode == 0, done.stderr
    collected, expected = files(tmp_path / "out"), recorded(rolled)
    for name in ("broker-1/manifest.yaml", "broker-1/dumped-at.txt"):
        collected.pop(name)
    expected.pop("manifest.yaml")
    assert collected == expected


def test_a_replica_that_is_moved_to_another_log_directory_meanwhile_is_dumped_there(log_dir: Path, tool: Path, tmp_path: Path) -> None:
    """KIP-113: the folder goes when its copy, which was `orders-0.<id>-future` until then, has all of it."""
    other = tmp_path / "other disk"
    (other / "orders-0.77-future").mkdir(parents=True)
    (tmp_path / "calls.hook").write_text(
        "import shutil\n"
        f"there, here = pathlib.Path({str(other)!r}), path.parent.resolve()\n"
        "if path.parent.name == 'orders-0' and here.is_dir() and here.parent != there and not name.endswith('.txnindex'):\n"
        " shutil.copytree(here, there / 'orders-0')\n"
        " shutil.rmtree(there / 'orders-0.77-future')\n"
        " shutil.rmtree(here)"
    )
    expected = recorded(log_dir)
    done = collect("--out", tmp_path / "out", "--log-dir", log_dir, "--log-dir", other, "--kafka-dump-log", tool)
    assert (done.returncode, done.stderr) == (0, "")
    collected = {name: text.replace(bytes(other), bytes(log_dir)) for name, text in files(tmp_path / "out").items()}
    assert [name for name in expected if name != "manifest.yaml" and collected[name] != expected[name]] == []


def test_a_partition_that_is_gone_when_its_turn_comes_is_left_out_without_a_word(log_dir: Path, tool: Path, tmp_path: Path) -> None:
    """It was moved to another broker, or its topic was deleted, while the partitions before it were dumped."""
    gone = log_dir / "__transaction_state-1"
    (tmp_path / "calls.hook").write_text(f"import shutil\nif '/orders-0/' in name: shutil.rmtree({str(gone)!r}, ignore_errors=True)")
    done = collect("--out", tmp_path / "out", "--log-dir", log_dir, "--kafka-dump-log", tool)
    assert (done.returncode, done.stderr) == (0, "")
    assert not [name for name in files(tmp_path / "out") if gone.name in name]
    for name in ("listing.txt", "dumped-at.txt"):
        assert gone.name not in (tmp_path / "out/broker-1" / name).read_text()


def rolled_with_index(log_dir: Path, tool: Path, tmp_path: Path) -> None:
    """orders-1 gets a second segment with an index; of the segment there is a text."""
    for suffix in ("log", "txnindex"):
        shutil.copy(log_dir / "orders-0/00000000000000000000.log", log_dir / f"orders-1/00000000000000000100.{suffix}")
    shutil.copytree(RECORDED / "broker-1", tmp_path / "recorded")
    shutil.copy(RECORDED / "broker-1/orders-0/00000000000000000000.log.txt", tmp_path / f"recorded/{SECOND}.log.txt")
    tool.write_text(tool.read_text().replace(str(RECORDED / "broker-1"), str(tmp_path / "recorded")))


@pytest.mark.parametrize("has_index", [True, False])
def test_a_segment_that_was_deleted_before_its_index_could_be_dumped_is_gone_as_a_whole(
    log_dir: Path, tool: Path, tmp_path: Path, has_index: bool
) -> None:
    """Else its aborts would stand in the log, and nothing would tell whether an index has them."""
    rolled_with_index(log_dir, tool, tmp_path)
    if not has_index:
        (log_dir / f"{SECOND}.txnindex").unlink()
    (tmp_path / "calls.hook").write_text(
        "if name.endswith('orders-2/00000000000000000000.log'):\n"
        f" for suffix in ('log', 'txnindex'): (path.parent.parent / ({SECOND!r} + '.' + suffix)).unlink(missing_ok=True)"
    )
    done = collect("--out", tmp_path / "out", "--log-dir", log_dir, "--kafka-dump-log", tool)
    assert done.returncode == 0, done.stderr
    assert f"--deep-iteration {SECOND}.log" in calls(tmp_path)
    assert SECOND not in "".join([*files(tmp_path / "out"), (tmp_path / "out/broker-1/listing.txt").read_text()])
    assert SECOND not in (tmp_path / "out/broker-1/dumped-at.txt").read_text()


@pytest.mark.parametrize("packed", [False, True])
def test_an_index_that_is_gone_when_the_tool_opens_it_is_not_an_empty_one(log_dir: Path, tool: Path, tmp_path: Path, packed: bool) -> None:
    """The tool prints no entry of an index that is not there (`TransactionIndex`), and ends well."""
    rolled_with_index(log_dir, tool, tmp_path)
    (tmp_path / "calls.hook").write_text(
        "if name.endswith('.txnindex'):\n"
        f" for there in (path.parent.parent, pathlib.Path({str(log_dir)!r})):\n"
        f"  for suffix in ('log', 'txnindex'): (there / ({SECOND!r} + '.' + suffix)).unlink(missing_ok=True)"
    )
    options = ["--gzip"] if packed else []
    done = collect("--out", tmp_path / "out", "--log-dir", log_dir, "--kafka-dump-log", tool, *options)
    assert done.returncode == 0, done.stderr
    assert f"{SECOND}.txnindex" in calls(tmp_path)
    assert SECOND not in "".join([*files(tmp_path / "out"), (tmp_path / "out/broker-1/listing.txt").read_text()])


def test_the_tool_opens_no_index_of_the_broker(log_dir: Path, tool: Path, tmp_path: Path) -> None:
    """It opens an index to read and write, and makes one that is not there: it is given copies."""
    given = tmp_path / "given"
    (tmp_path / "calls.hook").write_text(f"if name.endswith('.txnindex'): open({str(given)!r}, 'a').write(str(path.resolve()) + '\\n')")
    indexes = {path.name: path.stat().st_mtime_ns for path in log_dir.glob("*/*.txnindex")}
    done = collect("--out", tmp_path / "out", "--log-dir", log_dir, "--kafka-dump-log", tool)
    assert done.returncode == 0, done.stderr
    opened = given.read_text().splitlines()
    assert len(opened) == len(list(log_dir.glob("*/*.txnindex"))) > 0
    assert not [path for path in opened if path.startswith(str(log_dir))]
    assert {path.name: path.stat().st_mtime_ns for path in log_dir.glob("*/*.txnindex")} == indexes


def test_what_cannot_be_read_is_said_and_nothing_is_dumped(log_dir: Path, tool: Path) -> None:
    # Folders of tests are closed to others, and root may read everything.
    with tempfile.TemporaryDirectory() as name:
        at = Path(name)
        at.chmod(0o755)
        logs, script = shutil.copytree(log_dir, at / "logs"), shutil.copy(ROOT / "collect-dumps.sh", at)
        closed = logs / "orders-1"
        closed.chmod(0o000 if os.getuid() else 0o700)
        as_nobody = [] if os.getuid() else ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        command = [*as_nobody, "sh", script, "--out", at / "out", "--log-dir", logs, "--kafka-dump-log", "true"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        closed.chmod(0o755)
        assert done.returncode == 2, done.stderr
        assert f"cannot read {closed}: run this as the user of the broker, or as root" in done.stderr
        assert not (at / "out").exists()


def test_what_the_cleaner_replaced_meanwhile_is_dumped_again(log_dir: Path, tool: Path, tmp_path: Path) -> None:
    """The cleaner writes the segments it merged aside and puts them in the place of the old ones: a new inode under the old name."""
    segment = log_dir / "orders-1/00000000000000000000.log"
    (tmp_path / "calls.hook").write_text(
        "import shutil\n"
        f"segment, once = pathlib.Path({str(segment)!r}), pathlib.Path({str(tmp_path / 'once')!r})\n"
        "if name.endswith('orders-2/00000000000000000000.log') and not once.exists():\n"
        " once.touch(); shutil.copy(segment, str(segment) + '.swap'); pathlib.Path(str(segment) + '.swap').rename(segment)"
    )
    done = collect("--out", tmp_path / "out", "--log-dir", log_dir, "--kafka-dump-log", tool)
    assert done.returncode == 0, done.stderr
    told = calls(tmp_path)
    assert told.count("--deep-iteration orders-1/00000000000000000000.log") == 2
    assert told.count("--deep-iteration orders-2/00000000000000000000.log") == 1
    assert "broker-1/orders-1/00000000000000000000.log.txt" in files(tmp_path / "out")


def test_a_segment_that_grew_and_was_rolled_is_dumped_again_with_what_the_cleaner_replaced(
    log_dir: Path, tool: Path, tmp_path: Path
) -> None:
    """Its text of the first time ends where the segment ended then."""
    segment, newest = (log_dir / f"orders-1/{base:020}.log" for base in (0, 100))
    shutil.copy(log_dir / "orders-0/00000000000000000000.log", newest)
    shutil.copytree(RECORDED / "broker-1", tmp_path / "recorded")
    for base in (100, 200):
        shutil.copy(RECORDED / "broker-1/orders-0/00000000000000000000.log.txt", tmp_path / f"recorded/orders-1/{base:020}.log.txt")
    tool.write_text(tool.read_text().replace(str(RECORDED / "broker-1"), str(tmp_path / "recorded")))
    (tmp_path / "calls.hook").write_text(
        "import shutil\n"
        f"segment, newest, once = (pathlib.Path(name) for name in {[str(segment), str(newest), str(tmp_path / 'once')]!r})\n"
        "if name.endswith('orders-2/00000000000000000000.log') and not once.exists():\n"
        " once.touch(); shutil.copy(segment, str(segment) + '.swap'); pathlib.Path(str(segment) + '.swap').rename(segment)\n"
        " newest.write_bytes(newest.read_bytes() + bytes(100)); shutil.copy(newest, newest.with_name('00000000000000000200.log'))"
    )
    done = collect("--out", tmp_path / "out", "--log-dir", log_dir, "--kafka-dump-log", tool)
    assert done.returncode == 0, done.stderr
    assert calls(tmp_path).count(f"--deep-iteration orders-1/{newest.name}") == 2


def test_what_the_cleaner_replaces_every_time_is_listed_as_it_was_and_keeps_no_index(log_dir: Path, tool: Path, tmp_path: Path) -> None:
    """Then the audit says that the index was not dumped: it may lack what the cleaner removed behind the dump of the segment."""
    segment = log_dir / "orders-1/00000000000000000000.log"
    segment.with_suffix(".txnindex").write_bytes(b"1" * 34)
    (tmp_path / "calls.hook").write_text(
        "import os, shutil, time\n"
        f"segment = pathlib.Path({str(segment)!r})\n"
        f"os.link(segment, {str(tmp_path / 'kept')!r} + str(time.time_ns()))\n"  # else the file system may give the next one its inode
        "shutil.copy(segment, str(segment) + '.swap'); pathlib.Path(str(segment) + '.swap').rename(segment)"
    )
    done = collect("--out", tmp_path / "out", "--log-dir", log_dir, "--kafka-dump-log", tool)
    assert "orders-1 was cleaned or deleted while it was dumped, three times" in done.stderr
    assert done.returncode == 1 and "Not whole, as the cleaner went on: orders-1. Dump them again" in done.stderr
    collected = files(tmp_path / "out/broker-1")
    assert "orders-1/00000000000000000000.log.txt" in collected and "orders-1/00000000000000000000.txnindex.txt" not in collected
    assert "34 orders-1/00000000000000000000.txnindex" in collected["listing.txt"].decode().splitlines()


def test_what_the_cleaner_merges_every_time_is_listed_as_large_as_it_became(log_dir: Path, tool: Path, tmp_path: Path) -> None:
    """A text that is longer than its listing would be taken for a payload that looks like one."""
    rolled_with_index(log_dir, tool, tmp_path)
    segment = log_dir / "orders-1/00000000000000000000.log"
    (tmp_path / "calls.hook").write_text(
        "import os, time\n"
        f"segment = pathlib.Path({str(segment)!r})\n"
        f"os.link(segment, {str(tmp_path / 'kept')!r} + str(time.time_ns()))\n"
        "swap = pathlib.Path(str(segment) + '.swap'); swap.write_bytes(segment.read_bytes() + b'1'); swap.rename(segment)\n"
        f"if '/orders-1/' in str(path): pathlib.Path({str(tmp_path / 'became')!r}).write_text(str(segment.stat().st_size))"
    )
    done = collect("--out", tmp_path / "out", "--log-dir", log_dir, "--kafka-dump-log", tool)
    assert "orders-1 was cleaned or deleted while it was dumped, three times" in done.stderr
    listed = dict(line.split()[::-1] for line in (tmp_path / "out/broker-1/listing.txt").read_text().splitlines())
    assert listed[f"orders-1/{segment.name}"] == (tmp_path / "became").read_text()


def test_the_id_of_a_topic_is_copied(log_dir: Path, tool: Path, tmp_path: Path) -> None:
    said = b"version: 0\ntopic_id: dNvC-0ZzTqW5ER_sg9Fl2Q"
    (log_dir / "orders-0/partition.metadata").write_bytes(said)
    done = collect("--out", tmp_path / "out", "--log-dir", log_dir, "--kafka-dump-log", tool, "orders-0")
    assert done.returncode == 0, done.stderr
    (found,) = (file for file in discover([tmp_path / "out"]) if file.kind_hint == "partition_metadata")
    assert (found.path, found.absolute.read_bytes()) == ("broker-1/orders-0/partition.metadata", said)


def test_a_segment_that_rolls_meanwhile_is_not_listed(log_dir: Path, tool: Path, tmp_path: Path) -> None:
    """It came behind what was dumped: nothing is missing from before the dump began."""
    (tmp_path / "calls.hook").write_text(f"(pathlib.Path({str(log_dir)!r}) / '{SECOND}.log').touch()")
    done = collect("--out", tmp_path / "out", "--log-dir", log_dir, "--kafka-dump-log", tool)
    assert done.returncode == 0, done.stderr
    assert (log_dir / f"{SECOND}.log").exists()
    assert (tmp_path / "out/broker-1/listing.txt").read_bytes() == recorded(log_dir)["broker-1/listing.txt"]


def test_a_segment_that_grows_meanwhile_is_listed_as_large_as_it_was(log_dir: Path, tool: Path, tmp_path: Path) -> None:
    """Its text may show more than that, and never less."""
    segment = log_dir / "orders-1/00000000000000000000.log"
    (tmp_path / "calls.hook").write_text(f"pathlib.Path({str(segment)!r}).open('ab').write(b'x' * 100)")
    size = segment.stat().st_size
    done = collect("--out", tmp_path / "out", "--log-dir", log_dir, "--kafka-dump-log", tool)
    assert done.returncode == 0, done.stderr
    assert segment.stat().st_size > size
    assert (tmp_path / "out/broker-1/listing.txt").read_bytes() == recorded(log_dir)["broker-1/listing.txt"]


def nightly(tmp_path: Path, config: Path) -> Path:
    """The script of docs/operate.md that cron starts, with places of this test."""
    page = (ROOT / "docs" / "operate.md").read_text()
    (script,) = (block for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL) if "mail -s" in block)
    places = {
        "/opt/eo-audit": str(tmp_path / "opt"),
        "/data/": f"{tmp_path}/data/",
        "/etc/kafka/server.properties": str(config),
        "/var/log/": f"{tmp_path}/",
    }
    for written, here in places.items():
        assert written in script
        script = script.replace(written, here)
    program(tmp_path / "opt/nightly.sh", script)
    assert "15 3 * * *  /opt/eo-audit/nightly.sh\n" in page
    return tmp_path / "opt/nightly.sh"


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def stand_ins(tmp_path: Path, audited: int) -> dict[str, str]:
    """Programs that say what they were called with: the audit, which ends with a code, and mail; the environment that cron would give."""
    program(tmp_path / "opt/.venv/bin/eo-audit", f'#!/bin/sh\necho "$@" >>{tmp_path}/audits\necho audited\nexit {audited}\n')
    program(tmp_path / "bin/mail", f'#!/bin/sh\n{{ echo "$@"; cat; }} >>{tmp_path}/mails\n')
    program(tmp_path / "bin/hostname", "#!/bin/sh\necho broker-a\n")
    return {"PATH": f"{tmp_path}/bin:{tmp_path / 'bin dir'}:{os.environ['PATH']}"}


NOTHING = ""
PARTIAL = ", of a partial collection"
SUBJECTS = {
    (0, 0): NOTHING,
    (0, 1): "FAIL",
    (0, 2): "UNKNOWN",
    (0, 10): "could not audit, exit code 10",
    (0, 137): "could not audit, exit code 137",
    (1, 0): f"PASS{PARTIAL}",
    (1, 1): f"FAIL{PARTIAL}",
    (1, 2): f"UNKNOWN{PARTIAL}",
    (1, 20): f"could not audit, exit code 20{PARTIAL}",
    (2, 0): "could not collect, exit code 2: not audited",
    (3, 0): "could not collect, exit code 3: not audited",
    (130, 0): "could not collect, exit code 130: not audited",
}


@pytest.mark.parametrize(("collected", "audited"), SUBJECTS)
def test_the_subject_of_the_nightly_mail_says_which_step_failed_and_how(collected: int, audited: int, tmp_path: Path) -> None:
    environment = stand_ins(tmp_path, audited)
    script = nightly(tmp_path, tmp_path / "server.properties")
    program(tmp_path / "opt/collect-dumps.sh", f"#!/bin/sh\necho collected\nexit {collected}\n")
    done = subprocess.run([script], check=False, env=environment, capture_output=True, text=True)
    assert done.stdout + done.stderr == ""  # cron mails whatever it prints
    subject = SUBJECTS[collected, audited]
    mail = (tmp_path / "mails").read_text().splitlines() if (tmp_path / "mails").exists() else []
    said = ["collected", "audited"] if collected < 2 else ["collected"]
    assert mail == ([f"-s eo-audit on broker-a: {subject} oncall@example.org", *said] if subject else [])
    assert (tmp_path / "audits").exists() == (collected < 2)


def test_the_nightly_script_works_every_night(log_dir: Path, tool: Path, tmp_path: Path) -> None:
    """The second of three nights has a damaged segment, and on the third the tool of the collection is gone."""
    for name in ("orders-0", "orders-1"):  # a night is the same with one partition less or more
        shutil.rmtree(log_dir / name)
    config = tmp_path / "server.properties"
    config.write_text(f"log.dirs={log_dir}\n")
    environment = stand_ins(tmp_path, 2)
    script = nightly(tmp_path, config)
    program(tmp_path / "opt/collect-dumps.sh", (ROOT / "collect-dumps.sh").read_text())
    for night in ("2026-11-21", "2026-11-22", "2026-11-23"):
        program(tmp_path / "bin/date", f'#!/bin/sh\n[ "$1" != +%F ] || {{ echo {night}; exit; }}\nexec /bin/date "$@"\n')
        if night == "2026-11-22":
            (log_dir / "orders-2/00000000000000000100.log").write_bytes(b"1" * 70)
        if night == "2026-11-23":
            tool.unlink()
        subprocess.run([script], check=False, env=environment, cwd=tmp_path)
    assert (tmp_path / "audits").read_text().splitlines() == [
        f"run {tmp_path}/data/dumps/{night} --out {tmp_path}/data/audit" for night in ("2026-11-21", "2026-11-22")
    ]
    assert [line for line in (tmp_path / "mails").read_text().splitlines() if line.startswith("-s ")] == [
        f"-s eo-audit on broker-a: {subject} oncall@example.org"
        for subject in ("UNKNOWN", f"UNKNOWN{PARTIAL}", "could not collect, exit code 2: not audited")
    ]
    assert (tmp_path / "data/dumps/2026-11-22/broker-1/dumped-at.txt").exists()
