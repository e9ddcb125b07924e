"""What an alignment lays side by side: one producer's markers in one log, and the transactions that list the partition."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from eo_audit.model.alignment.clocks import Decided, Marker


@dataclass(frozen=True)
class Producer:
    """One producer's two sequences, and which of their ends the dumps may lack: what is older, what is newer.

    `both_stopped`: both brokers had been stopped, if not in the same moment, so that hardly anything is newer;
    `cleaned_below`: the cleaner may have removed markers below this offset; `open_from`: from this offset on data (of `open_epoch`) is
    open, and no transaction is running; `coordinator` names the log whose leader's clock wrote the decisions; `running`: a transaction
    that lists the partition is not decided; `told_until_ms`: all that was decided before this time is told, by the clock of the coordinator
    leader of `told_until_epoch`; `told_anew_at`: what was decided right before this place is not told; `of_election`: see `Decided`;
    `hole_behind`: up to this offset some are missing behind the last marker, or a marker without its record stands there.
    """

    markers: Sequence[Marker]
    decided: Sequence[Decided]
    older_markers: bool = False
    older_decided: bool = False
    newer_markers: bool = True
    newer_decided: bool = True
    both_stopped: bool = False
    cleaned_below: int = 0
    open_from: int | None = None
    open_epoch: int | None = None
    coordinator: int | None = None
    running: bool = False
    told_until_ms: int | None = None
    told_until_epoch: int | None = None
    told_anew_at: int | None = None
    of_election: bool = False
    hole_behind: int | None = None

    @property
    def anchored(self) -> bool:
        """One of its ends is known on both sides, so that places tell of pairs."""
        ends_open = self.newer_markers or self.newer_decided or self.hole_behind is not None
        return not (self.older_markers or self.older_decided) or not ends_open

    def has_open(self, one: Decided) -> bool:
        """Whether what is open behind all markers has the epoch of a transaction's data."""
        return self.open_from is not None and one.data_epoch is not None and one.data_epoch == self.open_epoch

    @cached_property
    def lone_epochs(self) -> frozenset[int | None]:
        """Epochs that name one transaction: those of a single marker, and of a single decision."""
        counted = Counter(marker.epoch for marker in self.markers), Counter(one.epoch for one in self.decided)
        return frozenset(epoch for epoch, count in counted[0].items() if count == counted[1][epoch] == 1)
