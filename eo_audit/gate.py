"""The data-quality gate by its public name: `eo_audit.gate.gate(out, expectations=...)`."""

from eo_audit.report.gate import GateResult, gate

__all__ = ["GateResult", "gate"]
