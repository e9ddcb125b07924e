"""What a rule is, and what it is asked to explain.

A rule is one page, a file `rules/<family>/<slug>.py`: its docstring says what it proves, `RULE` is the condition with all that the rest of
the program needs to know of the rule, and below it `explain` turns one case into words and numbers.

`RULE` is a small frozen value, plain data. Spark finds the rows of one history table that break it (`where`), or runs its own step
(`find`); rows of one cause become one `Case` with its count and its most telling rows; `explain` is called on the driver.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import TYPE_CHECKING

from eo_audit.rules.row import Row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from eo_audit.rules.context import Context
    from eo_audit.rules.replica_log import Log

SEVERITIES = ("info", "warning", "error", "critical")
RANK = {name: rank for rank, name in enumerate(SEVERITIES)}
CERTAINTIES = ("definite", "likely", "open")
# What they hold is of no partition that clients write.
COORDINATOR_TABLES = frozenset({"coordinator_history", "transaction_instances"})
# Each part is a paragraph: it ends with an empty line, or with the docstring.
_PART = re.compile(r"^(Proves|Bad history|Legal look-alike): (.+?)(?:\n\n|\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Docs:
    """What a rule proves, a history that breaks it, and a legal history that looks the same at first sight."""

    proves: str = ""
    bad_history: str = ""
    look_alike: str = ""

    @classmethod
    def of(cls, docstring: str | None) -> "Docs":
        """From the docstring of a rule's page: paragraphs that begin with `Proves:`, `Bad history:` and `Legal look-alike:`."""
        parts = {name: " ".join(text.split()) for name, text in _PART.findall((docstring or "").strip())}
        return cls(parts.get("Proves", ""), parts.get("Bad history", ""), parts.get("Legal look-alike", ""))


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

    `rule` names another rule of the catalogue when the case turns out to be that one's (P01 and P02). `left_by` names rules: where one of
    them speaks of the same producer in the same log, this is only what that fault left, and an info. `transactional_id` is what the finding
    is about, and part of its id; `named` is the same id where it was looked up for a producer: it is shown, and the finding keeps the id it
    has without it (the coordinator's log forgets transactional ids after a while).
    `group` is the consumer group that it is about, part of its id as well.
    `producers`: all that it speaks of, where that is more than one; any of them may be the cause of another finding.
    `evidence`: lines that prove it besides those of the rows.
    """

    message: str
    severity: str | None = None
    certainty: str = "definite"
    cause: str | None = None
    remedy: str | None = None
    details: Mapping[str, object] = field(default_factory=dict)
    rule: str | None = None
    left_by: tuple[str, ...] = ()
    producers: tuple[int, ...] = ()
    evidence: tuple[Address, ...] = ()
    transactional_id: str | None = None
    named: str | None = None
    group: str | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None
    first_offset: int | None = None
    last_offset: int | None = None
    record_count: int | None = None
    timestamp_ms: int | None = None


def _not_told(_case: Case, _context: "Context") -> Explanation | None:
    """Stands in `RULE` until `of_page` puts the page's own words there."""
    raise NotImplementedError("a rule explains nothing before it is taken from its page (rules.rule.of_page)")


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One promise of Kafka, and how its breach is found and explained.

    Attributes:
        code: as in the rule table, such as P04; it never changes.
        slug: its name, lower case with hyphens; its page and its file of cases are called so, too.
        severity: of a finding that `explain` does not rate otherwise.
        reads: the history table `where` looks at; the tables `find` reads.
        subject: the facts that could break it (names of `rules.subjects`, with blanks between); without any the rule is not applicable.
        needs: what must be covered before a silence means "pass" (names of `rules.needs`).
        where: predicate over the rows of `reads[0]`, as SQL.
        find: step from the history tables to hits (see `rules.cases.hits`), for what one row cannot show.
        by: columns, with blanks between, whose values, within one replica log, are the cause; empty: the whole log is one cause.
        weight: what makes a row telling (highest first), as SQL; None: its first offset is.
        columns: columns of `reads[0]` that `explain` reads, with blanks between, besides those that every row of the table brings
            (`Source.about`). Any other raises `UnaskedColumn`.
        found: the same for the rows of `find`.
        asks: what `explain` asks of the context about its cases (names in `rules.context.ASKED`). Anything else raises `NotAsked`.
        producers: columns with the producer ids that `asks` is about.
        caused_by: codes of rules whose finding may be the cause of this one's, the best first; both concern the same producer.
        cause_above_info: above info its findings are causes only, at info effects only.
        silences: codes of rules that say nothing of the transactions that this one speaks of, in the same log.
        speaks_for: codes of rules that are an info where this one speaks of the same transactions, in the same log.
        waiting: what a finding says of consumers that wait for an open transaction: `for_ever` (nobody will end it), `overdue` (its
            coordinator should have), `stuck` (the last stable offset stands still), `open` (within its time); empty: nothing.
        informs: it only informs: it cannot break a promise, so nobody minds where it could not be judged.
        proves_delivery_wrong: a finding above info means by itself that records were lost, repeated or shown wrongly, or are kept back.
        cause, remedy: for people; `explain` may say more for one case.
        docs: for people, from the page's docstring.
        explain: one case to its words and numbers; None when the context acquits it. From the page.
        together: what it said of several cases of one log that share producers (`Explanation.producers`), the first offset first, to the
            words for all of them; None where each case is a finding. From the page, if it has one.
    """

    code: str
    slug: str
    severity: str
    reads: tuple[str, ...]
    subject: str
    cause: str
    remedy: str
    needs: tuple[str, ...] = ()
    where: str | None = None
    find: "Callable[[Mapping[str, DataFrame]], DataFrame] | None" = None
    by: str = "producer_id"
    weight: str | None = None
    columns: str = ""
    found: str = ""
    asks: tuple[str, ...] = ()
    producers: tuple[str, ...] = ("producer_id",)
    caused_by: tuple[str, ...] = ()
    cause_above_info: bool = False
    silences: tuple[str, ...] = ()
    speaks_for: tuple[str, ...] = ()
    waiting: str = ""
    informs: bool = False
    proves_delivery_wrong: bool = True
    docs: Docs = Docs()
    explain: "Callable[[Case, Context], Explanation | None]" = _not_told
    together: Callable[[Sequence[Explanation]], Explanation] | None = None

    @property
    def of_coordinator(self) -> bool:
        """It judges what the coordinator wrote, so its findings lie in no data partition."""
        return self.reads[0] in COORDINATOR_TABLES


def of_page(page: ModuleType) -> Rule:
    """The rule of a page: its `RULE`, with what its docstring says, with its `explain` and, where it has one, its `together`."""
    rule: Rule = page.RULE
    return replace(rule, docs=Docs.of(page.__doc__), explain=page.explain, together=getattr(page, "together", None))
