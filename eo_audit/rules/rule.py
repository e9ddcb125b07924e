"""What a rule is, and what it is asked to explain.

A rule is a small frozen value, plain data but for `explain`. Spark finds the rows of one history table that break it (`where`), or runs
its own step (`find`);
rows of one cause become one `Case` with its count and its most telling rows; `explain` turns the case into words and numbers on the driver.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from eo_audit.rules.row import Row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from eo_audit.rules.context import Context, Log

SEVERITIES = ("info", "warning", "error", "critical")
RANK = {name: rank for rank, name in enumerate(SEVERITIES)}
CERTAINTIES = ("definite", "likely", "open")


@dataclass(frozen=True)
class Docs:
    """What a rule proves, a history that breaks it, and a legal history that looks the same at first sight."""

    proves: str
    bad_history: str
    look_alike: str


@dataclass(frozen=True)
class Address:
    """Where a dump says it: section, byte offset and length in the dump text, and the Kafka offset it speaks of."""

    section_id: int
    byte_offset: int
    length: int
    offset: int | None


@dataclass(frozen=True)
class Example:
    """One of the most telling rows of a case: its offsets, the row itself, and its addresses."""

    first: int | None
    last: int | None
    row: Row
    addresses: tuple[Address, ...]


@dataclass(frozen=True)
class Case:
    """All rows of one cause: one rule, one replica log, one key (mostly a producer id or a transactional id).

    `hits` counts the rows, `records` their records; `first` and `last` span their offsets; `examples` (at most 20) are the most
    telling, best first.
    """

    rule: str
    log: "Log | None"
    key: str
    hits: int
    records: int | None
    first: int | None
    last: int | None
    timestamp_ms: int | None
    examples: tuple[Example, ...]

    @property
    def row(self) -> Row:
        """The most telling row."""
        return self.examples[0].row


@dataclass(frozen=True)
class Explanation:
    """What `explain` says of a case. Empty fields mean: as the rule says, or as the case has it.

    `rule` names another rule of the catalogue when the case turns out to be that one's (P01 and P02). `mechanism` orders what hides
    behind a symptom.
    """

    message: str
    severity: str | None = None
    certainty: str = "definite"
    cause: str | None = None
    remedy: str | None = None
    details: Mapping[str, object] = field(default_factory=dict)
    rule: str | None = None
    transactional_id: str | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None
    first_offset: int | None = None
    last_offset: int | None = None
    record_count: int | None = None
    timestamp_ms: int | None = None


@dataclass(frozen=True)
class Rule:
    """One promise of Kafka, and how its breach is found and explained.

    Attributes:
        code: as in the rule table, such as P04; it never changes.
        slug: its name, lower case with hyphens.
        severity: of a finding that `explain` does not rate otherwise.
        reads: the history table `where` looks at; the tables `find` reads.
        subject: the facts that could break it (names of `rules.subjects`, with blanks between); without any the rule is not applicable.
        needs: what must be covered before a silence means "pass" (names of `rules.needs`).
        where: predicate over the rows of `reads[0]`, as SQL.
        find: step from the history tables to hits (see `rules.cases.hits`), for what one row cannot show.
        by: column whose value, within one replica log, is the cause; empty: the whole log is one cause.
        weight: what makes a row telling (highest first), as SQL; None: its first offset is.
        proves_delivery_wrong: a finding above info means by itself that records were lost, repeated or shown wrongly, or are kept back.
        docs, cause, remedy: for people; `explain` may say more for one case.
        explain: one case to its words and numbers; None when the context acquits it.
    """

    code: str
    slug: str
    severity: str
    reads: tuple[str, ...]
    subject: str
    docs: Docs
    cause: str
    remedy: str
    explain: "Callable[[Case, Context], Explanation | None]"
    where: str | None = None
    find: "Callable[[Mapping[str, DataFrame]], DataFrame] | None" = None
    by: str = "producer_id"
    weight: str | None = None
    needs: tuple[str, ...] = ()
    proves_delivery_wrong: bool = True
