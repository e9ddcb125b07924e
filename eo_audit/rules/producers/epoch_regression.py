"""P05 epoch-regression: a batch or marker of an older epoch follows a newer one: a fenced producer wrote.

Proves: A batch or marker carries an epoch below one that the log already shows for the producer: the old owner wrote after it was fenced.

Bad history: Epoch 1 at offset 0, epoch 0 at offset 2.

Legal look-alike: Different partitions that show different epochs of one idempotent producer at the same moment (the client raises them one
by one); an ABORT whose epoch lies between those of the data before and behind it, which is how fencing looks.
"""

from typing import TYPE_CHECKING

from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.writers import ASKS, id_of, who
from eo_audit.words import count, offsets

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

RULE = Rule(
    code="P05",
    slug="epoch-regression",
    severity="critical",
    reads=("producer_history",),
    subject="producer_batch",
    # Not `past`: epochs only rise, so nothing that a hole hides could make it right.
    needs=("order", "epochs"),
    where="epoch_regression",
    columns="row_kind base_offset last_offset max_epoch_before",
    asks=ASKS,
    cause="the leader had forgotten the fencing epoch: KAFKA-9144 up to 2.4.0, an expired producer state, an unclean election",
    remedy=(
        "Find the producer that still ran with the old epoch and stop it; treat its records as unfenced duplicates. "
        "Brokers older than 2.4.1 need an upgrade."
    ),
)


def explain(case: Case, context: "Context") -> Explanation:
    """The first batch or marker speaks, and the epoch that the log had by then."""
    row = case.row
    what = "marker" if row.text("row_kind") == "marker" else "batch"
    message = (
        f"A {what} of {who(case, context)} stands at "
        f"{offsets(row.maybe('base_offset'), row.maybe('last_offset'))}, after epoch {row.maybe('max_epoch_before')} was in the log: "
        f"{_written(case)}"
    )
    only_markers = all(example.row.text("row_kind") == "marker" for example in case.examples)
    return Explanation(
        message,
        named=id_of(case, context),
        cause=_LATE_MARKER if only_markers else None,
        remedy=_LATE_MARKER_REMEDY if only_markers else None,
        details={"epoch": row.maybe("producer_epoch"), "highest_epoch_before": row.maybe("max_epoch_before"), "batches": case.hits},
    )


_LATE_MARKER = "a marker that was delayed until the producer's next epoch was known, or a coordinator that was no longer in charge"
_LATE_MARKER_REMEDY = (
    "No producer wrote it: ask what the marker ended (T04, T06, T09), and compare the coordinator epoch of this marker with that of the "
    "markers around it."
)


def _written(case: Case) -> str:
    """Who wrote how much: a marker is the coordinator's, and no record."""
    markers = sum(example.row.text("row_kind") == "marker" for example in case.examples)
    if markers == len(case.examples):
        return f"a coordinator wrote {count(case.hits, 'such marker')}"
    records = case.records or 0
    if case.hits > len(case.examples):  # of the others nobody asks which are markers
        beside = ", markers among them" if markers else ""
        return f"a fenced producer wrote {count(records, 'record')} in {count(case.hits, 'batch', 'batches')}{beside}"
    beside = f" and a coordinator {count(markers, 'marker')}" if markers else ""
    return f"a fenced producer wrote {count(records - markers, 'record')} in {count(case.hits - markers, 'batch', 'batches')}{beside}"
