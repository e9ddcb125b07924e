"""What is known of each replica log beside its batches: segments, log start, high watermark, cleaning, which sidecars were dumped.

1. log_start = max(checkpoint row if there is one, lowest segment base of the newest dump, or of its listing): a checkpoint without a row
   for the log does not say 0. Older dumps may hold segments that retention has deleted since. Offsets missing between two segments below
   that start were lost by nobody: the broker deletes from the head on (`UnifiedLog.deleteOldSegments`), and the log begins behind them.
   Where a listing as new still shows an older segment, they are missing from the dumps. Where nothing says which of two dumps is newer,
   and neither has segments on both sides of what is missing, retention may have deleted it or it may be lost: `unordered_before`. Then
   nobody knows where the log starts. Two dumps in one folder without a time look like one: what is missing within is missing.
2. HW = checkpoint row, not beyond the log end offset where the dump shows it: no broker keeps one there; without a row, the log end offset.
   For `__transaction_state` a high watermark or recovery point beyond the end says that the dump stops before the log does: nothing else
   shows a cut between two records, and what an id lacks there must not be held against it. In other logs it may be a lost marker (T05).
3. Cleaning: a row of the cleaner's checkpoint; a cleaner that is off; other checkpoints of the broker without such a row mean "never",
   unless batches have lost records (a log copied from a leader that cleans); else the topic's cleanup.policy; else lost records.
4. An index that was not dumped is known not to exist when a listing shows its directory without it, or when the log's snapshot and any
   index of the broker were dumped.
5. A snapshot of the producers at the log end offset: the broker had been stopped. It takes none of an empty log
   (`ProducerStateManager.takeSnapshot`), whose end is known by the other logs of its broker, if all of them ended so.
6. Kafka's leader epoch cache is cut at the log start: an entry below the first segment dumped tells of older segments, unless a listing
   shows that there are none.
7. A topic begins with leader epoch 0. A log that begins at offset 0 with a later one was begun anew under a later leader
   (`LeaderEpochFileCache`): its leader had lost what was there, or nothing had been written to the topic before.
8. The newest leader epoch of a log is that of its batches, or of an entry of its leader epoch cache: a leader makes one before it writes
   (`Partition.makeLeader`). An entry that begins behind the end of the dump is of a log that went on, and says nothing of what was dumped.
"""

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from eo_audit.history.sections import IS_INTERNAL
from eo_audit.history.sql import columns_of, expressions, named

# Brokers create them compacted, whatever log.cleanup.policy says (`AutoTopicCreationManager`).
COMPACTED_INTERNAL = ("__transaction_state", "__consumer_offsets", "__share_group_state")

