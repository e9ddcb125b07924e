"""What fails a run and what leaves it open: the policy judges, the rules only find.

A policy is a YAML file with three lists, `findings`, `unknowns` and `unread_bytes`; of each list the first line that fits decides, and
every line gives its reason. A line names rules by their codes (`rules`), or all that only inform (`informs: true`, see `Rule.informs`). A
policy without `unread_bytes` minds all text that nobody understood. `held_back` says how long consumers may wait for an open transaction
that the coordinator will end.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from eo_audit.audit.unread import SECTION_KINDS, UNREAD_BECAUSE
from eo_audit.config import read_yaml
from eo_audit.errors import ConfigurationError
from eo_audit.rules.catalogue import BY_CODE, RULES
from eo_audit.rules.reasons import REASONS
from eo_audit.rules.rule import SEVERITIES

CRASHED = "crashed"
_CAUSES = (*REASONS, CRASHED)
_PACKAGE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Line:
    """One line of a policy: what it fits (empty: everything), what it decides, and why."""

    rules: frozenset[str]
    values: frozenset[str]
    decides: bool
    reason: str

    def fits(self, rule: str, value: str) -> bool:
        """It speaks of this rule and this severity, or of this rule and this cause of an unknown."""
        return (not self.rules or rule in self.rules) and (not self.values or value in self.values)


@dataclass(frozen=True)
class HeldBack:
    """How long, or behind how many offsets, read_committed consumers may wait for an open transaction; None: for ever.

    A transaction that nobody will end, or that is past its timeout, is a finding (T01, C01, L01): this is about the others.
    """

    warn_after_minutes: float | None = None
    fail_after_minutes: float | None = None
    warn_after_offsets: int | None = None
    fail_after_offsets: int | None = None
    reason: str = ""

    def decides(self, seconds: int | None, offsets: int | None) -> tuple[str | None, str | None]:
        """`fail`, `warning` or None for one partition, and the limit that it crossed, such as `fail_after_minutes: 30`.

        Args:
            seconds: how long it has been held back; None where nobody knows.
            offsets: how many offsets lie between its last stable offset and its high watermark.
        """
        # The graver level first: what fails a run is not also a warning.
        for level, minutes, most in (
            ("fail", self.fail_after_minutes, self.fail_after_offsets),
            ("warning", self.warn_after_minutes, self.warn_after_offsets),
        ):
            word = level.replace("warning", "warn")
            # The time first: how long consumers wait is what somebody promised; offsets stand for it where clocks do not tell.
            if minutes is not None and seconds is not None and seconds >= minutes * 60:
                return level, f"{word}_after_minutes: {minutes:g}"
            if most is not None and offsets is not None and offsets >= most:
                return level, f"{word}_after_offsets: {most}"
        return None, None


@dataclass(frozen=True)
class UnreadLine:
    """One line over text that was not understood: why (empty: for any reason), in which kind of dump section (empty: in any), up to how
    many bytes of one file (None: any number), what it decides, and why."""

    because: frozenset[str]
    kinds: frozenset[str]
    up_to_bytes: int | None
    decides: bool
    reason: str

    def fits(self, because: str, kind: str, size: int) -> bool:
        """It speaks of so many bytes, unread for this reason in a section of this kind."""
        small = self.up_to_bytes is None or size <= self.up_to_bytes
        return small and (not self.because or because in self.because) and (not self.kinds or kind in self.kinds)


MINDS_ALL = (UnreadLine(frozenset(), frozenset(), None, True, "What nobody could read may be what matters."),)


@dataclass(frozen=True)
class Policy:
    """A policy, checked.

    Attributes:
        name: as the file says.
        findings: lines over rule and severity; `decides` is whether such a finding fails the run.
        unknowns: lines over rule and the cause of an unknown; `decides` is whether it makes the run unknown.
        unread_bytes: lines over text that was not understood; `decides` is the same.
        held_back: how long consumers may wait for an open transaction.
    """

    name: str
    findings: tuple[Line, ...]
    unknowns: tuple[Line, ...]
    unread_bytes: tuple[UnreadLine, ...] = MINDS_ALL
    held_back: HeldBack = HeldBack()

    def fails(self, rule: str, severity: str) -> bool:
        """Whether a finding fails the run."""
        # Always found: the last line of each list fits everything (`_lines`).
        return next(line.decides for line in self.findings if line.fits(rule, severity))

    def leaves_open(self, rule: str, because: str) -> bool:
        """Whether an unknown rule makes the run unknown."""
        return next(line.decides for line in self.unknowns if line.fits(rule, because))

    def minds_unread(self, because: str, kind: str, size: int) -> bool:
        """Whether text of one file that was not understood makes the run unknown."""
        return next(line.decides for line in self.unread_bytes if line.fits(because, kind, size))


def load(path: Path | None = None) -> Policy:
    """Read a policy file, or the default one.

    Raises:
        ConfigurationError: it cannot be read, has unknown names, lacks a reason, or does not decide every case.
    """
    file = path or _default()
    return parse(read_yaml(file, "the policy"), str(file))


def parse(content: object, source: str) -> Policy:
    """A policy from the content of its file; `source` names it in errors.

    Raises:
        ConfigurationError: as `load`.
    """
    values = _mapping(content, source, {"name", "findings", "unknowns", "unread_bytes", "held_back"})
    name = values.get("name")
    if not isinstance(name, str) or not name:
        raise ConfigurationError(f"{source}: name must be a word")
    return Policy(
        name,
        _lines(values.get("findings"), f"{source}, findings", kind="severity", allowed=SEVERITIES, decides="fails"),
        _lines(values.get("unknowns"), f"{source}, unknowns", kind="because", allowed=_CAUSES, decides="makes_unknown"),
        _unread_lines(values["unread_bytes"], f"{source}, unread_bytes") if "unread_bytes" in values else MINDS_ALL,
        _held_back(values.get("held_back"), f"{source}, held_back"),
    )


def _held_back(content: object, source: str) -> HeldBack:
    """A policy without it minds no waiting: policies that were written before it go on as they are."""
    if content is None:
        return HeldBack()
    limits = [field.name for field in fields(HeldBack) if field.name != "reason"]
    values = _mapping(content, source, {*limits, "reason"})
    reason = values.get("reason")
    if not isinstance(reason, str) or not reason.strip():
        raise ConfigurationError(f"{source}: a reason is missing")
    minutes = [_limit(values, name, source) for name in limits[:2]]
    offsets = [_limit(values, name, source) for name in limits[2:]]
    # Half an offset is a slip of the pen, and would be cut off in silence.
    wrong = next((name for name, most in zip(limits[2:], offsets, strict=True) if most is not None and most != int(most)), None)
    if wrong:
        raise ConfigurationError(f"{source}: {wrong} must be a whole number")
    whole = [None if most is None else int(most) for most in offsets]
    return HeldBack(minutes[0], minutes[1], whole[0], whole[1], reason)


def _limit(values: Mapping[str, object], name: str, source: str) -> float | None:
    value = values.get(name)
    if value is None:
        return None
    # YAML reads `.inf` and `.nan` as numbers, and `yes` as a boolean, which is a number to Python.
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise ConfigurationError(f"{source}: {name} must be a number that is not below 0, or null")
    return value


def _default() -> Path:
    folders = [_PACKAGE / "conf", _PACKAGE.parent / "conf"]
    found = [folder / "policy.yaml" for folder in folders if (folder / "policy.yaml").is_file()]
    if not found:
        raise ConfigurationError(f"no conf/policy.yaml beside {_PACKAGE}: the installation is incomplete")
    return found[0]


def _lines(content: object, source: str, *, kind: str, allowed: Sequence[str], decides: str) -> tuple[Line, ...]:
    if not isinstance(content, list) or not content:
        raise ConfigurationError(f"{source}: must be a list of lines")
    lines = tuple(_line(item, f"{source}, line {at}", kind=kind, allowed=allowed, decides=decides) for at, item in enumerate(content, 1))
    # So that `fails` and `leaves_open` always find a line: a policy must not be silent about a rule of the next release.
    if lines[-1].rules or (set(allowed) - lines[-1].values and lines[-1].values):
        raise ConfigurationError(f"{source}: the last line must fit everything (no rules, no {kind})")
    return lines


def _line(item: object, source: str, *, kind: str, allowed: Sequence[str], decides: str) -> Line:
    values = _mapping(item, source, {"rules", "informs", kind, decides, "reason"})
    verdict, reason = _decision(values, decides, source)
    rules = _names(values.get("rules"), f"{source}, rules", BY_CODE)
    if "informs" in values:
        if values["informs"] is not True:
            raise ConfigurationError(f"{source}: informs must be true (the rules that only inform), or not there")
        # By the rules themselves: a new one that only informs needs no new policy.
        rules |= {rule.code for rule in RULES if rule.informs}
    return Line(rules, _names(values.get(kind), f"{source}, {kind}", allowed), verdict, reason)


def _decision(values: Mapping[str, object], decides: str, source: str) -> tuple[bool, str]:
    verdict, reason = values.get(decides), values.get("reason")
    if not isinstance(verdict, bool):
        raise ConfigurationError(f"{source}: {decides} must be true or false")
    if not isinstance(reason, str) or not reason.strip():
        raise ConfigurationError(f"{source}: a reason is missing")
    return verdict, reason


def _unread_lines(content: object, source: str) -> tuple[UnreadLine, ...]:
    if not isinstance(content, list) or not content:
        raise ConfigurationError(f"{source}: must be a list of lines")
    lines = tuple(_unread_line(item, f"{source}, line {at}") for at, item in enumerate(content, 1))
    # As in `_lines`: every text is minded or not, by a line that somebody wrote.
    if lines[-1].because or lines[-1].kinds or lines[-1].up_to_bytes is not None:
        raise ConfigurationError(f"{source}: the last line must fit everything (no because, no kind, no up_to_bytes)")
    return lines


def _unread_line(item: object, source: str) -> UnreadLine:
    values = _mapping(item, source, {"because", "kind", "up_to_bytes", "makes_unknown", "reason"})
    size = values.get("up_to_bytes")
    if size is not None and (not isinstance(size, int) or isinstance(size, bool) or size < 0):
        raise ConfigurationError(f"{source}: up_to_bytes must be a number of bytes")
    because = _names(values.get("because"), f"{source}, because", UNREAD_BECAUSE)
    kinds = _names(values.get("kind"), f"{source}, kind", SECTION_KINDS)
    return UnreadLine(because, kinds, size, *_decision(values, "makes_unknown", source))


def _names(content: object, source: str, allowed: Sequence[str] | Mapping[str, object]) -> frozenset[str]:
    if content is None:
        return frozenset()
    names = content if isinstance(content, list) else [content]
    wrong = [str(name) for name in names if not isinstance(name, str) or name not in allowed]
    if wrong or not names:
        raise ConfigurationError(f"{source}: {', '.join(wrong) or 'an empty list'} is not one of {', '.join(sorted(allowed))}")
    return frozenset(str(name) for name in names)


def _mapping(content: object, source: str, allowed: set[str]) -> Mapping[str, object]:
    # A name that is misspelled would decide nothing, in silence.
    if not isinstance(content, dict):
        raise ConfigurationError(f"{source}: must be names with values")
    unknown = sorted(str(name) for name in content if name not in allowed)
    if unknown:
        raise ConfigurationError(f"{source}: unknown name {', '.join(unknown)}; allowed are {', '.join(sorted(allowed))}")
    return content
