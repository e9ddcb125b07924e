"""What a rule's silence means, and what a run's verdict is; without Spark, from collected rows by hand."""

import json
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eo_audit.audit import order, verdict
from eo_audit.audit.collect import Collected
from eo_audit.audit.findings import Finding, findings
from eo_audit.audit.outages import Outage
from eo_audit.audit.policy import HeldBack, load, parse
from eo_audit.audit.unread import Unread, unread_text
from eo_audit.rules.catalogue import RULES
from eo_audit.rules.context import Context
from eo_audit.rules.replica_log import Log
from eo_audit.rules.row import Row
from eo_audit.rules.rule import Address, Case, Example

SEQUENCED = frozenset({"batch", "producer_batch", "sequenced_batch", "producer_edge", "payload_edge"})
TRANSACTIONAL = SEQUENCED | {"transactional_batch", "marker", "closing_abort", "registered_partition"}
RUN: dict[str, Any] = {"run_id": "r", "code_version": "0", "inputs": []}
NUMBERS = {
    "log_start": 0,
    "hw": 14,
    "hw_source": "checkpoint",
    "leo": 14,
    "lso": 6,
    "lso_source": "snapshot",
    "held_back_committed_records": 3,
    "coverage": "full",
}

UNNAMED: dict[str, object] = {
    "producer_id": 1, "first_offset": 6, "transactional_id": None, "producer_epoch": None, "coordinator_status": None, "timeout_ms": None,
    "held_back_records": 3, "held_back_seconds": None, "frees_at_ms": None, "as_of_ms": 99,
}  # fmt: skip


def a_log(subjects: frozenset[str], *, log_id: int = 1, index: str = "dumped", states: tuple[str, ...] = (), reason: str = "") -> Log:
    numbers = Row({**NUMBERS, "index_state": index, "blocker_producer_id": 1, "blocker_first_offset": 6})
    breaks = tuple(Row({"state": state, "reason": reason}) for state in states)
    return Log(log_id, "prod", 1, "orders", log_id - 1, numbers, subjects, breaks)


def collected(*logs: Log, complete: bool = True, cases: tuple[Case, ...] = (), **more: object) -> Collected:
    clusters = {"prod": Row({"cluster": "prod", "coordinator_complete": complete, "as_of_ms": 99, "as_of_source": "manifest"})}
    context = Context(logs={log.log_id: log for log in logs}, clusters=clusters)
    return Collected(cases=cases, context=context, paths={7: "broker-1/orders-0/0.log.txt"}, **more)  # type: ignore[arg-type]


def gap(log: Log, *, first: int = 14) -> Case:
    row = Row(
        {"producer_id": 2, "producer_epoch": 0, "base_offset": first, "base_sequence": 4, "expected_sequence": 2, "skipped_sequences": 2}
    )
    return Case("P04", log, "2", 1, 2, first, first + 1, 5, (Example(first, first + 1, row, (Address(7, 40, 80, first),)),))


def built(from_what: Collected, told: list[Finding] | None = None, **more: object) -> dict[str, object]:
    return verdict.build(from_what, told or [], load(), **RUN, **more)  # type: ignore[arg-type]


def rule(of: dict[str, object], code: str) -> dict[str, object]:
    rules = of["rules"]
    assert isinstance(rules, dict)
    return rules[code]  # type: ignore[no-any-return]


