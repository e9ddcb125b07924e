"""Writes docs/rules/: a page for each rule, made from its module and its cases, and the index of all of them.

The cases are drawn as tests/rules/drawing does it. What the audit says of each is asked of the audit itself, all cases in one go, so
this takes Java and a minute.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from eo_audit.audit.findings import Finding  # noqa: E402
from eo_audit.rules import catalogue  # noqa: E402
from eo_audit.rules.catalogue import BY_CODE, RULES  # noqa: E402
from eo_audit.rules.rule import RANK, Rule  # noqa: E402
from tests.rules.drawing.case import drawn  # noqa: E402

Case = Mapping[str, object]
# What a rule needs to see (`eo_audit/rules/needs.py`), as a condition.
NEEDS = {
    "epochs": "the dump tool printed the epochs of producers (0.11.0.2 and later)",
    "order": "nothing before it fails its checksum or goes back",
    "ordered": "the order of the dumps is known",
    "past": "no part of the log is missing before it",
    "past_of_open": "no part of the log is missing before it, but what lies in remote storage, where nothing is open",
    "beginnings": "batches that the cleaner emptied were printed, where it works (kafka-dump-log 2.2 and later)",
    "start": "whether the broker has older segments than those that were dumped is told, where it matters",
    "end": "the dump runs to the end of the log, and the replica was not left behind by its leader",
    "coordinator": "all partitions of __transaction_state were dumped, whole and decoded",
    "assigned": "the coordinator's log still tells which transaction the records are of",
    "matched": "markers and decisions fit each other in one way only, by order or by clocks",
    "unbroken": "no entry of the coordinator's log was lost in the text, and the tool's decoder could read them all",
    "fates": "it is known who will end what is open, where the cleaner works",
    "index": "the .txnindex files were dumped, or a listing says that there are none",
    "placed_ids": "it is known how many partitions __transaction_state has, and ids are printed as they are",
    "dumped": "a replica of every partition that transactions list was dumped",
    "cleaner": "it is known how far the cleaner of each replica came",
    "payload": "keys and values were printed (--print-data-log, or collect-dumps.sh --payloads)",
    "decoded": "the offsets of groups were printed with their decoder",
    "marker_keys": "keys were printed, where the brokers have the fault and the topic is cleaned",
    "snapshot": "the text of the newest producer snapshot was understood as a whole",
    "allocated": "the blocks of producer ids are known up to a time behind the first use of each id",
    "checksums": "the dump tool printed checksums and leader epochs (2.2 and later)",
}
FAMILIES = {
    "producers": "Producers: sequences and epochs in one partition",
    "transactions": "Transactions: what the coordinator decided, beside what the partitions show",
    "coordinator": "Coordinator: what `__transaction_state` alone proves",
    "visibility": "Visibility: what read_committed consumers get",
    "offsets": "Offsets: what consumer groups commit in transactions",
    "identity": "Identity: one job under several ids, one id under several jobs",
    "replicas": "Replicas: the log as a sequence of batches, and how much of it was dumped",
    "sidecars": "Sidecars: the aborted index and the snapshots beside a log",
    "compaction": "Compaction: what the cleaner does to transactions",
}


def module(rule: Rule) -> Path:
    """The file of a rule's module, which is called as the rule."""
    (path,) = Path(catalogue.__file__).parent.glob(f"*/{rule.slug.replace('-', '_')}.py")
    return path


def family(rule: Rule) -> str:
    """The folder of a rule's module."""
    return module(rule).parent.name


def name_of(rule: Rule) -> str:
    """The file of a rule's page."""
    return f"{rule.code}-{rule.slug}.md"


def headline(rule: Rule) -> str:
    """The first sentence of the rule's module, which says what it is about."""
    first = (sys.modules[f"eo_audit.rules.{family(rule)}.{module(rule).stem}"].__doc__ or "").split("\n\n")[0]
    said = " ".join(first.split()).partition(": ")[2]
    return said[:1].upper() + said[1:]


