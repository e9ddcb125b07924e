"""The two properties: a healthy cluster is not accused, and one planted fault is found where it is and nothing else.

1. A healthy cluster has no finding above info, and, when its dumps are complete, no unknown that the default policy minds; and what is said
   of its last stable offsets, and of what read_committed consumers got, is true.
2. A cluster with one planted fault has that finding at that place, and no other that fails a run. Where the dumps are not complete, the
   rule may be `unknown` there instead, if the policy minds.

What stays ambiguous is `unknown` and no finding: where a clock was set, or another broker led, between the markers of a log that was still
being written, a marker that was lost and one that is still to come may look the same; so may one that was lost and one that is older than
all that is left, and one that was lost and one that the only replica dumped, a follower, does not have yet. That is counted (`open`), and
must be rare. Where markers cannot be counted from the beginning of both logs, a planted fault may also be `unknown` for the same reason,
whatever the clocks did.
"""

import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pyspark.sql import SparkSession

from eo_audit.audit import policy
from eo_audit.audit.findings import Finding
from tests.cluster.audit import Said, audit
from tests.cluster.brokers import World
from tests.cluster.dumping import Plan, gone_since_listed, plan_of, write_dumps
from tests.cluster.edits import are_met
from tests.cluster.faults import FAULTS, suited
from tests.cluster.nights import nights_before
from tests.cluster.producers import live
from tests.cluster.shape import Shape
from tests.cluster.stable import wrong_numbers
from tests.cluster.truth import NoPlace, Scene, Truth

BELOW_ZERO = re.compile(r"(?<![\w.-])-\d[\d.]* (ms|s|min|h|d)\b")
# What is true of healthy clusters that have one of these features: a quarter of the transactions is fenced, or ends by timeout, and the
# producers start again at once; times of a coordinator go back, or on by more than anybody waited.
LIVED = {"I05": ("fences", "timeouts"), "C05": ("steps", "leaps"), "T14": ("steps", "leaps")}
# What looks overdue, or not forgotten yet, by a clock that was set, where nothing tells by it when its log was dumped: likely, and no more.
AGED = frozenset({"C01", "C02", "L01", "O05", "S01"})
# Features that take the beginning of a log away, of the data or of the coordinator (a producer id that is used up is cleaned out of it).
IN_DOUBT = ("clocks_apart", "head_in_doubt")
OVERDUE = ("marker_overdue", "marker_perhaps_overdue")  # a log ends before a marker that it should hold, or lags
HEADLESS = ("cleaned_coordinator", "exhaustion", "cleaned_data", "retention", "delete_records")


@dataclass(frozen=True)
class Case:
    """One cluster: its shape, the fault that is planted in it, if any, and what tells it from others of its seed in one audit."""

    shape: Shape
    fault: str | None = None
    label: str = ""

    @property
    def name(self) -> str:
        """Of its folder, and of the cluster."""
        return f"s{self.shape.seed}" + "".join(f"-{part}" for part in (self.fault, self.label) if part)


# By name: the case, what was planted in it, the world as it lived, how it was dumped.
Made = Mapping[str, tuple[Case, Truth | None, World, Plan]]


@dataclass(frozen=True)
class Result:
    """What is wrong with what the audit says of a case; `truth` is None for a healthy one, `transactions` how many it had; `open`: it is
    unknown, and may be: see above."""

    case: Case
    wrong: tuple[str, ...]
    transactions: int
    truth: Truth | None = None
    open: bool = False


def check(spark: SparkSession, cases: Sequence[Case], folder: Path) -> list[Result]:
    """Make the clusters, audit them together, and compare. A case whose fault finds no place gives no result.

    Args:
        spark: a running session.
        cases: with different names.
        folder: new; dumps and tables are left there.
    """
    made = make_all(cases, folder / "dumps")
    return compare(made, audit(spark, [folder / "dumps" / name for name in made], folder / "out")) if made else []


