"""Words that the rules about group offsets share."""

from typing import TYPE_CHECKING

from eo_audit.words import shown, some

if TYPE_CHECKING:
    from eo_audit.rules.row import Row
    from eo_audit.rules.rule import Case


def group_of(case: "Case") -> str:
    """The group of the most telling commit of a case."""
    return case.row.word("group")


def groups(case: "Case") -> str:
    """All groups of a case, as far as its examples name them: `group payments-app`, `groups a, b`."""
    names = sorted({example.row.word("group") for example in case.examples})
    return f"group{'s' if len(names) > 1 else ''} {some([shown(name) for name in names], most=3)}"


def committed(row: "Row") -> str:
    """The partition of a commit: `orders-0`."""
    return f"{shown(row.text('topic'))}-{row.maybe('partition')}"


def committed_partitions(case: "Case") -> str:
    """The partitions of the commits of a case, as far as its examples name them."""
    return some(sorted({committed(example.row) for example in case.examples}))


def place(case: "Case") -> str:
    """The log of a case: `__consumer_offsets-1`."""
    return f"{case.log.topic}-{case.log.partition}" if case.log else "__consumer_offsets"


def times(case: "Case") -> str:
    """How often the same was seen; empty for once."""
    return "" if case.hits == 1 else f" (the first of {case.hits} times)"
