"""The rules of this release, in the order in which a reader meets them. A new rule is one line here beside its family and its cases."""

import hashlib
import inspect
import json
from collections.abc import Sequence

from eo_audit.rules.coordinator import C01, C02, C03, C04, C08, C09, C11, C12
from eo_audit.rules.identity import I06, P12
from eo_audit.rules.producers import P01, P02, P03, P04, P05, P06, P07, P08
from eo_audit.rules.replicas import R02, R03, R04, R07
from eo_audit.rules.rule import Rule
from eo_audit.rules.sidecars import S02, S03
from eo_audit.rules.transactions import T01, T02, T05, T06, T07, T10, T12, T13, T15
from eo_audit.rules.visibility import L01, L02, L03

RULES: tuple[Rule, ...] = (
    *(P01, P02, P03, P04, P05, P06, P07, P08, P12),
    *(T01, T02, T05, T06, T07, T10, T12, T13, T15),
    *(C01, C02, C03, C04, C08, C09, C11, C12),
    *(L01, L02, L03),
    *(S02, S03),
    *(R02, R03, R04, R07),
    *(I06,),
)
BY_CODE = {rule.code: rule for rule in RULES}


def fingerprint(rules: Sequence[Rule] = RULES) -> str:
    """A short hash of a set of rules, in any order; another one when a predicate, a text or an explanation changes."""
    return hashlib.sha256(json.dumps(sorted(_content(rule) for rule in rules)).encode()).hexdigest()[:16]


def _content(rule: Rule) -> str:
    functions = [inspect.getsource(part) for part in (rule.find, rule.explain) if part is not None]
    values = {name: value for name, value in vars(rule).items() if name not in ("find", "explain", "docs")}
    return json.dumps([values, vars(rule.docs), functions], sort_keys=True)