def test_the_shape_of_verdict_json() -> None:
    log = a_log(TRANSACTIONAL)
    aborted = Row(
        {"cluster": "prod", "transactional_id": "a", "producer_id": 1, "data_epoch": 0, "decision": "ABORT", "abort_cause": "client_abort"}
    )
    found = built(collected(log, cases=(gap(log),), transactions=(aborted,)), findings(collected(log, cases=(gap(log),)))[0])
    assert list(found) == [
        *(
            "schema",
            "run_id",
            "verdict",
            "exit_code",
            "headline",
            "as_of_ms",
            "as_of_source",
            "covers",
            "inputs",
            "code_version",
            "rule_set",
            "policy",
        ),
        *("rules", "counts", "top_findings", "held_back", "timeouts", "partitions", "transactions"),
    ]
    assert (found["schema"], found["verdict"], found["exit_code"], found["as_of_ms"], found["as_of_source"]) == (
        1,
        "fail",
        1,
        99,
        "manifest",
    )
    assert found["counts"] == {"critical": 0, "error": 1, "warning": 0, "info": 0}
    assert rule(found, "P04") == {
        "verdict": "fail",
        "findings": 1,
        "failing": 1,
        "judged_partitions": 1,
        "unknown_why": None,
        "bring": None,
    }
    assert set(found["rules"]) == {known.code for known in RULES}  # type: ignore[call-overload]
    assert found["partitions"] == [
        {
            **{
                "cluster": "prod",
                "broker": 1,
                "topic": "orders",
                "partition": 0,
                "log_start": 0,
                "hw": 14,
                "hw_source": "checkpoint",
                "leo": 14,
            },
            **{"lso": 6, "lso_source": "snapshot", "blocker": UNNAMED, "held_back_records": 3},
            **{"coverage": "full", "index_state": "dumped"},
        }
    ]
    assert found["transactions"] == [
        {
            **{"cluster": "prod", "transactional_id": "a", "producer_id": 1, "data_epoch": 0, "decision": "ABORT"},
            **{"abort_cause": "client_abort", "certainty": None},
        }
    ]


def test_a_clean_run_passes() -> None:
    found = built(collected(a_log(TRANSACTIONAL)))
    assert (found["verdict"], found["exit_code"]) == ("pass", 0)
    assert {rule(found, code)["verdict"] for code in ("P04", "T01", "T05", "L02", "S02", "R02")} == {"pass"}
    assert {rule(found, code)["verdict"] for code in ("C03", "S03")} == {"not_applicable"}


