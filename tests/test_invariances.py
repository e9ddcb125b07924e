"""What an audit says does not depend on how the dumps lie there: the same logs in other segments, files, replicas and times say the same, a
part of them says of that part what the whole says. All in one audit (`one_audit`, in conftest.py)."""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import cast

import pytest

from eo_audit.report.export import export
from eo_audit.report.results import Results
from tests.cluster.dumping import plan_of, write_dumps
from tests.cluster.producers import live
from tests.cluster.shape import STOPPED, draw
from tests.support import reshaped, together
from tests.support.reshaped import Kept, Place
from tests.support.together import Part, Together

DUMPS = Path(__file__).parent / "data" / "corpus" / "dumps"


@dataclass(frozen=True)
class Change:
    """One way to make other dumps of the same cluster.

    Attributes:
        make: changes a copy of the dumps, and says which offsets are still told.
        inputs: of `INPUTS`.
        same_findings: what is told is what is told of the whole. Of a part of a log it may not be: a marker may lie in the other part.
        same_lso: the last stable offset is that of the whole.
    """

    make: Callable[[Path], Kept]
    inputs: tuple[str, ...]
    same_findings: bool = True
    same_lso: bool = True


REAL = ("hanging_txn_k39", "syn_abort_to_commit", "syn_dup_batch", "syn_txnindex_entry_removed", "synthetic_base_tv2")
REPLICAS = ("ghost_records_tv2",)
SEGMENTS = ("retention_head_k39", "compaction_k39")
# What kubectl, log4j, SLF4J and Java write into the same file.
NOISE = """Defaulted container "kafka" out of: kafka, init (init)
OpenJDK 64-Bit Server VM warning: Sharing is only supported for boot loader classes because bootstrap classpath has been appended
log4j:WARN No appenders could be found for logger (kafka.utils.Log4jControllerRegistration$).
SLF4J: Class path contains multiple SLF4J bindings.
[2026-11-21 04:25:11,123] WARN Nothing of importance (kafka.utils.Logging)
"""
MODEL = {"model_tv0": 300_002, "model_tv2": 300_013}
CHANGES = {
    "split": Change(reshaped.split, (*REAL, *MODEL)),
    "one_file": Change(reshaped.in_one_file, (*REAL, *MODEL)),
    "permuted": Change(reshaped.permuted, REAL),
    "merged": Change(reshaped.merged, SEGMENTS),
    "crlf": Change(partial(reshaped.printed_elsewhere, crlf=True), REAL[:1]),
    "ascii": Change(partial(reshaped.printed_elsewhere, ascii_only=True), (REAL[0], "clean_tv2")),
    "noisy": Change(partial(reshaped.printed_elsewhere, noise=NOISE), REAL[:2]),
    "later": Change(reshaped.later, (*REAL, *MODEL)),
    "first_replica": Change(partial(reshaped.one_replica, last=False), REPLICAS),
    "last_replica": Change(partial(reshaped.one_replica, last=True), REPLICAS),
    "without_head": Change(
        reshaped.without_head,
        REAL,
        same_findings=False,
    ),
    "shorter": Change(
        reshaped.shorter,
        REAL,
        same_findings=False,
        same_lso=False,
    ),
    "other_ending": Change(reshaped.other_ending, REAL),
}


def dumps_of_tests(folder: Path) -> Part:
    """All inputs as they are (`as_is`) and changed, each a folder and a cluster that is called so, with what each change kept."""
    sources = {name: DUMPS / name for name in sorted({name for row in CHANGES.values() for name in row.inputs} - MODEL.keys())}
    for name, seed in MODEL.items():
        world = live(draw(seed, features=("aborts", "open_at_end", "payloads"), dumps=(STOPPED,)))
        sources[name] = folder / "lived" / name
        write_dumps(world, plan_of(world), sources[name])
    kept = dict[str, Kept]()
    for change, names in {"as_is": tuple(sources), **{change: row.inputs for change, row in CHANGES.items()}}.items():
        for name in names:
            into = folder / f"{name}.{change}"
            (together.as_it_is if change == "as_is" else reshaped.copied)(sources[name], into)
            kept[into.name] = CHANGES[change].make(into) if change in CHANGES else Kept()
    return Part([folder / name for name in kept], kept=kept)


@pytest.fixture(scope="module")
def audited(one_audit: Together) -> tuple[Results, Mapping[str, Kept]]:
    return one_audit.results, cast(Mapping[str, Kept], one_audit.kept[__name__])


CASES = [(change, name) for change, row in CHANGES.items() for name in row.inputs if change != "other_ending"]


