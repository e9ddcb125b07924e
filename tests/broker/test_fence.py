"""The program that fences a transactional id, typed as the remedy prints it, at a broker that asks operators who they are (SASL)."""

import subprocess
from pathlib import Path

import pytest

from eo_audit.rules.commands import fence
from tests.broker.audits import commands_in, environment
from tests.broker.brokers import ADDRESS, Broker, Release, free_port, until
from tests.broker.clients import compile_clients, java_client
from tests.broker.fetched import JARS, fetch

pytestmark = pytest.mark.broker

# From 4.1 on kafka-transactions.sh has forceTerminateTransaction; the program is for all before.
OLDER = Release("3.9.1")
_LOGIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="ops" password="ops-secret"'


def asks_for_a_login(folder: Path) -> tuple[Broker, int]:
    """A broker with a second listener that takes SASL/PLAIN, and the port of that."""
    port, controller, secured = (free_port() for _ in range(3))
    open_to_all = f"PLAINTEXT://{ADDRESS}:{port},SASL_PLAINTEXT://{ADDRESS}:{secured}"
    settings = {
        "listeners": f"{open_to_all},CONTROLLER://{ADDRESS}:{controller}",
        "advertised.listeners": open_to_all,
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{_LOGIN} user_ops="ops-secret";',
    }
    return Broker(OLDER, folder, JARS, port=port, voters={1: controller}, settings=settings), secured


def test_the_printed_program_fences_an_id_where_brokers_ask_for_a_login(tmp_path: Path) -> None:
    fetch()
    compile_clients(JARS / "4.3.1", tmp_path / "classes")
    broker, secured = asks_for_a_login(tmp_path / "broker")
    config = tmp_path / "client.properties"
    config.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={_LOGIN};\n")
    wrong = tmp_path / "wrong.properties"
    wrong.write_text(config.read_text().replace("ops-secret", "guessed"))
    (command,) = (one for one in commands_in(fence("stuck-id", (3, 9))) if "Fence.java" in one)
    with broker.running(), java_client(broker.bootstrap, JARS / "4.3.1", tmp_path / "classes", tmp_path) as client:
        # Where the program looks for Kafka's libraries: beside the tools.
        (broker.programs() / "kafka-topics.sh").write_text("#!/bin/sh\n")
        (broker.programs() / "kafka-topics.sh").chmod(0o755)
        (broker.folder / "libs").symlink_to(JARS / OLDER.version)
        client.ask("topic", "orders", 1, 1)
        client.init("stuck-id", 3_600_000)
        client.begin("stuck-id", ("orders", 0, 2))

        def typed(login: Path) -> subprocess.CompletedProcess[str]:
            there = environment(broker) | {"BOOTSTRAP": f"{ADDRESS}:{secured} --command-config {login}"}
            return subprocess.run(["bash", "-c", command], cwd=tmp_path, env=there, capture_output=True, text=True, check=False)

        refused = typed(wrong)
        assert refused.returncode != 0 and "SaslAuthenticationException" in refused.stderr
        assert client.offsets("orders", 0) == {"log_start": 0, "hw": 2, "lso": 0}
        done = typed(config)
        assert done.returncode == 0, done.stderr
        until("what was open is aborted", lambda: client.offsets("orders", 0) == {"log_start": 0, "hw": 3, "lso": 3})
        assert set(client.transactions()) == {"stuck-id"}  # and no id was made of an option