@pytest.mark.parametrize(
    ("log", "complete", "code", "why", "bring", "run"),
    [
        (
            a_log(TRANSACTIONAL),
            False,
            "T01",
            "__transaction_state of prod was not dumped, or not",
            "--transaction-log-decoder",
            "unknown",
        ),
        (
            a_log(TRANSACTIONAL, index="not_dumped"),
            True,
            "L02",
            "aborted index of orders-0 .broker 1. was not dumped",
            "txnindex",
            "unknown",
        ),
        (
            a_log(TRANSACTIONAL | {"snapshot", "half_read_snapshot"}),
            True,
            "S01",
            "producer snapshot of orders-0",
            ".snapshot of",
            "unknown",
        ),
        (
            a_log(TRANSACTIONAL | {"snapshot", "untold_producer"}),
            True,
            "S01",
            "nothing says whether its broker may have forgotten them",
            "kafka_version",
            "unknown",
        ),
        (
            a_log(TRANSACTIONAL | {"snapshot", "idle_producer"}),
            True,
            "S01",
            "idle for more than an hour",
            "producer.id.expiration.ms",
            "unknown",
        ),
        (a_log(TRANSACTIONAL | {"unjudged_batch"}), True, "P01", "nothing is judged behind a bad checksum", "another replica", "unknown"),
        (
            a_log(TRANSACTIONAL, states=("head_missing",)),
            True,
            "P04",
            "offsets are missing from the dumps of orders-0",
            "segment",
            "unknown",
        ),
        (
            a_log(TRANSACTIONAL, states=("head_missing",), reason="remote storage: the broker moved the older segments there"),
            True,
            "P04",
            "older segments of orders-0 .broker 1. lie in remote storage",
            "fetch the older segments of orders-0",
            "unknown",
        ),
        (
            a_log(TRANSACTIONAL, states=("head_missing",), reason="remote storage may hold the older segments, or they were not dumped"),
            True,
            "P04",
            "lie in remote storage .KIP-405., or were left out",
            "listing.txt",
            "unknown",
        ),
        (
            a_log(TRANSACTIONAL, states=("head_missing", "hole"), reason="4 is followed by 9"),
            True,
            "P04",
            "offsets are missing from the dumps of orders-0",
            "segment",
            "unknown",
        ),
        (a_log(TRANSACTIONAL, states=("truncated",)), True, "T05", "stops before the log does", "Dump orders-0", "unknown"),
        (
            a_log(TRANSACTIONAL, states=("truncated",), reason="the last line of the text has no line end"),
            True,
            "T05",
            "has no line end",
            "echo >> FILE",
            "unknown",
        ),
        (
            a_log(TRANSACTIONAL, states=("truncated",), reason="bytes that are no batch stand behind its last one"),
            True,
            "T05",
            "bytes that are no batch",
            "what was being written is whole then",
            "unknown",
        ),
        (
            a_log(TRANSACTIONAL, states=("truncated",), reason="the dump tool failed here"),
            True,
            "T05",
            "failed within",
            "record size 0",
            "unknown",
        ),
        (a_log(TRANSACTIONAL | {"unassigned_batch"}), True, "T07", "is compacted", "older dump", "pass"),
        (
            a_log(TRANSACTIONAL | {"unassigned_batch"}, states=("not_observed",)),
            True,
            "T07",
            "deleted from orders-0 .broker 1. between two dumps",
            "more often",
            "pass",
        ),
        (a_log(TRANSACTIONAL - {"payload_edge"}), True, "P12", "not printed", "--print-data-log", "pass"),
        (a_log(frozenset(), states=("not_supported",)), True, "R02", "first lines of the text are missing", "2.2 or later", "unknown"),
        (a_log(TRANSACTIONAL, states=("no_epochs",)), True, "T01", "which shows no epochs of producers", "2.2 or later", "unknown"),
        (a_log(TRANSACTIONAL, states=("no_epochs",)), True, "L03", "which shows no epochs of producers", "2.2 or later", "unknown"),
        (a_log(TRANSACTIONAL, states=("no_checksums",)), True, "R02", "neither checksums nor leader epochs", "2.2 or later", "unknown"),
        (
            a_log(TRANSACTIONAL, states=("no_checksums", "unexplained")),
            True,
            "P07",
            "shows no batch that the cleaner emptied",
            "2.2 or later",
            "unknown",
        ),
    ],
)
def test_what_is_not_covered_is_unknown(log: Log, complete: bool, code: str, why: str, bring: str, run: str) -> None:
    found = built(collected(log, complete=complete))
    said = rule(found, code)
    assert said["verdict"] == "unknown" and said["judged_partitions"] == 0
    assert re.search(why.lower(), str(said["unknown_why"]).lower()) and bring in str(said["bring"])
    assert found["verdict"] == run


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("remote storage: the broker moved the older segments there", "pass"),
        ("remote storage may hold the older segments, or they were not dumped", "unknown"),
        ("older segments were not dumped", "unknown"),
    ],
)
def test_nothing_that_is_open_lies_in_remote_storage(reason: str, said: str) -> None:
    found = built(collected(a_log(TRANSACTIONAL, states=("head_missing",), reason=reason)))
    assert {rule(found, code)["verdict"] for code in ("T01", "L01")} == {said} and unknown_to(found, "T05")


@pytest.mark.parametrize(
    ("why", "said", "run"),
    [
        ("clocks_apart", "clocks lie so far apart", "unknown"),
        ("head_in_doubt", "no longer holds its older entries", "unknown"),
        ("dumped_apart", "dumped at different times", "unknown"),
        ("producer_forgotten", "the coordinator log no longer names", "unknown"),
        ("other_coordinator", "never knew", "unknown"),
        ("live_tail", "younger than the dump of __transaction_state", "pass"),
    ],
)
def test_what_the_coordinators_log_cannot_tell_is_unknown_for_its_own_reason(why: str, said: str, run: str) -> None:
    found = built(collected(replace(a_log(TRANSACTIONAL | {"unassigned_batch"}), unmatched=frozenset({why}))))
    for code in ("T02", "T07", "T13", "T15"):
        assert rule(found, code)["verdict"] == "unknown" and said in str(rule(found, code)["unknown_why"])
    assert found["verdict"] == run


