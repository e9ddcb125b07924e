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

from tests.broker.audits import Audit, audit, collect, commands_in, differences, dumped_while_running, typed
from tests.broker.brokers import Broker, Release
from tests.broker.clients import JavaClient, compile_clients, java_client
from tests.broker.fetched import JARS, fetch
from tests.broker.life import HANGING, LOST_INDEX, Answers, ask, live

pytestmark = pytest.mark.broker

RELEASES = (
    Release("4.3.1", transaction_version=2),
    Release("3.9.1"),
    Release("2.3.1", zookeeper=True, describes=False, tools="3.9.1"),
)
VERSIONS = [release.version for release in RELEASES]
DESCRIBING = [release.version for release in RELEASES if release.describes]
NEWEST = JARS / RELEASES[0].version
FIND_HANGING = "kafka-transactions.sh --bootstrap-server $BOOTSTRAP find-hanging --broker-id 1 --max-transaction-timeout 0"


@dataclass(frozen=True)
class Phase:
    """A moment of all brokers: the audit of their dumps, and what each of them answered, by its version."""

    name: str
    audit: Audit
    answers: dict[str, Answers]

    def findings(self, version: str, *rules: str) -> list[dict[str, object]]:
        """What some rules found in the dumps of a broker."""
        return [finding for finding in self.audit.findings(f"{self.name}-{version}") if finding["rule"] in rules]


@dataclass(frozen=True)
class Typed:
    """What an operator typed at one broker.

    Args:
        found_hanging: what find-hanging printed before; empty where the broker does not answer.
        described: partition -> what the `describe-producers` of its remedy printed before the abort.
        aborts: the abort commands.
    """

    found_hanging: str
    described: dict[str, str]
    aborts: list[str]


@dataclass(frozen=True)
class Lab:
    """All that was seen: three moments, and what was typed between the first and the second, by the version of the broker."""

    hanging: Phase
    healed: Phase
    indexes_lost: Phase
    typed: dict[str, Typed]


@contextmanager
def all_at_work(brokers: list[Broker], folder: Path) -> Iterator[dict[str, JavaClient]]:
    """All brokers running, and by its version a Java client of each."""
    with ExitStack() as stack:
        clients = {}
        for broker in brokers:
            stack.enter_context(broker.running())
            started = java_client(broker.bootstrap, NEWEST, folder / "classes", broker.folder)
            clients[broker.release.version] = stack.enter_context(started)
        yield clients


def heal(findings: list[dict[str, object]], broker: Broker) -> Typed:
    """Type what the findings of hanging transactions say, in their order."""
    seen = Typed(typed(FIND_HANGING, broker) if broker.release.describes else "", {}, [])
    for finding in findings:
        for command in commands_in(finding["remedy"]):
            said = typed(command, broker)
            if " abort " in command:
                seen.aborts.append(command)
            else:
                seen.described[f"{finding['topic']}-{finding['partition']}"] = said
    return seen


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """The life of all brokers; minutes."""
    folder = tmp_path_factory.mktemp("lab")
    fetch()
    compile_clients(NEWEST, folder / "classes")
    return lives(folder)


def lives(folder: Path) -> Lab:
    """Everything that happens, in order; FOLDER/classes holds the Java client."""
    brokers = [Broker(release, folder / release.version, JARS) for release in RELEASES]
    hanging, healed, lost = {}, {}, {}
    with all_at_work(brokers, folder) as clients:
        for broker in brokers:
            live(broker, clients[broker.release.version])
            hanging[broker.release.version] = dumped_while_running(
                [broker], clients[broker.release.version], folder, f"hanging-{broker.release.version}"
            )
        first = phase("hanging", audit([dumps for dumps, _ in hanging.values()], folder / "first"), hanging)
        done = {broker.release.version: heal(first.findings(broker.release.version, "T01"), broker) for broker in brokers}
        answers = {}
        for client in clients.values():
            client.ask("commit", "pinned-writer")
        for broker in brokers:
            answers[broker.release.version] = ask(broker, clients[broker.release.version])
    for broker in brokers:
        version = broker.release.version
        healed[version] = collect(broker, folder / f"healed-{version}", f"healed-{version}"), answers[version]
        for topic, partition in LOST_INDEX:
            for index in (broker.logs / f"{topic}-{partition}").glob("*.txnindex"):
                index.unlink()
    with all_at_work(brokers, folder) as clients:
        for broker in brokers:
            lost[broker.release.version] = dumped_while_running(
                [broker], clients[broker.release.version], folder, f"indexes_lost-{broker.release.version}"
            )
    second = audit([dumps for dumps, _ in (*healed.values(), *lost.values())], folder / "second")
    return Lab(first, phase("healed", second, healed), phase("indexes_lost", second, lost), done)


