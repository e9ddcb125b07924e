"""How far read_committed consumers could read in each log as it lived, against what the audit says of it."""

from collections.abc import Iterable

from eo_audit.rules.context import Log as Told
from eo_audit.rules.row import Row
from tests.cluster.brokers import Log, World
from tests.cluster.dumping import Plan, state_of


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


def wrong_offsets(world: World, plan: Plan, told: Iterable[Told]) -> Iterable[str]:
    """A line for each number that is told and was another. Of a log that the dumps show to another end nothing is compared."""
    rows = {(log.topic, log.partition, log.broker): log.numbers for log in told}
    for copy in plan.copies:
        row = rows.get((*copy.place, copy.broker))
        state = state_of(world, plan, copy)
        if row is None or row.maybe("leo") != state.leo:
            continue
        ends = {"lso": row.number("hw"), "lso_if_hw_is_leo": state.leo}
        if ends["lso"] < (state.cleaned_to or 0):
            del ends["lso"]  # the checkpoint is older than the cleaner's work, which took what held it then
        for name, below in ends.items():
            was = max(stable_offset(state.log, copy.moment, below=below), state.log_start)
            # What began in a hole nobody sees.
            if row.maybe(name) not in (None, was) and not any(_holds(hole, was) for hole in row.rows("holes")):
                yield f"{name} {row.maybe(name)} of {'-'.join(map(str, copy.place))} on broker {copy.broker}, where it was {was}"