def test_markers_that_can_be_told_in_two_ways_leave_every_rule_about_markers_unknown() -> None:
    found = built(collected(replace(a_log(TRANSACTIONAL), unmatched=frozenset({"clocks_apart"}))))
    unknown = {
        code for code in ("P04", "R02", "S02", "T01", "T02", "T05", "T06", "T07", "T12", "T13", "T15", "L02") if unknown_to(found, code)
    }
    assert unknown == {"T01", "T02", "T05", "T06", "T07", "T12", "T13", "T15", "L02"}


@pytest.mark.parametrize(("why", "run"), [("clocks_apart", "unknown"), ("producer_forgotten", "unknown"), ("live_tail", "pass")])
def test_what_is_open_and_nobody_can_tell_is_unknown(why: str, run: str) -> None:
    from_what = collected(a_log(TRANSACTIONAL))
    fates = {(1, 4): Row({"fate": "unknown", "why_unknown": why})}
    found = built(replace(from_what, context=replace(from_what.context, fates=fates)))
    assert unknown_to(found, "T01") and found["verdict"] == run


def unknown_to(of: dict[str, object], code: str) -> bool:
    return rule(of, code)["verdict"] == "unknown"


def test_an_index_is_needed_only_where_something_was_aborted() -> None:
    found = built(collected(a_log(TRANSACTIONAL - {"closing_abort"}, index="not_dumped")))
    assert rule(found, "L02")["verdict"] == "pass" and rule(found, "S02")["verdict"] == "not_applicable"


def test_partitions_that_transactions_list_and_nobody_dumped() -> None:
    found = built(collected(a_log(TRANSACTIONAL), not_dumped=(("prod", "archive", 3),)))
    assert rule(found, "T05")["verdict"] == "unknown" and "archive-3" in str(rule(found, "T05")["bring"])
    assert found["verdict"] == "pass"


def test_a_partition_that_nobody_dumped_is_told_with_its_cluster_where_there_are_several() -> None:
    several = collected(a_log(TRANSACTIONAL), not_dumped=(("prod", "archive", 3),))
    clusters = {**several.context.clusters, "test": Row({"cluster": "test", "coordinator_complete": True})}
    found = built(replace(several, context=replace(several.context, clusters=clusters)))
    assert str(rule(found, "T05")["bring"]).startswith("Dump prod: archive-3 from any replica. If the topic was deleted since, ")


OFFSETS = TRANSACTIONAL | {"transactional_record", "undecoded_offsets"}


@pytest.mark.parametrize(
    ("subjects", "said"),
    [
        (OFFSETS, "unknown"),
        (OFFSETS | {"group_offset", "unread_offsets"}, "unknown"),  # some of them its decoder could not read
        (OFFSETS | {"group_offset"}, "pass"),  # a segment of markers alone has no decoded record either
        (OFFSETS - {"transactional_record"}, "pass"),  # nobody commits in transactions there
        (TRANSACTIONAL, "not_applicable"),  # another topic
    ],
)
def test_offsets_that_were_printed_without_their_decoder_are_unknown(subjects: frozenset[str], said: str) -> None:
    found = built(collected(a_log(subjects)))
    assert {rule(found, code)["verdict"] for code in ("O01", "O02", "O03", "O05", "O06")} == {said}
    if said == "unknown":
        assert "again with --offsets-decoder" in str(rule(found, "O03")["bring"])


def test_a_rule_that_crashes_is_unknown() -> None:
    found = built(collected(a_log(SEQUENCED)), crashed={"P04": "ValueError: no"})
    assert rule(found, "P04")["verdict"] == "unknown" and rule(found, "P04")["unknown_why"] == "ValueError: no"
    assert (found["verdict"], found["exit_code"]) == ("unknown", 2)


