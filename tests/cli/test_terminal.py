"""What a person reads at the end of a run: fits 100 columns, commands unbroken, no control character of anybody's id."""

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from eo_audit.report.content import build_content
from eo_audit.report.terminal import console, show_result, watched
from eo_audit.words import visible

COMMAND = "kafka-transactions.sh --bootstrap-server $BOOTSTRAP abort --topic orders --partition 0 --start-offset 6 --and-more-and-more"
NOW = 1795238715265  # 2026-11-21 05:25:15 UTC
EVIL = "late\x1b[2J\r\n\x9b31mwriter\u202e\u2028"


def finding(name: str, rule: str, **changed: object) -> dict[str, object]:
    row: dict[str, object] = {
        "finding_id": name, "incident_id": name, "rule": rule, "slug": "some-slug", "severity": "critical", "certainty": "definite",
        "cluster": "eu", "topic": "orders", "partition": 0, "brokers": [1], "transactional_id": "late-writer-0", "group": None,
        "producer_id": 1, "producer_epoch": 0, "first_offset": 6, "last_offset": 8, "offset_ranges": [], "record_count": 3,
        "timestamp_ms": 1795235111070, "message": "Three records were written after the marker.", "cause": "c",
        "remedy": f"Safe now. Abort it: `{COMMAND}`. Then upgrade.", "details": "{}",
        "evidence": [{"dump_file": "broker 1/orders-0/00000000000000000000.log.txt", "byte_offset": 2931, "length": 9, "offset": 6}],
    }  # fmt: skip
    return row | changed


def partition(number: int, **changed: object) -> dict[str, object]:
    row: dict[str, object] = {"cluster": "eu", "broker": 1, "topic": "orders", "partition": number, "hw": 14, "lso": 6}
    return row | {"held_back_records": 3, "blocker": {"producer_id": 1, "first_offset": 6}} | changed


def verdict(**changed: object) -> dict[str, object]:
    row: dict[str, object] = {
        "verdict": "fail", "exit_code": 1, "as_of_ms": NOW, "as_of_source": "manifest", "rules": {}, "partitions": [partition(0)],
        "inputs": [{"path": "/dumps", "digest": "", "bytes": 23895, "unread_bytes": 0}], "transactions": [],
    }  # fmt: skip
    return row | changed


def printed(about: dict[str, object], *findings: dict[str, object], out: str = "out") -> str:
    stream = io.StringIO()
    show_result(build_content(about, findings, lambda *_: None), Path(out), console(stream))
    return stream.getvalue()


def test_a_hanging_transaction() -> None:
    text = printed(verdict(), finding("a", "T01"), finding("b", "L01", incident_id="a"), finding("c", "C12", severity="info"))
    words = " ".join(text.split())
    assert words.startswith("FAIL ")
    assert "critical orders-0 6-8 T01 some-slug Three records were written after the marker. also L01 some-slug (orders-0)" in words
    assert "only for information: C12 some-slug (1)" in words
    assert "held back orders-0 6-13 LSO 6, HW 14: 3 committed records wait behind producer 1" in words
    assert "judged as of 2026-11-21 05:25:15 UTC (manifest)" in words


def test_commands_are_whole_and_the_rest_fits() -> None:
    lines = printed(verdict(), finding("a", "T01")).splitlines()
    assert f"    {COMMAND}" in lines
    assert "    eo-audit show 'broker 1/orders-0/00000000000000000000.log.txt@2931' --out out" in lines
    assert not [line for line in lines if len(line.rstrip()) > 100 and not line.startswith(("    ", "Results in"))]


def test_what_the_verdict_covers_is_one_line() -> None:
    times = {"broker_first_ms": NOW - 86_400_000, "broker_last_ms": NOW, "client_first_ms": None, "client_last_ms": None}
    lines = printed(verdict(covers={"partitions": 6, "replica_logs": 18, **times})).splitlines()
    assert "Covers 6 partitions (18 logs), 2026-11-20 05:25 to 2026-11-21 05:25 UTC by brokers' clocks." in lines
    assert "Covers" not in printed(verdict())  # results of a release that did not say


