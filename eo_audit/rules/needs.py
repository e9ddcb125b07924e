"""When silence is no answer: what a rule needs to see, and which dump would show it.

A rule that found nothing in a replica log has proved something only where its needs are met. Each need looks at one log and gives a reason
where it is not; reasons are put together as one sentence for the operator.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eo_audit.rules.reasons import ENDS, REASONS
from eo_audit.rules.replica_log import COORDINATOR_TOPIC, UNREAD
from eo_audit.words import brokers, shown, some

if TYPE_CHECKING:
    from eo_audit.rules.context import Context
    from eo_audit.rules.replica_log import Log
    from eo_audit.rules.rule import Case, Rule

_COPY = re.compile(r"(?P<partition>.+) \(broker (?P<broker>\d+)\)")  # as `place_of` names it


@dataclass(frozen=True, order=True)
class Unknown:
    """Why a rule cannot speak of a place (a partition, with its broker where that matters, or a cluster)."""

    because: str
    place: str


def unknown(rule: "Rule", log: "Log", context: "Context") -> Unknown | None:
    """The first need of a rule that is not met in a replica log."""
    if (because := silent_because(rule, log, context)) is not None:
        return Unknown(because, place_of(log, context))
    # In the rule's order: one reason a log is told, and the first need that is not met gives it.
    for need in ("supported", *rule.needs):
        because = _NEEDS[need](log, context)
        if because is not None:
            return Unknown(because, place_of(log, context) if because != "no_coordinator" else shown(log.cluster))
    return None


def silent_because(rule: "Rule", log: "Log", context: "Context") -> str | None:
    """Why a rule says nothing of a log, good or bad: what it judges by the text of an old kafka-dump-log leaves out. None: it may speak.

    Without epochs of producers (0.11.0.0 and 0.11.0.1) what begins anew may be another epoch, and whose a marker is its epoch says. Up to
    2.1 a batch that the cleaner emptied leaves no trace, so nothing shows where a producer began in a log that is cleaned.
    """
    if _has(log, "no_epochs") and _BY_EPOCHS.intersection(rule.needs):
        return "no_producer_epochs"
    return _beginnings(log, context) if "beginnings" in rule.needs else None


def place_of(log: "Log", context: "Context") -> str:
    """A replica log in words; with its cluster where there are several."""
    broker = "" if log.broker is None else f" (broker {log.broker})"
    return f"{in_cluster(log.cluster, context)}{shown(log.topic)}-{log.partition}{broker}"


def in_cluster(name: str, context: "Context") -> str:
    """How the words for a place begin: with its cluster where there are several."""
    return f"{shown(name)}: " if len(context.clusters) > 1 else ""


def sentences(unknowns: "set[Unknown]") -> tuple[str, str]:
    """Why, and what to bring: the reasons of one rule, each with its places."""
    places: dict[str, list[str]] = {}
    for item in sorted(unknowns):
        # Sorted above: the same dumps give the same sentence.
        places.setdefault(item.because, []).append(item.place)
    listed = [
        (REASONS[because], some(_each_cluster_once(_copies_together(found)), most=4))
        # What concerns most places is read first.
        for because, found in sorted(places.items(), key=lambda item: -len(item[1]))
    ]
    why = "; ".join(reason.why.format(places=found) for reason, found in listed)
    return why[:1].upper() + why[1:], _one_by_one([reason.bring.format(places=found) for reason, found in listed])


def _copies_together(places: list[str]) -> list[str]:
    """`orders-0 (broker 1), orders-0 (broker 2)` reads `orders-0 (brokers 1, 2)`; no topic holds a blank."""
    found: dict[str, list[int]] = {}
    for place in places:
        copy = _COPY.fullmatch(place)
        found.setdefault(copy["partition"] if copy else place, []).extend([int(copy["broker"])] if copy else [])
    return [f"{partition} ({brokers(sorted(numbers))})" if numbers else partition for partition, numbers in found.items()]


def _each_cluster_once(places: list[str]) -> list[str]:
    """`a: orders-0, a: orders-1` reads `a: orders-0, orders-1`; no topic holds a colon."""
    clusters = [place.rpartition(": ")[0] for place in places]
    return [
        place.removeprefix(f"{cluster}: ") if cluster == before else place
        for place, cluster, before in zip(places, clusters, ["", *clusters], strict=False)
    ]


def _has(log: "Log", *states: str) -> bool:
    return any(part.text("state") in states for part in log.breaks)


def _supported(log: "Log", _context: "Context") -> str | None:
    return "unsupported_dialect" if _has(log, "not_supported") else None


def _epochs(log: "Log", _context: "Context") -> str | None:
    return "no_producer_epochs" if _has(log, "no_epochs") else None


def _beginnings(log: "Log", _context: "Context") -> str | None:
    is_cleaned = log.numbers.flag("compacted") or _has(log, "unexplained")
    # The texts that lack checksums are those that lack emptied batches.
    return "emptied_batches" if is_cleaned and _has(log, "no_checksums") else None


def _order(log: "Log", _context: "Context") -> str | None:
    return "not_judged" if "unjudged_batch" in log.subjects else None


def _unread(log: "Log") -> str | None:
    """Why offsets are missing that the text would show if it were understood."""
    said = [part.text("reason") or "" for part in log.breaks if part.text("state") in ("unexplained", "truncated")]
    if UNREAD + "ambiguous" in said:
        return "ambiguous_ids" if log.topic == COORDINATOR_TOPIC else "ambiguous"
    return "unread_text" if any(reason.startswith(UNREAD) for reason in said) else None


def _ordered(log: "Log", _context: "Context") -> str | None:
    met = [part.text("reason") or "" for part in log.breaks if part.text("state") == "unordered"]
    # What the dumps hold already is not asked for.
    return ("unordered_dumps" if any(LISTING in reason for reason in met) else "unordered_listings") if met else None


def _past(log: "Log", _context: "Context") -> str | None:
    # What one dump more would mend comes first, then what only better words about the log would.
    if (missing := _missing(log)) is not None and missing != "remote_segments":
        return missing
    if (unordered := _ordered(log, _context)) is not None:
        return unordered
    if (unread := _unread(log)) is not None:
        return unread
    if log.hides_entries:
        return "hidden_entries"
    if _has(log, "unexplained"):
        return "unexplained_gaps"
    return "shallow" if _has(log, "shallow") else missing


def _past_of_open(log: "Log", context: "Context") -> str | None:
    """Nothing that is open lies in remote storage: a broker moves what lies below the LSO (`RemoteLogManager.copyLogSegmentsToRemote`)."""
    because = _past(log, context)
    return None if because == "remote_segments" else because


def _missing(log: "Log") -> str | None:
    """Where the offsets are that the dumps of a log do not show: with tiered storage (KIP-405) they need not be on the broker's disk."""
    states = ("hole", "segment_missing", "head_missing", "lines_missing")
    said = [part.text("reason") or "" for part in log.breaks if part.text("state") in states]
    if not all(reason.startswith((REMOTE, PERHAPS_REMOTE)) for reason in said):
        return "missing_segments"
    if any(reason.startswith(PERHAPS_REMOTE) for reason in said):
        return "perhaps_remote"
    return "remote_segments" if said else None