def test_a_run_that_judged_nothing_is_unknown_whatever_the_policy_says() -> None:
    found = built(collected())
    assert {of["verdict"] for of in found["rules"].values()} == {"not_applicable"}  # type: ignore[attr-defined]
    assert (found["verdict"], found["exit_code"]) == ("unknown", 2)
    assert [item["because"] for item in found["unknowns"]] == ["nothing_judged"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("unread", "run"),
    [
        (Unread("broker-1/a-0/0.log.txt", 40, 36, "unknown_line", "log"), "unknown"),
        (Unread("broker-1/a-0/0.log.txt", 40, 2, "blank_line", "log"), "pass"),
        (Unread("broker-1/a-0/0.snapshot.txt", 40, 2, "blank_line", "snapshot"), "pass"),
        (Unread("broker-1/a-0/0.log.txt", 40, 2, "unknown_line", "log"), "unknown"),
        (Unread("broker-1/a-0/0.snapshot.txt", 40, 1, "unknown_line", "snapshot"), "unknown"),
        (Unread("broker-1/a-0/0.log.txt", 40, 2, "truncated_line", "log"), "unknown"),
        (Unread("broker-1/a-0/0.log.txt", 40, 90, "no_line_end", "log"), "unknown"),
        (Unread("broker-1/0.err.txt", 0, 9_000, "unknown_line", "tool_messages"), "pass"),
        (Unread("answers.txt", 0, 219, "unknown_line", "broker_answers"), "pass"),
        (Unread("console.txt", 0, 219, "truncated_record", "console_records"), "pass"),
        (Unread("console.txt", 0, 219, "another_tool", "console_records"), "unknown"),
        (Unread("listing.txt", 0, 6, "unknown_line", "listing"), "unknown"),
        (Unread("all.txt", 0, 900, "not_a_dump", "unknown"), "unknown"),
        (Unread("old.txt", 0, 900, "unsupported_dialect", "log"), "pass"),
        (Unread("x.txt", 0, 900, "a reason of tomorrow", "log"), "unknown"),
    ],
)
def test_text_that_nobody_read_is_never_a_pass(unread: Unread, run: str) -> None:
    found = built(collected(a_log(TRANSACTIONAL)), unread=[unread])
    assert found["verdict"] == run
    if run == "unknown":
        (said,) = found["unknowns"]  # type: ignore[misc]
        assert f"{unread.path} ({unread.size:,} bytes from {unread.byte_offset} on, " in said["why"]
        assert f"eo-audit show {unread.path}@{unread.byte_offset}" in said["bring"]
        assert (f"echo >> {unread.path}" in said["bring"]) == (unread.because == "no_line_end")


class Facts:
    """The tables that tell of text: a log whose partition is named, one of nobody's, a snapshot of nobody's, and one that was replaced."""

    def arrow(self, name: str) -> pa.Table:
        sections = [
            ("a-0/0.txt", "log", "a", 0, 4, None),
            ("x.txt", "log", None, None, 0, None),
            ("s.txt", "snapshot", None, None, None, None),
        ]
        sections += [("y.txt", "log", None, None, 0, 9)]
        names = ("path", "kind", "topic", "partition", "first_offset", "superseded_by")
        rows = [dict(zip(names, section, strict=True)) | {"section_id": n, "dir_kind": None} for n, section in enumerate(sections)]
        spans = [{"section_id": 0, "byte_offset": 40, "length": 2, "reason": "unknown_line"}]
        texts = [{"section_id": n, "byte_offset": 0, "length": 900 + n} for n in range(len(sections))]
        return pa.Table.from_pylist({"section_status": rows, "unread_spans": spans, "dump_sections": texts}[name])


def test_batches_of_no_known_partition_are_never_a_pass() -> None:
    unread = unread_text(Facts())
    assert unread == [Unread("a-0/0.txt", 40, 2, "unknown_line", "log"), Unread("x.txt", 0, 901, "no_partition", "log")]
    found = built(collected(a_log(TRANSACTIONAL)), unread=unread[1:])
    (said,) = found["unknowns"]  # type: ignore[misc]
    assert (found["verdict"], said["why"]) == (
        "unknown",
        "Nothing says of which partition the batches in x.txt are, so nobody judges them",
    )
    assert "named as the partition is (orders-0)" in said["bring"]
    (both,) = built(collected(a_log(TRANSACTIONAL)), unread=unread)["unknowns"]  # type: ignore[misc]
    assert "x.txt are, so nobody judges them; 2 bytes of the dumps were not understood" in both["why"]