def test_not_covered_names_the_dump_to_bring() -> None:
    unknown = {"verdict": "unknown", "unknown_why": "the .txnindex of orders-1 was not dumped", "bring": "orders-1/*.txnindex"}
    text = printed(verdict(verdict="unknown", rules={"S02": unknown, "L02": unknown, "T01": {"verdict": "pass"}}, partitions=[]))
    words = " ".join(text.split())
    assert "not covered L02, S02 the .txnindex of orders-1 was not dumped bring: orders-1/*.txnindex" in words
    assert "What to do now" not in text


def test_a_clean_run_is_short() -> None:
    text = printed(verdict(verdict="pass", partitions=[partition(0, lso=14, held_back_records=0, blocker=None)]))
    assert text.split()[0] == "PASS"
    assert len(text.splitlines()) < 12


def test_replicas_that_agree_share_a_row_and_clusters_are_named() -> None:
    replicas = [partition(0, broker=broker) for broker in (1, 2, 3)]
    words = printed(verdict(partitions=[*replicas, partition(0, cluster="us")]), finding("a", "T01"))
    assert words.count("held back") == 2
    assert "eu:orders-0" in words
    assert "us:orders-0" in words
    assert "--cluster eu --out out" in words


def test_of_copies_dumped_one_after_another_the_furthest_counts() -> None:
    copies = [partition(0, broker=1, lso=3, hw=9), partition(0, broker=2, lso=14), partition(0, broker=3, lso=None, hw=None)]
    assert "held back" not in printed(verdict(partitions=copies))
    lagging = [
        *copies,
        partition(1, broker=1, lso=3, hw=9),
        *(partition(1, broker=broker, lso=lso) for broker, lso in ((2, 6), (3, 8), (4, 6))),
    ]
    lines = [re.split("  +", line.strip()) for line in printed(verdict(partitions=lagging)).splitlines()]
    assert [line[1:3] for line in lines if line[0] == "held back"] == [["orders-1", "6-13"], ["orders-1", "8-13"]]
    assert [line[0] for line in lines if line[0].startswith("broker")] == ["brokers 2, 4", "broker 3"]


def test_the_end_of_a_cut_dump_is_no_high_watermark() -> None:
    words = " ".join(printed(verdict(partitions=[partition(0, hw_source="leo", hw_at_least=True)])).split())
    assert "held back orders-0 6-13 LSO 6, HW at least 14: 3 committed records" in words


@pytest.mark.parametrize("turned", [False, True])
def test_of_copies_that_say_the_same_one_tells_behind_whom(turned: bool) -> None:
    """A follower that has got nothing yet of a new leader epoch names nobody, and is in sync all the same."""
    copies = [partition(0, broker=1, blocker=None), partition(0, broker=2)]
    words = " ".join(printed(verdict(partitions=copies[::-1] if turned else copies)).split())
    assert "held back orders-0 6-13 LSO 6, HW 14: 3 committed records wait behind producer 1" in words


def test_the_broker_is_named_where_others_do_not_show_it() -> None:
    logs = [partition(0, broker=1), partition(0, broker=2), partition(0, broker=None, topic="__transaction_state"), partition(3)]
    logs.append(partition(0, broker=2, topic="__transaction_state"))
    one, both = finding("a", "S02", brokers=[2]), finding("b", "T01", brokers=[1, 2], remedy="Wait.")
    coordinators = finding("c", "C01", brokers=[2], topic="__transaction_state", remedy="Look.")
    alone = finding("d", "S03", brokers=[1], partition=3, remedy="Stop it.")
    lines = [line.strip() for line in printed(verdict(partitions=logs), one, both, coordinators, alone).splitlines()]
    assert [line for line in lines if re.match("[STC]0[0-9] ", line)] == [
        "S02 orders-0 of broker 2, offset 6-8",
        "T01 orders-0, offset 6-8",
        "C01 __transaction_state-0, offset 6-8",
        "S03 orders-3, offset 6-8",
    ]
    assert [line.split("  ")[0] for line in lines if line.startswith("broker")] == ["broker 2"]


