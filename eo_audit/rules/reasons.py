"""Why nothing can be said of a log, in words, and which dump would tell (`rules.needs` finds out which of them it is)."""

from collections.abc import Mapping
from dataclasses import dataclass


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
    "emptied_batches": _print_again(
        "a kafka-dump-log older than 2.2 printed {places}, a log that is cleaned, and shows no batch that the cleaner emptied"
    ),
    "not_judged": Reason(
        "nothing is judged behind a bad checksum or offsets that go back, in {places}",
        "Dump {places} from another replica, or the segment once more.",
    ),
    "missing_segments": Reason(
        "offsets are missing from the dumps of {places}",
        "Dump every segment of {places}, with the whole paths of the segments or into a folder of the partition's name, as "
        "collect-dumps.sh does: `kafka-dump-log.sh --deep-iteration --files $(ls -d /DATA/TOPIC-N/*.log | paste -sd,)`",
    ),
    "remote_segments": Reason(
        "older segments of {places} lie in remote storage (KIP-405): only what the brokers still have was dumped",
        "If they matter, fetch the older segments of {places} from remote storage, name each file by its base offset as a broker does "
        "(00000000000000000502.log, .snapshot, .txnindex), and add their dumps.",
    ),
    "perhaps_remote": Reason(
        "older segments of {places} were not dumped: they lie in remote storage (KIP-405), or were left out",
        "Dump every segment of {places}, and add a listing.txt of the log directory, which shows that there are no more: "
        "collect-dumps.sh does both.",
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
        "Add the cleaner-offset-checkpoint of the broker (collect-dumps.sh copies it), or the cleanup.policy in manifest.yaml ({places}). "
        "Or dump the other replicas of {places}, with their checkpoints: the cleaner of one of them may be farther.",
    ),
    "cleaner_unknown": Reason(
        "nothing says whether the cleaner works on {places}, and each replica is cleaned alone",
        "Add the cleaner-offset-checkpoint of each broker (collect-dumps.sh copies it), or the cleanup.policy in manifest.yaml ({places}).",
    ),
    "ambiguous": Reason(
        "text of the dumps of {places} can be read in more than one way, so none is believed",
        "Dump {places} again without --print-data-log (collect-dumps.sh without --payloads): then no payload can look like the tool's "
        "lines. Where lines stand in the text that the tool did not print (an echo between two dumps), take them out first.",
    ),
    "ambiguous_ids": Reason(
        "text of the dumps of {places} can be read in more than one way, so none is believed",
        "Dump {places} again in a UTF-8 locale (LC_ALL=C.UTF-8): then ids are printed as they are. Where lines stand in the text that the "
        "tool did not print (an echo between two dumps), take them out first.",
    ),
    "unread_text": Reason(
        "offsets are missing where text of the dumps of {places} was not understood",
        "Dump {places} again: the text is damaged (`eo-audit export unread_spans`).",
    ),
    "lost_lines": Reason(
        "record lines of {places} are missing in the text, or were not understood", "Dump {places} again, with every line."
    ),
    "hidden_entries": Reason(
        "some entries of {places} are missing in the text, or the tool's decoder could not read them",
        "Dump {places} again, with every line, with --transaction-log-decoder and no other decoder, and with the tool of the brokers' "
        "release or a newer one.",
    ),
    "shallow": Reason("there are no records in the dumps of {places}", "Dump {places} with --deep-iteration."),
    "cut_off": Reason("the dump text of {places} stops before the log does", "Dump {places} again, to its end."),
    "no_line_end": Reason(
        "the last line of the dump text of {places} has no line end: it was cut, or an editor or `$(...)` took the line end off",
        "Dump {places} again into a file; only where you know that the text is whole, put the line end back (`echo >> FILE`).",
    ),
    "torn_tail": Reason(
        "behind the last batch of {places} stand bytes that are no batch: one was being written as it was dumped, or a crash left them",
        "Dump {places} again: what was being written is whole then. Where the bytes stay, the broker cuts them off when it starts again "
        "after that crash; all before them is judged.",
    ),
    "tool_failed": Reason(
        "kafka-dump-log failed within {places}, and what stands behind was not printed",
        "See what it said (`eo-audit export tool_messages`), and dump {places} again with the tool of the brokers' release or a newer one. "
        "Where it says `Found record size 0`, zeros stand behind the last batch (log.preallocate, or a crash): the broker cuts them off "
        "when it rolls the segment or is stopped in order; dump {places} then.",
    ),
    "start_untold": Reason(
        "what is open on {places} began before the oldest segment that was dumped, and nothing says whether the broker deleted what is "
        "missing",
        "Dump {places} with all segments, and the listing of its directory (collect-dumps.sh makes it).",
    ),
    "marker_overdue": Reason(
        "{places} ended before the marker of a transaction that the coordinator had completed before the dump: a follower that lags, or a "
        "log that lost its end",
        "Dump {places} on its leader (kafka-topics.sh --describe names it). If the leader's log ends there too, the marker is lost.",
    ),
    "marker_perhaps_overdue": Reason(
        "{places} ended before the marker of a transaction that the coordinator had completed more than a minute before the manifest's "
        "time: that may be the time of the end of the collection, or the log is a follower's that lags, or has lost its end",
        "Dump {places} again on its leader, with collect-dumps.sh, which notes when it dumps each file. If the log still ends there, the "
        "marker is lost.",
    ),
    "leader_not_dumped": Reason(
        "of {places} one replica was dumped, which may be a follower that lags: the marker of what is open there may have come since, and "
        "the coordinator log no longer holds its transaction",
        "Dump {places} on its leader (kafka-topics.sh --describe names it).",
    ),
    "outdated_replica": Reason(
        "the replica of {places} that shows most ends before another one does, or was led by an earlier leader",
        "Dump {places} whole on its leader (kafka-topics.sh --describe names it).",
    ),
    "no_coordinator": Reason(
        "__transaction_state of {places} was not dumped, or not every partition of it whole and decoded",
        "Dump all partitions of __transaction_state of {places}, as collect-dumps.sh does, each N by: `kafka-dump-log.sh --deep-iteration "
        "--transaction-log-decoder --files $(ls -d /DATA/__transaction_state-N/*.log | paste -sd,)`. Up to 2.4.0 that tool dies of "
        "the first id that was removed (KAFKA-9293): take the one of a later release, which reads the same files.",
    ),
    "producer_forgotten": Reason(
        "a transaction is open on {places} whose producer the coordinator log no longer names (it is compacted; the id may have expired)",
        "Ask a broker (from 3.0 on; older ones do not answer): `kafka-transactions.sh --bootstrap-server $BOOTSTRAP list`, and "
        "describe-producers of {places}. What is open there, of a ProducerId that the list does not have, hangs: nobody will end it but "
        "`kafka-transactions.sh abort`.",
    ),
    "coordinator_compacted": Reason(
        "the coordinator log no longer holds the transactions of some records of {places} (it is compacted)",
        "Only an older dump of __transaction_state would show them.",
    ),
    "deleted_between": Reason(
        "what was deleted from {places} between two dumps may have held the markers of some records",
        "Nothing brings that back; dump {places} more often than its retention deletes.",
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
    "head_in_doubt": Reason(
        "the coordinator log no longer holds its older entries (it is compacted), and the markers of {places} fit what is left in more "
        "than one way",
        "Only an older dump of __transaction_state would show which are whose.",
    ),
    "other_coordinator": Reason(
        "{places} hold transactions of producers that the dumped __transaction_state never knew: it was created anew, or is another "
        "cluster's",
        "Only an older dump of __transaction_state would show their transactions.",
    ),
    "index_not_dumped": Reason(
        "the aborted index of {places} was not dumped, or not as a whole, and nothing says that it does not exist",
        "Dump the .txnindex files of {places}, or add a listing.txt of the log directory: collect-dumps.sh does both.",
    ),
    "half_read_snapshot": Reason(
        "the text of the newest producer snapshot of {places} was not understood as a whole, so who is missing in it is not known",
        "Dump the newest .snapshot of {places} again: collect-dumps.sh does so.",
    ),
    "release_untold": Reason(
        "a producer snapshot of {places} lacks producers that wrote below it, and nothing says whether its broker may have forgotten them: "
        "those up to 2.4.0 forget sooner",
        "Say `kafka_version: 3.9.1` (the brokers' release) and `dumped_at` in a manifest.yaml beside the dumps of {places}: "
        "collect-dumps.sh does both.",
    ),
    "expiration_untold": Reason(
        "a producer snapshot of {places} lacks producers that had been idle for more than an hour, and nothing says after how long its "
        "broker forgets them: that may be set while brokers run",
        "Say what `kafka-configs.sh --entity-type brokers --entity-name 1 --describe --all` shows of producer.id.expiration.ms (before 3.4 "
        'transactional.id.expiration.ms) in a manifest.yaml beside the dumps of {places}: `broker_config: {{"producer.id.expiration.ms": '
        '"86400000"}}`; and `dumped_at`.',
    ),
    "payload_not_printed": Reason(
        "keys and values of {places} were not printed",
        "Dump {places} with --print-data-log (collect-dumps.sh --payloads): keys and values are hashed, never stored.",
    ),
    "payload_no_text": Reason(
        "no value of {places} is printed as the bytes it has: they are no UTF-8 text (Avro, Protobuf, packed), of which a dump shows "
        "U+FFFD or `?`, or null; or a decoder or a console of another encoding (GBK, Shift-JIS, Windows-1252) printed them",
        "If the values of {places} are text, dump them in a UTF-8 locale (LC_ALL=C.UTF-8), as collect-dumps.sh does; of others no dump "
        "shows which are the same.",
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
        "the records of {places} were printed without their decoder, or it could not read them, so which offsets groups committed in "
        "transactions is not known",
        "Dump {places} again with --offsets-decoder --deep-iteration, as collect-dumps.sh does; where the decoder of the brokers' release "
        "dies of what newer clients store, with the tool of a newer release.",
    ),
    "blocks_younger": Reason(
        "producer ids of {places} lie above the newest block that is known, and may have been given out after it was told",
        "Dump the *.log of __cluster_metadata-0 after {places}, with --cluster-metadata-decoder (manifest: next_producer_id).",
    ),
    "partition_not_dumped": Reason(
        "transactions list {places}, of which no replica was dumped",
        "Dump {places} from any replica. If the topic was deleted since, or created anew with fewer partitions, nothing is left of them.",
    ),
}

# How the table coverage says why a text ends before its log does -> the reason that says what to do.
ENDS = {
    "the last line of the text has no line end": "no_line_end",
    "bytes that are no batch stand behind its last one": "torn_tail",
    "the dump tool failed here": "tool_failed",
}