def test_the_policy_of_a_team_may_allow_unread_text() -> None:
    lines = {"unread_bytes": [{"up_to_bytes": 100, "makes_unknown": False, "reason": "our login"}, {"makes_unknown": True, "reason": "r"}]}
    ours = parse(
        {"name": "ours", "findings": [{"fails": True, "reason": "r"}], "unknowns": [{"makes_unknown": True, "reason": "r"}], **lines}, ""
    )
    sizes = {
        size: verdict.build(collected(a_log(TRANSACTIONAL)), [], ours, **RUN, unread=[Unread("a", 0, size, "x", "log")])
        for size in (99, 101)
    }
    assert [found["verdict"] for found in sizes.values()] == ["pass", "unknown"]


def test_a_number_that_nobody_knows_is_null() -> None:
    unread: dict[str, Any] = {
        **NUMBERS,
        "coverage": "none",
        "hw": 0,
        "hw_source": "leo",
        "leo": 0,
        "lso": 0,
        "log_start": 0,
        "log_start_source": "segment_base",
    }
    checkpoints = {**unread, "hw": 9, "hw_source": "checkpoint", "log_start": 4, "log_start_source": "checkpoint"}
    headless = {**NUMBERS, "log_start": 616, "lso": None, "lso_source": None}
    cut = {**NUMBERS, "lso": None, "lso_source": None, "lso_at_least": 6}
    untold = {**NUMBERS, "log_start": 8, "log_start_source": "segment_base", "lso": None, "lso_source": None, "lso_at_least": 6}
    below = {**NUMBERS, "log_start": 0, "first_offset": 19, "lso": None, "lso_source": None, "lso_at_least": 0}
    rows_of = (unread, checkpoints, headless, cut, untold, below)
    logs = [replace(a_log(frozenset(), log_id=n), numbers=Row(row)) for n, row in enumerate(rows_of, 1)]
    found = built(collected(*logs))
    rows = found["partitions"]
    assert isinstance(rows, list)
    numbers = ("log_start", "hw", "hw_source", "leo", "lso", "held_back_records")
    assert [tuple(row[name] for name in numbers) for row in rows] == [
        (None, None, None, None, None, None),
        (4, 9, "checkpoint", None, None, None),
        (616, 14, "checkpoint", 14, None, None),
        (0, 14, "checkpoint", 14, None, None),
        (8, 14, "checkpoint", 14, None, None),
        (0, 14, "checkpoint", 14, None, None),
    ]
    assert [row["lso_unknown_why"][:34] for row in rows] == [
        *["nothing of the log was read"] * 2,
        "the coordinator holds a transactio",
        "what seems to hold it at offset 6 ",
        "what holds it began at offset 6, b",
        "the high watermark, 14, lies below",
    ]
    assert [item["because"] for item in found["unknowns"]].count("lso_unknown") == 4  # type: ignore[attr-defined]


def test_fail_is_worse_than_unknown() -> None:
    log = a_log(TRANSACTIONAL)
    from_what = collected(log, complete=False, cases=(gap(log),))
    assert built(from_what, findings(from_what)[0])["verdict"] == "fail"


def test_the_verdict_is_published_whole(tmp_path: Path) -> None:
    verdict.write(tmp_path, {"schema": 1, "name": "\udcff"})
    written = json.loads((tmp_path / "verdict.json").read_text(encoding="utf-8"))
    assert written["schema"] == 1
    assert abs(written["finished_at_ms"] - time.time() * 1_000) < 60_000
    assert [path.name for path in tmp_path.iterdir()] == ["verdict.json"]


def test_a_rule_that_crashes_while_it_explains_takes_no_other_with_it() -> None:
    log = a_log(SEQUENCED)
    broken = replace(gap(log), rule="P03", examples=())
    told, crashed = findings(collected(log, cases=(broken, gap(log))))
    assert [finding.rule for finding in told] == ["P04"] and set(crashed) == {"P03"}


