"""Real coordinator logs through the model: the cause of every abort, and the steps, against what is known to have happened."""

import json
from pathlib import Path

import pytest

from eo_audit.model.coordinator import Step, replay
from eo_audit.model.entries import Entry
from eo_audit.model.instances import instances
from eo_audit.model.states import TOMBSTONE, TV0, TV2, partition_for
from tests.support.facts import CORPUS, facts_of
from tests.support.yaml_text import read_yaml

SCAN = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
CAUSES = {"fenced": {"fenced_by_init"}, "timeout_abort": {"coordinator_timeout"}}
INPUTS = sorted(path.parent.name for path in (CORPUS / "dumps").glob("*/manifest.yaml"))
# Histories written into the log by hand, or changed in its bytes: their steps are faults on purpose.
FAULTY = {"coordinator_faults", "syn_coord_epoch_back", "syn_coord_prepare_missing"}


def manifest(name: str) -> dict:
    return read_yaml(CORPUS / "dumps" / name / "manifest.yaml")


def entry(row: dict, *, before: dict | None, place: int) -> Entry:
    return Entry(
        row["entry_offset"],
        TOMBSTONE if row["tombstone"] else row["status"],
        producer_id=row["producer_id"],
        epoch=row["producer_epoch"],
        timeout_ms=row["timeout_ms"],
        partitions=frozenset((part["topic"], part["partition"]) for part in row["partitions"] or ()),
        last_update_ms=row["last_update_ms"],
        start_ms=row["start_ms"],
        client_version=row["client_transaction_version"],
        batch_ms=row["batch_timestamp_ms"],
        leader_epoch=row["partition_leader_epoch"],
        log_previous_batch_ms=before["batch_timestamp_ms"] if before else None,
        nothing_before=place == row["entry_offset"],
    )


def lives(name: str) -> dict[tuple[int, str], list[Entry]]:
    """The entries of each id on one broker: its coordinator partition, the id."""
    logs = sorted((CORPUS / "dumps" / name / "broker-1").glob("__transaction_state-*"))
    found: dict[tuple[int, str], list[Entry]] = {}
    for log in logs:
        rows = sorted(facts_of([log], cluster=name)["coordinator_entries"].to_pylist(), key=lambda row: row["entry_offset"])
        for place, row in enumerate(rows):
            key = (int(log.name.rsplit("-", 1)[1]), row["transactional_id"])
            found.setdefault(key, []).append(entry(row, before=rows[place - 1] if place else None, place=place))
    return found


def replayed(name: str) -> dict[tuple[int, str], list[Step]]:
    known = manifest(name)
    return {
        key: replay(entries, known.get("transaction_version"), kafka_version=known.get("kafka_version"))
        for key, entries in lives(name).items()
    }


@pytest.mark.parametrize("name", INPUTS)
def test_real_log(name: str) -> None:
    known, truth = manifest(name), json.loads((CORPUS / "truth" / f"{name}.json").read_text(encoding="utf-8"))
    ids = replayed(name)
    scan_ms = int(known.get("broker_config", {}).get(SCAN, 10_000))
    adds_two = known.get("kafka_version") == "4.0.0"
    aborted = [
        (tid, run.producer_id, run.cause.cause)
        for (_, tid), steps in ids.items()
        for run in instances(steps, scan_ms=scan_ms, server_adds_two=adds_two)
        if run.cause
    ]
    for item in truth["expected_info"]:
        wanted = CAUSES.get(item["kind"])
        if wanted:
            asked = (item.get("transactional_id"), item.get("producer_id"))
            matching = {cause for *who, cause in aborted if all(want in (None, is_) for want, is_ in zip(asked, who, strict=True))}
            assert matching & wanted, (item, aborted)
        elif item["kind"] == "outcomes":
            assert {cause for *_, cause in aborted} == {"client_abort"}
    if name not in FAULTY:
        assert {step.protocol for steps in ids.values() for step in steps} <= {TV2 if known["transaction_version"] == 2 else TV0}
        assert {step.step for steps in ids.values() for step in steps} <= {"first", "legal", "ghost"}
        assert {step.epoch_step for steps in ids.values() for step in steps} <= {"ok", "not_judged"}
        assert {step.field_change for steps in ids.values() for step in steps} <= {None}
        assert all(partition_for(tid, known["transaction_state_partitions"]) == home for home, tid in ids)


def test_faults_by_hand() -> None:
    last = {tid: steps for (_, tid), steps in replayed("coordinator_faults").items()}
    odd = {
        tid: {
            (step.step, step.step_reason, step.epoch_step, step.field_change)
            for step in steps
            if step.step in ("illegal", "ghost") or step.epoch_step not in ("ok", "not_judged") or step.field_change
        }
        for tid, steps in last.items()
    }
    illegal = {tid for tid, found in odd.items() if any(reason == "not_in_table" for _, reason, _, _ in found)}
    assert illegal == {"no-prepare-0", "wrong-complete-0", "empty-commit-0"}
    assert {tid for tid, found in odd.items() if any(reason == "transient_state" for _, reason, _, _ in found)} == {"fence-0", "dead-0"}
    assert {tid for tid, found in odd.items() if any(epoch == "regression" for _, _, epoch, _ in found)} == {"epoch-back-0"}
    assert {tid for tid, found in odd.items() if any(epoch == "jump" for _, _, epoch, _ in found)} == {"epoch-leap-0"}
    assert {tid for tid, found in odd.items() if any(change for _, _, _, change in found)} == {"field-0"}
    assert odd["tomb-0"] == {("illegal", "tombstone_while_open", "not_judged", None)}
    assert odd["double-0"] == {("illegal", "double_complete", "ok", None)}
    assert {tid for tid, found in odd.items() if any(step == "ghost" for step, _, _, _ in found)} == {
        "prepare-both-0",
        "same-complete-0",
        "field-0",
    }
    assert not odd["good-0"] and not odd["healthy-0"] and not odd["two-phase-0"] and not odd["new-pid-0"]


def test_ghosts_of_a_real_broker() -> None:
    ghosts = {
        tid: [step.entry.status for step in steps if step.step == "ghost"] for (_, tid), steps in replayed("ghost_records_tv2").items()
    }
    assert {tid: states for tid, states in ghosts.items() if states} == {
        "ghost-writer-2": ["PrepareCommit"] * 3,
        "ghost-writer-5": ["PrepareAbort"] * 3,
    }


def test_the_corpus_is_there() -> None:
    assert len(INPUTS) > 50
    assert Path(CORPUS / "truth").is_dir()
