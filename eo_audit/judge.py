"""The third step: histories to findings and a verdict. Spark finds cases; the few of them are explained and judged here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eo_audit import __version__
from eo_audit import policy as policies
from eo_audit.collect import collect
from eo_audit.findings import Finding, findings
from eo_audit.tables import Warehouse
from eo_audit.verdict import build


@dataclass(frozen=True)
class Judgement:
    """All findings of an audit, sorted by id, and the content of verdict.json."""

    findings: tuple[Finding, ...]
    verdict: dict[str, object]


def judge(warehouse: Warehouse, *, policy: Path | None, inputs: Sequence[Mapping[str, object]], run_id: str) -> Judgement:
    """Run all rules over the histories of a warehouse.

    Args:
        warehouse: with the histories of a finished rebuild.
        policy: a policy file; the one that comes with the package by default.
        inputs: path, digest, bytes and unread_bytes of each input.
        run_id: id of the run.

    Raises:
        ConfigurationError: the policy cannot be used.
    """
    chosen = policies.load(policy)
    collected = collect(warehouse)
    found, crashed = findings(collected)
    verdict = build(collected, found, chosen, run_id=run_id, code_version=__version__, inputs=inputs, crashed=crashed)
    return Judgement(tuple(found), verdict)
