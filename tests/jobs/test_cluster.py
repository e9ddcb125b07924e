"""The three jobs by spark-submit on a standalone cluster, a master and a worker, give the findings of a local run and hold no payload."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest

from eo_audit.config import load
from eo_audit.store.jars import JARS, cache_folder
from eo_audit.store.session import archive_path
from tests.support.canaries import WholeRun, holding

ROOT = Path(__file__).parent.parent.parent
SPARK = Path(pyspark.__file__).parent
# Six Java processes that live for seconds. Loading classes, and checking the bytecode of all of them, is a good part of that.
FAST_START = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
# What others have in their `spark-defaults.conf`, and nothing of it may change a result.
OTHER_DEFAULTS = {
    "spark.sql.caseSensitive": "true",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "Asia/Tokyo",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.sql.legacy.createEmptyCollectionUsingStringType": "true",
    "spark.sql.legacy.timeParserPolicy": "LEGACY",
    "spark.sql.legacy.setopsPrecedence.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "3",
}
# The three jobs one after the other in one driver: each opens the tables anew and finds only what the one before left on the disk. A driver
# and its executor for each of the three is 40 CPU seconds more.
IN_ONE_DRIVER = """
import json, runpy, sys
for job, *arguments in map(json.loads, sys.argv[1:]):
    sys.argv = [job, *arguments]
    try:
        runpy.run_path(job, run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def java_options() -> str:
    """With the classes that `make demo` archived, if it did; they are mapped where the class path begins with the same jars."""
    return f"{FAST_START} -XX:SharedArchiveFile={archive_path()} -Xlog:disable -Xlog:all=off" if archive_path().is_file() else FAST_START


def class_path() -> str:
    return os.pathsep.join(str(cache_folder() / "jars" / name) for name in JARS)


def environment() -> dict[str, str]:
    python = {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LAUNCHER_OPTS": FAST_START}
    daemons = {"SPARK_DAEMON_JAVA_OPTS": java_options(), "SPARK_DAEMON_CLASSPATH": class_path(), "SPARK_DAEMON_MEMORY": "256m"}
    return {**os.environ, **python, **daemons}


@contextmanager
def daemon(log: Path, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    """A master or worker; ended with the block. It takes the executors it started with it."""
    with log.open("wb") as said:
        process = subprocess.Popen([SPARK / "bin" / "spark-class", *command], env=environment(), stdout=said, stderr=said, cwd=log.parent)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(20)


def wait_for(log: Path, text: str) -> None:
    deadline = time.monotonic() + 120
    while text not in log.read_text():
        assert time.monotonic() < deadline, log.read_text()[-2_000:]
        time.sleep(0.1)


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """A master and a worker of two cores on loopback: tasks run beside each other, in a process that is not the driver's."""
    port, logs = free_port(), [folder / name for name in ("master.log", "worker.log")]
    master = ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
    worker = ["org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--cores", "2", "--memory", "1g", "--webui-port", "0"]
    url = f"spark://127.0.0.1:{port}"
    with daemon(logs[0], *master):
        wait_for(logs[0], "I have been elected leader")
        with daemon(logs[1], *worker, url):
            wait_for(logs[1], "Successfully registered with master")
            yield url


def submit(master: str, job: Path, *arguments: str | Path) -> int:
    """spark-submit of one job; its exit code."""
    settings = {
        "spark.driver.extraClassPath": class_path(),
        "spark.executor.extraClassPath": class_path(),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": java_options(),
        "spark.executor.extraJavaOptions": java_options(),
        "spark.executor.memory": "512m",
        # One executor: a second one compiles the same generated code again, 15 CPU seconds of 110. Two partitions still race for it.
        "spark.executor.cores": "2",
        # What makes plans of few rows cheap on one machine does so on a cluster.
        **load().spark,
        **load().small.spark,
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        **OTHER_DEFAULTS,
    }
    confs = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    command = [SPARK / "bin" / "spark-submit", "--master", master, *confs, job, *arguments]
    ended = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert ended.returncode < 10, ended.stdout[-3_000:] + ended.stderr[-3_000:]
    return ended.returncode


def test_a_cluster_finds_what_one_machine_finds(whole_run: WholeRun, tmp_path: Path) -> None:
    if not all((cache_folder() / "jars" / name).is_file() for name in JARS):
        pytest.fail("the Delta jars are not in the cache: run `eo-audit setup`")
    there, jobs, all_three = tmp_path / "there", ROOT / "jobs", tmp_path / "all_three.py"
    all_three.write_text(IN_ONE_DRIVER)
    steps = [[jobs / "ingest_dumps.py", *whole_run.dumps], [jobs / "rebuild_histories.py"], [jobs / "audit.py"]]
    with cluster(tmp_path) as master:
        ended = submit(master, all_three, *(json.dumps([*map(str, step), "--out", str(there)]) for step in steps))
        assert ended == whole_run.exit_code
    assert (there / "findings.jsonl").read_bytes() == (whole_run.out / "findings.jsonl").read_bytes()
    assert holding(there) == []