@pytest.mark.parametrize(("change", "name"), [(change, name) for change, name in CASES if CHANGES[change].same_findings])
def test_the_same_is_found(audited: tuple[Results, Mapping[str, Kept]], change: str, name: str) -> None:
    results, _ = audited
    assert _findings(results, f"{name}.{change}") == _findings(results, f"{name}.as_is")


@pytest.mark.parametrize(("change", "name"), CASES)
def test_consumers_get_the_same(audited: tuple[Results, Mapping[str, Kept]], change: str, name: str) -> None:
    results, kept = audited
    before, now = (
        _visible(results, f"{name}.as_is", kept[f"{name}.{change}"]),
        _visible(results, f"{name}.{change}", kept[f"{name}.{change}"]),
    )
    if CHANGES[change].same_lso:
        assert now == before
        assert _lso(results, f"{name}.{change}") == _lso(results, f"{name}.as_is")
    else:
        # Behind an open transaction nobody gets anything yet.
        assert all(offsets <= before.get(place, set()) for place, offsets in now.items())
    assert now


PARTS = [(change, name) for change, name in CASES if not CHANGES[change].same_findings]


@pytest.mark.parametrize(("change", "name"), PARTS)
def test_what_is_sure_of_a_part_is_true_of_the_whole(audited: tuple[Results, Mapping[str, Kept]], change: str, name: str) -> None:
    """What a part cannot tell is not found, or only likely: a marker that is missing in it may stand in what was not dumped."""
    results, _ = audited
    loud = [finding for finding in results.findings if finding["severity"] != "info"]
    whole = {_broad(finding) for finding in loud if finding["cluster"] == f"{name}.as_is"}
    sure = {_broad(f) for f in loud if f["cluster"] == f"{name}.{change}" and f["certainty"] == "definite"}
    assert sure <= whole
    assert sure or name != "hanging_txn_k39"


def test_a_snapshot_tells_of_the_marker_that_the_head_took(audited: tuple[Results, Mapping[str, Kept]]) -> None:
    """The records came late (T02), as in the whole: their ABORT stood below the log's start, and is not missing (T05)."""
    results, _ = audited
    mine = {f["rule"] for f in results.findings if f["cluster"] == "hanging_txn_k39.without_head" and f["producer_id"] == 1}
    assert "T02" in mine and "T05" not in mine


def _broad(finding: Mapping[str, object]) -> tuple[object, ...]:
    """Rule and writer: how bad it is, and at which offsets, may lie in the other part."""
    return tuple(finding[name] for name in ("rule", "topic", "partition", "producer_id"))


def test_a_difference_would_be_seen(audited: tuple[Results, Mapping[str, Kept]]) -> None:
    results, _ = audited
    inputs = CHANGES["other_ending"].inputs
    for name in inputs:
        assert _findings(results, f"{name}.other_ending") != _findings(results, f"{name}.as_is")
    # Consumers ask the aborted index and no marker, so they get the same; of a log without its end they get less.
    read = {name: [_visible(results, f"{name}.{how}", Kept()) for how in ("shorter", "as_is")] for name in inputs}
    assert [name for name, (shorter, as_is) in read.items() if shorter != as_is]


def _findings(results: Results, cluster: str) -> set[tuple[object, ...]]:
    """What was found: rule, severity, place, producer, id and offsets. The broker is not asked for."""
    names = ("rule", "severity", "topic", "partition", "producer_id", "transactional_id", "first_offset", "last_offset")
    mine = [finding for finding in results.findings if finding["cluster"] == cluster]
    return {tuple(finding[name] for name in names) for finding in mine}


def _visible(results: Results, cluster: str, kept: Kept) -> dict[Place, set[int]]:
    """Offsets that a read_committed consumer gets of each partition, as far as they are still told."""
    return reshaped.offsets_of(_read_committed(results).get(cluster, {}), kept)


@cache
def _read_committed(results: Results) -> Mapping[str, Mapping[Place, list[tuple[int, int]]]]:
    """What is visible to read_committed consumers: offsets from and to, by cluster and partition."""
    ranges = defaultdict[str, dict[Place, list[tuple[int, int]]]](lambda: defaultdict(list))
    for line in export("visible_ranges", results.warehouse):
        row = json.loads(line)
        if row["view"] == "read_committed":
            ranges[row["cluster"]][row["topic"], row["partition"]].append((row["first_offset"], row["last_offset"]))
    return ranges


def _lso(results: Results, cluster: str) -> dict[tuple[object, object], object]:
    """The last stable offset of each partition."""
    rows = [row for row in results.verdict["partitions"] if row["cluster"] == cluster]  # type: ignore[index]
    return {(row["topic"], row["partition"]): row["lso"] for row in rows}
