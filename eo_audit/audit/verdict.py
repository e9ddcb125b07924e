"""The verdict of a run: what every rule says, what was covered, and one exit code.

A rule is `fail` when the policy lets one of its findings fail the run, `unknown` when part of what it needs was not covered or it
crashed, `pass` when it judged something, and `not_applicable` when no covered fact could break it. A run takes the worst of fail,
unknown (as far as the policy minds) and pass. A run in which no rule judged any partition is unknown, whatever the policy says.
"""

import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from eo_audit.audit import accepted_findings, outages, unknown_lso
from eo_audit.audit.accepted_findings import Accepted
from eo_audit.audit.collect import Collected
from eo_audit.audit.covers import covers
from eo_audit.audit.findings import Finding
from eo_audit.audit.order import summary
from eo_audit.audit.policy import CRASHED, Policy
from eo_audit.audit.sentences import is_waiting
from eo_audit.audit.unread import Unread, minded, told
from eo_audit.errors import FAIL, PASS, UNKNOWN
from eo_audit.rules.catalogue import RULES
from eo_audit.rules.context import Context
from eo_audit.rules.fingerprint import fingerprint
from eo_audit.rules.needs import Unknown, in_cluster, sentences, unknown
from eo_audit.rules.replica_log import Log
from eo_audit.rules.row import Row
from eo_audit.rules.rule import SEVERITIES, Rule
from eo_audit.rules.waiting import blocker
from eo_audit.words import json_text, place

FILE = "verdict.json"
SCHEMA = 1
EXIT_CODES = {"pass": PASS, "fail": FAIL, "unknown": UNKNOWN}
MOST_FINDINGS = 10  # of verdict.json; all of them are in findings.jsonl
NOTHING_JUDGED = "nothing_judged"
_NOTHING_JUDGED = "No partition was judged: the dumps hold no batch that could be read of any log whose partition is named"
_BRING_LOGS = "Dump the segments of the partitions in question with kafka-dump-log: collect-dumps.sh does so."


@dataclass(frozen=True)
class Judged:
    """What one rule could judge: partitions, and why not the others; `open` says whether the policy minds."""

    partitions: frozenset[tuple[str, str | None, int | None]]
    unknowns: frozenset[Unknown] = field(default_factory=frozenset)
    crash: str | None = None


def build(
    collected: Collected,
    findings: Sequence[Finding],
    policy: Policy,
    *,
    run_id: str,
    code_version: str,
    inputs: Sequence[Mapping[str, object]],
    crashed: Mapping[str, str] | None = None,
    accepted: Sequence[Accepted] = (),
    unread: Sequence[Unread] = (),
    rules: Sequence[Rule] = RULES,
) -> dict[str, object]:
    """The content of verdict.json.

    Args:
        collected: what the audit's queries gave.
        findings: all findings.
        policy: what fails a run.
        run_id: id of the run.
        code_version: version of this package.
        inputs: path, digest, bytes and unread_bytes of each input.
        crashed: a sentence for each rule that crashed while it explained.
        accepted: findings that a team accepted: they fail nothing until they expire.
        unread: text of the dumps that was not understood.
        rules: the rules that ran.
    """
    # A rule that crashed is unknown, never passed: silence of a rule that did not run proves nothing.
    crashes = {**collected.crashed, **(crashed or {})}
    judged = {rule.code: _judge(rule, collected, crashes.get(rule.code)) for rule in rules}
    now, clock = _as_of(collected.context.clusters.values())
    entries = _entries(accepted, findings, now)
    of_rule = _of_rules(rules, judged, findings, policy, entries)
    unknowns = _of_run(judged.values(), collected.context.logs.values(), unread, policy, rules=rules)
    partitions = [_partition(log, collected.context) for log in _in_order(collected.context.logs.values())]
    held = _held_back(partitions, policy)
    is_open = bool(unknowns) or any(_is_minded(code, item, policy) for code, item in judged.items())
    verdict = _worst(of_rule.values(), held, is_open=is_open)
    said = {
        "schema": SCHEMA,
        "run_id": run_id,
        "verdict": verdict,
        "exit_code": EXIT_CODES[verdict],
        "as_of_ms": now,
        "as_of_source": clock,
        "covers": covers(collected.context.logs.values(), collected.times),
        "inputs": [dict(item) for item in inputs],
        "code_version": code_version,
        "rule_set": fingerprint(rules),
        "policy": policy.name,
        "rules": of_rule,
        # Left out where empty: verdict.json is read by people, too.
        **{name: rows for name, rows in (("unknowns", unknowns), ("accepted", entries)) if rows},
        "counts": _counts(findings),
        "held_back": held,
        "timeouts": _timeouts(collected),
        "partitions": partitions,
        "transactions": [_transaction(row) for row in collected.transactions],
    }
    return _told_first(said, findings)


