"""One replica log as rules see it: where it is, what is known of it, and how it stands to the other replicas of its partition."""

from collections.abc import Sequence
from dataclasses import dataclass

from eo_audit.rules.row import Row

COORDINATOR_TOPIC = "__transaction_state"
UNREAD = "unread text: "  # how the table coverage begins to say that text stands there which was not understood


@dataclass(frozen=True)
class Log:
    """One replica log: where it is, its subjects, and what is not covered.

    `numbers` is its row of `visibility`, empty where no batch was read; `unmatched` says why something in it cannot be told by the
    coordinator's log (the reasons of the table `unmatched`); `starts_at` is the first offset that is left of it, null where none is;
    `prints_payloads`: keys and values of it are printed, whether as the bytes that they have or not.
    """

    log_id: int
    cluster: str
    broker: int | None
    topic: str | None
    partition: int | None
    numbers: Row
    subjects: frozenset[str] = frozenset()
    breaks: tuple[Row, ...] = ()
    unmatched: frozenset[str] = frozenset()
    starts_at: int | None = None
    prints_payloads: bool = False

    @property
    def place(self) -> tuple[str, str | None, int | None]:
        """The partition it is a replica of."""
        return self.cluster, self.topic, self.partition

    @property
    def newest_ms(self) -> int:
        """The newest time that a broker wrote into it, in ms; 0 where none did."""
        return self.numbers.number("newest_broker_clock_ms", 0)

    @property
    def leader_epoch(self) -> int | None:
        """The newest leader epoch of the log; None where nothing shows it (batches of magic 0 or 1, or none)."""
        return self.numbers.maybe("last_leader_epoch")

    def supersedes(self, other: "Log") -> bool:
        """A leader of a newer epoch wrote, or began to write, this replica: where the two differ, it is the one whose log counts."""
        # KIP-101: a broker that comes back cuts its log where the newer leader's began (`LeaderEpochFileCache`), however long it is.
        return self.leader_epoch is not None and other.leader_epoch is not None and self.leader_epoch > other.leader_epoch

    def is_further(self, other: "Log") -> bool:
        """It supersedes another replica of its partition, or is longer and not superseded by it."""
        longer = self.numbers.number("leo") > other.numbers.number("leo")
        return self.supersedes(other) or (longer and not other.supersedes(self))

    @property
    def ends_here(self) -> bool:
        """The dump runs to the end of the log: what is open there is open, not cut off, and the last entry is the last one written."""
        is_cut = any(part.text("state") == "truncated" for part in self.breaks)
        return self.numbers.flag("tail_intact") and not is_cut and not self.hides_entries

    @property
    def hides_entries(self) -> bool:
        """It is the coordinator's, and some of its entries were lost in the text, or the tool's decoder could not read them."""
        lines_lost = any((part.text("reason") or "").startswith(UNREAD) for part in self.breaks)
        return self.topic == COORDINATOR_TOPIC and (lines_lost or self.numbers.flag("lacks_records"))

    def shows_all_of(self, other: "Log") -> bool:
        """Nothing is hidden in it, and it begins as early and ends as late: the entries that count are its own (`coordinator_history`)."""
        begins, ends = (self.starts_at or 0, other.starts_at or 0), (self.numbers.number("leo", 0), other.numbers.number("leo", 0))
        return not self.hides_entries and begins[0] <= begins[1] and ends[0] >= ends[1]

    @property
    def is_overdue(self) -> bool:
        """It was dumped after the coordinator had completed a transaction, and ends before its marker."""
        return "overdue_marker" in self.subjects

    @property
    def is_led_on(self) -> bool:
        """It is overdue, and its broker led the partition where it ends, and lived on: it does not lag, it lost its end."""
        return "led_on" in self.subjects


def lack_alike(replicas: Sequence[Log]) -> bool:
    """Whether the replicas of several brokers end at one and the same offset before markers that were overdue.

    Followers that were left behind end where each of them was; of a leader that was not dumped they would have to be left behind at once.
    """
    ends = {(log.leader_epoch, log.numbers.maybe("leo")) for log in replicas}
    return len({log.broker for log in replicas}) > 1 and len(ends) == 1 and all(log.is_overdue for log in replicas)
