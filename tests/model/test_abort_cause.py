"""The decision procedure, one case a branch."""

from dataclasses import replace

import pytest

from eo_audit.model.abort_cause import Abort, Cause, abort_cause

# A transaction of the old protocol: begun at 0 with a timeout of 60 s, aborted after 5 s with the epoch raised.
FENCED = Abort(
    protocol="tv0",
    nothing_open=False,
    ongoing_epoch=5,
    ongoing_leader_epoch=0,
    start_ms=0,
    start_is_bound=False,
    timeout_ms=60_000,
    prepare_epoch=6,
    prepared_ms=5_000,
    prepare_leader_epoch=0,
    log_previous_batch_ms=4_900,
    completed_batch_ms=5_020,
    next_status=None,
    next_epoch=None,
    next_at_ms=None,
    scan_ms=10_000,
    server_adds_two=False,
)
LATE = {"prepared_ms": 65_000, "completed_batch_ms": 65_020, "log_previous_batch_ms": 64_000}
VERY_LATE = {"prepared_ms": 200_000, "completed_batch_ms": 200_020, "log_previous_batch_ms": 190_000}
RESTART = {"next_status": "Empty", "next_epoch": 7, "next_at_ms": 5_900}
LATE_RESTART = {**LATE, **RESTART, "next_at_ms": 65_500}
OWN = {"prepare_epoch": 5}
NEW = {"protocol": "tv2"}
EITHER = {"protocol": "unknown"}
SERVER = {**NEW, "prepare_epoch": 7}
BOUND = {"start_is_bound": True}

CASES: list[tuple[str, dict[str, object], Cause]] = [
    ("before the deadline, epoch raised", {}, Cause("fenced_by_init", "definite")),
    ("own epoch", OWN, Cause("client_abort", "definite")),
    ("own epoch, even late", {**OWN, **LATE}, Cause("client_abort", "definite")),
    (
        "own epoch, then a new one at once",
        {**OWN, **RESTART, "next_epoch": 6},
        Cause("client_abort_with_epoch_bump", "likely", ("client_abort",)),
    ),
    ("own epoch, then a later restart", {**OWN, **RESTART, "next_epoch": 6, "next_at_ms": 99_000}, Cause("client_abort", "definite")),
    ("within one scan of the deadline", LATE, Cause("coordinator_timeout", "definite")),
    ("exactly at the deadline", {**LATE, "prepared_ms": 60_000}, Cause("coordinator_timeout", "definite")),
    ("one ms before the deadline", {**LATE, "prepared_ms": 59_999}, Cause("fenced_by_init", "definite")),
    ("late, and restarted at once", LATE_RESTART, Cause("timeout_or_fence", "open", ("coordinator_timeout", "fenced_by_init"))),
    ("long after the deadline, for no reason", VERY_LATE, Cause("timeout_or_fence", "open", ("coordinator_timeout", "fenced_by_init"))),
    (
        "long after, under another leader",
        {**VERY_LATE, "prepare_leader_epoch": 3},
        Cause("coordinator_timeout", "likely", ("fenced_by_init",)),
    ),
    (
        "long after, the log silent",
        {**VERY_LATE, "log_previous_batch_ms": 60_000},
        Cause("coordinator_timeout", "likely", ("fenced_by_init",)),
    ),
    ("start only a bound, before its deadline", BOUND, Cause("timeout_or_fence", "open", ("fenced_by_init", "coordinator_timeout"))),
    ("start only a bound, past its deadline", {**BOUND, **LATE}, Cause("coordinator_timeout", "definite")),
    ("the Ongoing is gone", {"ongoing_epoch": None}, Cause("unknown", "open", ("client_abort", "fenced_by_init", "coordinator_timeout"))),
    ("the PrepareAbort is gone", {"prepared_ms": None}, Cause("unknown", "open")),
    ("new protocol, nothing open", {**NEW, "nothing_open": True, "ongoing_epoch": None}, Cause("empty_client_abort", "definite")),
    ("new protocol, goes on at once", {**NEW, "next_status": "Ongoing", "next_epoch": 6}, Cause("client_abort", "definite")),
    (
        "new protocol, goes on elsewhere",
        {**NEW, "next_status": "Ongoing", "next_epoch": 7},
        Cause("client_abort", "likely", ("fenced_by_init",)),
    ),
    ("new protocol, nothing after", NEW, Cause("client_abort", "likely", ("fenced_by_init",))),
    ("new protocol, restarted at once", {**NEW, **RESTART}, Cause("fenced_by_init", "likely", ("client_abort",))),
    ("new protocol, late", {**NEW, **LATE}, Cause("coordinator_timeout", "likely", ("client_abort",))),
    (
        "new protocol, start unknown",
        {**NEW, "start_ms": None},
        Cause("unknown", "open", ("client_abort", "fenced_by_init", "coordinator_timeout")),
    ),
    ("4.0, raised twice, early", {**SERVER, "server_adds_two": True}, Cause("fenced_by_init", "definite")),
    ("4.0, raised twice, late", {**SERVER, **LATE, "server_adds_two": True}, Cause("coordinator_timeout", "definite")),
    ("4.0, raised once, even late", {**NEW, **LATE, "server_adds_two": True}, Cause("client_abort", "definite")),
    (
        "raised twice, start unknown",
        {**SERVER, "start_ms": None},
        Cause("timeout_or_fence", "open", ("fenced_by_init", "coordinator_timeout")),
    ),
    ("either protocol, own epoch", {**EITHER, **OWN}, Cause("client_abort", "definite")),
    ("either protocol, early", EITHER, Cause("unknown", "open", ("client_abort", "fenced_by_init"))),
    ("either protocol, restarted at once", {**EITHER, **RESTART}, Cause("fenced_by_init", "likely", ("client_abort",))),
    ("either protocol, late", {**EITHER, **LATE}, Cause("coordinator_timeout", "likely", ("client_abort",))),
    (
        "either protocol, start unknown",
        {**EITHER, "timeout_ms": None},
        Cause("unknown", "open", ("client_abort", "fenced_by_init", "coordinator_timeout")),
    ),
    ("externally coordinated: never late", {**LATE, "timeout_ms": 2**31 - 1}, Cause("fenced_by_init", "definite")),
]


@pytest.mark.parametrize(("changed", "cause"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_cause(changed: dict[str, object], cause: Cause) -> None:
    assert abort_cause(replace(FENCED, **changed)) == cause  # type: ignore[arg-type]