def _entries(accepted: Iterable[Accepted], findings: Iterable[Finding], now: int | None) -> list[dict[str, object]]:
    # Only what was found again: an accepted finding that is gone is told by the history of audits.
    found = {finding.finding_id for finding in findings}
    return [accepted_findings.entry(one, now) for one in accepted if one.finding_id in found]


def _of_rules(
    rules: Sequence[Rule],
    judged: Mapping[str, Judged],
    findings: Sequence[Finding],
    policy: Policy,
    entries: Iterable[Mapping[str, object]],
) -> dict[str, dict[str, object]]:
    """What each rule says; what a team accepted fails none of them."""
    muted = frozenset(entry["finding_id"] for entry in entries if not entry["expired"])
    return {rule.code: _rule(rule, judged[rule.code], [f for f in findings if f.rule == rule.code], policy, muted=muted) for rule in rules}


def _worst(of_rule: Iterable[Mapping[str, object]], held: Mapping[str, object] | None, *, is_open: bool) -> str:
    # The worst wins, and failing is worse than unknown: a proven loss is one, whatever else could not be seen.
    failing = any(result["failing"] for result in of_rule) or bool(held and held["decides"] == "fail")
    return "fail" if failing else "unknown" if is_open else "pass"


def _counts(findings: Iterable[Finding]) -> dict[str, int]:
    """Findings by severity, the gravest first."""
    severities = Counter(finding.severity for finding in findings)
    return {severity: severities.get(severity, 0) for severity in reversed(SEVERITIES)}


def _told_first(said: Mapping[str, object], findings: Sequence[Finding]) -> dict[str, object]:
    """The verdict with the words of the report: its headline behind the exit code, its first findings behind the counts."""
    headline, first = summary(said, [finding.row() for finding in findings], MOST_FINDINGS)
    told: dict[str, object] = {}
    for name, value in said.items():
        told[name] = value
        if name == "exit_code":
            told["headline"] = headline
        elif name == "counts":
            told["top_findings"] = [_brief(row) for row in first]
    return told


def _brief(finding: Mapping[str, object]) -> dict[str, object]:
    names = ("finding_id", "rule", "slug", "severity", "certainty", "cluster", "topic", "partition", "transactional_id", "producer_id")
    return {"place": place(finding), **{name: finding[name] for name in (*names, "message", "remedy")}}


def _held_back(partitions: Sequence[Mapping[str, object]], policy: Policy) -> dict[str, object] | None:
    """What the policy says of partitions whose consumers wait for an open transaction; None where it minds none of them."""
    crossed: dict[str, list[tuple[str, str]]] = {"fail": [], "warning": []}
    for row in filter(is_waiting, partitions):
        told, lso, hw = row["blocker"], row["lso"], row["hw"]
        assert isinstance(told, Mapping) and isinstance(lso, int) and isinstance(hw, int)
        level, limit = policy.held_back.decides(told["held_back_seconds"], hw - lso)
        if level and limit:
            crossed[level].append((f"{row['cluster']}:{place(row)}", limit))
    # The graver level alone is told: it is why the run ends as it does.
    level = "fail" if crossed["fail"] else "warning"
    if not crossed[level]:
        return None
    places, limits = (sorted({item[at] for item in crossed[level]}) for at in (0, 1))
    return {"decides": level, "partitions": places, "limits": limits, "reason": policy.held_back.reason}


