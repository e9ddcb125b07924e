"""Step 3, seen from above: histories to findings and a verdict. Spark finds cases; the few of them are explained and judged here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eo_audit.audit import accepted_findings
from eo_audit.audit import policy as policies
from eo_audit.audit.collect import collect
from eo_audit.audit.findings import Finding, findings
from eo_audit.audit.unread import unread_text
from eo_audit.audit.verdict import build
from eo_audit.store.tables import Warehouse
from eo_audit.store.tasks import described


@dataclass(frozen=True)
class Audit:
    """All findings of an audit, sorted by id, and the content of verdict.json."""

    findings: tuple[Finding, ...]
    verdict: dict[str, object]


def audit_histories(
    warehouse: Warehouse,
    *,
    policy: Path | None,
    accepted: Path | None = None,
    inputs: Sequence[Mapping[str, object]],
    run_id: str,
    code_version: str,
) -> Audit:
    """Run all rules over the histories of a warehouse.

    Args:
        warehouse: with the histories of a finished rebuild.
        policy: a policy file; the one that comes with the package by default.
        accepted: a file of accepted findings (`eo_audit.audit.accepted_findings`); it need not exist.
        inputs: path, digest, bytes and unread_bytes of each input.
        run_id: id of the run.
        code_version: version of this package.

    Raises:
        ConfigurationError: the policy or the accepted findings cannot be used.
    """
    # Before any query: a slip in a file is said in a second, not after minutes.
    chosen, known = policies.load(policy), accepted_findings.load(accepted) if accepted else ()
    with described(warehouse.session(), "what the rules look at"):
        collected = collect(warehouse)
    # From here on nothing asks Spark: what is left are cases, in memory.
    found, crashed = findings(collected)
    verdict = build(
        collected,
        found,
        chosen,
        run_id=run_id,
        code_version=code_version,
        inputs=inputs,
        crashed=crashed,
        accepted=known,
        unread=unread_text(warehouse),
    )
    return Audit(tuple(found), verdict)
