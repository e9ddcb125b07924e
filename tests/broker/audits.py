"""One audit of the lab's dumps by the program itself, and where it differs from what the brokers say."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import eo_audit
from eo_audit.report.results import Results
from tests.broker.brokers import Broker
from tests.broker.clients import JavaClient
from tests.broker.life import LEVELS, Answer, Answers, ask

_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Audit:
    """A finished audit: its exit code, what it said, and its results."""

    code: int
    said: str
    results: Results

    def findings(self, cluster: str, *severities: str) -> list[dict[str, object]]:
        """The findings of a cluster, all or those of some severities."""
        return [f for f in self.results.findings if f["cluster"] == cluster and (not severities or f["severity"] in severities)]


def collect(broker: Broker, out: Path, cluster: str) -> Path:
    """Dump a broker's logs with the project's own script, under the name of a cluster; where the dumps are."""
    command = [str(_ROOT / "collect-dumps.sh"), "--out", str(out), "--config", str(broker.config), "--cluster", cluster]
    done = subprocess.run(command, env=environment(broker), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def dumped_while_running(brokers: list[Broker], client: JavaClient, folder: Path, cluster: str) -> tuple[Path, Answers]:
    """Dumps of the running brokers of a cluster that answer the same before and after: the cleaner may work between the two."""
    for attempt in range(6):
        before = ask(brokers[0], client)
        for broker in brokers:
            dumps = collect(broker, folder / f"{cluster}-{attempt}", cluster)
        if ask(brokers[0], client) == before:
            return dumps, before
    raise AssertionError("the brokers do not come to rest")


def environment(broker: Broker) -> dict[str, str]:
    """Where an operator of the broker types: its tools are on the PATH, and $BOOTSTRAP says where it is."""
    return {**os.environ, "PATH": f"{broker.programs()}{os.pathsep}{os.environ['PATH']}", "BOOTSTRAP": broker.bootstrap}


def audit(dumps: list[Path], out: Path) -> Audit:
    """Run `eo-audit run` over dumps, each folder a cluster of its own."""
    command = [sys.executable, "-c", "from eo_audit.cli import main; main()", "run", *map(str, dumps), "--out", str(out)]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(_ROOT)}, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1, 2), done.stdout + done.stderr
    return Audit(done.returncode, done.stdout, eo_audit.open(out))


def differences(found: Audit, cluster: str, answers: Answers) -> list[str]:
    """Every replica of a partition and every transactional id of which the audit says something else than the broker."""
    opened = found.results.rows("open_transactions", cluster=cluster)
    replicas = found.results.rows("visibility", cluster=cluster)
    named = {(str(log["topic"]), int(str(log["partition"]))) for log in replicas}
    different = [f"partitions: audit {sorted(named)}, broker {sorted(answers.partitions)}"] * (named != set(answers.partitions))
    for log in replicas:
        if answer := answers.partitions.get((str(log["topic"]), int(str(log["partition"])))):
            mine = [[row["producer_id"], row["first_offset"]] for row in opened if row["replica_log_id"] == log["replica_log_id"]]
            said = {name: log[name] for name in ("log_start", "hw", "lso")} | _visible(found, log) | {"open": sorted(mine)}
            different += [
                f"{log['topic']}-{log['partition']} of broker {log['broker']} {name}: audit {said[name]}, broker {wanted}"
                for name, wanted in _wanted(answer).items()
                if wanted is not None and said[name] != wanted
            ]
    return [*different, *_of_ids(found, cluster, answers)]


def _wanted(answer: Answer) -> dict[str, object]:
    opened = None if answer.open is None else sorted(answer.open)
    # Since KAFKA-17803 `LogSegment.read` answers with the base offset of a batch, so where the log start lies within a batch of an open
    # transaction, brokers from 4.0 on call an LSO below their log start. Nobody can stand there.
    lso = max(answer.lso, answer.log_start)
    return {"log_start": answer.log_start, "hw": answer.hw, "lso": lso, **answer.read, "open": opened}


def _visible(found: Audit, log: dict[str, object]) -> dict[str, object]:
    """Isolation level -> the offsets that a consumer gets who begins at the log start, as the audit says."""
    rows = found.results.rows("visible_ranges", replica_log_id=log["replica_log_id"], reader="log_start")
    ranges = sorted((str(row["view"]), int(str(row["first_offset"])), int(str(row["last_offset"]))) for row in rows)
    return {level: [o for view, first, last in ranges if view == level for o in range(first, last + 1)] for level in LEVELS}


def _of_ids(found: Audit, cluster: str, answers: Answers) -> Iterator[str]:
    if answers.transactions is None:
        return
    rows = found.results.rows("coordinator_history", cluster=cluster, is_last=True)
    last = {row["transactional_id"]: row for row in rows if row["status"] is not None}  # a tombstone: the id has expired
    if set(last) != set(answers.transactions):
        yield f"ids: audit {sorted(map(str, last))}, broker {sorted(answers.transactions)}"
    for name, wanted in answers.transactions.items():
        if name in last:
            row = last[name]
            listed = row["partitions"] or []
            assert isinstance(listed, list)
            said = {key: row[key] for key in ("producer_id", "producer_epoch", "timeout_ms")}
            said |= {"state": row["status"], "partitions": sorted(f"{one['topic']}-{one['partition']}" for one in listed)}
            if said != wanted:
                yield f"{name}: audit {said}, broker {wanted}"


def commands_in(text: object) -> list[str]:
    """The commands of a remedy, which stand between back quotes."""
    return re.findall(r"`([^`]+)`", str(text))


def typed(command: str, broker: Broker) -> str:
    """What a command prints that an operator types as the remedy has it."""
    done = subprocess.run(["bash", "-c", command], env=environment(broker), capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout
