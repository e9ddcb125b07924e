"""S05 sidecar-corrupt: an aborted index or a producer snapshot holds what no broker writes.

Proves: A file beside the log is damaged: entries of the aborted index out of order, below their segment, of an unknown version or cut, or a
snapshot that does not fit its own checksum. By itself it does not prove that delivery was wrong.

Bad history: The index of segment 100 has an entry with lastOffset 40; "Snapshot is corrupt (CRC is no longer valid)".

Legal look-alike: An entry whose first and last offset are equal (an empty abort before 2.8); an entry that begins below its segment, in the
one before; an empty index; a file of which a newer dump is read instead.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from eo_audit.rules.rule import Case, Explanation, Rule
from eo_audit.rules.sidecars.words import rebuild_index
from eo_audit.rules.sources import SOURCES
from eo_audit.rules.writers import ASKS, id_of, named
from eo_audit.words import shown

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from eo_audit.rules.context import Context

_OF_ENTRY = ("entry_fault", "entry_first_offset", "marker_offset")
_OF_FILE = ("fault", "segment_base_offset", "path")
_SAID = {
    "version": "is of an unknown version",
    "first_after_last": "begins behind its end",
    "below_base": "ends below its segment",
    "order": "does not end behind the one before it",
}


def corrupt(histories: "Mapping[str, DataFrame]") -> "DataFrame":
    """Entries and files that no broker writes, in the form of a hit."""
    from eo_audit.rules.cases import hits  # late, for whoever reads the catalogue and needs no Spark

    entries = histories["aborted_index"].where("entry_fault IS NOT NULL").selectExpr("*", "'S05' AS rule")
    damaged = "is_read AND fault IN ('snapshot_corrupt', 'index_version', 'index_size')"
    files = histories["section_status"].where(damaged).selectExpr("*", "'S05' AS rule")
    of_entries = hits(SOURCES["aborted_index"], entries, key="'index'", weight="0", columns=_OF_ENTRY)
    kind = "IF(fault = 'snapshot_corrupt', 'snapshot', 'index')"
    # What the tool or a listing says of the whole file goes before one of its entries.
    return of_entries.unionByName(hits(SOURCES["section_status"], files, key=kind, weight="1", columns=_OF_FILE))


RULE = Rule(
    code="S05",
    slug="sidecar-corrupt",
    severity="error",
    reads=("aborted_index", "section_status"),
    subject="index_entry snapshot",
    find=corrupt,
    found=f"producer_id {' '.join(_OF_ENTRY)} {' '.join(_OF_FILE)}",
    asks=ASKS,
    # What brokers made of it S01, S02 and L02 tell.
    proves_delivery_wrong=False,
    cause="a disk fault, a crash before the file was flushed (KAFKA-9892 up to 2.7), or a file that was copied while it was written",
    remedy="See the finding: a broker makes both files anew from the log.",
)


def explain(case: Case, context: "Context") -> Explanation:
    """The first damage of one kind of file."""
    row = case.row
    fault = row.text("fault")
    if fault == "snapshot_corrupt":
        return Explanation(
            f"The producer snapshot at offset {row.maybe('segment_base_offset')} cannot be read: its checksum or its form is not that of a "
            f"snapshot ({shown(row.text('path'))})",
            # `ProducerStateManager.loadFromSnapshot`: the newest that can be read counts, and the log from there on.
            remedy="Nothing at once: a broker that starts deletes it, takes the one before and reads on from there. Check the disk.",
            details={"fault": fault, "files": case.hits},
        )
    if fault is not None:
        what = "holds an entry of an unknown version" if fault == "index_version" else "does not end with a whole entry"
        message = f"The aborted index of segment {row.maybe('segment_base_offset')} {what} ({shown(row.text('path'))})"
    else:
        fault = row.word("entry_fault")
        message = (
            f"The aborted index has an entry of {named(case, context)}, offsets {row.maybe('entry_first_offset')} to "
            f"{row.maybe('marker_offset')}, that {_SAID[fault]}{'' if case.hits == 1 else f' (the first of {case.hits})'}"
        )
    return Explanation(
        message,
        named=id_of(case, context) if row.text("fault") is None else None,
        remedy=rebuild_index(case.log),
        details={"fault": fault, "places": case.hits},
    )
