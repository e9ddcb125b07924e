"""What checkpoints, listings, manifests and file names say of a log."""

import pytest
from pyspark.sql import Row, SparkSession

from eo_audit.history.replica_logs import replica_logs
from tests.support.rows import table

Rows = list[dict[str, object]]


def section(kind: str = "log", base: int | None = 0, *, last: int | None = None, **more: object) -> dict[str, object]:
    return {
        "kind": kind,
        "dir_kind": "normal",
        "segment_base_offset": base,
        "first_offset": None if last is None else base,
        "last_offset": last,
        "supported": True,
        "is_read": True,
        "tail_intact": True,
        "path": f"broker-1/orders-0/{base}.{kind}.txt",
    } | more


def about_broker(name: str) -> dict[str, object]:
    return section("checkpoint", None, path=f"broker-1/{name}", replica_log_id=None, topic=None, partition=None)


def checkpoint(kind: str, offset: int) -> dict[str, object]:
    return {"checkpoint_kind": kind, "offset": offset}


def epoch(leader_epoch: int, offset: int) -> dict[str, object]:
    return checkpoint("leader-epoch", offset) | {"leader_epoch": leader_epoch}


def listed(*names: str, size: int = 10) -> Rows:
    return [{"file_name": name, "folder": "orders-0", "file_bytes": size} for name in names]


def then(*names: str, size: int = 10) -> Rows:
    """The rows of a listing that a newer one has taken the place of."""
    return [row | {"section_id": 77} for row in listed(*names, size=size)]


def dumped(*times: tuple[int, int]) -> Rows:
    """Rows of dumped-at.txt: base offset of a segment, when its dump began."""
    return [
        {"file_name": f"{base:020}.log", "folder": "orders-0", "file_bytes": None, "dumped_at_ms": at, "byte_offset": 40 * line}
        for line, (base, at) in enumerate(times)
    ]


def noted_then(*times: tuple[int, int]) -> Rows:
    """Rows of the dumped-at.txt beside that listing."""
    return [row | {"section_id": 76} for row in dumped(*times)]


LOG = [section(last=22)]
ON_BROKER: dict[str, object] = {"replica_log_id": None, "topic": None, "partition": None, "dump_set": "then"}
OLD_LISTING = section("listing", None, section_id=77, is_read=False, superseded_by=78) | ON_BROKER
OLD_TIMES = section("listing", None, section_id=76) | ON_BROKER
OLD_LIFE = section(last=4, is_read=False, superseded_by=79, supersession_reason="created_anew")
STATE = {"topic": "__transaction_state"}
COORDINATOR = [section(last=22, **STATE)]
OTHERS = [about_broker("replication-offset-checkpoint")]
ELSEWHERE = [section("txnindex", replica_log_id=2, topic="payments")]
COMPACT = {"topics.orders.cleanup.policy": "compact"}
SEGMENT = "0" * 20