def prose(text: str, *, own: str = "") -> str:
    """A sentence of the program as Markdown: names as code, other rules as links; what is code already stays so."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if at % 2 else _words(part, own) for at, part in enumerate(parts))


# Kafka's topics and settings, options of tools, files.
_NAMES = re.compile(
    r"(?<![\w/.`$-])(__\w+(?:-\d+)?|(?:[a-z]+\.)+[a-z]+=\w+|(?:[a-z]+\.){2,}[a-z]+|transactional\.id|--[a-z][a-z-]+"
    r"|\w+\.(?:json|yaml|txt|sh)|\.txnindex|\.snapshot)(?!\w)"
)


def _words(text: str, own: str) -> str:
    safe = re.sub(r"([*|])", r"\\\1", text).replace("<", "&lt;")
    return re.sub(r"\b[A-Z]\d\d\b", lambda found: _link(found[0]) if found[0] != own else found[0], _NAMES.sub(r"`\1`", safe))


def _link(code: str) -> str:
    return f"[{code}]({name_of(BY_CODE[code])})" if code in BY_CODE else code


def page(rule: Rule, cases: Sequence[Case], told: Mapping[str, Sequence[Finding]]) -> str:
    """The page of a rule.

    Args:
        rule: of the catalogue.
        cases: of its file of cases, in order.
        told: the name of each case to all findings that an audit has of it.
    """
    bad, info, legal = sorted_cases(rule, cases, told)
    worst = told[str(bad[0]["name"])]
    lines = [
        f"# {rule.code} {rule.slug}",
        "",
        f"**{headline(rule)}**",
        "",
        f"Severity: {rule.severity}{_also_rated(rule, [*bad, *info], told)}. Family: {FAMILIES[family(rule)].partition(':')[0].lower()}. "
        f"[All rules, and how to read the drawings](README.md).",
        "",
        *_section("What it proves", prose(rule.docs.proves, own=rule.code)),
        *_what_to_do(rule, worst),
        *_section("A bad history", prose(rule.docs.bad_history, own=rule.code)),
        *_case(rule, bad[0], worst),
        *_section("Legal, and looks the same", prose(rule.docs.look_alike, own=rule.code)),
        *_all(rule, legal, told),
        *_more("Told as an info, and accuses nobody", rule, info, told),
        *_more("More histories that break it", rule, bad[1:], told),
        *_beside(rule),
        "---",
        "",
        f"Made by `make rules` from [the rule](../../eo_audit/rules/{family(rule)}/{module(rule).name}) and [its "
        f"cases](../../tests/rules/cases/{rule.slug}.yaml), which are "
        "tests; do not edit.",
    ]
    return "\n".join(lines).rstrip() + "\n"


def sorted_cases(rule: Rule, cases: Sequence[Case], told: Mapping[str, Sequence[Finding]]) -> tuple[list[Case], list[Case], list[Case]]:
    """Cases that break the rule, those that are only told (where others are more), and those of which the rule says nothing."""
    rank = {
        str(case["name"]): max((RANK[f.severity] for f in told[str(case["name"])] if f.rule == rule.code), default=-1) for case in cases
    }
    least = 1 if max(rank.values()) > 0 else 0
    bad = [case for case in cases if rank[str(case["name"])] >= least]
    info = [case for case in cases if 0 <= rank[str(case["name"])] < least]
    return bad, info, [case for case in cases if rank[str(case["name"])] < 0]


def _also_rated(rule: Rule, cases: Sequence[Case], told: Mapping[str, Sequence[Finding]]) -> str:
    rated = {finding.severity for case in cases for finding in told[str(case["name"])] if finding.rule == rule.code} - {rule.severity}
    return f", in some cases {' or '.join(sorted(rated, key=lambda name: -RANK[name]))}" if rated else ""


def _section(title: str, text: str) -> list[str]:
    return [f"## {title}", "", text, ""]


def _what_to_do(rule: Rule, found: Sequence[Finding]) -> list[str]:
    """The remedy; where the finding itself says it, that of the bad history below."""
    mine = next(finding for finding in found if finding.rule == rule.code)
    own = mine.remedy if mine.remedy != rule.remedy else ""
    example = ["For the history below it says:", "", f"> {prose(own, own=rule.code)}", ""] if own else []
    cause = ["Likely cause: " + prose(rule.cause, own=rule.code) + ".", ""]
    return [*_section("What to do", prose(rule.remedy, own=rule.code)), *cause, *example]


def _more(title: str, rule: Rule, cases: Sequence[Case], told: Mapping[str, Sequence[Finding]]) -> list[str]:
    return [f"## {title}", "", *_all(rule, cases, told)] if cases else []


def _all(rule: Rule, cases: Sequence[Case], told: Mapping[str, Sequence[Finding]]) -> Iterator[str]:
    for case in cases:
        yield from _case(rule, case, told[str(case["name"])])


def _case(rule: Rule, case: Case, found: Sequence[Finding]) -> Iterator[str]:
    """A case: its name and reason, its drawing, and what is said of it."""
    name = str(case["name"])
    yield from (f"### {name[:1].upper()}{name[1:]}", "", prose(str(case["why"]), own=rule.code), "")
    yield from ("```text", drawn(case, rule.code, found), "```", "")
    mine = [finding for finding in found if finding.rule == rule.code]
    for finding in sorted(
        mine, key=lambda finding: (-RANK[finding.severity], finding.topic or "", finding.partition or 0, finding.message)
    ):
        yield from (f"> {rule.code} {finding.severity}: {prose(finding.message, own=rule.code)}", "")
    others = sorted({(finding.rule, finding.severity) for finding in found if finding.rule != rule.code})
    if others:
        said = ", ".join(f"{_link(code)} ({severity})" for code, severity in others)
        yield from (f"{'Found beside it' if mine else 'Other rules speak of it'}: {said}.", "")


def _beside(rule: Rule) -> Iterator[str]:
    """Where its silence is no answer, and what it has to do with other rules."""
    if rule.needs and not rule.informs:
        needs = [f"- {prose(NEEDS[need])}" + (";" if need != rule.needs[-1] else ".") for need in rule.needs]
        yield from ("## When its silence is an answer", "")
        yield from ("Where it found nothing it says `pass` only if all of this holds, else `unknown` with the dump to bring:", "")
        yield from (*needs, "")
    elif rule.informs:
        yield from ("## When its silence is an answer", "")
        yield from ("It only informs: where it could not be judged, no run is left open for it.", "")
    said = [
        (rule.caused_by, "What it finds may be the effect of {}, and is then told with it as one incident."),
        (rule.speaks_for, "Where it speaks of a transaction, {} tells the same as an info only."),
        (rule.silences, "Where it speaks of a transaction, {} says nothing."),
        (_those(rule, "caused_by"), "What it finds may be the cause of {}."),
        (_those(rule, "speaks_for"), "It is an info only where {} speaks of the same transaction."),
        (_those(rule, "silences"), "It says nothing where {} speaks of the same transaction."),
    ]
    told = [f"- {words.format(_codes(codes))}" for codes, words in said if codes]
    if told:
        yield from ("## Beside other rules", "", *told, "")


def _those(rule: Rule, relation: str) -> list[str]:
    return [other.code for other in RULES if rule.code in getattr(other, relation)]


def _codes(codes: Iterable[str]) -> str:
    return " or ".join(_link(code) + (f" {BY_CODE[code].slug}" if code in BY_CODE else "") for code in codes)


LEGEND = """\
Each page has the same parts: what a finding proves, what to do, a history that breaks the rule, and legal histories that look like it.
The histories are the rule's own tests, so what stands here is what the audit finds. `eo-audit rules T02` prints the words without the
drawings.