def _timeouts(collected: Collected) -> dict[str, object] | None:
    """How many transactions the coordinator aborted after their timeout; None without any."""
    aborted = sum(row.text("abort_cause") == outages.CAUSE for row in collected.transactions)
    if not aborted:
        return None
    transactions, longest_ms = collected.outage or (0, None)
    return {"transactions": aborted, "in_outage": transactions, "outage_ms": longest_ms}


def write(folder: Path, verdict: Mapping[str, object]) -> None:
    """Publish verdict.json, whole or not at all. Call it last: a scheduler that sees the file sees a finished run.

    `finished_at_ms` is added here: the one value of a verdict that is the machine's clock, and not the same when the run is repeated.
    """
    # `os.replace` within one folder is atomic on POSIX: a reader sees the old file, none, or the whole new one.
    target = folder / FILE
    part = target.with_suffix(".json.part")
    told = {**verdict, "finished_at_ms": time.time_ns() // 1_000_000}
    part.write_text(json_text(told, indent=1) + "\n", encoding="utf-8")
    os.replace(part, target)


def _judge(rule: Rule, collected: Collected, crash: str | None) -> Judged:
    context = collected.context
    # A log without anything that the rule is about cannot break it: it is neither judged nor unknown. One that could not be read might hold
    # anything.
    logs = [log for log in context.logs.values() if log.subjects.intersection(rule.subject.split()) or _is_unread(log)]
    unknowns = {log.log_id: unknown(rule, log, context) for log in logs}
    # Partitions, not replicas: one replica that was judged answers for the partition.
    seen = frozenset(log.place for log in logs if unknowns[log.log_id] is None)
    missing = {item for item in unknowns.values() if item is not None}
    missing |= _undumped(rule, collected)
    # Of a cluster whose coordinator log was not dumped there is no log that could be asked.
    if rule.of_coordinator:
        missing |= _missing_coordinators(collected)
    return Judged(seen, frozenset(missing), crash)


def _is_unread(log: Log) -> bool:
    """Nothing of this log could be read, so any rule might have had something to say."""
    return not log.subjects and any(part.text("state") == "not_supported" for part in log.breaks)


def _undumped(rule: Rule, collected: Collected) -> set[Unknown]:
    if "dumped" not in rule.needs:
        return set()
    # The coordinator lists it, so a marker is due there: without a dump nobody can say whether it came.
    places = ((in_cluster(cluster, collected.context), topic, partition) for cluster, topic, partition in collected.not_dumped)
    return {Unknown("partition_not_dumped", f"{cluster}{topic}-{partition}") for cluster, topic, partition in places}


def _missing_coordinators(collected: Collected) -> set[Unknown]:
    """Clusters with transactions of which not the whole coordinator log was dumped."""
    context = collected.context
    used = {log.cluster for log in context.logs.values() if {"transactional_batch", "coordinator_entry"} & log.subjects}
    return {Unknown("no_coordinator", cluster) for cluster in used if not context.cluster(cluster).flag("coordinator_complete")}


def _rule(rule: Rule, judged: Judged, found: Sequence[Finding], policy: Policy, *, muted: frozenset[object]) -> dict[str, object]:
    # An accepted finding is counted and shown, and fails nothing: it is accepted until a day, not gone.
    failing = sum(policy.fails(rule.code, finding.severity) for finding in found if finding.finding_id not in muted)
    why, bring = (judged.crash, "Nothing: this is a fault of eo-audit; please report it.") if judged.crash else (None, None)
    # Unknown on one partition is unknown as a whole, though others were judged: the run answers for all of them.
    if why is None and judged.unknowns:
        why, bring = sentences(set(judged.unknowns))
    verdict = "fail" if failing else "unknown" if why else "pass" if judged.partitions or found else "not_applicable"
    accepted = sum(finding.finding_id in muted for finding in found)
    return {
        "verdict": verdict,
        "findings": len(found),
        "failing": failing,
        **({"accepted": accepted} if accepted else {}),
        "judged_partitions": len(judged.partitions),
        "unknown_why": why,
        "bring": bring,
        # Only where the policy minds: the reason of an unknown verdict is told first.
        **({"leaves_open": True} if _is_minded(rule.code, judged, policy) else {}),
    }


def _is_minded(code: str, judged: Judged, policy: Policy) -> bool:
    if judged.crash:
        return policy.leaves_open(code, CRASHED)
    return any(policy.leaves_open(code, item.because) for item in judged.unknowns)


def _of_run(
    judged: Iterable[Judged], logs: Iterable[Log], unread: Sequence[Unread], policy: Policy, *, rules: Sequence[Rule]
) -> list[dict[str, str]]:
    """What leaves the whole run open, whatever the rules say: nothing was judged, nobody knows how far consumers may read, or text that
    the policy minds was not understood."""
    found = []
    if not any(item.partitions for item in judged):
        found.append({"because": NOTHING_JUDGED, "why": _NOTHING_JUDGED, "bring": _BRING_LOGS})
    # Where nobody knows the LSO, nobody knows whether consumers are stuck: no rule can say that it lacks something, so the run does.
    hidden = [log for log in logs if log.numbers.text("coverage") not in ("none", None) and log.numbers.maybe("lso") is None]
    if hidden and any(policy.leaves_open(rule.code, "missing_segments") for rule in rules if rule.waiting == "stuck"):
        found += unknown_lso.of_run(hidden)
    left = minded(unread, policy)
    if left:
        why, bring = told(left)
        found.append({"because": "unread_bytes", "why": why, "bring": bring})
    return found


def _as_of(clusters: Iterable[Row]) -> tuple[int | None, str | None]:
    """The newest as-of time of all clusters, ms, and where it comes from."""
    known = [(cluster.number("as_of_ms"), cluster.word("as_of_source")) for cluster in clusters if cluster.maybe("as_of_ms") is not None]
    # The newest of several clusters: what was accepted until a day has expired once any of them has passed it.
    return max(known, default=(None, None))


def _in_order(logs: Iterable[Log]) -> list[Log]:
    # By names and numbers, never by ids of rows: the same dumps give the same bytes.
    shown = [log for log in logs if log.numbers.maybe("leo") is not None]
    return sorted(shown, key=lambda log: (log.cluster, log.topic or "", log.partition or 0, -1 if log.broker is None else log.broker))


def _partition(log: Log, context: Context) -> dict[str, object]:
    row = log.numbers
    # A listing or a checkpoint gives a log a row of numbers, though nothing of its text was understood.
    is_read = row.text("coverage") != "none"
    told_by_checkpoint = {"log_start": row.text("log_start_source"), "hw": row.text("hw_source")}
    # Without a batch only a checkpoint knows anything; what else stands in the row was reckoned from batches.
    known = {name: row.maybe(name) if is_read or source == "checkpoint" else None for name, source in told_by_checkpoint.items()}
    lso = row.maybe("lso") if is_read else None
    is_bound = unknown_lso.is_at_least(known["hw"], row.text("hw_source"), tail_intact=row.flag("tail_intact"))
    return {
        "cluster": log.cluster,
        "broker": log.broker,
        "topic": log.topic,
        "partition": log.partition,
        "log_start": known["log_start"],
        "hw": known["hw"],
        "hw_source": None if known["hw"] is None else row.text("hw_source"),
        **({"hw_at_least": True} if is_bound else {}),
        "leo": row.maybe("leo") if is_read else None,
        "lso": lso,
        "lso_source": None if lso is None else row.text("lso_source"),
        **({"lso_unknown_why": unknown_lso.why(row, is_read=is_read)} if lso is None else {}),
        "blocker": blocker(log, context),
        "held_back_records": None if lso is None else row.maybe("held_back_committed_records"),
        "coverage": row.text("coverage"),
        "index_state": row.text("index_state"),
    }


def _transaction(row: Row) -> dict[str, object]:
    return {
        "cluster": row.text("cluster"),
        "transactional_id": row.text("transactional_id"),
        "producer_id": row.maybe("producer_id"),
        "data_epoch": row.maybe("data_epoch"),
        "decision": row.text("decision"),
        "abort_cause": row.text("abort_cause"),
        "certainty": row.text("abort_cause_certainty"),
    }