def _end(log: "Log", context: "Context") -> str | None:
    if log.topic == COORDINATOR_TOPIC and context.is_outdated(log):
        return "outdated_replica"
    if context.may_be_left_behind(log) or context.may_lack_marker(log):
        return "marker_overdue" if log.is_overdue else "marker_perhaps_overdue"
    if not _has(log, "truncated"):
        return "hidden_entries" if log.hides_entries else None
    if (unread := _unread(log)) is not None:
        return unread
    cut = [part for part in log.breaks if part.text("state") == "truncated"]
    later = all((part.text("reason") or "").startswith(LONGER) for part in cut) and log.cluster not in context.stopped
    told = {part.text("reason") for part in cut}
    if (why := next((because for reason, because in ENDS.items() if reason in told), None)) is not None:
        return why
    # Of a running broker the files beside the log were dumped later, and tell of what came since.
    return "live_tail" if later and log.topic != COORDINATOR_TOPIC else "cut_off"


def _coordinator(log: "Log", context: "Context") -> str | None:
    if not context.cluster(log.cluster).flag("coordinator_complete"):
        return "no_coordinator"
    return _matched(log, context) or _untold_fate(log, context)


def _untold_fate(log: "Log", context: "Context") -> str | None:
    open_here = {row.text("why_unknown") for (place, _), row in context.fates.items() if place == log.log_id}
    return next((why for why in _WHY_UNTOLD if why in open_here), None)


