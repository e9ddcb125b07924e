"""How far read_committed consumers could read in each log as it lived, against what the audit says of it."""

from collections.abc import Iterable

from eo_audit.rules.context import Log as Told
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


def wrong_offsets(world: World, plan: Plan, told: Iterable[Told]) -> Iterable[str]:
    """A line for each number that is told and was another. Of a log that the dumps show to another end nothing is compared."""
    rows = {(log.topic, log.partition, log.broker): log.numbers for log in told}
    for copy in plan.copies:
        row = rows.get((*copy.place, copy.broker))
        state = state_of(world, plan, copy)
        if row is None or row.maybe("leo") != state.leo:
            continue
        for name, below in {"lso": row.number("hw"), "lso_if_hw_is_leo": state.leo}.items():
            was = max(stable_offset(state.log, copy.moment, below=below), state.log_start)
            if row.maybe(name) not in (None, was):
                yield f"{name} {row.maybe(name)} of {'-'.join(map(str, copy.place))} on broker {copy.broker}, where it was {was}"