_KEY = ("cluster", "broker", "replica_log_id", "topic", "partition")
_WAS_DUMPED = "kind = 'log' AND coalesce(dir_kind, 'normal') = 'normal' AND replica_log_id IS NOT NULL"
_IS_LOG = f"{_WAS_DUMPED} AND superseded_by IS NULL"
_SEGMENT = "struct(segment_base_offset AS base_offset, last_offset + 1 AS end, section_id, tail_intact, decoder, end_position)"
# Every running broker keeps these three; cleaner-offset-checkpoint is what is asked about, so it proves nothing here.
_CHECKPOINT_FILE = r"(?:\\A|/)(?:replication|recovery-point|log-start)-offset-checkpoint[^/]*\\z"
_OF_SECTION = {
    "is_log": _IS_LOG,
    "dumped": f"IF({_WAS_DUMPED}, struct(dumped_at_ms, dump_set, segment_base_offset AS base_offset), NULL)",
    "segment": f"IF(is_read AND kind = 'log', {_SEGMENT}, NULL)",
    "index_base": "IF(is_read AND kind = 'txnindex', segment_base_offset, NULL)",
    "snapshot": "IF(is_read AND kind = 'snapshot', struct(segment_base_offset AS offset, section_id), NULL)",
    "has_checkpoints": f"is_read AND kind = 'checkpoint' AND path RLIKE '{_CHECKPOINT_FILE}'",
    "newest_broker_clock": """IF(is_read AND kind = 'log' AND newest_broker_clock_ms IS NOT NULL,
        struct(segment_base_offset, newest_broker_clock_ms AS at_ms), NULL)""",
    "shows_cleaning": "is_read AND kind = 'log' AND shows_cleaning",
    "first_leader_epoch": "IF(is_read AND kind = 'log', first_leader_epoch, NULL)",
    "batch_leader_epoch": "IF(is_read AND kind = 'log', last_leader_epoch, NULL)",
}
_ROWS_OF = {
    "start_row": "log-start-offset",
    "hw_row": "replication-offset",
    "recovery_row": "recovery-point-offset",
    "cleaner_row": "cleaner-offset",
    "epoch_start": "leader-epoch",
}
_OF_CHECKPOINT = {
    **{name: f"IF(checkpoint_kind = '{kind}', offset, NULL)" for name, kind in _ROWS_OF.items()},
    "first_leader_epoch": "IF(checkpoint_kind = 'leader-epoch' AND offset = 0, leader_epoch, NULL)",
    "epoch_row": "IF(checkpoint_kind = 'leader-epoch', struct(offset, leader_epoch), NULL)",
}
# `LogFileUtils.filenamePrefixFromOffset`: twenty digits.
_LISTED_BASE = r"try_cast(regexp_extract(file_name, '\\A(\\d{20})\\.(?:log|txnindex)\\z', 1) AS BIGINT)"
_IS_LISTED_LOG = "file_name LIKE '%.log'"
_NOTED = "struct(dumped_at_ms, section_id, byte_offset)"
_OF_LISTED_FILE = {
    "listed": "file_bytes IS NOT NULL",
    "listed_at_ms": "listing_at_ms",
    "listed_log": f"IF({_IS_LISTED_LOG} AND file_bytes IS NOT NULL, {_LISTED_BASE}, NULL)",
    "listed_size": f"IF({_IS_LISTED_LOG} AND file_bytes IS NOT NULL, struct({_LISTED_BASE} AS base_offset, file_bytes), NULL)",
    "dump_time": f"IF({_IS_LISTED_LOG} AND dumped_at_ms IS NOT NULL, struct({_LISTED_BASE} AS base_offset, {_NOTED} AS noted), NULL)",
    "listed_snapshot": f"IF(file_name LIKE '%.snapshot' AND file_bytes IS NOT NULL, {_LISTED_BASE}, NULL)",
    # An index of no bytes has no entry to miss.
    "listed_index": f"IF(file_name LIKE '%.txnindex' AND file_bytes > 0, {_LISTED_BASE}, NULL)",
}
# `LocalLog` names directories so that are being deleted, copied to another disk, or were found without an owner.
_IN_PLACE = r"replica_log_id IS NOT NULL AND NOT folder RLIKE '-(?:delete|future|stray)\\z'"
_OF_ENTRY = {**dict.fromkeys(_KEY[1:], "NULL"), "said": "struct(name, value)"}
# Everything said of one log in one row; what is said of no log (a broker's checkpoint files) in one row of the broker.
_GATHERED = {
    "topic": "max(topic)",
    "partition": "max(partition)",
    "is_log": "coalesce(bool_or(is_log), false)",
    "read": "array_sort(collect_list(segment))",
    "dumped": "collect_list(dumped)",
    "indexes": "collect_set(index_base)",
    "snapshot": "max(snapshot)",
    "has_checkpoints": "coalesce(bool_or(has_checkpoints), false)",
    "newest_broker_clock_ms": "max(newest_broker_clock).at_ms",
    "shows_cleaning": "coalesce(bool_or(shows_cleaning), false)",
    **{name: f"max({name})" for name in ("start_row", "hw_row", "recovery_row", "cleaner_row")},
    "epoch_start": "min(epoch_start)",
    "first_leader_epoch": "min(first_leader_epoch)",
    "batch_leader_epoch": "max(batch_leader_epoch)",
    "epoch_rows": "collect_set(epoch_row)",
    "listed": "coalesce(bool_or(listed), false)",
    "listed_at_ms": "max(listed_at_ms)",
    "listed_logs": "collect_set(listed_log)",
    "listed_indexes": "collect_set(listed_index)",
    "listed_snapshots": "collect_set(listed_snapshot)",
    "listed_sizes": "collect_set(listed_size)",
    "dump_times": "collect_set(dump_time)",
    "said": "collect_list(said)",
}
_BROKERS_WITH = "array_contains(collect_set(IF({has}, coalesce(broker, -1), NULL)) OVER (PARTITION BY cluster), coalesce(broker, -1))"
_OF_CLUSTER = {
    "broker_has_checkpoints": _BROKERS_WITH.format(has="has_checkpoints"),
    "broker_has_index": _BROKERS_WITH.format(has="size(indexes) > 0"),
    "manifest": "flatten(collect_list(said) OVER (PARTITION BY cluster))",
}