def _fates(log: "Log", context: "Context") -> str | None:
    """Only of a log that is cleaned, and of a broker that ran when it was dumped, does it matter who will end what is open."""
    is_cleaned = log.numbers.flag("compacted") and log.numbers.maybe("uncleaned_from") is not None
    return _untold_fate(log, context) if is_cleaned and log.log_id not in context.clean_ends else None


def _matched(log: "Log", context: "Context") -> str | None:
    if log.numbers.flag("lacks_records"):
        return "lost_lines"
    return _unbroken(log, context) or next((why for why in _IN_DOUBT if why in log.unmatched), None)


def _unbroken(log: "Log", context: "Context") -> str | None:
    """Entries that are lost are asked for before anything is put to clocks, or to the cleaner."""
    return "no_coordinator" if log.cluster in context.half_read else None


def rests_on_lost_entries(rule: "Rule", case: "Case", context: "Context") -> bool:
    """Whether a rule speaks of whose a record or a marker is, and entries are lost that may tell otherwise."""
    lost = context.half_read.get(case.log.cluster, frozenset()) if case.log is not None else frozenset()
    if not lost or not _BY_OWNERS.intersection(rule.needs):
        return False
    named = {example.row.lenient.text("instance_id") for example in case.examples}
    told = [context.instances[name] for name in named if name is not None and name in context.instances]
    # What consumers get of data that is put to no transaction is told by its marker and the index alone.
    is_blind = not told and "index" not in rule.needs
    return is_blind or any(instance.maybe("coordinator_partition") in lost for instance in told)


def _assigned(log: "Log", context: "Context") -> str | None:
    if "unassigned_batch" not in log.subjects:
        return _matched(log, context)
    # The most precise first: what is known of the log itself, then of its cluster, and last what is true of every old coordinator log.
    told = _unbroken(log, context) or next((why for why in _WHY_UNTOLD if why in log.unmatched), None) or _coordinator(log, context)
    return told or ("deleted_between" if _has(log, "not_observed") else "coordinator_compacted")


def _index(log: "Log", _context: "Context") -> str | None:
    # Without an ABORT that closed something there is no entry that could be missing.
    lacks = log.numbers.text("index_state") == "not_dumped" and "closing_abort" in log.subjects
    return "index_not_dumped" if lacks else None


def _start(log: "Log", _context: "Context") -> str | None:
    """Only for what is open from before the oldest segment that was dumped does it matter whether the broker has older ones."""
    row = log.numbers
    is_below = row.number("blocker_first_offset", row.number("log_start", 0)) < row.number("log_start", 0)
    return "start_untold" if is_below and row.text("log_start_source") == "segment_base" else None


def _snapshot(log: "Log", _context: "Context") -> str | None:
    if "half_read_snapshot" in log.subjects:
        return "half_read_snapshot"
    if "untold_producer" in log.subjects:
        return "release_untold"
    return "expiration_untold" if "idle_producer" in log.subjects else None


def _cleaner(log: "Log", context: "Context") -> str | None:
    replicas = context.replicas(log)
    told = all(not one.numbers.flag("compacted") or one.numbers.maybe("uncleaned_from") is not None for one in replicas)
    return None if len(replicas) == 1 or told else "cleaner_unknown"


