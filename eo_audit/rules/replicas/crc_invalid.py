"""R02 crc-invalid: a batch fails its checksum.

Proves: The bytes of a batch are not what its writer sent.

Bad history: isvalid: false in the middle of a segment.

Legal look-alike: The last batch of a file that the broker is writing at that moment (a warning, for nobody can tell).
"""

from typing import TYPE_CHECKING

from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.words import count, offsets

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="R02",
    slug="crc-invalid",
    severity="critical",
    reads=("coverage",),
    subject="batch",
    needs=("checksums",),
    # The tool checks the CRC itself (isvalid); everything behind it in the log is not judged.
    where="state = 'crc_invalid'",
    # The first one only: what follows it is not judged.
    by="state",
    columns="last_offset first_offset reason",
    cause="a disk or memory fault, or a file changed by hand",
    remedy=(
        "Safe to repair while another replica leads: stop this broker, delete this replica's directory, "
        "start it and let it be fetched again. If no other replica is sound, dump the segment again first: "
        "a live file may have been caught half written."
    ),
)


def explain(case: Case, context: "Context") -> Explanation:
    """Only likely when it is the very end of the log, which a broker may be writing."""
    end = case.log.numbers.maybe("leo") if case.log else None
    # A broker may have been writing the last batch while the tool read it.
    last = end is not None and case.row.maybe("last_offset") is not None and case.row.number("last_offset") >= end - 1
    message = (
        f"{count(case.hits, 'batch', 'batches')} {'fails' if case.hits == 1 else 'fail'} the checksum, "
        f"the first at {offsets(case.row.maybe('first_offset'), case.row.maybe('last_offset'))}: nothing behind it is judged"
    )
    if (case.row.text("reason") or "").endswith("without --deep-iteration"):
        message += "; the dump without --deep-iteration says so, for the one that is read shows no checksums"
    if last:
        message += "; it is the last batch of the log, which may have been caught half written"
    return Explanation(
        message, severity="warning" if last else "critical", certainty="likely" if last else "definite", details={"batches": case.hits}
    )