# name: sections, checkpoint rows, listed files, manifest, expected columns
CASES: dict[str, tuple[Rows, Rows, Rows, dict[str, str | None], dict[str, object]]] = {
    "the log alone": (
        LOG, [], [], {},
        {"log_start": 0, "log_start_source": "segment_base", "hw": 23, "hw_source": "leo", "leo": 23,
         "tail_intact": True, "index_state": "not_dumped",
         "unknown_indexes": [0], "compacted": False, "uncleaned_from": None, "cleanup_policy": None, "missing_head_from": None,
         "snapshot_offset": None},
    ),
    "checkpoints": (
        LOG + OTHERS, [checkpoint("replication-offset", 20), checkpoint("log-start-offset", 5)], [], {},
        {"log_start": 5, "log_start_source": "checkpoint", "hw": 20, "hw_source": "checkpoint", "leo": 23,
         "compacted": False, "uncleaned_from": 0},
    ),
    "a log start row below the first segment": (
        [section(base=7, last=22)], [checkpoint("log-start-offset", 3)], [], {},
        {"log_start": 3, "log_start_source": "checkpoint", "first_offset": 7, "missing_head_from": 3},
    ),
    "the leader epoch cache starts below the first segment": (
        [section(base=5, last=22)], [checkpoint("leader-epoch", 0), checkpoint("leader-epoch", 9)], [], {},
        {"log_start": 0, "log_start_source": "leader_epochs", "first_offset": 5, "missing_head_from": 0},
    ),
    "nothing says whether the broker has older segments": ([section(base=5, last=22)], [], [], {}, {"log_start_source": "segment_base"}),
    "the leader epoch cache, cut at the first segment, tells that there are none": (
        [section(base=5, last=22)], [checkpoint("leader-epoch", 5), checkpoint("leader-epoch", 9)], [], {},
        {"log_start": 5, "log_start_source": "leader_epochs", "missing_head_from": None},
    ),
    "one that begins later, of a log with batches of an older format, does not": (
        [section(base=5, last=22)], [checkpoint("leader-epoch", 9)], [], {}, {"log_start_source": "segment_base"},
    ),
    "the listing has an older segment": (
        [section(base=5, last=22)], [], listed(f"{SEGMENT}.log", f"{5:020}.log"), {},
        {"log_start": 0, "log_start_source": "listing", "first_offset": 5, "missing_head_from": 0},
    ),
    "the listing has an older segment, of which the first records were deleted": (
        [section(base=5, last=22)], [checkpoint("log-start-offset", 2)], listed(f"{SEGMENT}.log", f"{5:020}.log"), {},
        {"log_start": 2, "log_start_source": "checkpoint", "first_offset": 5, "missing_head_from": 0},
    ),
    "the listing has no older segment: it was deleted behind the checkpoints": (
        [section(base=5, last=22)], [checkpoint("leader-epoch", 0), checkpoint("log-start-offset", 3)], listed(f"{5:020}.log"), {},
        {"missing_head_from": None, "log_start": 5, "log_start_source": "listing", "whole": True, "in_remote": False},
    ),
    "tiered storage: a log that starts at 0, below its oldest segment on the broker": (
        [section(base=5, last=22)], [checkpoint("leader-epoch", 0), checkpoint("log-start-offset", 0)], listed(f"{5:020}.log"), {},
        {"in_remote": True, "log_start": 0, "log_start_source": "checkpoint", "first_offset": 5, "missing_head_from": 0, "whole": False,
         "only_remote_missing": True},
    ),
    "tiered storage, and a segment that the broker has was not dumped": (
        [section(base=9, last=22)], [checkpoint("log-start-offset", 0)], listed(f"{5:020}.log", f"{9:020}.log"), {},
        {"in_remote": True, "log_start": 0, "missing_head_from": 0, "only_remote_missing": False},
    ),
    "tiered storage, and the first lines of a segment are missing": (
        [section(base=5, last=22, cut_before=7)], [checkpoint("log-start-offset", 0)], listed(f"{5:020}.log"), {},
        {"in_remote": True, "first_offset": 7, "missing_head_from": 0, "only_remote_missing": False},
    ),
    "tiered storage, and no listing": (
        [section(base=5, last=22)], [checkpoint("log-start-offset", 0)], [], {},
        {"in_remote": True, "log_start": 0, "missing_head_from": 0, "only_remote_missing": False},
    ),
    "tiered storage, and nothing but an empty segment on the broker": (
        [section(base=5)], [checkpoint("log-start-offset", 0)], listed(f"{5:020}.log", size=0), {},
        {"in_remote": True, "log_start": 0, "missing_head_from": 0, "is_empty": True, "leo": 5},
    ),
    "tiered storage, and its oldest segments were deleted there": (
        [section(base=5, last=22)], [checkpoint("leader-epoch", 3), checkpoint("log-start-offset", 3)], listed(f"{5:020}.log"),
        {"broker_config.remote.log.storage.system.enable": "true"},
        {"in_remote": True, "log_start": 3, "missing_head_from": 3},
    ),
    "the same, told by the topic's settings": (
        [section(base=5, last=22)], [checkpoint("log-start-offset", 3)], listed(f"{5:020}.log"),
        {"topics.orders.remote.storage.enable": "true"},
        {"in_remote": True, "log_start": 3},
    ),
    "the same, told by the topic that remembers what lies there": (
        [section(base=5, last=22)],
        [
            checkpoint("log-start-offset", 3),
            checkpoint("replication-offset", 9) | {"replica_log_id": 2, "topic": "__remote_log_metadata"},
        ],
        listed(f"{5:020}.log"), {},
        {"in_remote": True, "log_start": 3},
    ),
    "a log of such a broker that was cut behind its checkpoint": (
        [section(base=5, last=22)], [checkpoint("leader-epoch", 5), checkpoint("log-start-offset", 3)], listed(f"{5:020}.log"),
        {"broker_config.remote.log.storage.system.enable": "true"},
        {"in_remote": False, "log_start": 5, "missing_head_from": None},
    ),
    "tiered storage, and what lies there was fetched and dumped": (
        [section(last=4), section(base=5, last=22)], [checkpoint("log-start-offset", 0)], listed(f"{5:020}.log"), {},
        {"in_remote": True, "log_start": 0, "first_offset": 0, "missing_head_from": None, "removed_before": []},
    ),
    "tiered storage, and segments that went there between two dumps": (
        [section(last=4), section(base=9, last=22)], [checkpoint("log-start-offset", 0)], listed(f"{9:020}.log"), {},
        {"in_remote": True, "log_start": 0, "first_offset": 9, "missing_head_from": 0, "removed_before": [9]},
    ),
    "tiered storage, and nothing lies there yet": (LOG, [checkpoint("log-start-offset", 0)], [], {}, {"in_remote": False, "whole": True}),
    "the listing has a newer segment": (
        LOG, [], listed(f"{SEGMENT}.log", f"{23:020}.log"), {}, {"tail_intact": False, "listed_longer": False},
    ),
    "the script's listing has a newer segment, which could not be dumped": (
        [section(last=22, end_position=90, dumped_at_ms=5)], [],
        [*listed(f"{SEGMENT}.log", f"{23:020}.log", size=90), *dumped((0, 5))], {},
        {"tail_intact": False, "listed_longer": True, "whole": False},
    ),
    "a text that shows less than was listed at the time of its dump": (
        [section(last=22, end_position=90, dumped_at_ms=5)], [], [*listed(f"{SEGMENT}.log", size=100), *dumped((0, 5))], {},
        {"tail_intact": False, "listed_longer": True, "whole": False},
    ),
    "a text of 0.11 to 2.1, which prints no size of its last batch": (
        [section(last=22, end_position=90, end_at_most=190, lacks_checksums=True, dumped_at_ms=5)], [],
        [*listed(f"{SEGMENT}.log", size=180), *dumped((0, 5))], {}, {"tail_intact": True, "listed_longer": False},
    ),
    "such a text that was cut": (
        [section(last=22, end_position=90, end_at_most=190, lacks_checksums=True, dumped_at_ms=5)], [],
        [*listed(f"{SEGMENT}.log", size=191), *dumped((0, 5))], {}, {"tail_intact": False, "listed_longer": True},
    ),
    "and one of whose last batch nobody knows how large it is": (
        [section(last=22, end_position=90, end_at_most=None, lacks_checksums=True, dumped_at_ms=5)], [],
        [*listed(f"{SEGMENT}.log", size=999), *dumped((0, 5))], {}, {"tail_intact": True, "listed_longer": False},
    ),
    "a log that went on behind its listing": (
        [section(last=22, end_position=120)], [], [*listed(f"{SEGMENT}.log", size=100), *dumped((0, 5))], {},
        {"tail_intact": True, "listed_longer": False, "whole": True},
    ),
    "a listing of which nobody knows when it was made may be younger than the dump": (
        [section(last=22, end_position=90)], [], listed(f"{SEGMENT}.log", size=100), {}, {"tail_intact": True},
    ),
    "a snapshot beyond the end": ([*LOG, section("snapshot", 30)], [], [], {}, {"tail_intact": False, "snapshot_offset": 30}),
    "an empty segment whose path has no offset": (
        [section(base=None)], [], [], {}, {"unknown_indexes": [], "first_offset": None, "leo": 0},
    ),
    "a text that begins behind the first batches of its segment": (
        [section(last=22, cut_before=8)], [], [], {},
        {"first_offset": 8, "missing_head_from": 0, "log_start": 0, "log_start_source": "segment_base", "whole": False},
    ),
    "such a text of a later segment": (
        [section(last=6), section(base=7, last=22, cut_before=9)], [], [], {}, {"first_offset": 0, "missing_head_from": None},
    ),
    "the first lines are missing in the text of an old tool": (
        [section(last=22, cut_before=8, lacks_checksums=True)], [], [], {"topics.orders.cleanup.policy": "delete"}, {"first_offset": 8},
    ),
    "the cleaner may have emptied the first batches, which such a tool passes over": (
        [section(last=22, cut_before=8, lacks_checksums=True)], [], [], COMPACT, {"first_offset": 0},
    ),
    "a cut dump": ([section(last=22, tail_intact=False)], [], [], {}, {"tail_intact": False}),
    "no high watermark beyond the end of the log": (
        LOG, [checkpoint("replication-offset", 24)], [], {}, {"tail_intact": True, "hw": 23, "hw_source": "checkpoint"},
    ),
    "a coordinator log that goes on behind its dump, by its high watermark": (
        COORDINATOR, [checkpoint("replication-offset", 24) | STATE], [], {}, {"tail_intact": False, "whole": False, "hw": 24, "leo": 23},
    ),
    "a coordinator log that goes on behind its dump, by its recovery point": (
        COORDINATOR, [checkpoint("recovery-point-offset", 24) | STATE], [], {}, {"tail_intact": False},
    ),
    "a coordinator log up to its checkpoints": (
        COORDINATOR, [checkpoint("replication-offset", 23) | STATE, checkpoint("recovery-point-offset", 23) | STATE], [], {},
        {"tail_intact": True, "whole": True, "hw": 23},
    ),
    "a coordinator log that was read later than its checkpoints": (
        COORDINATOR, [checkpoint("replication-offset", 20) | STATE], [], {}, {"tail_intact": True, "hw": 20},
    ),
    "a recovery point beyond the end of another log": (LOG, [checkpoint("recovery-point-offset", 24)], [], {}, {"tail_intact": True}),
    "a cut dump does not show that end": (
        [section(last=20, tail_intact=False)], [checkpoint("replication-offset", 24)], [], {},
        {"hw": 24},
    ),
    "a high watermark behind the log start": (
        LOG, [checkpoint("replication-offset", 3), checkpoint("log-start-offset", 5)], [], {}, {"hw": 5},
    ),
    "an empty active segment": ([section(last=22), section(base=23)], [], [], {}, {"leo": 23}),
    "segments": (
        [section(base=10, last=22, section_id=2), section(last=9, section_id=1)], [], [], {},
        {"segments": [Row(base_offset=0, end_offset=10, section_id=1), Row(base_offset=10, end_offset=23, section_id=2)]},
    ),
    "index dumped": ([*LOG, section("txnindex")], [], [], {}, {"index_state": "dumped", "unknown_indexes": []}),
    "a cleaner's checkpoint beyond the end, that is copied last: the log had gone on": (
        [*LOG, section("snapshot", 23)], [checkpoint("cleaner-offset", 24)], [], {}, {"clean_end": False},
    ),
    "another replica's": (
        [*LOG, section("snapshot", 23)], [checkpoint("cleaner-offset", 24) | {"broker": 2, "replica_log_id": 2}], [], {},
        {"clean_end": True},
    ),
    "a snapshot at the end: the broker had stopped": ([*LOG, section("snapshot", 23)], [], [], {}, {"clean_end": True}),
    "the same, and listed": (
        [*LOG, section("snapshot", 23)], [], listed(f"{SEGMENT}.log", f"{23:020}.snapshot"), {}, {"clean_end": True},
    ),
    "the same, taken after the files were listed: of a roll": (
        [*LOG, section("snapshot", 23)], [], listed(f"{SEGMENT}.log"), {}, {"clean_end": False},
    ),
    "no index in the listing": (LOG, [], listed(f"{SEGMENT}.log"), {}, {"index_state": "absent", "unknown_indexes": []}),
    "index in the listing, not dumped": (LOG + ELSEWHERE, [], listed(f"{SEGMENT}.txnindex"), {}, {"index_state": "not_dumped"}),
    "empty index in the listing": (
        LOG, [], [*listed(f"{SEGMENT}.log"), *listed(f"{SEGMENT}.txnindex", size=0)], {}, {"index_state": "absent"},
    ),
    "deleted while it was dumped: the listing no longer has it, and the tool printed no entry": (
        [*LOG, section("txnindex", is_bare=True)], [], listed("leader-epoch-checkpoint"), {}, {"unknown_indexes": [0]},
    ),
    "deleted before its index was dumped": (LOG, [], listed("leader-epoch-checkpoint"), {}, {"unknown_indexes": [0]}),
    "deleted when its index had been dumped": (
        [*LOG, section("txnindex", is_bare=False)], [], listed("leader-epoch-checkpoint"), {}, {"unknown_indexes": []},
    ),
    "an index without entries of a segment that is still there": (
        [*LOG, section("txnindex", is_bare=True)], [], listed(f"{SEGMENT}.log", f"{SEGMENT}.txnindex"), {}, {"unknown_indexes": []},
    ),
    "deleted since, and without an index in the listing of its time": (
        [section(last=9, end_position=90), section(base=10, last=22), OLD_LISTING], [],
        [*listed(f"{10:020}.log"), *then(f"{SEGMENT}.log", size=90)], {}, {"unknown_indexes": [], "index_state": "absent", "listed": True},
    ),
    "the same, and its text is longer than what was listed": (
        [section(last=9, end_position=91), section(base=10, last=22), OLD_LISTING], [],
        [*listed(f"{10:020}.log"), *then(f"{SEGMENT}.log", size=90)], {}, {"unknown_indexes": [0]},
    ),
    "the same, and the script noted its dump: it was written to meanwhile": (
        [section(last=9, end_position=91, dumped_at_ms=5), section(base=10, last=22), OLD_LISTING, OLD_TIMES], [],
        [*listed(f"{10:020}.log"), *then(f"{SEGMENT}.log", size=90), *noted_then((0, 5))], {}, {"unknown_indexes": []},
    ),
    "the same, and the script noted another dump of it": (
        [section(last=9, end_position=91, dumped_at_ms=7), section(base=10, last=22), OLD_LISTING, OLD_TIMES], [],
        [*listed(f"{10:020}.log"), *then(f"{SEGMENT}.log", size=90), *noted_then((0, 5))], {}, {"unknown_indexes": [0]},
    ),
    "the same, with an index that was not dumped": (
        [section(last=9, end_position=90), section(base=10, last=22), OLD_LISTING], [],
        [*listed(f"{10:020}.log"), *then(f"{SEGMENT}.log", f"{SEGMENT}.txnindex", size=90)], {}, {"unknown_indexes": [0]},
    ),
    "the same of a log that is cleaned": (
        [section(last=9, end_position=90), section(base=10, last=22), OLD_LISTING], [],
        [*listed(f"{10:020}.log"), *then(f"{SEGMENT}.log", size=90)], COMPACT, {"unknown_indexes": [0]},
    ),
    "the same of a topic that was created anew since": (
        [section(last=9, end_position=90), section(base=10, last=22), OLD_LISTING, OLD_LIFE], [],
        [*listed(f"{10:020}.log"), *then(f"{SEGMENT}.log", size=90)], {}, {"unknown_indexes": [0]},
    ),
    "an old listing tells of nothing else": (
        [section(last=9, end_position=90), OLD_LISTING], [], then(f"{SEGMENT}.log", f"{10:020}.log", size=90), {},
        {"listed": False, "tail_intact": True, "missing_segments": []},
    ),
    "snapshot here, an index elsewhere": ([*LOG, section("snapshot", 23), *ELSEWHERE], [], [], {}, {"index_state": "absent"}),
    "the same, and a text of the broker has lines that were not read: one of its own may lie there": (
        [*LOG, section("snapshot", 23), *ELSEWHERE, section("snapshot", replica_log_id=3, topic="other", hides_sections=True)], [], [], {},
        {"index_state": "not_dumped"},
    ),
    "an index elsewhere, and nobody knows which segment of the log the text is": (
        [section(base=None, last=22), section("snapshot", 23), *ELSEWHERE], [], [], {}, {"index_state": "not_dumped"},
    ),
    "snapshot here, no index anywhere": ([*LOG, section("snapshot", 23)], [], [], {}, {"index_state": "not_dumped"}),
    "an index elsewhere, no snapshot here": (LOG + ELSEWHERE, [], [], {}, {"index_state": "not_dumped"}),
    "one index of two": ([section(last=9), section(base=10, last=22), section("txnindex")], [], [], {}, {"unknown_indexes": [10]}),
    "an older segment's text shows less than its listing, which the collector made": (
        [section(last=9, end_position=90), section(base=20, last=22, end_position=40)], [],
        [*listed(f"{SEGMENT}.log", size=100), *listed(f"{20:020}.log", size=40), *dumped((0, 5), (20, 5))], COMPACT,
        {"short_ends": [10], "whole": False, "tail_intact": True},
    ),
    "the same in a listing of another time": (
        [section(last=9, end_position=90), section(base=20, last=22, end_position=40)], [],
        [*listed(f"{SEGMENT}.log", size=100), *listed(f"{20:020}.log", size=40)], COMPACT, {"short_ends": []},
    ),
    "an older segment's text was cut": (
        [section(last=9, end_position=90, tail_intact=False), section(base=20, last=22, end_position=40)], [], [], COMPACT,
        {"short_ends": [10]},
    ),
    "cleaned up to the cleaner's row": (
        LOG + OTHERS, [checkpoint("cleaner-offset", 12)], [], COMPACT,
        {"compacted": True, "uncleaned_from": 12},
    ),
    "copied from a leader whose cleaner was farther": (
        LOG + OTHERS, [checkpoint("cleaner-offset", 12), checkpoint("cleaner-offset", 18) | {"broker": 2, "replica_log_id": 2}], [], {},
        {"compacted": True, "uncleaned_from": 18},
    ),
    "copied from a leader whose cleaner was farther, and whose row is not here": (
        [section(last=22, shows_cleaning=True, cleaned_to=15), *OTHERS], [checkpoint("cleaner-offset", 12)], [], {},
        {"compacted": True, "uncleaned_from": 15},
    ),
    "what is left shows less of the cleaner than its row": (
        [section(last=22, shows_cleaning=True, cleaned_to=9), *OTHERS], [checkpoint("cleaner-offset", 12)], [], {},
        {"compacted": True, "uncleaned_from": 12},
    ),
    "copied from a leader that cleans, and never cleaned here": (
        LOG + OTHERS, [checkpoint("cleaner-offset", 18) | {"broker": 2, "replica_log_id": 2}], [], {},
        {"compacted": True, "uncleaned_from": 18},
    ),
    "compact, but never cleaned": (
        LOG + OTHERS, [], [], COMPACT,
        {"compacted": False, "uncleaned_from": 0, "cleanup_policy": "compact"},
    ),
    "compact, and nobody says how far": (LOG, [], [], COMPACT, {"compacted": True, "uncleaned_from": None}),
    "copied from a leader that cleans": (
        [section(last=22, shows_cleaning=True), *OTHERS], [], [], COMPACT, {"compacted": True, "uncleaned_from": None},
    ),
    "lost records, policy unknown": ([section(last=22, shows_cleaning=True)], [], [], {}, {"compacted": True, "uncleaned_from": None}),
    "lost records in a topic that is not cleaned": (
        [section(last=22, shows_cleaning=True)], [], [], {"topics.orders": None},
        {"compacted": False, "uncleaned_from": 0, "cleanup_policy": "delete"},
    ),
    "the cleaner is off": (
        [section(last=22, shows_cleaning=True)], [], [], COMPACT | {"broker_config.log.cleaner.enable": "false"},
        {"compacted": False, "uncleaned_from": 0},
    ),
    "whole": ([section(last=9), section(base=10, last=22)], [], listed(f"{SEGMENT}.log", f"{10:020}.log"), {}, {"whole": True}),
    "a middle segment is missing": ([section(last=9), section(base=15, last=22)], [], [], {}, {"whole": False}),
    "the cleaner may have emptied the middle": ([section(last=9), section(base=15, last=22)], [], [], COMPACT, {"whole": True}),
    "the listing has a middle segment": (
        [section(last=9), section(base=15, last=22)], [], listed(f"{SEGMENT}.log", f"{12:020}.log"), COMPACT,
        {"whole": False},
    ),
    "no dump times": (LOG, [], listed(f"{SEGMENT}.log"), {}, {"dumped_at_ms": None, "noted_at": None}),
    "the newest segment's dump time": (
        [section(last=9, dumped_at_ms=700), section(base=10, last=22, dumped_at_ms=500)], [], dumped((0, 700), (10, 500)), {},
        {"dumped_at_ms": 500, "index_state": "not_dumped", "missing_segments": [], "whole": True},
    ),
    "the newest segment was dumped again": (
        [section(last=22, dumped_at_ms=900)], [], dumped((0, 500), (0, 900)), {}, {"dumped_at_ms": 900, "index_may_lag": False},
    ),
    "the newest segment was dumped again by somebody who noted nothing": (
        [section(last=22, dumped_at_ms=900)], [], dumped((0, 500)), {}, {"dumped_at_ms": None, "index_may_lag": True},
    ),
    "an index that was dumped with its log": (
        [section(last=22, dumped_at_ms=900), section("txnindex", dumped_at_ms=900)], [], [], {}, {"unknown_indexes": []},
    ),
    "an index that was dumped before its log was dumped again": (
        [section(last=22, dumped_at_ms=900), section("txnindex", dumped_at_ms=500)], [], [], {},
        {"unknown_indexes": [0], "index_state": "not_dumped"},
    ),
    "an index, and nobody knows whether before its log": (
        [section(last=22), section("txnindex", dumped_at_ms=500)], [], [], {}, {"unknown_indexes": [0]},
    ),
    "no index when a log was listed that was dumped again since": (
        [section(last=22, end_position=90, dumped_at_ms=900), OLD_TIMES | {"dumped_at_ms": 500}, *ELSEWHERE], [],
        [row | {"section_id": 76} for row in listed(f"{SEGMENT}.log")], {}, {"unknown_indexes": [0]},
    ),
    "no index when a log was listed whose dump was noted then": (
        [section(last=22, end_position=90, dumped_at_ms=900), OLD_TIMES | {"dumped_at_ms": 500}, *ELSEWHERE], [],
        [row | {"section_id": 76} for row in (*listed(f"{SEGMENT}.log"), *dumped((0, 900)))], {}, {"unknown_indexes": []},
    ),
    "checkpoints of before a log was dumped again": (
        [section(last=22, dumped_at_ms=900), *(row | {"dumped_at_ms": 500} for row in OTHERS)], [checkpoint("replication-offset", 9)],
        [], {}, {"compacted": False, "uncleaned_from": None, "hw": 23, "hw_source": "leo"},
    ),
    "checkpoints of a log of which nothing can be read": (
        [section(last=None, supported=False, is_read=False, dumped_at_ms=900), *(row | {"dumped_at_ms": 500} for row in OTHERS)],
        [checkpoint("replication-offset", 9)], [], {}, {"hw": 9, "hw_source": "checkpoint"},
    ),
    "the cleaner's checkpoint of before a log was dumped again": (
        [section(last=22, dumped_at_ms=900), *(row | {"dumped_at_ms": 500} for row in OTHERS)], [checkpoint("cleaner-offset", 9)], [], {},
        {"compacted": True, "uncleaned_from": None},
    ),
    "checkpoints of the collection that noted when a log was dumped": (
        [section(last=22, dumped_at_ms=900), OLD_TIMES | {"dumped_at_ms": 500}, *(row | {"dumped_at_ms": 500} for row in OTHERS)], [],
        [row | {"section_id": 76} for row in dumped((0, 900))], {}, {"compacted": False, "uncleaned_from": 0},
    ),
    "only an older segment has a dump time": (
        [section(last=9), section(base=10, last=22)], [], dumped((0, 700)), {}, {"dumped_at_ms": None},
    ),
    "dump times list nothing": (
        [section(last=22, dumped_at_ms=500)], [], dumped((0, 500), (23, 500)), {}, {"tail_intact": True, "dumped_at_ms": 500},
    ),
    "decoded": ([section(last=9, decoder="transaction_json"), section(base=10)], [], [], {}, {"decoded": True}),
    "one segment not decoded": (
        [section(last=9, decoder="transaction_json"), section(base=10, last=22, decoder="plain")], [], [], {},
        {"decoded": False},
    ),
    "an internal topic": (
        [section(last=22, topic="__consumer_offsets")], [], [], {},
        {"is_internal": True, "cleanup_policy": "compact", "compacted": True},
    ),
    "the topic of share groups is not cleaned": (
        [section(last=9, topic="__share_group_state"), section(base=15, last=22, topic="__share_group_state", shows_cleaning=True)],
        [], [], {"broker_config.log.cleanup.policy": "compact"},
        {"is_internal": True, "cleanup_policy": "delete", "compacted": False, "uncleaned_from": 0, "whole": False},
    ),
    "an older dialect": (
        [section(last=None, supported=False, is_read=False)], [], [], {},
        {"supported": False, "segments": [], "leo": 0, "index_state": "absent", "first_leader_epoch": None, "is_empty": False},
    ),
    "nobody tells the leader epoch at offset 0": (LOG, [], [], {}, {"first_leader_epoch": None, "is_empty": False}),
    "the first batch was written by the first leader": (
        [section(last=22, first_leader_epoch=0)], [epoch(0, 0), epoch(2, 11)], [], {}, {"first_leader_epoch": 0},
    ),
    "the log begins under a later leader": ([section(last=22, first_leader_epoch=2)], [epoch(2, 0)], [], {}, {"first_leader_epoch": 2}),
    "the first batch alone": (
        [section(last=9, first_leader_epoch=2), section(base=10, last=22)], [], [], {}, {"first_leader_epoch": 2},
    ),
    "the leader epoch checkpoint alone": (LOG, [epoch(5, 7), epoch(3, 0)], [], {}, {"first_leader_epoch": 3}),
    "a first entry above offset 0 tells of that offset only": (
        LOG, [epoch(2, 5), epoch(3, 9)], [], {}, {"first_leader_epoch": None},
    ),
    "nobody tells the newest leader epoch": (LOG, [], [], {}, {"last_leader_epoch": None}),
    "the newest leader epoch by batches": (
        [section(last=9, last_leader_epoch=2), section(base=10, last=22, last_leader_epoch=4)], [], [], {}, {"last_leader_epoch": 4},
    ),
    "the checkpoint knows of less than the batches": (
        [section(last=22, last_leader_epoch=4)], [epoch(0, 0), epoch(2, 10)], [], {}, {"last_leader_epoch": 4},
    ),
    "a new leader that has not written yet": (
        [section(last=22, last_leader_epoch=4)], [epoch(4, 0), epoch(5, 23)], [], {}, {"last_leader_epoch": 5},
    ),
    "a leader epoch that begins behind the end of the dump": (
        [section(last=22, last_leader_epoch=4)], [epoch(4, 0), epoch(5, 24)], [], {}, {"last_leader_epoch": 4},
    ),
    "a log that was not read tells no leader epoch": (
        [section(supported=False, is_read=False)], [epoch(5, 0)], [], {}, {"last_leader_epoch": None},
    ),
    "an empty log": ([section()], [], [], {}, {"supported": True, "is_empty": True, "leo": 0, "first_leader_epoch": None}),
    "a log of several segments, none of which holds a batch": (
        [section(), section(base=9)], [], [], {}, {"is_empty": False, "leo": 9, "whole": False},
    ),
    "an empty log that begins under a later leader": (
        [section()], [epoch(2, 0)], [], {}, {"is_empty": True, "leo": 0, "first_leader_epoch": 2},
    ),
    "an empty dump of a log that has batches, by its snapshot": ([section(), section("snapshot", 9)], [], [], {}, {"is_empty": False}),
    "an empty dump of a log that has batches, by its high watermark": (
        [section()], [checkpoint("replication-offset", 9)], [], {}, {"is_empty": False},
    ),
    "an empty dump of a log that has batches, by a listing without dump times": (
        [section()], [], listed(f"{SEGMENT}.log", size=900), {}, {"is_empty": False, "tail_intact": True},
    ),
    "an empty log, by its listing": ([section()], [], listed(f"{SEGMENT}.log", size=0), {}, {"is_empty": True}),
    "an empty dump of a log that has batches, by its leader epochs": ([section()], [epoch(0, 0), epoch(2, 9)], [], {}, {"is_empty": False}),
    "retention left an empty segment": ([section(base=30)], [], [], {}, {"is_empty": True, "leo": 30, "first_offset": 30}),
    "cut before its first batch": ([section(tail_intact=False)], [], [], {}, {"is_empty": False, "leo": 0}),
    "one empty segment of two": ([section(last=22), section(base=23)], [], [], {}, {"is_empty": False}),
}  # fmt: skip


