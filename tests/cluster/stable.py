"""How far read_committed consumers could read in each log as it lived, and what they got, against what the audit says of it."""

from collections import defaultdict
from collections.abc import Iterable

from eo_audit.rules.row import Row
from tests.cluster.audit import Said
from tests.cluster.brokers import COORDINATOR, Log, World
from tests.cluster.dumping import Plan, state_of
from tests.cluster.replay import State


def stable_offset(log: Log, moment: int, *, below: int) -> int:
    """The last stable offset of a log at a true time, with the high watermark at `below`; its log start is not looked at.

    Of what began below it, that is the oldest transaction whose marker is not below it too (`ProducerStateManager.firstUnstableOffset`).
    """
    open_from, end = dict[int, int](), log.first_offset
    for write in (write for write in log.writes if write.at <= moment):
        base, end = end, end + len(write.records)
        if base >= below:
            break
        if write.marker is not None and not write.lost:
            open_from.pop(write.producer_id, None)
        elif write.is_transactional and not write.lost:
            open_from.setdefault(write.producer_id, base)
    return min(open_from.values(), default=below)


def _holds(hole: Row, offset: int) -> bool:
    return hole.number("first_offset") <= offset <= hole.number("last_offset")


def committed_bases(log: Log, moment: int) -> frozenset[int]:
    """The batches, by their base offsets, that a COMMIT had ended at a true time, and those of no transaction."""
    kept, waiting, end = set[int](), defaultdict[int, list[int]](list), log.first_offset
    for write in (write for write in log.writes if write.at <= moment):
        base, end = end, end + len(write.records)
        if write.marker is not None and not write.lost:
            ended = waiting.pop(write.producer_id, [])
            kept.update(ended if write.marker == "COMMIT" else ())
        elif write.is_transactional:
            waiting[write.producer_id].append(base)
        else:
            kept.add(base)
    return frozenset(kept)


def _got(state: State, moment: int, *, stable: int) -> set[int]:
    """The offsets that a read_committed consumer got from the log start on."""
    kept = committed_bases(state.log, moment)
    read = (batch for batch in state.batches if batch.write.marker is None and batch.base in kept and batch.last < stable)
    return {offset for batch in read for offset, _ in batch.records if offset >= state.log_start}


def _wrong_offsets(row: Row, state: State, moment: int) -> Iterable[str]:
    ends = {"lso": row.number("hw"), "lso_if_hw_is_leo": state.leo}
    if ends["lso"] < (state.cleaned_to or 0):
        del ends["lso"]  # the checkpoint is older than the cleaner's work, which took what held it then
    for name, below in ends.items():
        was = max(stable_offset(state.log, moment, below=below), state.log_start)
        # What began in a hole nobody sees.
        if row.maybe(name) not in (None, was) and not any(_holds(hole, was) for hole in row.rows("holes")):
            yield f"{name} {row.maybe(name)}, where it was {was}"


def _wrong_view(row: Row, state: State, moment: int, ranges: Iterable[tuple[int, int]]) -> Iterable[str]:
    # Where no checkpoint was dumped nothing tells how far records were deleted.
    if row.text("coverage") != "full" or row.maybe("lso") is None or row.maybe("log_start") != state.log_start:
        return
    said = {offset for first, last in ranges for offset in range(first, last + 1)}
    got = _got(state, moment, stable=row.number("lso"))
    if said != got:
        yield f"consumers got {sorted(got - said)[:9]} and not {sorted(said - got)[:9]}"


def wrong_numbers(world: World, plan: Plan, said: Said) -> Iterable[str]:
    """A line for each last stable offset that is told and was another, and for each log of which consumers got other offsets than the audit
    says. Of a log that the dumps show to another end nothing is compared, and no view of the coordinator's."""
    logs = {(log.topic, log.partition, log.broker): log for log in said.logs}
    for copy in plan.copies:
        log, state = logs.get((*copy.place, copy.broker)), state_of(world, plan, copy)
        if log is None or log.numbers.maybe("leo") != state.leo:
            continue
        wrong = [*_wrong_offsets(log.numbers, state, copy.moment)]
        if log.topic != COORDINATOR:
            wrong += _wrong_view(log.numbers, state, copy.moment, said.read_committed[log.log_id])
        yield from (f"{'-'.join(map(str, copy.place))} on broker {copy.broker}: {line}" for line in wrong)
