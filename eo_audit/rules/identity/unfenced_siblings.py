"""I06 unfenced-siblings: two transactional ids work on one partition at the same time and look like one job: neither fences the other.

Proves: Two transactional producers had transactions open on one partition at the same time, and their records say that they did the same
work.

Bad history: settlement-host-a and settlement-host-b both commit the payments PAY-1005 to PAY-1008.

Legal look-alike: Ids that split the work on purpose and share a partition; ids of Kafka Streams, whose threads the consumer group fences
and whose tasks name their own work; ids of a Flink job, one for each subtask and checkpoint, which its next run ends.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from eo_audit.rules.identity.candidates import candidates
from eo_audit.rules.identity.resends import head, tail
from eo_audit.rules.identity.words import edges, resent
from eo_audit.rules.owners import is_one_flink_job, owner
from eo_audit.rules.row import Row
from eo_audit.rules.rule import RANK, Case, Explanation, Rule
from eo_audit.rules.writers import id_of_producer
from eo_audit.words import shown

if TYPE_CHECKING:
    from eo_audit.rules.context import Context

SHARED_KEYS = 0.5  # of the keys of the one that wrote fewer
MOST_NAMED = 5  # ids in a message; all are in its details
ABANDONED = "one abandoned its transaction"
SIGNS = ("one stem", "common keys", "equal payloads", ABANDONED)
_VARIABLE = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]*\d[0-9a-f]*")
# From how many ids with plain numbers on they are taken for shards: an old and a new owner are two.
FEWEST_SHARDS = 3
_NUMBERED = re.compile(r"(?:^|[^0-9a-f])\d{1,4}$")

RULE = Rule(
    code="I06",
    slug="unfenced-siblings",
    severity="info",
    # Spans say whether both were open at one time; edges, whether they wrote the same keys.
    reads=("producer_edges", "transaction_spans", "transaction_instances"),
    subject="producer_edge epochless_batch",
    needs=("epochs", "payload"),
    find=candidates,
    found="earlier later",
    asks=("edges", "spans", "last_of_producer"),
    producers=("earlier", "later"),
    cause="the transactional.id does not name the unit of work (it names a host or is random), so a new owner does not fence the old one",
    remedy=(
        "Nothing to abort. Use one transactional.id per input partition, or a stable instance id together with sendOffsetsToTransaction "
        "and the consumer group's metadata (brokers and clients from 2.5 on)."
    ),
)


def explain(case: Case, context: "Context") -> Explanation | None:
    """Two transactional writers of one partition at the same time, with signs that they are one job."""
    earlier, later = case.row.number("earlier"), case.row.number("later")
    if case.log is None or not _overlap(case, context, earlier, later):
        return None
    ids = [id_of_producer(case, context, producer) for producer in (earlier, later)]
    if ids[0] is not None and (ids[0] == ids[1] or (ids[1] is not None and is_one_flink_job(ids[0], ids[1]))):
        return None
    signs = _signs(case, context, ids)
    repeated = "equal payloads" in signs
    if not ({"common keys", "equal payloads"} & set(signs)) or (_are_streams(ids) and not repeated):
        return None
    names = _names(ids, (earlier, later))
    message = (
        f"{names[0]} and {names[1]} had transactions open on this partition at the same time and look like one job ({', '.join(signs)}): "
        "with two ids neither fences the other"
    )
    return Explanation(
        message,
        severity="error" if repeated else "warning" if ABANDONED in signs else "info",  # shards share stem and keys as well
        certainty="likely",
        details={"transactional_ids": ids, "producer_ids": [earlier, later], "signs": signs},
        producers=(earlier, later),
        producer_id=later,
        transactional_id=ids[1],
    )


def together(told: Sequence[Explanation]) -> Explanation:
    """Pairs that share ids are one job with all of these ids. It is named after the first pair: ids that join later make no new finding."""
    first, worst = told[0], max(told, key=lambda said: RANK[said.severity or RULE.severity])
    ids = {p: name for said in told for p, name in zip(said.producers, _listed(said, "transactional_ids"), strict=True)}
    names = list(dict.fromkeys(_names(list(ids.values()), ids)))
    shared = [sign for sign in SIGNS if any(sign in _listed(said, "signs") for said in told)]
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    noun = "ids" if all(ids.values()) else "writers"
    message = (
        f"{len(names)} {noun} look like one job ({_of_pairs(told, shared)}): {', '.join(names[:MOST_NAMED])}{more}. Each had a transaction "
        "open on this partition at the same time as another of them, and with an id of its own none fences the others"
    )
    details = {"transactional_ids": list(ids.values()), "producer_ids": list(ids), "signs": shared, "pairs": len(told)}
    if worst.severity != "info":
        details["strongest"] = _names(_listed(worst, "transactional_ids"), worst.producers)
    return replace(first, message=message, severity=worst.severity, details=details, producers=tuple(ids))


def _of_pairs(told: Sequence[Explanation], signs: Sequence[str]) -> str:
    """Pairs are one job by the ids they share: a sign of one pair, such as the stem of its ids, need not be one of the others."""
    of_all = [sign for sign in signs if all(sign in _listed(said, "signs") for said in told)]
    of_some = [sign for sign in signs if sign not in of_all]
    if not of_some:
        return ", ".join(of_all)
    return "; ".join(f"{whose} {', '.join(some)}" for whose, some in (("all:", of_all), ("some:", of_some)) if some)


def _listed(said: Explanation, name: str) -> list[str | None]:
    return said.details[name]  # type: ignore[return-value]  # as `explain` put it there


def _names(ids: Sequence[str | None], producers: Iterable[int]) -> list[str]:
    return [shown(name) if name else f"producer {producer}" for name, producer in zip(ids, producers, strict=True)]


def _signs(case: Case, context: "Context", ids: list[str | None]) -> list[str]:
    earlier, later = case.row.number("earlier"), case.row.number("later")
    signs = []
    if ids[0] and ids[1] and stem(ids[0]) == stem(ids[1]) and not _are_numbered(context, case.log.cluster if case.log else "", ids[0]):
        signs.append("one stem")
    if _shared_keys(edges(case, context, earlier), edges(case, context, later)) >= SHARED_KEYS:
        signs.append("common keys")
    run = resent(case, context)
    if run is not None and run.distinct >= 2 and not run.common_elsewhere:
        signs.append("equal payloads")
    if any(_is_abandoned(context, case, producer) for producer in (earlier, later)):
        signs.append(ABANDONED)
    return signs


def stem(transactional_id: str) -> str:
    """An id without what tells instances apart: numbers, hexadecimal suffixes, UUIDs."""
    return _VARIABLE.sub("#", transactional_id)


def _are_numbered(context: "Context", cluster: str, transactional_id: str) -> bool:
    """Three or more ids that differ in a plain number are the shards of one application, each with its own number: no hand-over."""
    names = (last.text("transactional_id") for (place, _), last in context.last_of_producer.items() if place == cluster)
    alike = {name for name in names if name and stem(name) == stem(transactional_id)}
    # An index of one to four digits: longer numbers are times or random.
    return len(alike) >= FEWEST_SHARDS and all(_NUMBERED.search(name) for name in alike)


def _are_streams(ids: list[str | None]) -> bool:
    """Kafka Streams: the consumer group fences its threads, and a task by its id the thread that it was moved from. All tasks of an
    application write the keys that they find to one repartition topic."""
    return all(name is not None and owner(name).family == "streams" for name in ids)


def _shared_keys(first: list[Row], second: list[Row]) -> float:
    keys = [{r.what[0] for r in (*head(rows), *tail(rows)) if r.what[0] is not None} for rows in (first, second)]
    # Of the one with fewer keys: a job that has just taken over has written few.
    fewer = min(len(keys[0]), len(keys[1]))
    return len(keys[0] & keys[1]) / fewer if fewer else 0.0


def _overlap(case: Case, context: "Context", earlier: int, later: int) -> bool:
    """Two transactions were open at once."""
    spans = [context.spans.get((case.log.log_id, producer), []) if case.log else [] for producer in (earlier, later)]
    return any(_before(a, b) and _before(b, a) for a in spans[0] for b in spans[1])


def _before(one: Row, other: Row) -> bool:
    end = other.maybe("marker_offset")
    return end is None or one.number("first_offset") < end


def _is_abandoned(context: "Context", case: Case, producer_id: int) -> bool:
    last = context.last_of_producer.get((case.log.cluster, producer_id)) if case.log else None
    if last is None:
        return False
    # A job that went on would have ended it: what times out was left alone.
    return last.text("last_status") == "Ongoing" or last.text("abort_cause") in ("coordinator_timeout", "timeout_or_fence")