def test_consumers_that_wait_come_first() -> None:
    text = printed(
        verdict(partitions=[partition(0, cluster="us", lso=14), partition(7)]),
        finding("a", "P03", record_count=900, cluster="us"),
        finding("b", "T01", partition=7, topic="orders"),
        finding("c", "L01", partition=7, incident_id="b"),
    )
    words = " ".join(text.split())
    assert words.startswith("FAIL orders-7 in cluster eu: read_committed consumers are stuck at offset 6")
    assert words.index("T01 some-slug") < words.index("P03 some-slug")
    assert words.index("T01 eu:orders-7, offset 6-8 Safe now.") < words.index("P03 us:orders-0, offset 6-8 Safe now.")


def test_of_the_replicas_of_a_stuck_partition_one_speaks() -> None:
    """One that knows behind whom: a follower whose leader epoch is not the newest names nobody."""
    replicas = [partition(0, broker=1, blocker=None), partition(0, broker=2), partition(0, broker=3), partition(4), partition(4, broker=3)]
    text = printed(verdict(partitions=replicas), finding("a", "L01"), finding("b", "L01", partition=4))
    words = " ".join(text.split())
    assert words.startswith("FAIL orders-0: read_committed consumers are stuck at offset 6 behind producer 1")
    assert "One more partition is stuck." in words


def test_a_place_that_is_too_long_breaks_behind_its_cluster() -> None:
    elsewhere = partition(0, cluster="us", lso=14)
    lines = printed(verdict(partitions=[elsewhere]), finding("a", "P03", cluster="cluster-with-a-long-name")).splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith(" critical") and "cluster-with-a-long-name:" in line)
    assert lines[at + 1].split()[0] == "orders-0"


def test_there_are_more_remedies_than_a_screen_holds() -> None:
    many = [finding(f"{number:05}", "P04", severity="error", topic=f"t{number}", remedy=f"Look at t{number}.") for number in range(7)]
    assert printed(verdict(), *many).splitlines()[-1] == "What to do about the other 2 is in report.html."
    assert "about the other" not in printed(verdict(), *many[:5])


def test_every_critical_incident_has_its_remedy() -> None:
    many = [finding(f"{number:05}", "T05", topic=f"t{number}", remedy=f"Look at t{number}.") for number in range(7)]
    text = printed(verdict(), *many, finding("z", "P04", severity="error", remedy="Send again."))
    assert all(f"Look at t{number}." in text for number in range(7))
    assert text.splitlines()[-1] == "What to do about the other 1 is in report.html."


def test_incidents_with_one_remedy_share_it() -> None:
    many = [finding(f"{number:05}", "P01", topic=f"t{number}", remedy="Keep the first copy.") for number in range(2_000)]
    text = printed(verdict(), *many)
    assert text.count("Keep the first copy.") == 1
    assert "P01 t0-0, t1-0, t2-0, t3-0 and 1996 more\n" in text
    assert len(text.splitlines()) < 120


def test_what_blocks_comes_before_what_only_breaks_the_coordinators_log() -> None:
    found = {"C11": "error", "C08": "error", "C04": "critical", "C02": "error", "C01": "critical"}
    rows = [finding(rule, rule, topic=None, partition=None, severity=grave, remedy=f"Do {rule}.") for rule, grave in found.items()]
    words = printed(verdict(), *rows).split("What to do now")[1]
    places = [words.index(f"Do {rule}.") for rule in ("C01", "C02", "C04", "C08", "C11")]
    assert places == sorted(places)


WAITS = {
    "producer_id": 0, "first_offset": 0, "transactional_id": "settlement-7f3a", "producer_epoch": 0, "coordinator_status": "Ongoing",
    "timeout_ms": 3_600_000, "held_back_records": 8, "held_back_seconds": 2_400, "frees_at_ms": 1795239925265, "as_of_ms": NOW,
}  # fmt: skip


def waiting(**changed: object) -> dict[str, object]:
    blocked = partition(0, topic="payments", lso=0, hw=15, held_back_records=8, blocker=WAITS)
    return verdict(verdict="pass", partitions=[blocked], held_back={"decides": "warning"}) | changed


def open_one(**changed: object) -> dict[str, object]:
    remedy = "Ask the owner of settlement-7f3a. Or wait."
    return finding("a", "T12", severity="info", topic="payments", producer_id=0, first_offset=0, last_offset=2, remedy=remedy) | changed


