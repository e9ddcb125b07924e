"""The audit's queries: the few rows that explanations need, out of the history tables.

One query for the cases of all rules, one for the subjects, and then only what the cases ask for by id (`Rule.asks`). A rule that cannot be
run is found by running ever smaller halves of the catalogue; it takes none of the others with it.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Protocol

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from eo_audit.audit import looked_up
from eo_audit.audit.clocks import clocks
from eo_audit.audit.covers import Times
from eo_audit.audit.evidence_paths import evidence_paths
from eo_audit.audit.outages import Outage, outage
from eo_audit.audit.unlisted_aborts import unlisted_aborts
from eo_audit.rules.cases import cases, may_find
from eo_audit.rules.catalogue import RULES
from eo_audit.rules.context import ASKED, Context
from eo_audit.rules.replica_log import Log
from eo_audit.rules.row import Row
from eo_audit.rules.rule import Address, Case, Example, Rule
from eo_audit.rules.sources import SOURCES
from eo_audit.rules.subjects import names_of, subjects

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Row as SparkRow

HISTORIES = (
    *("producer_history", "transaction_spans", "coordinator_history", "transaction_instances", "instance_partitions"),
    *("visibility", "coverage", "aborted_index", "producer_edges", "snapshot_states", "group_offsets", "replica_logs"),
    *("section_status", "clusters", "marker_keys", "id_allocation", "repeated_records", "overwritten_offsets"),
)
_PLACE = itemgetter("cluster", "topic", "partition")
# The other states of `coverage` are breaks: behind them a rule may have missed something.
COVERED = frozenset({"covered", "compacted"})

Fates = Mapping[tuple[int, int], Row]


class Tables(Protocol):
    """Where histories are read: as DataFrames, and small ones straight into memory."""

    def read(self, name: str) -> DataFrame:
        """A table."""

    def arrow(self, name: str) -> "pa.Table":
        """A table in this process's memory."""

    def is_empty(self, name: str) -> bool:
        """Whether a table has no rows."""


@dataclass(frozen=True)
class Collected:
    """What the queries gave.

    Attributes:
        cases: of all rules that ran.
        context: what explanations may ask.
        crashed: a sentence for each rule that could not be run, by code.
        paths: dump file of each section (`evidence_paths`).
        not_dumped: partitions that transactions list and of which no replica was dumped: cluster, topic, partition.
        times: first and last batch timestamps of each log.
        outage: in which transactions ran out of time that the coordinator then aborted, if there was one.
        transactions: every abort, and what is not finished, in the order of cluster, id and entry; then the aborts that only data shows.
    """

    cases: tuple[Case, ...]
    context: Context
    crashed: Mapping[str, str] = field(default_factory=dict)
    paths: Mapping[int, str] = field(default_factory=dict)
    not_dumped: tuple[tuple[str, str, int], ...] = ()
    transactions: tuple[Row, ...] = ()
    outage: Outage | None = None
    times: Mapping[int, Times] = field(default_factory=dict)


def collect(tables: Tables, rules: Sequence[Rule] = RULES) -> Collected:
    """Run all queries of an audit.

    Args:
        tables: the histories (and section_status, clusters).
        rules: part of the catalogue.
    """
    histories = {name: tables.read(name) for name in HISTORIES}
    # Nobody finds a row in a table without any: half of the tables of dumps without transactions, and half of all that is planned here.
    empty = frozenset(filter(tables.is_empty, HISTORIES))
    with ThreadPoolExecutor(1) as beside:  # planning the query of the cases keeps one core busy
        finding = beside.submit(_cases, histories, [rule for rule in rules if may_find(rule, empty)])
        bits = subjects(histories, empty).collect()
        transactions = () if "transaction_instances" in empty else _transactions(histories["transaction_instances"])
        found, crashed = finding.result()
    sections = tables.arrow("section_status").to_pylist()  # a Spark job costs a tenth of a second before its first row
    logs = _logs(tables, sections, {row.replica_log_id: names_of(row.bits) for row in bits})
    of_code = {rule.code: rule for rule in rules}
    collected = tuple(_grouped(found, logs, of_code))
    asked = _asked(collected, of_code)
    return Collected(
        cases=collected,
        context=_context(tables, histories, collected, logs, asked=asked),
        crashed=crashed,
        paths=evidence_paths(tables, sections),
        not_dumped=tuple(sorted(_PLACE(json.loads(row.not_dumped)) for row in bits if row.not_dumped)),
        transactions=(*transactions, *(() if "transaction_spans" in empty else unlisted_aborts(histories, logs))),
        outage=outage(histories, transactions),
        times={row.replica_log_id: _times(row) for row in bits if row.replica_log_id is not None},
    )


def _times(row: "SparkRow") -> Times:
    ranges = ((row[f"{whose}_first_ms"], row[f"{whose}_last_ms"]) for whose in ("broker", "client"))
    return Times(*(None if each[0] is None else each for each in ranges))


