"""Findings that are one: pairs of one rule that overlap in a log are told as one set (`Rule.together`).

Ten ids that share a key are up to 45 pairs, and one thing to mend.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from eo_audit.rules.cases import MOST_TELLING
from eo_audit.rules.catalogue import BY_CODE
from eo_audit.rules.rule import Case, Example, Explanation

Told = tuple[Case, Explanation]


def together(code: str, told: Sequence[Told]) -> list[Told]:
    """What a rule said of its cases, with those of one log that share a producer put together.

    Args:
        code: the rule's.
        told: its cases, explained.

    Returns:
        The same where the rule puts nothing together; else one case for each connected set of producers (`Explanation.producers`), with
        the words of `Rule.together`. Sets are in the order of their first offsets.
    """
    joined = BY_CODE[code].together
    if joined is None:
        return list(told)
    of_log: dict[int, list[Told]] = defaultdict(list)
    for case, said in told:
        of_log[case.log.log_id if case.log else 0].append((case, said))
    sets = [found for of_one in of_log.values() for found in _connected(of_one)]
    return [
        found[0] if len(found) == 1 else (_one_case([case for case, _ in found]), joined([said for _, said in found])) for found in sets
    ]


def _connected(told: Sequence[Told]) -> list[list[Told]]:
    """Sets of cases that hang together by their producers, each in the order of its offsets."""
    ordered = sorted(told, key=lambda one: (one[0].first or 0, one[0].key))
    # The representative of each producer's set: found by following `leads`, which is made short on the way.
    leads: dict[int, int] = {}
    for _, said in ordered:
        first, *others = [_leader(leads, producer) for producer in said.producers]
        leads.update(dict.fromkeys(others, first))
    sets: dict[int, list[Told]] = defaultdict(list)
    for one in ordered:
        sets[_leader(leads, one[1].producers[0])].append(one)
    return list(sets.values())


def _leader(leads: dict[int, int], producer: int) -> int:
    while (lead := leads.get(producer, producer)) != producer:
        leads[producer] = leads.get(lead, lead)
        producer = lead
    return producer


def _one_case(parts: Sequence[Case]) -> Case:
    """The case of all of them; its most telling rows are one of each, then a second of each, as far as they go."""
    first = parts[0]
    ranked = [part.examples[rank] for rank in range(MOST_TELLING) for part in parts if rank < len(part.examples)]
    examples: list[Example] = ranked[:MOST_TELLING]
    return Case(
        rule=first.rule,
        log=first.log,
        key=first.key,
        hits=sum(part.hits for part in parts),
        records=_total(part.records for part in parts),
        first=min((part.first for part in parts if part.first is not None), default=None),
        last=max((part.last for part in parts if part.last is not None), default=None),
        timestamp_ms=min((part.timestamp_ms for part in parts if part.timestamp_ms is not None), default=None),
        examples=tuple(examples),
    )


def _total(numbers: Iterable[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None
