"""Healthy clusters whose dumps lack lines: what the lost ones would have told is unknown, and nobody is accused of it.

New ones are looked for with `python -m tests.sweep.clusters --seeds 0:100`.
"""

from pathlib import Path
from typing import cast

import pytest

from eo_audit.audit.collect import COVERED
from tests.cluster.properties import Made, compare
from tests.support.together import Part, Together
from tests.sweep.clusters import accusations, changed

# Seeds that were accused once: what was lost, and what was told.
HELD = {
    50001051: ("loss:12", "L02: in a cleaned log, batches in text that was not understood were held to have been removed by the cleaner"),
    50001089: ("loss:12", "L04: the marker of what a snapshot calls open may stand among missing offsets"),
    50004020: ("marker_records_lost", "T02, L03: the last markers of a producer stood in a hole that ends the log for it"),
    50004114: ("marker_records_lost", "L03: the same, of a log of offsets"),
    50004117: ("marker_records_lost", "L03: the same, of a producer without an id in the dumps"),
    53000138: ("loss:9", "an LSO of 0 where it was 41: the markers of what seemed open stood among what was lost"),
    54000313: ("loss:16", "C03: the end of a segment of the coordinator's log was not understood, and was held to be cleaned"),
    53000388: ("some_lines_cut", "T07: a marker stood behind one without its record, and was put to the decision of that one"),
    60000311: ("shorter", "S03: of a log of which no segment's text held a batch nothing was held to be missing"),
    60002614: (
        "without_head",
        "T07: of what stands behind a hole the coordinator's log was held to tell, for it tells of what stands before it",
    ),
    86000067: ("without_records,last_replica", "T01: what markers without their records had ended was held to be open"),
    87000059: ("marker_records_lost", "T06: behind a dozen transactions of which nothing is left a marker had no transaction to be of"),
    87000083: (
        "newest_segments",
        "an LSO of 50, where the log was dumped from, and it was 33: segments that a broker has and nobody dumped were held to be deleted",
    ),
    86000091: ("some_lines_cut", "T07: what may have ended among missing offsets was held to be open still"),
    89200015: (
        "some_segments,printed_by_1.1",
        "T07: the coordinator's log was held to tell of a transaction whose entries stand in a segment of it that nobody dumped",
    ),
    89200040: (
        "some_segments,printed_by_1.1",
        "L02: a COMMIT behind missing segments closed what an ABORT in them may have ended, and its index was not dumped",
    ),
    89300037: ("newest_segments", "an LSO of 14, and it was 10: the high watermark lay in segments that nobody dumped"),
    89400044: (
        "some_segments",
        "T02, T04, T07: a clock was set back by minutes, so the coordinator's log was held to tell of what stood in its segments that "
        "nobody dumped",
    ),
}


def dumps_of_tests(folder: Path) -> Part:
    """The clusters, in folders of their names."""
    made: Made = {}
    for seed, (how, _) in HELD.items():
        made = {**made, **changed([seed], how, folder)}
    return Part([folder / name for name in made], kept=made)


@pytest.mark.parametrize("seed", HELD)
def test_nobody_is_accused_of_what_was_lost(seed: int, one_audit: Together) -> None:
    made = cast(Made, one_audit.kept[__name__])
    (result,) = compare({name: one for name, one in made.items() if one[0].shape.seed == seed}, one_audit.said)
    assert accusations(result) == []
    unread = [row for row in one_audit.results.rows("dump_files", cluster=result.case.name) if row["bytes_unread"]]
    missing = [row for row in one_audit.results.rows("coverage", cluster=result.case.name) if row["state"] not in COVERED]
    assert unread or missing, "nothing was lost"
