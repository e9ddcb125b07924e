"""The audit against real brokers: what it says of their dumps is what they say themselves, and what it tells people to type works.

Each broker is dumped three times: running, with transactions that hang; stopped, after an operator typed the printed remedies; and
running again without the aborted-transaction indexes of two partitions. The brokers of all releases are audited together, each as a
cluster of its own.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.broker.audits import Audit, audit, collect, commands_in, differences, typed
from tests.broker.brokers import Broker, Release
from tests.broker.clients import JavaClient, compile_client, java_client
from tests.broker.fetched import JARS, fetch
from tests.broker.life import HANGING, LOST_INDEX, Answers, ask, live

pytestmark = pytest.mark.broker

RELEASES = (
    Release("4.3.1", transaction_version=2),
    Release("3.9.1"),
    Release("2.3.1", zookeeper=True, describes=False),
)
CLUSTERS = [f"kafka-{release.version}" for release in RELEASES]
DESCRIBING = [f"kafka-{release.version}" for release in RELEASES if release.describes]
TOOLS = JARS / RELEASES[0].version
FIND_HANGING = "kafka-transactions.sh --bootstrap-server $BOOTSTRAP find-hanging --broker-id 1 --max-transaction-timeout 0"


@dataclass(frozen=True)
class Phase:
    """One audit of all brokers, and what each of them answered when it was dumped."""

    audit: Audit
    answers: dict[str, Answers]


@dataclass(frozen=True)
class Lab:
    """All that was seen.

    Args:
        hanging, healed, indexes_lost: the three audits.
        found_hanging: cluster -> what find-hanging printed before the remedies.
        described: what `describe-producers` of the remedies printed before the aborts, by its command line.
        typed: cluster -> the abort commands that were typed.
    """

    hanging: Phase
    healed: Phase
    indexes_lost: Phase
    found_hanging: dict[str, str]
    described: dict[str, str]
    typed: dict[str, list[str]]


@contextmanager
def at_work(broker: Broker, classes: Path) -> Iterator[JavaClient]:
    """A running broker, and a Java client of the newest release that is connected to it."""
    with broker.running(), java_client(broker.bootstrap, TOOLS, classes, broker.folder) as client:
        yield client


def dumped_while_running(broker: Broker, client: JavaClient, folder: Path) -> tuple[Path, Answers]:
    """Dumps of a running broker that answers the same before and after: the cleaner may work between the two."""
    for attempt in range(6):
        before = ask(broker, client)
        dumps = folder / f"{broker.release.version}-{attempt}"
        collect(broker, TOOLS, dumps)
        if ask(broker, client) == before:
            return dumps, before
    raise AssertionError("the broker does not come to rest")


def heal(found: Audit, broker: Broker, cluster: str, lab: tuple[dict[str, str], dict[str, list[str]]]) -> None:
    """Type what the findings of hanging transactions say, in their order."""
    described, aborts = lab
    for finding in found.findings(cluster):
        if finding["rule"] == "T01":
            for command in commands_in(finding["remedy"]):
                said = typed(command, broker, TOOLS)
                if " abort " in command:
                    aborts.setdefault(cluster, []).append(command)
                else:
                    described[f"{cluster} {finding['topic']}-{finding['partition']}"] = said


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """The life of all brokers; minutes."""
    folder = tmp_path_factory.mktemp("lab")
    fetch()
    compile_client(TOOLS, folder / "classes")
    return lives(folder)


def lives(folder: Path) -> Lab:
    """Everything that happens, in order; FOLDER/classes holds the Java client."""
    brokers = {f"kafka-{release.version}": Broker(release, folder / release.version, JARS) for release in RELEASES}
    found_hanging: dict[str, str] = {}
    described: dict[str, str] = {}
    aborts: dict[str, list[str]] = {}
    with all_at_work(brokers, folder) as clients:
        for cluster, broker in brokers.items():
            live(broker, clients[cluster])
        hanging = audited(
            {name: dumped_while_running(broker, clients[name], folder / "a") for name, broker in brokers.items()}, folder / "hanging"
        )
        for cluster, broker in brokers.items():
            if broker.release.describes:
                found_hanging[cluster] = typed(FIND_HANGING, broker, TOOLS)
            heal(hanging.audit, broker, cluster, (described, aborts))
            clients[cluster].ask("commit", "pinned-writer")
        answers = {cluster: ask(broker, clients[cluster]) for cluster, broker in brokers.items()}
    healed = audited({name: (dumped(broker, folder / "b"), answers[name]) for name, broker in brokers.items()}, folder / "healed")
    for broker in brokers.values():
        for topic, partition in LOST_INDEX:
            for index in (broker.logs / f"{topic}-{partition}").glob("*.txnindex"):
                index.unlink()
    with all_at_work(brokers, folder) as clients:
        witnessed = {name: dumped_while_running(broker, clients[name], folder / "c") for name, broker in brokers.items()}
    return Lab(hanging, healed, audited(witnessed, folder / "indexes_lost"), found_hanging, described, aborts)


@contextmanager
def all_at_work(brokers: dict[str, Broker], folder: Path) -> Iterator[dict[str, JavaClient]]:
    """All brokers running, and a client of each."""
    with ExitStack() as stack:
        yield {cluster: stack.enter_context(at_work(broker, folder / "classes")) for cluster, broker in brokers.items()}


def dumped(broker: Broker, folder: Path) -> Path:
    """Dumps of a broker that is stopped."""
    collect(broker, TOOLS, folder / broker.release.version)
    return folder / broker.release.version


def audited(witnessed: dict[str, tuple[Path, Answers]], out: Path) -> Phase:
    """Audit the dumps of all brokers together."""
    found = audit([dumps for dumps, _ in witnessed.values()], out)
    return Phase(found, {cluster: answers for cluster, (_, answers) in witnessed.items()})


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("phase", ["hanging", "healed", "indexes_lost"])
def test_the_audit_equals_the_broker_on_every_partition(lab: Lab, phase: str, cluster: str) -> None:
    seen: Phase = getattr(lab, phase)
    assert len(seen.answers[cluster].partitions) == 17
    assert differences(seen.audit, cluster, seen.answers[cluster]) == []


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_every_hanging_transaction_is_found_and_nothing_else_hangs(lab: Lab, cluster: str) -> None:
    assert lab.hanging.audit.code == 1
    hanging = [(f["topic"], f["partition"]) for f in lab.hanging.audit.findings(cluster) if f["rule"] == "T01"]
    assert sorted(hanging) == sorted(HANGING)
    for place in HANGING:
        answer = lab.hanging.answers[cluster].partitions[place]
        assert answer.lso < answer.hw


@pytest.mark.parametrize("cluster", DESCRIBING)
def test_find_hanging_and_describe_producers_see_the_same(lab: Lab, cluster: str) -> None:
    rows = [line.split() for line in lab.found_hanging[cluster].splitlines()[1:]]
    told = {(row[0], int(row[1]), int(row[2]), int(row[5])) for row in rows}
    findings = [f for f in lab.hanging.audit.findings(cluster) if f["rule"] == "T01"]
    assert told == {(f["topic"], f["partition"], f["producer_id"], f["first_offset"]) for f in findings}
    for f in findings:
        said = lab.described[f"{cluster} {f['topic']}-{f['partition']}"]
        starts = {int(row[0]): row[-1] for row in (line.split() for line in said.splitlines()[1:])}
        assert starts[int(str(f["producer_id"]))] == str(f["first_offset"])


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_after_the_printed_commands_nothing_hangs(lab: Lab, cluster: str) -> None:
    assert len(lab.typed[cluster]) == len(HANGING)
    for place in HANGING:
        answer = lab.healed.answers[cluster].partitions[place]
        assert answer.lso == answer.hw
    assert [f for f in lab.healed.audit.findings(cluster) if f["rule"] in ("T01", "L01", "L04")] == []


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_a_lost_index_shows_aborted_records_and_is_told(lab: Lab, cluster: str) -> None:
    before, after = (phase.answers[cluster].partitions for phase in (lab.healed, lab.indexes_lost))
    for place in LOST_INDEX:
        assert len(after[place].read["read_committed"]) > len(before[place].read["read_committed"])
    found = {(f["topic"], f["partition"]) for f in lab.indexes_lost.audit.findings(cluster) if f["rule"] == "L02"}
    assert found == set(LOST_INDEX)