## How to read a drawing

```text
Kafka 3.9.1, audited as of 00:16:40

orders-0: LSO 6, high watermark 9, log end 9
  offset   what      producer  epoch  sequence  time
  earlier  txn data  1         0
  5        ABORT     1         0
> 6-8      txn data  1         0      3-5       00:16:35  open: no marker follows

__transaction_state-1
  offset  transactional id  state                     producer  partitions
  2-4     late-writer-0     Ongoing .. CompleteAbort  1         orders-0
```

- One block for each log, its offsets from top to bottom; "on broker 2" where there are several replicas. Columns that say nothing are
  left out.
- `txn data` is a batch in a transaction, `data` one of an idempotent producer, `plain data` one without a producer id. `COMMIT` and `ABORT`
  are markers.
- `earlier` and `between` stand for an offset that does not matter.
- In the coordinator's log `Ongoing .. CompleteAbort` is one transaction, from its first entry to its last.
- Times are those of a clock that begins at 0; "audited as of" is the audit's now.
- `k1=v11` is a record with key 1 and value 11: equal numbers are equal keys and values, `?` is one of which nothing is known.
- `>` points at what the finding is about. What it says stands below the drawing.
"""


def index() -> str:
    """docs/rules/README.md: all rules by family."""
    lines = [
        f"# The {len(RULES)} rules",
        "",
        "Made by `make rules` from [eo_audit/rules/](../../eo_audit/rules); do not edit.",
        "",
        LEGEND,
    ]
    for folder, title in FAMILIES.items():
        rows = [
            f"| [{rule.code}]({name_of(rule)}) | {rule.slug} | {rule.severity} | {prose(headline(rule), own=rule.code)} |"
            for rule in sorted(RULES, key=lambda rule: rule.code)
            if family(rule) == folder
        ]
        lines += [f"## {title}", "", "| rule | name | severity | what a finding says |", "|---|---|---|---|", *rows, ""]
    return "\n".join(lines).rstrip() + "\n"


def pages(files: Iterable[tuple[str, Mapping[str, object]]], told: Mapping[str, Sequence[Finding]]) -> dict[str, str]:
    """All pages: their file names and texts.

    Args:
        files: stem and content of each file of cases.
        told: `stem: name` of each case to all findings that an audit has of it.
    """
    made = {"README.md": index()}
    for stem, content in files:
        rule, cases = BY_CODE[str(content["rule"])], content["cases"]
        assert isinstance(cases, list)
        made[name_of(rule)] = page(rule, cases, {str(case["name"]): told.get(f"{stem}: {case['name']}", ()) for case in cases})
    return made


def write(folder: Path, made: Mapping[str, str]) -> None:
    """Write all pages, and remove those of rules that are no more."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in set(folder.glob("*.md")) - {folder / name for name in made}:
        old.unlink()
    for name, text in made.items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    from eo_audit.config import load
    from eo_audit.store.session import session
    from tests.rules.conftest import InMemory, all_cases, audit, case_files

    started = session(load(master="local[2]"), input_bytes=0)
    audited = audit(InMemory(started, all_cases().rows))
    started.stop()
    write(ROOT / "docs" / "rules", pages(case_files(), audited.of_cluster))
