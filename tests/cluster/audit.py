"""Many clusters, one audit: ingest, rebuild and findings in one Spark session; what it says is given back per cluster."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from eo_audit import pipeline
from eo_audit.audit import policy
from eo_audit.audit.collect import Collected, collect
from eo_audit.audit.findings import Finding, findings
from eo_audit.rules.catalogue import RULES
from eo_audit.rules.needs import Unknown, unknown
from eo_audit.rules.replica_log import Log


@dataclass
class Said:
    """What the audit says of one cluster: findings, its logs, what read_committed consumers got of each (first and last
    offsets, by id of the log), and the unknowns that the default policy minds (rule, why, where)."""

    findings: list[Finding] = field(default_factory=list)
    logs: list[Log] = field(default_factory=list)
    read_committed: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    unknowns: list[tuple[str, str, str]] = field(default_factory=list)
    crashed: tuple[str, ...] = ()

    @property
    def above_info(self) -> list[Finding]:
        """Warnings, errors and critical findings."""
        return [finding for finding in self.findings if finding.severity != "info"]


def audit(spark: SparkSession, inputs: Sequence[Path], out: Path) -> Mapping[str, Said]:
    """Audit folders, each of which is a cluster of its name.

    Args:
        spark: a running session.
        inputs: the folders.
        out: a new folder.
    """
    options = pipeline.Options()
    dumps = pipeline.discover(inputs, options)
    with pipeline.writing(out, options, input_bytes=pipeline.stored_bytes(dumps), spark=lambda: spark) as warehouse:
        pipeline.ingest(warehouse, dumps, options)
        pipeline.rebuild(warehouse, options)
        collected = collect(warehouse)
        return told(inputs, collected, warehouse.arrow("visible_ranges").to_pylist())


def told(inputs: Sequence[Path], collected: Collected, visible: Iterable[Mapping[str, object]]) -> Mapping[str, Said]:
    """What an audit that asked its rules says of each of its inputs, each of which is a cluster of its name.

    Args:
        inputs: the folders.
        collected: what the rules were told.
        visible: rows of visible_ranges.
    """
    got: dict[object, list[tuple[int, int]]] = defaultdict(list)
    for row in visible:
        if (row["view"], row["reader"]) == ("read_committed", "log_start"):
            got[row["replica_log_id"]].append((int(str(row["first_offset"])), int(str(row["last_offset"]))))
    found, crashed = findings(collected)
    said: dict[str, Said] = defaultdict(Said, {path.name: Said() for path in inputs})
    for finding in found:
        said[finding.cluster or ""].findings.append(finding)
    for log in collected.context.logs.values():
        said[log.cluster].logs.append(log)
        said[log.cluster].read_committed[log.log_id] = got[log.log_id]
    for code, item, cluster in unknowns(collected):
        said[cluster].unknowns.append((code, item.because, item.place))
    for one in said.values():
        one.crashed = tuple(f"{code}: {why}" for code, why in {**collected.crashed, **crashed}.items())
    return said


def unknowns(collected: Collected) -> list[tuple[str, Unknown, str]]:
    """What the default policy minds: rule, why and where, cluster. As `verdict.json` counts them, but with the cluster of each."""
    chosen, context = policy.load(), collected.context
    rows: list[tuple[str, Unknown, str]] = []
    for rule in RULES:
        for log in context.logs.values():
            if log.subjects.intersection(rule.subject.split()):
                item = unknown(rule, log, context)
                rows += [] if item is None else [(rule.code, item, log.cluster)]
        if rule.of_coordinator:
            used = {log.cluster for log in context.logs.values() if {"transactional_batch", "coordinator_entry"} & log.subjects}
            blind = [name for name in used if not context.cluster(name).flag("coordinator_complete")]
            rows += [(rule.code, Unknown("no_coordinator", name), name) for name in blind]
    return [(code, item, cluster) for code, item, cluster in rows if chosen.leaves_open(code, item.because)]