def test_a_pass_while_consumers_wait_says_for_whom_and_until_when_first() -> None:
    effect = finding("b", "L01", severity="info", topic="payments", producer_id=0, incident_id="a")
    text = printed(waiting(), finding("x", "P07", severity="warning", topic="zzz"), open_one(), effect)
    words = " ".join(text.split())
    assert words.startswith(
        "PASS, but payments-0: read_committed consumers wait at offset 0 for settlement-7f3a (producer 0), open for 40 of 60 min; "
        "the coordinator aborts it at 05:45:25 UTC at the latest. Otherwise delivery was exactly once"
    )
    assert words.index("waiting payments-0 0-2 T12") < words.index("P07")
    assert (
        "held back payments-0 0-14 LSO 0, HW 15: 8 committed records wait behind settlement-7f3a (producer 0), until 05:45:25 UTC" in words
    )
    assert "only for information" not in words
    first_step = text.split("What to do now")[1].split("\n\n")[1]
    assert first_step.startswith("T12 payments-0") and "Ask the owner of settlement-7f3a. Or wait." in first_step
    assert " abort " not in first_step


THE_WAIT = "payments-0: read_committed consumers wait at offset 0 for settlement-7f3a (producer 0), open for 40 of 60 min; "
UNSEEN = {
    "T05": {"verdict": "unknown", "findings": 0, "failing": 0, "unknown_why": "partition orders-1 was not dumped", "bring": "orders-1"}
}


@pytest.mark.parametrize(
    ("told", "others", "begins"),
    [
        ({"verdict": "unknown", "rules": UNSEEN}, [], f"UNKNOWN {THE_WAIT}"),
        (
            {"verdict": "fail"},
            [finding("x", "P04", topic="zzz", message="Four are missing.")],
            "FAIL Delivery was not exactly once. zzz-0: Four",
        ),
        ({"verdict": "fail"}, [finding("x", "L01")], "FAIL orders-0: read_committed consumers are stuck"),
        ({"verdict": "fail", "held_back": {"decides": "fail", "limits": ["15 min"]}}, [], f"FAIL {THE_WAIT}"),
    ],
    ids=["unknown", "fail for what was lost", "fail for what is stuck", "fail for the wait"],
)
def test_a_wait_is_named_beside_any_verdict(told: dict[str, object], others: list[dict[str, object]], begins: str) -> None:
    """What is stuck for ever is the headline's alone; the wait has its row and its step in any case."""
    partitions = [*waiting()["partitions"], partition(0)]  # type: ignore[misc]
    text = printed(waiting(partitions=partitions, **told), *others, open_one())
    words = " ".join(text.split())
    assert words.startswith(begins)
    assert ("stuck" in begins) != (THE_WAIT in words)
    assert "waiting payments-0 0-2 T12" in words
    assert (
        "held back payments-0 0-14 LSO 0, HW 15: 8 committed records wait behind settlement-7f3a (producer 0), until 05:45:25 UTC" in words
    )
    assert "T12 payments-0" in text.split("What to do now")[1]


def test_a_wait_within_the_policy_is_a_plain_pass() -> None:
    assert printed(waiting(held_back=None), open_one()).split()[:2] == ["PASS", "payments-0:"]


def test_each_cluster_waits_by_its_own_clock() -> None:
    """Of several clusters the newest one's now is the audit's: by it the transaction of an older dump would be overdue."""
    text = " ".join(printed(waiting(as_of_ms=NOW + 86_400_000)).split())
    assert "should have aborted" not in text
    assert text.count("05:45:25 UTC") >= 2


def test_a_transaction_of_another_day_one_that_never_times_out_and_one_whose_start_is_unknown() -> None:
    tomorrow = waiting(partitions=[partition(0, held_back_records=8, blocker=WAITS | {"frees_at_ms": 1795325125265})])
    assert "aborts it at 2026-11-22 05:25:25 UTC at the latest" in " ".join(printed(tomorrow).split())
    endless = waiting(partitions=[partition(0, held_back_records=8, blocker=WAITS | {"frees_at_ms": None, "timeout_ms": 2**31 - 1})])
    assert "only its owner will end it, for it never times out" in " ".join(printed(endless).split())
    unknown_start = waiting(partitions=[partition(0, held_back_records=8, blocker=WAITS | {"frees_at_ms": None, "timeout_ms": 60_000})])
    assert "the coordinator aborts it at the latest 1 min after it began" in " ".join(printed(unknown_start).split())