_MENTIONED = "exists(manifest, e -> e.name = concat('topics.', topic) OR startswith(e.name, concat('topics.', topic, '.')))"


def _value(name: str) -> str:
    return f"try_element_at(filter(manifest, e -> e.name = {name}), 1).value"


def said(name: str) -> str:
    """SQL of the value that the column `manifest`, an array of (name, value), holds under a name; null when it holds none."""
    return _value(f"'{name}'")


_POLICY = _value("concat('topics.', topic, '.cleanup.policy')")
_DEFAULT_POLICY = said("broker_config.log.cleanup.policy")
_CLEANER = said("broker_config.log.cleaner.enable")
_JUMPS = "exists(transform(read, (s, i) -> s.end < get(bases, i + 1) AND s.base_offset >= first_offset), jumps -> jumps)"
_NEXT = "get(read, i + 1)"
_MISSING_BEFORE_NEXT = f"coalesce(s.end, s.base_offset) < {_NEXT}.base_offset"
# Of the newest dump of a log: when, which, its lowest segment. Files of which nobody knows when they were dumped may be of any.
_NEWEST_DUMP = "IF(exists(dumped, d -> d.dumped_at_ms IS NULL), NULL, array_max(dumped))"
_DUMPED_THEN = "transform(filter(dumped, d -> d.dump_set = newest.dump_set), d -> d.base_offset)"
# A dump of a few segments, brought later, does not show the others gone: the newest segment of all is in a whole one.
_LOWEST_THEN = f"IF(array_max({_DUMPED_THEN}) >= array_max(bases), array_min({_DUMPED_THEN}), NULL)"
_LISTED_THEN = "coalesce(NOT coalesce(listed_at_ms < newest.dumped_at_ms, false) AND size(listed_logs) > 0, false)"
_REMOVED = f"NOT compacted AND {_MISSING_BEFORE_NEXT} AND coalesce(greatest(start_row, head) >= {_NEXT}.base_offset, false)"
_SETS = "transform(filter(dumped, d -> d.base_offset {where}), d -> d.dump_set)"
_MEET = f"NOT arrays_overlap({_SETS.format(where='<= s.base_offset')}, {_SETS.format(where=f'>= {_NEXT}.base_offset')})"
_NOT_LISTED = f"NOT exists(listed_logs, base -> base >= coalesce(s.end, s.base_offset) AND base < {_NEXT}.base_offset)"
_UNORDERED = f"NOT compacted AND {_MISSING_BEFORE_NEXT} AND newest IS NULL AND {_NOT_LISTED} AND coalesce({_MEET}, false)"
_EACH_NEXT = "array_compact(transform(read, (s, i) -> IF({which}, {next}.base_offset, NULL)))"
_NOTED_LAST = "array_max(transform(filter(dump_times, t -> t.base_offset = array_max(bases)), t -> t.noted))"
# collect-dumps.sh, which notes its times, lists the size of a log's newest segment right before its dump: a text that shows less was cut,
# also where it was cut between two lines. A listing that was made by hand may be younger than the dump.
_LISTED_LAST = "array_max(transform(filter(listed_sizes, l -> l.base_offset = array_max(bases)), l -> l.file_bytes))"
_SHORT = f"{_NOTED_LAST} IS NOT NULL AND {_LISTED_LAST} > coalesce(try_element_at(read, -1).end_position, 0L)"
_DUMPED_AT = f"{_NOTED_LAST}.dumped_at_ms"
# An index has entries of its own segment (`TransactionIndex` makes the file with the first): one that begins at the end of what was dumped
# shows that the log was rolled there (`UnifiedLog.roll` takes a snapshot as well), and went on.
_GOES_ON = "coalesce(array_max(concat(indexes, listed_indexes)) >= leo, false)"
_CLEAN_END = f"tail_intact AND coalesce(snapshot.offset = leo OR recovery_row > leo, false) AND NOT {_GOES_ON}"
_ENDED = """clean_end OR (is_empty AND bool_and(clean_end OR is_empty) OVER (PARTITION BY cluster, broker)
    AND bool_or(clean_end) OVER (PARTITION BY cluster, broker))"""
