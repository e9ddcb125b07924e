"""What a listing of a broker's files shows, and when it was made."""

from typing import TYPE_CHECKING

from tests.cluster import printing
from tests.cluster.brokers import World
from tests.cluster.edits import tail_bytes
from tests.cluster.replay import Producer, State

if TYPE_CHECKING:
    from tests.cluster.dumping import Copy, Plan


def when_listed(world: World, plan: "Plan", copy: "Copy") -> int:
    """When the files of a log were listed: the script does so right behind the time that it notes, in whole seconds, and before their dump,
    one log after the other; here as early as can be."""
    if not plan.times:
        return min(plan.listed_at, copy.moment)
    whole = copy.moment + copy.lost_ms
    noted = whole - world.clocks[copy.broker].read(whole) % 1_000
    before = (other.moment + other.lost_ms for other in plan.copies if other.broker == copy.broker)
    return max([noted, *(moment for moment in before if moment < whole)])


def listed_sizes(world: World, plan: "Plan", listed: State, dumped: State) -> dict[str, int]:
    """The script lists what stood there before and behind the dump, with the size from before where it still grew, and a segment that the
    cleaner replaced meanwhile once more."""
    sizes = sizes_of(world, plan, listed)
    if not plan.times:
        return sizes
    still, newest = sizes_of(world, plan, dumped), f"/{dumped.bases[-1]:020d}.log" if dumped.bases else ""
    # It dumps what it has listed: where a segment was rolled before the dump, the listing is of the moment behind that.
    rolled = [f"{base:020d}" for base in dumped.bases if base > max(listed.bases, default=-1)]
    late = {path: size for path, size in still.items() if path.rpartition("/")[2].partition(".")[0] in rolled}
    grows = (newest, ".txnindex") if newest else (".txnindex",)
    return late | {path: size if path.endswith(grows) else still[path] for path, size in sizes.items() if path in still}


def sizes_of(world: World, plan: "Plan", state: State) -> dict[str, int]:
    """What a listing of the log's directory shows."""
    name, sizes = printing.name_of(state), {}
    for number, base in enumerate(state.bases):
        sizes[f"{name}/{base:020d}.log"] = printing.segment_text(state, number, payloads=False)[1] + tail_bytes(plan.edits, name, base)
        entries = sum(entry.segment == number for entry in state.aborted)
        if entries:
            sizes[f"{name}/{base:020d}.txnindex"] = 34 * entries
    for offset, known in snapshots_of(plan, state).items():
        sizes[f"{name}/{offset:020d}.snapshot"] = 10 + 46 * len(known)
    sizes[f"{name}/leader-epoch-checkpoint"] = len(printing.epochs_text(state))
    return sizes


def snapshots_of(plan: "Plan", state: State) -> dict[int, dict[int, Producer]]:
    """The producer snapshots that a broker has, of each offset the producers that it holds: one is written when it stops."""
    is_cut = any(copy.lost_ms for copy in plan.copies if copy.place == state.log.place)
    at_stop = {state.leo: state.producers} if plan.stopped and state.leo and not is_cut else {}
    return {**state.snapshots, **at_stop}