def _decoded(log: "Log", _context: "Context") -> str | None:
    # A segment that holds nothing but markers has no decoded record either: where any commit was read, the decoder was there.
    hides_some = "group_offset" not in log.subjects or "unread_offsets" in log.subjects
    return "offsets_not_decoded" if hides_some and {"undecoded_offsets", "transactional_record"} <= log.subjects else None


def _marker_keys(log: "Log", context: "Context") -> str | None:
    """Only brokers with the fault, and where somebody cleans, have to be asked for keys."""
    harmless = not log.numbers.flag("compacted") or context.keeps_markers(log.cluster)
    return None if harmless or log.numbers.flag("is_internal") else _payload(log, context)


def _allocated(log: "Log", _context: "Context") -> str | None:
    return "blocks_younger" if "unplaced_producer" in log.subjects else None


def _checksums(log: "Log", _context: "Context") -> str | None:
    return "no_checksums" if _has(log, "no_checksums") else None


def _placed_ids(log: "Log", context: "Context") -> str | None:
    if "unplaced_id" not in log.subjects:
        return None
    return "partitions_not_counted" if context.cluster(log.cluster).maybe("id_partitions") is None else "garbled_ids"


def _dumped(_log: "Log", _context: "Context") -> str | None:
    """Partitions of which nothing was dumped have no log: the verdict adds them."""
    return None


def _payload(log: "Log", _context: "Context") -> str | None:
    # Without --print-data-log there are sizes and no hashes: two records of one size are not the same record.
    if "payload_edge" in log.subjects:
        return None
    return "payload_no_text" if log.prints_payloads else "payload_not_printed"


LONGER = "a snapshot, a listed segment"  # how the table coverage begins to say that other files know of more than the log's text
REMOTE = "remote storage: "  # how it begins to say that segments lie where kafka-dump-log does not look
PERHAPS_REMOTE = "remote storage may "  # the same, where no listing shows what the broker still has
LISTING = "listing.txt"  # where the table coverage asks for one
_BY_OWNERS = frozenset({"assigned", "matched", "unbroken"})  # needs of rules that say whose a record or a marker is
# The reasons of the table `unmatched`, the gravest first: markers that can be told in more than one way, then the others.
_IN_DOUBT = ("clocks_apart", "head_in_doubt")
_WHY_UNTOLD = (
    *_IN_DOUBT,
    "other_coordinator",
    "dumped_apart",
    "producer_forgotten",
    "no_coordinator",
    "live_tail",
    "leader_not_dumped",
    "coordinator_compacted",
)
# Rules name what they need (`Rule.needs`); each is asked of one log, and the first that is not met is the reason.
_NEEDS: Mapping[str, "Callable[[Log, Context], str | None]"] = {
    "supported": _supported,
    "epochs": _epochs,
    "beginnings": _beginnings,
    "order": _order,
    "ordered": _ordered,
    "past": _past,
    "past_of_open": _past_of_open,
    "start": _start,
    "end": _end,
    "coordinator": _coordinator,
    "assigned": _assigned,
    "unbroken": _unbroken,
    "matched": _matched,
    "fates": _fates,
    "index": _index,
    "snapshot": _snapshot,
    "placed_ids": _placed_ids,
    "dumped": _dumped,
    "cleaner": _cleaner,
    "payload": _payload,
    "decoded": _decoded,
    "marker_keys": _marker_keys,
    "checksums": _checksums,
    "allocated": _allocated,
}
NEEDS = frozenset(_NEEDS)
# What the coordinator's log tells of a log is found by the epochs of markers and data.
_BY_EPOCHS = frozenset({"epochs", "coordinator", "assigned", "matched", "fates"})


def _one_by_one(requests: list[str]) -> str:
    """Sentences in a row; one that ends with a command gets its full stop."""
    return " ".join([*(f"{text.rstrip('.')}." for text in requests[:-1]), *requests[-1:]])
