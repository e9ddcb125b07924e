"""R07 has words for every state of the table coverage that it tells of."""

import re

from eo_audit.rules.replicas.coverage import RULE, STATES
from eo_audit.store.schemas import schema


def test_each_state_has_words() -> None:
    (comment,) = (field.metadata["comment"] for field in schema("coverage").spark() if field.name == "state")
    known = {name.strip() for name in re.sub(r"\([^()]*\)", "", comment).split(",")}
    assert known - set(re.findall(r"'(\w+)'", RULE.where)) == set(STATES)