def test_the_same_fault_keeps_its_id_and_its_bytes() -> None:
    log, other = a_log(SEQUENCED), replace(a_log(SEQUENCED, log_id=2), partition=0, broker=2)
    cases = (gap(log), gap(log, first=30), gap(other))
    forwards = findings(collected(log, other, cases=cases))[0]
    backwards = findings(collected(log, other, cases=cases[::-1]))[0]
    assert json.dumps([finding.row() for finding in forwards]) == json.dumps([finding.row() for finding in backwards])
    assert [finding.finding_id for finding in forwards] == sorted({finding.finding_id for finding in forwards})
    assert sorted((finding.first_offset, finding.brokers) for finding in forwards) == [(14, (1, 2)), (30, (1,))]


MINUTE = 60_000
NOW = 1_795_306_903_000  # 2026-11-22 00:21:43 UTC


def held_back(*, minutes: int = 40, timeout_minutes: int = 60, listed: bool = True, **numbers: object) -> Collected:
    """Consumers of payments-0 wait for settlement-7f3a, which has been open for some minutes."""
    waits = {"lso": 0, "blocker_producer_id": 0, "blocker_epoch": 0, "blocker_first_offset": 0, "held_back_committed_records": 8}
    log = Log(1, "prod", 1, "payments", 0, Row({**NUMBERS, "tail_intact": True, **waits, **numbers}), TRANSACTIONAL)
    last = {
        "transactional_id": "settlement-7f3a", "producer_id": 0, "is_last": True, "last_status": "Ongoing",
        "start_ms": NOW - minutes * MINUTE, "timeout_ms": timeout_minutes * MINUTE, "partitions": [{"topic": "payments", "partition": 0}],
    }  # fmt: skip
    cluster = {
        "cluster": "prod",
        "coordinator_complete": True,
        "as_of_ms": NOW,
        "as_of_source": "manifest",
        "abort_scan_interval_ms": 10_000,
    }
    span = Row({"first_offset": 0, "last_offset": 2, "producer_id": 0})
    context = Context(
        logs={1: log},
        clusters={"prod": Row(cluster)},
        last_of_producer={("prod", 0): Row(last)} if listed else {},
        open_spans={(1, 0): span},
    )
    return Collected(cases=(), context=context)


def waits(of: dict[str, object]) -> dict[str, object]:
    partitions = of["partitions"]
    assert isinstance(partitions, list)
    return dict(partitions[0]["blocker"])


def test_who_holds_consumers_back_and_until_when() -> None:
    found = built(held_back())
    assert waits(found) == {
        "producer_id": 0, "first_offset": 0, "transactional_id": "settlement-7f3a", "producer_epoch": 0, "coordinator_status": "Ongoing",
        "timeout_ms": 3_600_000, "held_back_records": 8, "held_back_seconds": 2_400, "frees_at_ms": NOW + 20 * MINUTE + 10_000,
        "as_of_ms": NOW,
    }  # fmt: skip
    assert str(found["headline"]).startswith(
        "payments-0: read_committed consumers wait at offset 0 for settlement-7f3a (producer 0), open for 40 of 60 min; "
        "the coordinator aborts it at 00:41:53 UTC at the latest. Otherwise delivery was exactly once"
    )
    assert (found["verdict"], found["exit_code"]) == ("pass", 0)
    assert found["held_back"] == {
        "decides": "warning", "partitions": ["prod:payments-0"], "limits": ["warn_after_minutes: 15"], "reason": load().held_back.reason,
    }  # fmt: skip


def test_a_short_wait_is_only_told() -> None:
    found = built(held_back(minutes=14))
    assert found["held_back"] is None and "open for 14 of 60 min" in str(found["headline"])


def test_a_wait_that_the_policy_does_not_allow_fails_the_run() -> None:
    strict = replace(load(), held_back=HeldBack(fail_after_minutes=30, reason="r"))
    found = verdict.build(held_back(), [], strict, run_id="r", code_version="0", inputs=[])
    assert (found["verdict"], found["exit_code"]) == ("fail", 1)
    assert "longer than the policy allows (fail_after_minutes: 30); delivery itself was not shown wrong" in str(found["headline"])