def make_all(cases: Iterable[Case], folder: Path) -> Made:
    """The clusters of all cases, each in a folder of its name. A case whose fault finds no place is left out."""
    built = {case.name: (case, make(case, folder / case.name)) for case in cases}
    return {name: (case, *lived) for name, (case, lived) in built.items() if lived is not None}


def compare(made: Made, said: Mapping[str, Said]) -> list[Result]:
    """What an audit says of each cluster against what is true of it."""
    return [_result(case, truth, said[name], world, plan) for name, (case, truth, world, plan) in made.items()]


def _result(case: Case, truth: Truth | None, said: Said, world: World, plan: Plan) -> Result:
    transactions = len(world.transactions)
    undecided = _undecided(case.shape, said, world)
    if truth is None:
        accused = (*_healthy(case.shape, said, undecided, gone_since_listed(world, plan)), *_blamed_clocks(case.shape, said))
        return Result(case, (*accused, *wrong_numbers(world, plan, said)), transactions, open=case.shape.is_complete and bool(undecided))
    missed = [rules for rules in truth.demands if not _is_found(truth, rules, said)]
    headless = any(case.shape.has(feature) for feature in HEADLESS)
    apart = (where for _, why, where in said.unknowns if (why in IN_DOUBT and headless) or why in OVERDUE)
    may_be = not case.shape.is_complete or any(_is_in(truth, place) for place in (*undecided, *apart))
    is_open = may_be and bool(missed) and all(_is_unknown(truth, rules, said) for rules in missed)
    return Result(case, tuple(_planted(truth, said, [] if is_open else missed)), transactions, truth, is_open)


def _undecided(shape: Shape, said: Said, world: World) -> frozenset[str]:
    """The places whose markers can be told in more than one way, where clocks moved and an end of the logs is not there to count from."""
    if shape.dump == "stopped" and not any(shape.has(feature) for feature in HEADLESS):
        return frozenset()
    coordinators = any(world.clock_moved(log) for log in world.coordinator_logs)
    moved = [f" {log.topic}-{log.partition} " for log in world.marked_logs if coordinators or world.clock_moved(log)]
    return frozenset(where for _, why, where in said.unknowns if why in IN_DOUBT and any(name in f" {where} " for name in moved))


def _blamed_clocks(shape: Shape, said: Said) -> Iterable[str]:
    """What is put to clocks where all of them went together, whatever was missing besides."""
    if shape.has_clocks_apart:
        return ()
    return (f"unknown by clocks that never differed: {place} ({code})" for code, why, place in said.unknowns if why == "clocks_apart")


def make(case: Case, folder: Path) -> tuple[Truth | None, World, Plan] | None:
    """Live, plant, dump: the truth, the world as it lived, and how it was dumped."""
    world = live(suited(case.shape, case.fault))
    plan = plan_of(world)
    truth, lost_index = None, frozenset[tuple[tuple[str, int], int]]()
    if case.fault is not None:
        try:
            planted = FAULTS[case.fault](Scene(world, plan), case.shape.stream("fault", case.fault))
        except NoPlace:
            return None
        if planted is None:
            return None
        truth, lost_index = planted.truth, planted.lost_index
    before = nights_before(world, plan) if case.fault is None and case.shape.has("night_before") else []
    folder.mkdir(parents=True)
    for number, night in enumerate(before):
        write_dumps(*night, folder / f"night-{number}", cluster=case.name)
    write_dumps(world, plan, folder / f"night-{len(before)}" if before else folder, lost_index, cluster=case.name)
    if not are_met(plan.edits, plan.printed):
        shutil.rmtree(folder)
        return None
    return truth, world, plan


def told(finding: Finding) -> str:
    """A finding in a line."""
    at = f"{finding.topic}-{finding.partition}" if finding.topic else finding.transactional_id
    who = f"{at} producer {finding.producer_id} {ranges(finding)}"
    return f"{finding.rule} {finding.severity} {finding.certainty} {who}: {finding.message[:160]}"