def phase(name: str, found: Audit, witnessed: dict[str, tuple[Path, Answers]]) -> Phase:
    """What an audit found in dumps, beside the answers of the brokers that they are of."""
    return Phase(name, found, {version: answers for version, (_, answers) in witnessed.items()})


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("moment", ["hanging", "healed", "indexes_lost"])
def test_the_audit_equals_the_broker_on_every_partition(lab: Lab, moment: str, version: str) -> None:
    seen: Phase = getattr(lab, moment)
    assert len(seen.answers[version].partitions) == 17
    assert differences(seen.audit, f"{moment}-{version}", seen.answers[version]) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_every_hanging_transaction_is_found_and_nothing_else_hangs(lab: Lab, version: str) -> None:
    assert lab.hanging.audit.code == 1
    assert sorted((f["topic"], f["partition"]) for f in lab.hanging.findings(version, "T01")) == sorted(HANGING)
    for place in HANGING:
        answer = lab.hanging.answers[version].partitions[place]
        assert answer.lso < answer.hw


@pytest.mark.parametrize("version", DESCRIBING)
def test_find_hanging_and_describe_producers_see_the_same(lab: Lab, version: str) -> None:
    rows = [line.split() for line in lab.typed[version].found_hanging.splitlines()[1:]]
    told = {(row[0], int(row[1]), int(row[2]), int(row[5])) for row in rows}
    findings = lab.hanging.findings(version, "T01")
    assert told == {(f["topic"], f["partition"], f["producer_id"], f["first_offset"]) for f in findings}
    for f in findings:
        said = lab.typed[version].described[f"{f['topic']}-{f['partition']}"]
        starts = {row[0]: row[-1] for row in (line.split() for line in said.splitlines()[1:])}
        assert starts[str(f["producer_id"])] == str(f["first_offset"])


@pytest.mark.parametrize("version", VERSIONS)
def test_after_the_printed_commands_nothing_hangs(lab: Lab, version: str) -> None:
    assert len(lab.typed[version].aborts) == len(HANGING)
    for place in HANGING:
        answer = lab.healed.answers[version].partitions[place]
        assert answer.lso == answer.hw
    left = lab.healed.findings(version, "T01", "L01", "L04")
    assert {(f["rule"], f["severity"], f["topic"]) for f in left} <= {("L01", "info", "pending")}  # open, and within its timeout


@pytest.mark.parametrize("version", VERSIONS)
def test_a_lost_index_shows_aborted_records_and_is_told(lab: Lab, version: str) -> None:
    before, after = (moment.answers[version].partitions for moment in (lab.healed, lab.indexes_lost))
    for place in LOST_INDEX:
        assert len(after[place].read["read_committed"]) > len(before[place].read["read_committed"])
    assert {(f["topic"], f["partition"]) for f in lab.indexes_lost.findings(version, "L02")} == set(LOST_INDEX)
    assert lab.healed.findings(version, "L02", "S02") == []


@pytest.mark.parametrize("version", VERSIONS)
def test_only_from_4_0_on_an_lso_lies_below_the_log_start(lab: Lab, version: str) -> None:
    """KAFKA-17803, where the log start lies within a batch of an open transaction: the broker says where that batch begins, and the client
    chose how many records it put into one. The audit says the log start everywhere."""
    answer = lab.hanging.answers[version].partitions["pinned", 0]
    assert (answer.log_start, answer.hw) == (2, 6)
    assert answer.lso in (range(3) if version >= "4" else (2,))