def _cases(histories: Mapping[str, DataFrame], rules: Sequence[Rule]) -> tuple[list["SparkRow"], dict[str, str]]:
    """All hits, and a sentence for each rule that could not be run."""
    if not rules:
        return [], {}
    try:
        return cases(histories, rules).collect(), {}
    # A rule that a team wrote may name a column that is not there: the others still judge.
    except PySparkException as error:
        if len(rules) == 1:
            return [], {rules[0].code: str(error).strip().splitlines()[0]}
    # All rules are one plan, so one broken expression fails all of them. Halving finds it in a dozen queries, and only then.
    half = len(rules) // 2
    first, second = _cases(histories, rules[:half]), _cases(histories, rules[half:])
    return [*first[0], *second[0]], {**first[1], **second[1]}


def _fates(tables: Tables) -> Fates:
    return {(row["replica_log_id"], row["producer_id"]): Row(row) for row in tables.arrow("open_transactions").to_pylist()}


def _by_name(tables: Tables) -> dict[str, Row]:
    return {row["cluster"]: Row(row) for row in tables.arrow("clusters").to_pylist()}


def _logs(tables: Tables, sections: Iterable[Mapping[str, object]], found: Mapping[int, frozenset[str]]) -> dict[int, Log]:
    """Every replica log of which anything was dumped."""
    numbers = {row["replica_log_id"]: row for row in tables.arrow("visibility").to_pylist()}
    unmatched: dict[int, set[str]] = defaultdict(set)
    for row in tables.arrow("unmatched").to_pylist():
        unmatched[row["replica_log_id"]].add(row["why"])
    breaks: dict[int, list[Row]] = defaultdict(list)
    parts = tables.arrow("coverage").to_pylist()
    starts = dict(sorted(((row["replica_log_id"], row["first_offset"]) for row in parts if row["state"] == "covered"), reverse=True))
    for row in parts:
        if row["state"] not in COVERED:
            # What the cleaner removed is no break: it removes nothing that a rule could miss.
            breaks[row["replica_log_id"]].append(Row(row))
    # A log of which no batch was read has no numbers, and must still be said to be unread.
    dumped = [s for s in sections if s["replica_log_id"] is not None and s["kind"] == "log"]
    # What a decoder of the user's prints, or a console of another encoding, tells no lengths; printed it was.
    printing = {s["replica_log_id"] for s in dumped if s["is_read"] and (s["payload_printed"] or s["decoder"] == "other")}
    named = {s["replica_log_id"]: s for s in dumped} | numbers
    return {
        log_id: Log(
            log_id=log_id,
            cluster=row["cluster"],
            broker=row["broker"],
            topic=row["topic"],
            partition=row["partition"],
            numbers=Row(numbers.get(log_id, {})),
            subjects=found.get(log_id, frozenset()),
            breaks=tuple(breaks[log_id]),
            unmatched=frozenset(unmatched[log_id]),
            starts_at=starts.get(log_id),
            prints_payloads=log_id in printing,
        )
        for log_id, row in sorted(named.items())
    }


def _grouped(found: Sequence["SparkRow"], logs: Mapping[int, Log], rules: Mapping[str, Rule]) -> Iterator[Case]:
    """Hits put together as cases, in a fixed order."""
    parts: dict[tuple[str, int, str], list[SparkRow]] = defaultdict(list)
    for row in found:
        parts[row.rule, row.replica_log_id or 0, row.key or ""].append(row)
    for (rule, log_id, key), rows in sorted(parts.items()):
        # Ranks are given by the query, over columns of the log: the order does not depend on how rows arrived.
        rows.sort(key=lambda row: row.rank)
        best = rows[0]
        yield Case(
            rule=rule,
            log=logs.get(log_id),
            key=key,
            hits=best.hits,
            records=best.all_records,
            first=best.case_first,
            last=best.case_last,
            timestamp_ms=best.case_timestamp_ms,
            examples=tuple(_example(row, rules[rule]) for row in rows),
        )


def _example(row: "SparkRow", rule: Rule) -> Example:
    """A hit as its rule's words may read it; its addresses come with every hit."""
    source = SOURCES[row.table]
    columns = rule.found if rule.where is None else f"{source.about} {rule.columns} {rule.found}"
    # The names go along: a rule whose words ask for another column fails loudly, where None would acquit every case.
    values = Row(json.loads(row.row), frozenset(columns.split()))
    return Example(row.first_offset, row.last_offset, values, tuple(_addresses(source.addresses, values.lenient)))


def _addresses(prefixes: Iterable[tuple[str, str]], row: Row) -> Iterator[Address]:
    for prefix, offset in prefixes:
        section = row.maybe(f"{prefix}section_id")
        if section is not None:
            yield Address(section, row.number(f"{prefix}byte_offset"), row.number(f"{prefix}length"), row.maybe(offset))