def test_the_gravest_member_heads_an_incident_whose_cause_is_only_information() -> None:
    grave = finding("b", "L01", incident_id="a", message="The last stable offset stands.", remedy="Follow C01.")
    text = printed(verdict(), finding("a", "T12", severity="info", message="It is open.", remedy="Nothing to do."), grave)
    words = " ".join(text.split())
    assert "critical orders-0 6-8 L01 some-slug The last stable offset stands. also T12 some-slug (orders-0)" in words
    assert "Follow C01." in text and "Nothing to do." not in text


def test_a_failure_of_the_coordinators_log_alone_is_not_called_a_failure_of_delivery() -> None:
    about = verdict(partitions=[])
    paper = finding("a", "C08", severity="error", topic=None, partition=None, message="The coordinator log changes its partitions.")
    assert " ".join(printed(about, paper).split()).startswith(
        "FAIL The coordinator's log breaks its own rules; delivery itself was not shown wrong. The coordinator log changes its partitions."
    )
    both = printed(about, paper, finding("b", "P04", severity="error"))
    assert " ".join(both.split()).startswith("FAIL Delivery was not exactly once. orders-0: Three records")


def test_a_stuck_partition_names_the_transactional_id_and_when_it_should_have_ended() -> None:
    late = WAITS | {"frees_at_ms": 1795238115265, "held_back_seconds": 4_200}
    text = printed(verdict(partitions=[partition(0, blocker=late)]), finding("b", "L01"), finding("c", "C01"))
    assert " ".join(text.split()).startswith(
        "FAIL orders-0: read_committed consumers are stuck at offset 6 behind settlement-7f3a (producer 0), open for 70 of 60 min; "
        "the coordinator should have aborted it at 05:15:15 UTC."
    )


def test_aborts_and_unfinished_transactions() -> None:
    aborts = [{"decision": "ABORT", "abort_cause": cause} for cause in ("client_abort", "client_abort", "coordinator_timeout")]
    words = " ".join(printed(verdict(transactions=[*aborts, {"decision": None, "transactional_id": EVIL}])).split())
    assert "aborts 2 client abort, 1 coordinator timeout" in words
    assert "not finished 1: late\\x1b[2J" in words


def test_thousands_of_findings_are_a_screen() -> None:
    many = [finding(f"{number:05}", "P04", severity="error", topic=f"t{number}") for number in range(2_000)]
    text = printed(verdict(partitions=[partition(number) for number in range(1_000)]), *many)
    assert len(text.splitlines()) < 120
    assert "and 1988 error more: eo-audit export findings --out out" in " ".join(text.split())


@pytest.mark.parametrize("column", ["message", "remedy", "topic", "cluster"])
def test_no_control_character_reaches_the_terminal(column: str) -> None:
    unknown = {"verdict": "unknown", "unknown_why": EVIL, "bring": EVIL}
    for terminal in (False, True):
        stream = io.StringIO()
        screen = Console(file=stream, force_terminal=terminal, width=100, markup=False, highlight=False, emoji=False)
        rows = [finding("a", "T01", **{column: EVIL}), finding("b", "T02", incident_id="a", **{column: EVIL})]
        about = verdict(rules={"S02": unknown}, partitions=[partition(0, topic=EVIL)], as_of_source=EVIL)
        show_result(build_content(about, rows, lambda *_: None), Path("out"), screen)
        text = re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue())  # the colours are ours
        assert not [c for c in text if not c.isprintable() and c != "\n"]
        assert "\\x1b[2J" in text


def test_markup_in_an_id_is_only_text() -> None:
    assert "[bold red]x[/]:smile:" in printed(verdict(), finding("a", "T01", message="[bold red]x[/]:smile:"))


def test_no_progress_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with watched() as advance:
        advance("reading the dumps", 1, 2)
    seen = capsys.readouterr()
    assert (seen.out, seen.err) == ("", "")


@pytest.mark.parametrize(
    ("text", "shown"), [("Grüße 😀", "Grüße 😀"), ("a\tb\0", "a\\tb\\x00"), ("\u200f\u2067", "\\u200f\\u2067"), (7, "7")]
)
def test_what_is_printed_acts_on_no_screen(text: object, shown: str) -> None:
    assert visible(text) == shown