def test_nobody_waits_where_nothing_committed_is_behind() -> None:
    found = built(held_back(held_back_committed_records=0))
    assert found["held_back"] is None and str(found["headline"]).startswith("Delivery was exactly once")


def test_a_wait_that_nobody_can_measure_is_null() -> None:
    """Without a coordinator and a broker's clock, the client's record times say neither how long nor until when."""
    told = waits(built(held_back(listed=False, blocker_last_timestamp_ms=1_000)))
    assert [told[name] for name in ("transactional_id", "coordinator_status", "held_back_seconds", "frees_at_ms")] == [None] * 4
    proved = waits(built(held_back(listed=False, blocker_open_by_ms=NOW - 90_000)))
    assert (proved["held_back_seconds"], proved["frees_at_ms"]) == (90, None)


def test_the_first_findings_are_those_of_the_report() -> None:
    log = a_log(TRANSACTIONAL)
    from_what = collected(log, cases=tuple(gap(log, first=14 + 2 * number) for number in range(12)))
    found = built(from_what, findings(from_what)[0])
    first = found["top_findings"]
    assert isinstance(first, list) and len(first) == 10
    assert [first[0][name] for name in ("rule", "severity", "place")] == ["P04", "error", "orders-0"]
    assert first[0]["message"] and first[0]["remedy"]


def test_aborts_by_timeout_are_counted_with_their_outage() -> None:
    aborts = [Row({"decision": "ABORT", "abort_cause": cause}) for cause in ("coordinator_timeout", "client_abort", "coordinator_timeout")]
    found = built(replace(collected(a_log(TRANSACTIONAL), transactions=tuple(aborts)), outage=Outage(2, 25_000)))
    assert found["timeouts"] == {"transactions": 2, "in_outage": 2, "outage_ms": 25_000}
    assert "2 transactions were aborted by timeout after an outage of up to 25 s; their producers were fenced." in str(found["headline"])
    one = built(replace(collected(a_log(TRANSACTIONAL), transactions=tuple(aborts[:2])), outage=Outage(1, 15_349)))
    assert "1 transaction was aborted by timeout after an outage of up to 15.3 s; its producer was fenced." in str(one["headline"])
    some = built(replace(collected(a_log(TRANSACTIONAL), transactions=tuple(aborts)), outage=Outage(1, 25_000)))
    assert "2 transactions were aborted by timeout, 1 of them after an outage of up to 25 s; their" in str(some["headline"])
    assert built(collected(a_log(TRANSACTIONAL), transactions=tuple(aborts[1:2])))["timeouts"] is None


def test_an_unknown_verdict_names_what_the_policy_minds() -> None:
    """Not what most rules lacked: payloads that were not printed leave three rules unknown, and the verdict as it is."""
    unprinted, index = ({"unknown_why": f"{what} was not dumped", "bring": what} for what in ("a payload", "an index"))
    rules = {"I06": unprinted, "P12": unprinted, "P13": unprinted, "S02": index | {"leaves_open": True}}
    told, _ = order.summary({"verdict": "unknown", "rules": rules}, [], 1)
    assert told == "These dumps do not show whether delivery was exactly once. an index was not dumped."
    said: dict[str, dict[str, object]] = built(collected(a_log(TRANSACTIONAL, index="not_dumped")))["rules"]  # type: ignore[assignment]
    minded = {code for code, result in said.items() if result.get("leaves_open")}
    assert "S02" in minded and not minded & {"I06", "P12", "P13"}


@pytest.mark.parametrize(("source", "intact", "told"), [("leo", False, True), ("leo", True, None), ("checkpoint", False, None)])
def test_the_end_of_a_cut_dump_is_at_least_the_high_watermark(source: str, intact: bool, told: bool | None) -> None:
    log = Log(1, "prod", 1, "orders", 0, Row({**NUMBERS, "hw_source": source, "tail_intact": intact}), TRANSACTIONAL)
    said: Any = verdict.build(collected(log), [], load(None), **RUN)["partitions"]
    assert [row.get("hw_at_least") for row in said] == [told]
