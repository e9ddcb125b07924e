"""Which rules judged: a short hash of a set of rules, for verdict.json."""

import hashlib
import inspect
import json
from collections.abc import Callable, Sequence
from functools import cache

from eo_audit.rules.rule import Rule


def fingerprint(rules: Sequence[Rule]) -> str:
    """A short hash of a set of rules, in any order; another one when a predicate, a text or an explanation changes."""
    return hashlib.sha256(json.dumps(sorted(_content(rule) for rule in rules)).encode()).hexdigest()[:16]


def _content(rule: Rule) -> str:
    # Their text, not their code: a fingerprint must not change with the Python that runs it. A comment inside one of them changes it.
    functions = [_text(part) for part in (rule.find, rule.explain, rule.together) if part is not None]
    values = {name: value for name, value in vars(rule).items() if name not in ("find", "explain", "together", "docs")}
    return json.dumps([values, vars(rule.docs), functions], sort_keys=True)


@cache
def _text(function: Callable[..., object]) -> str:
    return inspect.getsource(function)  # as slow as the rest of the verdict together, and the same in every audit of a process
