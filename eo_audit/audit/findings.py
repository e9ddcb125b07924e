"""From cases to findings, in plain Python: what is said, what is muted, which replicas say the same, which finding is the cause of which.

1. Each case is explained by its rule, or acquitted by what the context knows.
   Cases that are one to their rule are put together (`Rule.together`).
2. What one fault leaves is told once: rules silence others of the same transactions, or speak for them (`Rule.silences`, `speaks_for`).
3. Findings with one id are one finding: replicas that show the same give it their brokers.
4. An incident is named after its cause: what holds the LSO back, what lets aborted records through.
"""

import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from eo_audit.audit.collect import Collected
from eo_audit.audit.together import together
from eo_audit.rules.catalogue import BY_CODE
from eo_audit.rules.context import Context
from eo_audit.rules.needs import rests_on_lost_entries, silent_because
from eo_audit.rules.rule import CERTAINTIES, RANK, Address, Case, Explanation, Rule
from eo_audit.store.schemas import schema
from eo_audit.words import json_text

if TYPE_CHECKING:
    import pyarrow as pa

FILE = "findings.jsonl"
# A finding is read by a person, and stored with each audit: of a million lines the first twenty prove as much.
MOST_EVIDENCE = 20


@dataclass(frozen=True)
class Evidence:
    """One place in a dump file."""

    dump_file: str
    byte_offset: int
    length: int
    offset: int | None


@dataclass(frozen=True)
class Finding:
    """One row of the table `findings`; the names and meanings of its columns."""

    finding_id: str
    incident_id: str
    rule: str
    slug: str
    severity: str
    certainty: str
    cluster: str
    topic: str | None
    partition: int | None
    brokers: tuple[int, ...]
    transactional_id: str | None
    group: str | None
    producer_id: int | None
    producer_epoch: int | None
    first_offset: int | None
    last_offset: int | None
    offset_ranges: tuple[tuple[int, int], ...]
    record_count: int | None
    timestamp_ms: int | None
    message: str
    cause: str
    remedy: str
    evidence: tuple[Evidence, ...]
    details: str

    def row(self) -> dict[str, object]:
        """The finding as a row of its table: plain values, columns in order."""
        values = dict(vars(self))
        values["brokers"] = list(self.brokers)
        values["offset_ranges"] = [{"first": first, "last": last} for first, last in self.offset_ranges]
        values["evidence"] = [dict(vars(place)) for place in self.evidence]
        return values


@dataclass(frozen=True)
class Draft:
    """A case, explained: a finding of one replica, before replicas are put together."""

    rule: Rule
    case: Case
    said: Explanation
    instances: frozenset[str] = field(default_factory=frozenset)

    @property
    def severity(self) -> str:
        """As explained, else as the rule says."""
        return self.said.severity or self.rule.severity

    @property
    def producer_id(self) -> int | None:
        """The producer concerned; none where the cause is a whole log."""
        if self.said.producer_id is not None or self.rule.by in ("", "state"):
            return self.said.producer_id
        return self.case.row.lenient.maybe("producer_id")

    @property
    def transactional_id(self) -> str | None:
        """The transactional id concerned, where it is known; none where the cause is a whole log."""
        if self.said.transactional_id is not None or not self.rule.by:
            return self.said.transactional_id
        return self.case.row.lenient.text("transactional_id")

    @property
    def first_offset(self) -> int | None:
        """Where the concerned offsets begin."""
        return self.case.first if self.said.first_offset is None else self.said.first_offset

    @property
    def last_offset(self) -> int | None:
        """Where they end."""
        return self.case.last if self.said.last_offset is None else self.said.last_offset

    @property
    def log_id(self) -> int:
        """The replica log; 0 where the case has none."""
        return self.case.log.log_id if self.case.log else 0

    def speaks_only_of(self, instances: set[str]) -> bool:
        """All its transactions are among these."""
        return bool(self.instances) and self.instances <= instances

    @property
    def place(self) -> tuple[str, str | None, int | None]:
        """Cluster, topic and partition."""
        if self.case.log is None:
            row = self.case.row.lenient
            return row.word("cluster"), row.text("topic"), row.maybe("partition")
        return self.case.log.place


def findings(collected: Collected) -> tuple[list[Finding], dict[str, str]]:
    """All findings of an audit, sorted by their ids, and a sentence for each rule that crashed while it explained a case."""
    drafts, crashed = _explained(collected.cases, collected.context)
    drafts = _without_twice_told(drafts)
    # Silenced before they are put together: a replica that shows the cause mutes its own effects only.
    parts: dict[str, list[Draft]] = defaultdict(list)
    for draft in drafts:
        parts[finding_id(draft)].append(draft)
    merged = [_merged(name, same, collected.paths) for name, same in sorted(parts.items())]
    concerned = {
        name: {producer for draft in same for producer in (draft.producer_id, *draft.said.producers)} for name, same in parts.items()
    }
    return _with_incidents(merged, concerned), crashed