@dataclass(frozen=True)
class _Asked:
    """What the rules of these cases ask for (`Rule.asks`): for each part of the context its cases, and the producers they are about."""

    cases: Mapping[str, tuple[Case, ...]]
    producers: Mapping[str, frozenset[tuple[int, int]]]
    rules: Mapping[str, Rule]

    def instances(self, name: str) -> set[str]:
        """The transactions of those cases, by instance id."""
        return set(_instance_ids(self.cases[name]))

    def logs(self, name: str) -> dict[int, Log]:
        """The logs that those cases are of, by id."""
        return {case.log.log_id: case.log for case in self.cases[name] if case.log}

    def open_spans(self) -> dict[tuple[int, int], Row]:
        """Those cases that are rows of transaction_spans; whoever else asks for open spans reads them only."""
        spans = [case for case in self.cases["open_spans"] if self.rules[case.rule].reads[0] == "transaction_spans"]
        # A rule may be about spans that a marker closed, too: it reads how they ended then.
        still = [case for case in spans if case.row.lenient.text("outcome") in (None, "open")]
        return {(case.log.log_id, case.row.number("producer_id")): case.row for case in still if case.log}


def _asked(found: Sequence[Case], rules: Mapping[str, Rule]) -> _Asked:
    of_part = {name: tuple(case for case in found if name in rules[case.rule].asks) for name in ASKED}
    producers = {
        name: frozenset((case.log.log_id, case.row.number(column)) for case in cases if case.log for column in rules[case.rule].producers)
        for name, cases in of_part.items()
    }
    return _Asked(of_part, producers, rules)


def _instance_ids(found: Iterable[Case]) -> Iterator[str]:
    return (name for case in found for example in case.examples if (name := example.row.lenient.text("instance_id")))


def _context(
    tables: Tables, histories: Mapping[str, DataFrame], found: Sequence[Case], logs: Mapping[int, Log], *, asked: _Asked
) -> Context:
    """The context of these cases, with what they ask for by id."""
    told, fates = clocks(tables.arrow), _fates(tables)
    # Few rows at most: a sound broker writes no entry that a look-up misses.
    missed = histories["aborted_index"].where("ends_at_offset IS NOT NULL").withColumn("first_offset", F.col("entry_first_offset"))
    instance_ids = set(_instance_ids(found)) | {name for row in fates.values() if (name := row.text("instance_id"))}
    siblings: dict[tuple[str, str | None, int | None], list[Log]] = defaultdict(list)
    for log in logs.values():
        siblings[log.place].append(log)
    return Context(
        logs=logs,
        clusters=_by_name(tables),
        instances=looked_up.instances(histories["transaction_instances"], instance_ids),
        last_of_producer=looked_up.last_of_producers(
            histories["transaction_instances"], {producer for _, producer in asked.producers["last_of_producer"]}
        ),
        open_spans=asked.open_spans(),
        farthest_ms=told.farthest_ms,
        stopped=told.stopped,
        clean_ends=told.clean_ends,
        dumped_at_ms=told.dumped_at_ms,
        set_back_ms=told.set_back_ms,
        fates=fates,
        data_of=looked_up.data_of(histories["instance_partitions"], asked.instances("data_of"), logs),
        untold_ms=looked_up.untold(histories["instance_partitions"], histories["producer_history"], asked.instances("untold_ms")),
        went_on_ms=looked_up.went_on(
            histories["transaction_instances"],
            histories["instance_partitions"],
            histories["producer_history"],
            # Of the others a clock of their own tells when they were dumped.
            {log_id: log for log_id, log in asked.logs("went_on_ms").items() if log_id not in told.dumped_at_ms},
        ),
        unmarked=looked_up.unmarked(histories["instance_partitions"], asked.instances("unmarked"), siblings.values()),
        edges=looked_up.of_producers(histories["producer_edges"], asked.producers["edges"]),
        spans=looked_up.of_producers(histories["transaction_spans"], asked.producers["spans"]),
        missed_entries=looked_up.of_producers(missed, asked.producers["missed_entries"]),
        newest_markers=looked_up.newest_markers(histories["producer_history"], asked.producers["newest_markers"]),
        siblings=siblings,
    )


def _transactions(instances: DataFrame) -> tuple[Row, ...]:
    columns = ["cluster", "transactional_id", "producer_id", "data_epoch", "decision", "abort_cause", "abort_cause_certainty"]
    # Commits are left out: of a healthy cluster they are nearly all, and verdict.json is read whole.
    unfinished = F.col("is_last") & F.col("last_status").isin("Ongoing", "PrepareCommit", "PrepareAbort")
    rows = instances.where((F.col("decision") == "ABORT") | unfinished).select(*columns, "first_entry_offset").collect()
    rows.sort(key=lambda row: (row["cluster"], row.transactional_id, row.first_entry_offset))
    return tuple(Row(row.asDict()) for row in rows)
