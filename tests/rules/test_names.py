"""Every rule names the transactional id first, as soon as the audit knows it, and a finding keeps its id when it is known no more."""

import re
from dataclasses import replace

import pytest

from eo_audit.audit.findings import Draft, finding_id
from eo_audit.rules.catalogue import BY_CODE, RULES
from eo_audit.rules.context import Context
from eo_audit.rules.row import Row
from eo_audit.rules.rule import Case
from tests.rules.conftest import Audited

PRODUCERS = ("producer_id", "blocker_producer_id", "earlier", "later", "previous_pid", "counted_producer_id", "parked_producer_id")


def known(context: Context, case: Case) -> dict[tuple[str, int], Row]:
    """The last transaction of each producer that a case speaks of: the real one, else one that is long complete."""
    row = case.row.lenient
    cluster = case.log.cluster if case.log else row.word("cluster")
    told = {(item.word("cluster"), item.number("producer_id")): item for item in context.instances.values()}
    ids = {producer for name in PRODUCERS if (producer := row.maybe(name)) is not None and producer >= 0}
    made = {(cluster, producer): Row({"transactional_id": row.text("transactional_id") or f"writer-{producer}"}) for producer in ids}
    return {key: context.last_of_producer.get(key) or told.get(key) or row for key, row in made.items()}


def explained(audited: Audited, code: str, *, names: bool) -> list[tuple[dict[tuple[str, int], Row], Draft]]:
    """What a rule says of each of its cases, with the ids of all producers known, or as the case has it."""
    rule, context, drafts = BY_CODE[code], audited.collected.context, []
    for case in audited.collected.cases:
        if case.rule == code:
            ids = known(context, case)
            knowing = replace(context, last_of_producer={**context.last_of_producer, **ids}) if names else context
            said = rule.explain(case, knowing.limited_to(rule.asks))
            drafts += [] if said is None else [(ids, Draft(BY_CODE[said.rule or code], case, said))]
    return drafts


@pytest.mark.parametrize("code", [rule.code for rule in RULES])
def test_the_transactional_id_comes_before_the_producer_id(audited: Audited, code: str) -> None:
    told = explained(audited, code, names=True)
    assert told, "no case"
    for ids, draft in told:
        said = re.findall(r"(\S*) \(producer (\d+)|\bproducer (\d+)", draft.said.message)
        of_cluster = {producer: row.word("transactional_id") for (_, producer), row in ids.items()}
        for name, producer, bare in said:
            # Behind its id it may come once more: as one of two ids that an entry changed between.
            assert not bare or draft.transactional_id in draft.said.message.partition(f"producer {bare}")[0], draft.said.message
            assert not producer or name == of_cluster.get(int(producer), name), draft.said.message
        if said and draft.producer_id is not None:
            assert (draft.transactional_id or draft.said.named) == of_cluster[draft.producer_id]


@pytest.mark.parametrize("code", [rule.code for rule in RULES if rule.code.startswith(("P", "S"))])
def test_a_finding_keeps_its_id_when_the_coordinator_forgets_the_producer(audited: Audited, code: str) -> None:
    with_names, without = explained(audited, code, names=True), explained(audited, code, names=False)
    assert [finding_id(draft) for _, draft in with_names] == [finding_id(draft) for _, draft in without]