def table(told: Sequence[Finding]) -> "pa.Table":
    """Findings as rows of the table `findings`."""
    import pyarrow as pa

    return pa.Table.from_pylist([finding.row() for finding in told], schema=schema("findings").arrow())


def write(folder: Path, told: Sequence[Finding]) -> None:
    """Write findings.jsonl: one finding a line, sorted by finding_id; whole or not at all."""
    target = folder / FILE
    part = target.with_suffix(".jsonl.part")
    lines = [json_text(finding.row()) + "\n" for finding in sorted(told, key=lambda finding: finding.finding_id)]
    part.write_text("".join(lines), encoding="utf-8")
    os.replace(part, target)


def finding_id(draft: Draft) -> str:
    """The id of a finding: the same fault keeps it in the next audit."""
    cluster, topic, partition = draft.place
    # Not `named`, either: the coordinator's log forgets an id that was not used for a while, and a producer's fault is still the same.
    # Neither broker, severity nor words: another replica, a new dump or a reworded sentence must not make a known finding a new one, or
    # `accept` and the history of audits would lose it.
    named = {
        "rule": draft.rule.code,
        "cluster": cluster,
        "topic": topic,
        "partition": partition,
        "transactional_id": draft.transactional_id,
        "group": draft.said.group,
        "producer_id": draft.producer_id,
        "first_offset": draft.first_offset,
    }
    return hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()


def _explained(cases: Iterable[Case], context: Context) -> tuple[list[Draft], dict[str, str]]:
    told: dict[str, list[tuple[Case, Explanation]]] = defaultdict(list)
    crashed = {}
    for case in cases:
        try:
            rule = BY_CODE[case.rule]
            if case.log is not None and (silent_because(rule, case.log, context) or rests_on_lost_entries(rule, case, context)):
                continue
            said = rule.explain(case, context.limited_to(rule.asks))
        except Exception as error:  # a rule that crashes is unknown, and takes no other with it
            crashed[case.rule] = f"{type(error).__name__}: {error}"
            continue
        if said is not None:
            told[case.rule].append((case, said))
    drafts = []
    for code, of_rule in told.items():
        try:
            drafts += [_draft(code, case, said) for case, said in together(code, of_rule)]
        except Exception as error:
            crashed[code] = f"{type(error).__name__}: {error}"
    return [draft for draft in drafts if draft.case.rule not in crashed], crashed


def _draft(code: str, case: Case, said: Explanation) -> Draft:
    instances = frozenset(name for example in case.examples if (name := example.row.lenient.text("instance_id")))
    return Draft(BY_CODE[said.rule or code], case, said, instances)


def _without_twice_told(drafts: Sequence[Draft]) -> list[Draft]:
    """On one replica: nothing of a transaction that a rule silences, and as an info what another rule speaks for or has left."""
    # By replica: the copy of a partition on another broker may lack what speaks for it on this one.
    silenced: dict[tuple[str, int], set[str]] = defaultdict(set)
    spoken_for: dict[tuple[str, int], set[str]] = defaultdict(set)
    for draft in drafts:
        for code in draft.rule.silences:
            silenced[code, draft.log_id] |= draft.instances
        for code in draft.rule.speaks_for:
            spoken_for[code, draft.log_id] |= draft.instances
    said = {(draft.rule.code, draft.log_id, draft.producer_id) for draft in drafts}
    kept = []
    for draft in drafts:
        own = draft.rule.code, draft.log_id
        # Only where all of its transactions are told elsewhere: a draft with one more has something of its own to say.
        if draft.speaks_only_of(silenced[own]):
            continue
        left = any((code, draft.log_id, draft.producer_id) in said for code in draft.said.left_by)
        is_effect = left or draft.speaks_only_of(spoken_for[own])
        kept.append(replace(draft, said=replace(draft.said, severity="info")) if is_effect else draft)
    return kept