@pytest.fixture(scope="module")
def logs(spark: SparkSession) -> dict[str, Row]:
    """All cases in one pass, each a cluster of its own; log 1 of each is the one asked about."""
    tables: dict[str, Rows] = {name: [] for name in ("section_status", "checkpoints", "listed_files", "manifest_entries")}
    for case, (sections, checkpoints, listing, manifest, _) in enumerate(CASES.values()):
        read = {"section_id": 1000 * case + 999, "cluster": str(case)}
        own = {"cluster": str(case), "broker": 1, "topic": "orders", "partition": 0, "replica_log_id": 1}
        tables["section_status"] += [own | row | _ids(row, case) for row in sections]
        tables["section_status"].append(read | {"kind": "unknown", "is_read": True})
        tables["checkpoints"] += [
            own | row | read | {"replica_log_id": _log(int(str(row.get("replica_log_id", 1))), case)} for row in checkpoints
        ]
        tables["listed_files"] += [own | read | row | {"replica_log_id": _log(1, case)} for row in listing]
        tables["manifest_entries"] += [read | {"name": name, "value": value} for name, value in manifest.items()]
    found = replica_logs(*(table(spark, name, rows) for name, rows in tables.items())).collect()
    return {name: next(row for row in found if row.replica_log_id == _log(1, case)) for case, name in enumerate(CASES)}


def _log(number: int, case: int) -> int:
    return 10 * case + number


def _ids(row: dict[str, object], case: int) -> dict[str, object]:
    log = row.get("replica_log_id", 1)
    return {"section_id": row.get("section_id", 0), "replica_log_id": None if log is None else _log(int(str(log)), case)}


@pytest.mark.parametrize("name", CASES)
def test_what_is_known_of_a_log(logs: dict[str, Row], name: str) -> None:
    expected = CASES[name][4]
    assert {column: logs[name][column] for column in expected} == expected


def test_the_line_that_has_the_newest_segments_dump_time(logs: dict[str, Row]) -> None:
    assert logs["the newest segment's dump time"].noted_at.byte_offset == 40