_EPOCH_ROWS = "array_max(transform(filter(epoch_rows, e -> e.offset <= leo), e -> e.leader_epoch))"
_STEPS = (
    {
        "bases": "transform(read, s -> s.base_offset)",
        # A segment without a batch still says that the log had reached its base.
        "leo": "coalesce(greatest(array_max(transform(read, s -> s.end)), array_max(transform(read, s -> s.base_offset))), 0L)",
        "supported": "size(read) > 0",
        "cleanup_policy": f"""coalesce({_POLICY}, IF(topic IN {COMPACTED_INTERNAL}, 'compact', NULL),
            IF(coalesce({_MENTIONED}, false), coalesce({_DEFAULT_POLICY}, 'delete'), NULL))""",
        "cleaner_is_off": f"coalesce({_CLEANER} = 'false', false)",
    },
    {
        "is_internal": IS_INTERNAL,
        "last_leader_epoch": f"IF(supported, greatest(batch_leader_epoch, {_EPOCH_ROWS}), NULL)",
        "compacted": """CASE WHEN cleaner_row IS NOT NULL THEN true
            WHEN cleaner_is_off OR (broker_has_checkpoints AND NOT shows_cleaning) THEN false
            ELSE coalesce(contains(cleanup_policy, 'compact'), shows_cleaning) END""",
    },
    {"newest": _NEWEST_DUMP},
    {"head": f"IF({_LISTED_THEN}, array_min(listed_logs), greatest(array_min(listed_logs), {_LOWEST_THEN}))"},
    {
        "removed_before": _EACH_NEXT.format(which=f"({_REMOVED}) OR ({_UNORDERED})", next=_NEXT),
        "unordered_before": _EACH_NEXT.format(which=f"NOT ({_REMOVED}) AND ({_UNORDERED})", next=_NEXT),
    },
    {"first_offset": "coalesce(array_max(removed_before), array_min(bases))"},
    {
        "log_start": "IF(size(unordered_before) > 0, NULL, coalesce(greatest(start_row, head, first_offset), 0L))",
        "log_start_source": """CASE WHEN size(unordered_before) > 0 THEN NULL
            WHEN start_row >= coalesce(greatest(first_offset, head), 0L) THEN 'checkpoint'
            WHEN array_min(listed_logs) = greatest(first_offset, head) AND array_min(listed_logs) > first_offset THEN 'listing'
            ELSE 'segment_base' END""",
        "segments": """transform(read, (s, i) -> struct(s.base_offset,
            coalesce(get(bases, i + 1), leo) AS end_offset, s.section_id))""",
        # null: nothing says so
        "missing_segments": """array_sort(filter(array_except(listed_logs, bases),
            base -> base > first_offset AND base < array_max(bases)))""",
        # What a listing does not show was not left out: it was deleted, perhaps after the checkpoints were written.
        "missing_head_from": """IF(size(removed_before) > 0, NULL,
            nullif(least(IF(listed, NULL, least(start_row, epoch_start)), array_min(listed_logs), first_offset), first_offset))""",
        # A snapshot or a listed segment beyond the end of the dump tells of a tail, too; not one that was taken after the files were
        # listed, which may be younger than the dump of the log.
        "tail_intact": f"""coalesce(try_element_at(read, -1).tail_intact, false)
            AND NOT coalesce(snapshot.offset > leo AND (NOT listed OR array_contains(listed_snapshots, snapshot.offset)), false)
            AND NOT coalesce(array_max(listed_logs) > array_max(bases), false)
            AND NOT coalesce({_SHORT}, false)
            AND NOT coalesce(topic = '__transaction_state' AND greatest(hw_row, recovery_row) > leo, false)""",
        "unknown_indexes": """array_sort(array_except(
            CASE WHEN listed THEN array_intersect(bases, listed_indexes)
                 WHEN snapshot IS NOT NULL AND broker_has_index THEN slice(bases, 1, 0)
                 ELSE bases END, indexes))""",
    },
    {
        # A dump tool that died before the first batch may leave the same text.
        "is_empty": """supported AND tail_intact AND forall(read, s -> s.end IS NULL AND s.tail_intact)
            AND NOT coalesce(greatest(hw_row, recovery_row) > leo, false)""",
        # The checkpoint is written every five seconds (replica.high.watermark.checkpoint.interval.ms); the log start may have passed it.
        "hw": "IF(hw_row IS NULL, leo, greatest(IF(tail_intact, least(hw_row, leo), hw_row), log_start))",
        "hw_source": "IF(hw_row IS NULL, 'leo', 'checkpoint')",
        "index_state": "CASE WHEN size(unknown_indexes) > 0 THEN 'not_dumped' WHEN size(indexes) > 0 THEN 'dumped' ELSE 'absent' END",
        "uncleaned_from": """coalesce(cleaner_row,
            IF(NOT compacted AND (cleaner_is_off OR broker_has_checkpoints OR cleanup_policy IS NOT NULL), 0L, NULL))""",
        "dumped_at_ms": _DUMPED_AT,
        "noted_at": f"IF({_NOTED_LAST} IS NULL, NULL, struct({_NOTED_LAST}.section_id, {_NOTED_LAST}.byte_offset))",
        "decoded": "NOT exists(read, s -> s.end IS NOT NULL AND coalesce(s.decoder, 'plain') = 'plain')",
        # `UnifiedLog.close` takes a snapshot; a flushed end alone is no stop (log.flush.interval.messages), one beyond the dump's end is.
        "clean_end": _CLEAN_END,
        # Indexes dumped at another time than their log may be older; collect-dumps.sh, which notes its times, dumps them behind it.
        "index_may_lag": f"NOT (({_CLEAN_END}) OR ({_DUMPED_AT}) IS NOT NULL)",
        "snapshot_offset": "snapshot.offset",
        "snapshot_section_id": "snapshot.section_id",
        "whole": f"""supported AND tail_intact AND missing_head_from IS NULL AND NOT exists(read, s -> NOT s.tail_intact)
            AND size(unordered_before) = 0 AND size(array_except(listed_logs, bases)) = 0
            AND (compacted OR NOT coalesce({_JUMPS}, false))""",
    },
)