def _merged(name: str, same: Sequence[Draft], paths: Mapping[int, str]) -> Finding:
    """One finding from the drafts that share its id: of several replicas, or of two cases that one rule explained."""
    # By broker last: which replica speaks does not depend on the order of rows, so the words stay the same from run to run.
    order = sorted(same, key=lambda draft: (-RANK[draft.severity], -draft.case.hits, _broker(draft)))
    best = order[0]
    cluster, topic, partition = best.place
    # A set: replicas name the same offsets.
    ranges = {r for draft in order for r in _ranges(draft)}
    lasts = [draft.last_offset for draft in order if draft.last_offset is not None]
    times = [at for draft in order if (at := draft.said.timestamp_ms or draft.case.timestamp_ms) is not None]
    epoch = best.said.producer_epoch
    return Finding(
        finding_id=name,
        incident_id=name,
        rule=best.rule.code,
        slug=best.rule.slug,
        severity=best.severity,
        # The most certain replica decides: what one dump shows is so, though another shows less.
        certainty=min((draft.said.certainty for draft in order), key=CERTAINTIES.index),
        cluster=cluster,
        topic=topic,
        partition=partition,
        brokers=tuple(sorted({draft.case.log.broker for draft in order if draft.case.log and draft.case.log.broker is not None})),
        transactional_id=best.transactional_id or best.said.named,
        group=best.said.group,
        producer_id=best.producer_id,
        producer_epoch=best.case.row.lenient.maybe("producer_epoch") if epoch is None else epoch,
        first_offset=best.first_offset,
        last_offset=max(lasts, default=None),
        # As many as there is evidence for; `record_count` tells of all.
        offset_ranges=tuple(sorted(ranges)[:MOST_EVIDENCE]),
        record_count=_records(order),
        timestamp_ms=min(times, default=None),
        message=best.said.message,
        cause=best.said.cause or best.rule.cause,
        remedy=best.said.remedy or best.rule.remedy,
        evidence=_evidence(order, paths),
        # Sorted: the same dumps give the same bytes of findings.jsonl.
        details=json.dumps({key: best.said.details[key] for key in sorted(best.said.details)}, ensure_ascii=False),
    )


def _broker(draft: Draft) -> int:
    return -1 if draft.case.log is None or draft.case.log.broker is None else draft.case.log.broker


def _ranges(draft: Draft) -> list[tuple[int, int]]:
    if draft.said.first_offset is not None:
        return [(draft.said.first_offset, draft.said.first_offset if draft.said.last_offset is None else draft.said.last_offset)]
    return [(e.first, e.first if e.last is None else e.last) for e in draft.case.examples if e.first is not None]


def _records(drafts: Sequence[Draft]) -> int | None:
    """Records of one replica (the same stand in the others), summed over its cases."""
    of_broker: dict[int, int] = defaultdict(int)
    for draft in drafts:
        records = draft.case.records if draft.said.record_count is None else draft.said.record_count
        if records is not None:
            of_broker[_broker(draft)] += records
    # Not the sum: replicas hold the same records, and one may lack some.
    return max(of_broker.values(), default=None)


def _evidence(drafts: Sequence[Draft], paths: Mapping[int, str]) -> tuple[Evidence, ...]:
    """The most telling lines, sorted by file and place."""
    places: dict[Address, None] = {}
    # Rank by rank over all drafts, so that every replica shows its most telling line before one shows its second.
    for rank in range(max(len(draft.case.examples) for draft in drafts)):
        for draft in drafts:
            places.update(dict.fromkeys(draft.case.examples[rank].addresses if rank < len(draft.case.examples) else ()))
    places.update(dict.fromkeys(place for draft in drafts for place in draft.said.evidence))
    told = [Evidence(paths.get(a.section_id, "unknown"), a.byte_offset, a.length, a.offset) for a in list(places)[:MOST_EVIDENCE]]
    return tuple(sorted(told, key=lambda place: (place.dump_file, place.byte_offset)))


def _with_incidents(told: Sequence[Finding], concerned: Mapping[str, Iterable[int | None]]) -> list[Finding]:
    """Each finding with the incident of its cause, followed to the first cause; `concerned` are the producers that each speaks of."""
    of_rule: dict[tuple[str, str, int | None], list[Finding]] = defaultdict(list)
    for finding in told:
        for producer in concerned[finding.finding_id]:
            of_rule[finding.rule, finding.cluster, producer].append(finding)
    causes = {finding.finding_id: _cause(finding, of_rule) for finding in told}
    return [replace(finding, incident_id=_root(finding.finding_id, causes)) for finding in told]


def _cause(finding: Finding, of_rule: Mapping[tuple[str, str, int | None], list[Finding]]) -> str | None:
    # In the order of the rule: the first cause that is found is taken, however many there are.
    for code in BY_CODE[finding.rule].caused_by:
        for other in of_rule.get((code, finding.cluster, finding.producer_id), []):
            same_place = BY_CODE[code].of_coordinator or (other.topic, other.partition) == (finding.topic, finding.partition)
            # A coordinator's fault shows in every partition of the transaction; any other cause lies in the same log.
            if same_place and _may_follow(finding, other):
                return other.finding_id
    return None


def _may_follow(finding: Finding, other: Finding) -> bool:
    """A finding of a rule that tells causes above info and effects at info (`Rule.cause_above_info`) is never both."""
    if BY_CODE[finding.rule].cause_above_info:
        return finding.severity == "info"
    return not BY_CODE[other.rule].cause_above_info or other.severity != "info"


def _root(name: str, causes: Mapping[str, str | None]) -> str:
    # Rules may name each other as causes: a circle ends where it began.
    seen = {name}
    while (cause := causes.get(name)) is not None and cause not in seen:
        name = cause
        seen.add(name)
    return name
