"""The audit against three real brokers that are restarted and killed under load: what it says of every replica is what the cluster says,
and a cluster that kept its promises is accused of nothing.

The cluster is dumped twice: under load, while leaders change, and at rest.
"""

import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import pytest

from tests.broker.audits import Audit, audit, collect, differences, dumped_while_running
from tests.broker.brokers import Broker, Release, three, until
from tests.broker.clients import JavaClient, compile_clients, java_client, load
from tests.broker.fetched import JARS, fetch
from tests.broker.life import Answers

pytestmark = pytest.mark.broker

RELEASE = Release("4.3.1", transaction_version=2)
UNDER_LOAD, AT_REST = "under-load", "at-rest"
TOPICS = {
    "orders": (3, ()),
    "payments": (2, ()),
    "plain": (1, ()),
    "in": (2, ()),
    "out": (2, ()),
    "counted": (1, ()),
    "table": (1, ("cleanup.policy=compact", "segment.ms=4000", "min.cleanable.dirty.ratio=0.01", "delete.retention.ms=100")),
    "short": (1, ("segment.ms=4000", "retention.ms=15000", "file.delete.delay.ms=100")),
}
BEGUN_ANEW = ("twin", "writer-0", "writer-2")  # ids whose producer is made anew all the time (`Load.java`)
# Which broker, and whether it is killed (else it is shut down and hands over its leaders), and how long it is away.
RESTARTS = ((1, False, 2), (2, True, 6), (3, True, 1), (1, True, 9))


@dataclass
class Cluster:
    """Three brokers that run, each until its own block is left."""

    brokers: list[Broker]
    _running: dict[int, ExitStack] = field(default_factory=dict)
    _processes: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    @contextmanager
    def running(self) -> Iterator[None]:
        """All of them; none answers before most of them are there."""
        with ExitStack() as stack, ThreadPoolExecutor(len(self.brokers)) as pool:
            self._running = {broker.node: stack.enter_context(ExitStack()) for broker in self.brokers}
            list(pool.map(self.start, self.brokers))
            yield
            # Asked to, the last one would wait for a controller that is gone.
            for process in self._processes.values():
                process.kill()

    def start(self, broker: Broker) -> None:
        """Start one that does not run."""
        self._processes[broker.node] = self._running[broker.node].enter_context(broker.running())

    def restart(self, node: int, *, killed: bool, away_s: int) -> None:
        """Shut one down or kill it, and start it again."""
        if killed:
            self._processes[node].kill()
        self._running[node].close()
        time.sleep(away_s)
        self.start(self.brokers[node - 1])


@dataclass(frozen=True)
class Seen:
    """What was seen: the audit of both dumps, what the cluster answered at rest, and what the clients did under load."""

    audit: Audit
    answers: Answers
    done: dict[str, int]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """The life of the cluster; minutes."""
    folder = tmp_path_factory.mktemp("elections")
    fetch()
    jars = JARS / RELEASE.version
    compile_clients(jars, folder / "classes")
    cluster = Cluster(three(RELEASE, folder, JARS))
    bootstrap = ",".join(broker.bootstrap for broker in cluster.brokers)
    with cluster.running(), java_client(bootstrap, jars, folder / "classes", folder) as client:
        for topic, (partitions, settings) in TOPICS.items():
            client.ask("topic", topic, partitions, len(cluster.brokers), *settings)
        with load(bootstrap, jars, folder / "classes", folder) as call_off:
            time.sleep(10)
            for number, (node, killed, away_s) in enumerate(RESTARTS):
                cluster.restart(node, killed=killed, away_s=away_s)
                time.sleep(8)
                if number == len(RESTARTS) // 2:
                    for broker in cluster.brokers:
                        collect(broker, folder / UNDER_LOAD, UNDER_LOAD)
            done = call_off()
        until("the cluster is at rest", lambda: all(_is_at_rest(client, *place) for place in client.partitions()))
        dumps, answers = dumped_while_running(cluster.brokers, client, folder, AT_REST)
    return Seen(audit([folder / UNDER_LOAD, dumps], folder / "audit"), answers, done)


def _is_at_rest(client: JavaClient, topic: str, partition: int) -> bool:
    """No transaction is open, and retention has taken what it will take."""
    offsets = client.offsets(topic, partition)
    return offsets["lso"] == offsets["hw"] and (topic != "short" or offsets["log_start"] == offsets["hw"])


def test_clients_were_at_work_and_leaders_changed(seen: Seen) -> None:
    assert min(seen.done.get(what, 0) for what in ("committed", "aborted", "died", "copied", "wrote")) > 5, seen.done
    assert min(int(str(log["last_leader_epoch"])) for log in seen.audit.results.rows("replica_logs", cluster=AT_REST, topic="orders")) >= 2


def test_the_audit_equals_the_cluster_on_every_replica(seen: Seen) -> None:
    assert {log["broker"] for log in seen.audit.results.rows("visibility", cluster=AT_REST)} == {1, 2, 3}
    assert differences(seen.audit, AT_REST, seen.answers) == []


@pytest.mark.parametrize("cluster", [UNDER_LOAD, AT_REST])
def test_nothing_is_said_against_a_cluster_that_kept_its_promises(seen: Seen, cluster: str) -> None:
    told = {(f["rule"], f["transactional_id"]) for f in seen.audit.findings(cluster, "critical", "error", "warning")}
    assert told <= {("I05", name) for name in BEGUN_ANEW}, (
        "clients that share an id fence each other, and one that dies over and over is fenced"
    )


def test_those_that_share_an_id_are_told(seen: Seen) -> None:
    assert "twin" in {f["transactional_id"] for f in seen.audit.findings(AT_REST) if f["rule"] == "I05"}