def replica_logs(section_status: DataFrame, checkpoints: DataFrame, listed_files: DataFrame, manifest_entries: DataFrame) -> DataFrame:
    """One row per replica log with at least one log section, read or of an unsupported dialect.

    Args:
        section_status: the table.
        checkpoints: the table; only rows of sections that are read count.
        listed_files: the table; the same.
        manifest_entries: the table; the same.
    """
    # Facts of all kinds in one frame, each with columns of its own: one shuffle gathers what is said of a log.
    facts = (
        (checkpoints, _OF_CHECKPOINT),
        (listed_files.where(_IN_PLACE), _OF_LISTED_FILE),
        (manifest_entries, _OF_ENTRY),
    )
    read = F.broadcast(section_status.where("is_read").selectExpr("section_id", "dumped_at_ms AS listing_at_ms"))
    told = reduce(_union, (rows.join(read, "section_id").selectExpr(*_told(sql)) for rows, sql in facts))
    rows = _union(section_status.selectExpr(*_told(_OF_SECTION)), told)
    gathered = rows.groupBy("cluster", "broker", "replica_log_id").agg(*expressions(_GATHERED))
    logs = gathered.selectExpr("*", *named(_OF_CLUSTER)).where("is_log")
    for step in _STEPS:
        logs = logs.selectExpr(*(name for name in logs.columns if name not in step), *named(step))
    return logs.selectExpr(*columns_of("replica_logs", {"clean_end": _ENDED}))


def _told(sql: dict[str, str]) -> list[str]:
    return [*(name for name in _KEY if name not in sql), *named(sql)]


def _union(one: DataFrame, other: DataFrame) -> DataFrame:
    return one.unionByName(other, allowMissingColumns=True)