def ranges(finding: Finding) -> list[tuple[int, int]]:
    """The offsets that a finding names."""
    named = [(int(first), int(last)) for first, last in finding.offset_ranges or ()]
    if not named and finding.first_offset is not None:
        named = [(finding.first_offset, finding.first_offset if finding.last_offset is None else finding.last_offset)]
    return named


def _below_zero(said: Said) -> Iterable[str]:
    """Whatever a cluster lived, nothing is open for less than no time."""
    return (f"a time below zero: {told(finding)}" for finding in said.findings if BELOW_ZERO.search(finding.message))


def _healthy(shape: Shape, said: Said, undecided: frozenset[str], gone: frozenset[str]) -> Iterable[str]:
    yield from said.crashed
    yield from _below_zero(said)
    lived = {rule for rule, features in LIVED.items() if any(shape.has(feature) for feature in features)}
    aged = AGED if shape.has("steps") or shape.has("leaps") else frozenset()
    for finding in said.above_info:
        if finding.rule not in lived and not (finding.rule in aged and finding.certainty == "likely"):
            yield told(finding)
    if shape.is_complete:
        whys = {(why, place): [code for code, w, p in said.unknowns if (w, p) == (why, place)] for _, why, place in said.unknowns}
        excused = {(why, place) for why, place in whys if why in IN_DOUBT and place in undecided}
        excused |= {(why, at) for why, at in whys if why == "missing_segments" and any(f" {name} " in f" {at} " for name in gone)}
        minded = {key: codes for key, codes in whys.items() if key not in excused}
        yield from (f"unknown {why}: {place} ({' '.join(codes)})" for (why, place), codes in minded.items())


@cache
def _default_policy() -> policy.Policy:
    return policy.load()


def _planted(truth: Truth, said: Said, missed: Iterable[frozenset[str]]) -> Iterable[str]:
    yield from said.crashed
    yield from _below_zero(said)
    for rules in missed:
        where = f"{truth.place} producer {truth.producer_id} {truth.offsets}"
        yield f"missed {'|'.join(sorted(rules))} of {truth.kind} at {where}: {truth.why}"
    chosen = _default_policy()
    for finding in said.findings:
        if chosen.fails(finding.rule, finding.severity) and not (finding.rule in truth.allowed and _is_near(truth, finding)):
            yield f"beside {truth.kind} ({truth.why}): {told(finding)}"


def _is_found(truth: Truth, rules: frozenset[str], said: Said) -> bool:
    loud = said.findings if rules in truth.tells else said.above_info
    return any(finding.rule in rules and _is_at(truth, finding) for finding in loud)


def _is_unknown(truth: Truth, rules: frozenset[str], said: Said) -> bool:
    """One of the rules is unknown in the log of the fault, and that makes the verdict unknown."""
    return any(code in rules and _is_in(truth, where) for code, _, where in said.unknowns)


def _is_in(truth: Truth, where: str) -> bool:
    return truth.place is None or f" {'-'.join(map(str, truth.place))} " in f" {where} "


def _is_at(truth: Truth, finding: Finding) -> bool:
    """The finding names the place of the fault."""
    wanted: Mapping[str, object] = {
        "topic": truth.place[0] if truth.place else None,
        "partition": truth.place[1] if truth.place else None,
        "producer_id": truth.producer_id,
        "transactional_id": truth.transactional_id,
    }
    if any(getattr(finding, name) not in (None, value) for name, value in wanted.items() if value is not None):
        return False
    named = ranges(finding)
    return truth.offsets is None or not named or any(first <= truth.offsets[1] and truth.offsets[0] <= last for first, last in named)


def _is_near(truth: Truth, finding: Finding) -> bool:
    """The same producer, id or partition: what one fault brings with it."""
    same_place = truth.place is not None and (finding.topic, finding.partition) == truth.place
    same_producer = finding.producer_id is not None and finding.producer_id == truth.producer_id
    same_id = finding.transactional_id is not None and finding.transactional_id == truth.transactional_id
    return same_place or same_producer or same_id
