"""When silence is no answer: what a rule needs to see, and which dump would show it.

A rule that found nothing in a replica log has proved something only where its needs are met. Each need looks at one log and gives a reason
where it is not; reasons are put together as one sentence for the operator.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eo_audit.words import shown, some

if TYPE_CHECKING:
    from eo_audit.rules.context import Context, Log
    from eo_audit.rules.rule import Rule


@dataclass(frozen=True, order=True)
class Unknown:
    """Why a rule cannot speak of a place (a partition, with its broker where that matters, or a cluster)."""

    because: str
    place: str


@dataclass(frozen=True)
class Reason:
    """A kind of blindness in words: `{places}` is filled in."""

    why: str
    bring: str


WHEN = "`dumped_at: 2026-11-21T03:00:00Z` in a manifest.yaml beside it"


def _print_again(why: str) -> Reason:
    return Reason(why, "Print {places} again with kafka-dump-log of Kafka 2.2 or later (it reads older segments).")


REASONS: Mapping[str, Reason] = {
    "unsupported_dialect": _print_again("a kafka-dump-log older than 2.2 printed {places}, and the first lines of the text are missing"),
    "no_producer_epochs": _print_again("kafka-dump-log 0.11.0.0 or 0.11.0.1 printed {places}, which shows no epochs of producers"),
    "no_checksums": _print_again("a kafka-dump-log older than 2.2 printed {places}, which shows neither checksums nor leader epochs"),
    "not_judged": Reason(
        "nothing is judged behind a bad checksum or offsets that go back, in {places}",
        "Dump {places} from another replica, or the segment once more.",
    ),
    "missing_segments": Reason(
        "offsets are missing from the dumps of {places}",
        "Dump every segment of {places}: `kafka-dump-log.sh --deep-iteration --files $(ls *.log | paste -sd,)`",
    ),
    "unordered_dumps": Reason(
        "two dumps of {places} leave a hole between them, and nothing says which one is newer",
        f"Say when each dump of {{places}} was made ({WHEN}), or add the listing.txt or the log-start-offset-checkpoint of the newer one: "
        "collect-dumps.sh does all of it.",
    ),
    "unordered_listings": Reason(
        "two dumps of {places} leave a hole between them, and nothing says which one is newer",
        f"Say when each dump of {{places}} was made ({WHEN}): collect-dumps.sh does so.",
    ),
    "unexplained_gaps": Reason(
        "offsets are missing in {places}, and nothing says whether the cleaner works there",
        "Add the cleaner-offset-checkpoint of the broker, or the cleanup.policy in manifest.yaml ({places}): collect-dumps.sh does both.",
    ),
    "cleaner_unknown": Reason(
        "nothing says whether the cleaner works on {places}, and each replica is cleaned alone",
        "Add the cleaner-offset-checkpoint of each broker, or the cleanup.policy in manifest.yaml ({places}): collect-dumps.sh does both.",
    ),
    "ambiguous": Reason(
        "text of the dumps of {places} can be read in more than one way, so none is believed",
        "Dump {places} again without --print-data-log (collect-dumps.sh without --payloads): then no payload can look like the tool's "
        "lines.",
    ),
    "ambiguous_ids": Reason(
        "text of the dumps of {places} can be read in more than one way, so none is believed",
        "Dump {places} again in a UTF-8 locale (LC_ALL=C.UTF-8): then ids are printed as they are.",
    ),
    "unread_text": Reason(
        "offsets are missing where text of the dumps of {places} was not understood",
        "Dump {places} again: the text is damaged (`eo-audit export unread_spans`).",
    ),
    "shallow": Reason("there are no records in the dumps of {places}", "Dump {places} with --deep-iteration."),
    "cut_off": Reason("the dump text of {places} stops before the log does", "Dump {places} again, to its end."),
    "no_coordinator": Reason(
        "not every partition of __transaction_state of {places} was dumped whole and decoded",
        "Dump all partitions of __transaction_state of {places}: "
        "`kafka-dump-log.sh --deep-iteration --transaction-log-decoder --files $(ls *.log | paste -sd,)`",
    ),
    "coordinator_compacted": Reason(
        "the coordinator log no longer holds the transactions of some records of {places} (it is compacted)",
        "Only an older dump of __transaction_state would show them.",
    ),
    "dumped_apart": Reason(
        "{places} and __transaction_state were dumped at different times, and transactions went on between",
        "Dump {places} again, and __transaction_state after it: collect-dumps.sh does so.",
    ),
    "live_tail": Reason(
        "the newest records of {places} are younger than the dump of __transaction_state, as dumps of a running cluster are",
        "Nothing now: the next audit judges them. On one broker collect-dumps.sh dumps __transaction_state last.",
    ),
    "clocks_apart": Reason(
        "the brokers' clocks lie so far apart, or moved so much, that the markers of {places} fit the coordinator's decisions in more than "
        "one way",
        "Dump the whole logs, of __transaction_state too, from their beginnings and after the brokers have stopped, and set the clocks "
        "(NTP).",
    ),
    "other_coordinator": Reason(
        "{places} hold transactions of producers that the dumped __transaction_state never knew: it was created anew, or is another "
        "cluster's",
        "Only an older dump of __transaction_state would show their transactions.",
    ),
    "index_not_dumped": Reason(
        "the aborted index of {places} was not dumped, and nothing says that it does not exist",
        "Dump the .txnindex files of {places}, or add a listing.txt of the log directory: collect-dumps.sh does both.",
    ),
    "payload_not_printed": Reason(
        "keys and values of {places} were not printed",
        "Dump {places} with --print-data-log (collect-dumps.sh --payloads): keys and values are hashed, never stored.",
    ),
    "partitions_not_counted": Reason(
        "nothing says how many partitions __transaction_state has, or the manifest's number does not fit, so where the ids of {places} "
        "belong is not known",
        "Say `transaction_state_partitions: 50` (the brokers' number) in a manifest.yaml beside the dumps.",
    ),
    "garbled_ids": Reason(
        "transactional ids were printed with question marks in {places}, and what stands for them is not known",
        "Dump {places} again in a UTF-8 locale (LC_ALL=C.UTF-8): then ids are printed as they are.",
    ),
    "offsets_not_decoded": Reason(
        "the records of {places} were printed without their decoder, so which offsets groups committed in transactions is not known",
        "Dump {places} again with --offsets-decoder --deep-iteration: collect-dumps.sh does so.",
    ),
    "blocks_younger": Reason(
        "producer ids of {places} lie above the newest block that is known, and may have been given out after it was told",
        "Dump the *.log of __cluster_metadata-0 after {places}, with --cluster-metadata-decoder (manifest: next_producer_id).",
    ),
    "partition_not_dumped": Reason(
        "transactions list {places}, of which no replica was dumped",
        "Dump {places} from any replica.",
    ),
}


def unknown(rule: "Rule", log: "Log", context: "Context") -> Unknown | None:
    """The first need of a rule that is not met in a replica log."""
    # In the rule's order: one reason a log is told, and the first need that is not met gives it.
    for need in ("supported", *rule.needs):
        because = _NEEDS[need](log, context)
        if because is not None:
            return Unknown(because, place_of(log, context) if because != "no_coordinator" else shown(log.cluster))
    return None


def place_of(log: "Log", context: "Context") -> str:
    """A replica log in words; with its cluster where there are several."""
    broker = "" if log.broker is None else f" (broker {log.broker})"
    cluster = f"{shown(log.cluster)}: " if len(context.clusters) > 1 else ""
    return f"{cluster}{shown(log.topic)}-{log.partition}{broker}"


def sentences(unknowns: "set[Unknown]") -> tuple[str, str]:
    """Why, and what to bring: the reasons of one rule, each with its places."""
    places: dict[str, list[str]] = {}
    for item in sorted(unknowns):
        # Sorted above: the same dumps give the same sentence.
        places.setdefault(item.because, []).append(item.place)
    listed = [
        (REASONS[because], some(_each_cluster_once(found), most=4))
        # What concerns most places is read first.
        for because, found in sorted(places.items(), key=lambda item: -len(item[1]))
    ]
    why = "; ".join(reason.why.format(places=found) for reason, found in listed)
    return why[:1].upper() + why[1:], _one_by_one([reason.bring.format(places=found) for reason, found in listed])


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
    said = [part.text("reason") or "" for part in log.breaks if part.text("state") == "not_supported"]
    because = "no_producer_epochs" if all(NO_EPOCHS in reason for reason in said) else "unsupported_dialect"
    return because if said else None


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
    if _has(log, "hole", "segment_missing", "head_missing"):
        return "missing_segments"
    if (unordered := _ordered(log, _context)) is not None:
        return unordered
    if (unread := _unread(log)) is not None:
        return unread
    if _has(log, "unexplained"):
        return "unexplained_gaps"
    return "shallow" if _has(log, "shallow") else None


def _end(log: "Log", context: "Context") -> str | None:
    if not _has(log, "truncated"):
        return None
    if (unread := _unread(log)) is not None:
        return unread
    cut = [part for part in log.breaks if part.text("state") == "truncated"]
    later = all((part.text("reason") or "").startswith(LONGER) for part in cut) and log.cluster not in context.stopped
    # Of a running broker the files beside the log were dumped later, and tell of what came since.
    return "live_tail" if later and log.topic != COORDINATOR_TOPIC else "cut_off"


def _coordinator(log: "Log", context: "Context") -> str | None:
    if not context.cluster(log.cluster).flag("coordinator_complete"):
        return "no_coordinator"
    return "clocks_apart" if "clocks_apart" in log.unmatched else _untold_fate(log, context)


def _untold_fate(log: "Log", context: "Context") -> str | None:
    open_here = {row.text("why_unknown") for (place, _), row in context.fates.items() if place == log.log_id}
    return next((why for why in _WHY_UNTOLD if why in open_here), None)


def _fates(log: "Log", context: "Context") -> str | None:
    """Only of a log that is cleaned, and of brokers that ran when it was dumped, does it matter who will end what is open."""
    is_cleaned = log.numbers.flag("compacted") and log.numbers.maybe("uncleaned_from") is not None
    return _untold_fate(log, context) if is_cleaned and log.cluster not in context.stopped else None


def _matched(log: "Log", _context: "Context") -> str | None:
    return "clocks_apart" if "clocks_apart" in log.unmatched else None


def _assigned(log: "Log", context: "Context") -> str | None:
    if "unassigned_batch" not in log.subjects:
        return _matched(log, context)
    # The most precise first: what is known of the log itself, then of its cluster, and last what is true of every old coordinator log.
    told = next((why for why in _WHY_UNTOLD if why in log.unmatched), None)
    return told or _coordinator(log, context) or "coordinator_compacted"


def _index(log: "Log", _context: "Context") -> str | None:
    # Without an ABORT that closed something there is no entry that could be missing.
    lacks = log.numbers.text("index_state") == "not_dumped" and "closing_abort" in log.subjects
    return "index_not_dumped" if lacks else None


def _cleaner(log: "Log", context: "Context") -> str | None:
    replicas = context.replicas(log)
    told = all(not one.numbers.flag("compacted") or one.numbers.maybe("uncleaned_from") is not None for one in replicas)
    return None if len(replicas) == 1 or told else "cleaner_unknown"


def _decoded(log: "Log", _context: "Context") -> str | None:
    # A segment that holds nothing but markers has no decoded record either: where any commit was read, the decoder was there.
    is_blind = {"undecoded_offsets", "transactional_record"} <= log.subjects and "group_offset" not in log.subjects
    return "offsets_not_decoded" if is_blind else None


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
    return None if "payload_edge" in log.subjects else "payload_not_printed"


COORDINATOR_TOPIC = "__transaction_state"
UNREAD = "unread text: "  # how it begins to say that text stands there which was not understood
LONGER = "a snapshot, a listed segment"  # how the table coverage begins to say that other files know of more than the log's text
NO_EPOCHS = "0.11.0.0"  # where it says that no epochs of producers are shown
LISTING = "listing.txt"  # where the table coverage asks for one
# The reasons of the table `unmatched`, the gravest first.
_WHY_UNTOLD = ("clocks_apart", "other_coordinator", "dumped_apart", "no_coordinator", "live_tail", "coordinator_compacted")
# Rules name what they need (`Rule.needs`); each is asked of one log, and the first that is not met is the reason.
_NEEDS: Mapping[str, "Callable[[Log, Context], str | None]"] = {
    "supported": _supported,
    "order": _order,
    "ordered": _ordered,
    "past": _past,
    "end": _end,
    "coordinator": _coordinator,
    "assigned": _assigned,
    "matched": _matched,
    "fates": _fates,
    "index": _index,
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


def _one_by_one(requests: list[str]) -> str:
    """Sentences in a row; one that ends with a command gets its full stop."""
    return " ".join([*(f"{text.rstrip('.')}." for text in requests[:-1]), *requests[-1:]])
