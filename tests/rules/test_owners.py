"""Whose id it looks like, from ids that the real clients make, and the commands that are printed about it."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from eo_audit.rules.commands import Hanging, abort_for, describe_producers, fence
from eo_audit.rules.owners import PLAIN, is_one_flink_job, owner

UUID = "4e7b4a6e-0b0f-4b44-9f0a-0c2f6f0e3b1d"
IDS = [
    ("fa-0-69", "flink", "prefix fa, subtask 0, checkpoint .or number in its pool. 69"),
    ("my-job-12-1024", "flink", "prefix my-job, subtask 12, checkpoint .* 1024"),
    ("Sink: out-0a448493b4782967b150582570326227-17", "flink", "FlinkKafkaProducer: task Sink: out, number 17"),
    (f"totals-{UUID}-2", "streams", "application.id totals, thread 2"),
    ("totals-0_1", "streams", "application.id totals, task 0_1"),
    ("connect-eos-orders-source-0", "connect", "source task .*task 0"),
    ("connect-cluster-eos", "connect", "leader of the Kafka Connect cluster eos"),
    ("tx-billing.orders.3", "spring", "group tx-billing, input orders-3"),
    ("order-tx-4", "spring", "transactionIdPrefix order-tx-, number 4"),
    ("settlement-7f3a", "plain", ""),
    ("late-writer-0", "plain", ""),
    ("payments", "plain", ""),
    ("", "plain", ""),
]


@pytest.mark.parametrize(("name", "family", "says"), IDS)
def test_families(name: str, family: str, says: str) -> None:

    found = owner(name)
    assert found.family == family
    assert re.search(says, found.name), found.name
    assert (found is PLAIN) == (family == "plain") == (not found.hint)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("fa-0-69", "fa-1-70", True),
        ("fa-0-69", "fa-0-1", False),  # far apart: a run that began anew
        ("fa-0-69", "fb-0-69", False),
        ("fa-0-69", "settlement-7f3a", False),
        (f"out-{'0a448493' * 4}-3", f"out-{'0a448493' * 4}-1017", True),  # a pool of FlinkKafkaProducer
        (f"out-{'0a448493' * 4}-3", f"out-{'0a448494' * 4}-3", False),
        ("connect-pg-2-0", "connect-pg-2-1", False),
    ],
)
def test_ids_of_one_flink_job(one: str, other: str, same: bool) -> None:
    assert is_one_flink_job(one, other) is is_one_flink_job(other, one) is same


def test_what_an_abort_costs() -> None:
    """Only Flink decides outside the transaction: a finished checkpoint is a promise that an abort breaks."""
    assert "lost for good" in owner("fa-0-69").lost and "checkpoint" in owner("fa-0-69").first
    assert "processed again" in owner("totals-0_1").lost
    assert "totals" in owner("totals-0_1").first


def test_a_hostile_id_stays_on_its_line() -> None:
    assert owner("a\x1b[31m-1-2").name.isprintable()


HANGING = Hanging(start_offset=6, producer_id=1, producer_epoch=3, coordinator_epoch=5)


def test_commands_fit_the_brokers() -> None:
    new, old = abort_for("t", 0, HANGING, (3, 0)), abort_for("t", 0, HANGING, (2, 8))
    assert "--start-offset 6`" in new and "--producer-id" not in new
    assert "--producer-id 1 --producer-epoch 3 --coordinator-epoch 5`" in old and "--start-offset" not in old
    both = abort_for("t", 0, HANGING, None)
    assert "--start-offset 6` (brokers from 3.0)" in both and "--coordinator-epoch 5` (older brokers" in both
    # Clients from 4.0 on dropped the only WriteTxnMarkers that brokers such as 2.3.1 know (KIP-896).
    assert "distribution of 3.0 to 3.9" in old and "distribution of 3.0 to 3.9" in both and "3.9" not in new
    assert "kafka-transactions.sh" not in describe_producers("t", 0, (2, 7))
    assert "kafka-transactions.sh" in describe_producers("t", 0, (2, 8))
    assert "brokers from 2.8" in describe_producers("t", 0, None)
    assert "forceTerminateTransaction --transactionalId x`" in fence("x", (4, 1)) and "Fence.java" not in fence("x", (4, 1))
    assert "Fence.java $BOOTSTRAP x`" in fence("x", (4, 0)) and "forceTerminate" not in fence("x", (4, 0))


@pytest.mark.parametrize("options", [[], ["--command-config", "client.properties"]])
def test_the_program_that_fences_is_told_what_kafkas_tools_are_told(options: list[str], tmp_path: Path) -> None:
    """A shell makes words of $BOOTSTRAP: address, options, and behind them the id, whatever it holds."""
    (tmp_path / "java").write_text('#!/bin/sh\nshift 2\nprintf "%s\\n" "$@"\n')
    for name in ("java", "kafka-topics.sh"):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(0o755)
    command = fence("it's mine", (3, 9)).split("`")[1]
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "BOOTSTRAP": " ".join(["host:9093", *options])}
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["Fence.java", "host:9093", *options, "it's mine"]
    assert done.stderr == "" and "class Fence" in (tmp_path / "Fence.java").read_text()
