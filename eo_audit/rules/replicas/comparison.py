"""Replicas beside each other, and dumps of one replica (R01): batches that stand at one offset, and are not the same there."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from eo_audit.rules.sources import SOURCES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BESIDE = ("other_log", "settled", "outvoted")
_THEN = ("hw_then", "leader_epoch_then", "leader_epoch", "dumped_at_ms_then", "dumped_at_ms", "replicas")
FOUND = " ".join((*_BESIDE, *_THEN))

_DIFFERENCES = """
WITH known AS (
    SELECT replica_log_id, cluster, broker, topic, partition, topic_id, log_start, leo, coalesce(last_leader_epoch, -1) AS epoch,
        IF(compacted, uncleaned_from, 0L) AS uncleaned,
        IF(hw_source = 'checkpoint', hw, NULL) AS noted_hw
    FROM {visibility}
), named AS (
    -- A topic that was created anew between the dumps of two brokers is two. What has no id is compared all the same.
    SELECT * EXCEPT (topic_id),
        coalesce(topic_id, max(topic_id) OVER (PARTITION BY cluster, topic, partition), '') AS topic_id
    FROM known
), logs AS (
    -- Null where nobody knows how far a cleaner came, or which offsets were replicated.
    SELECT * EXCEPT (uncleaned, noted_hw),
        count(1) OVER replicas AS dumped,
        -- A bit for each replica; no partition has 64.
        shiftleft(1L, int(row_number() OVER (PARTITION BY cluster, topic, partition, topic_id ORDER BY replica_log_id) - 1)) AS own_bit,
        IF(count(uncleaned) OVER replicas = count(1) OVER replicas, max(uncleaned) OVER replicas, NULL) AS comparable_from,
        IF(count(noted_hw) OVER replicas = count(1) OVER replicas, min(noted_hw) OVER replicas, NULL) AS least_hw
    FROM named
    WINDOW replicas AS (PARTITION BY cluster, topic, partition, topic_id)
), batches AS (
    -- The checksum covers all of a batch but its base offset and leader epoch (`DefaultRecordBatch`), which followers copy as they are.
    -- What a tool before 2.2 printed has neither: while brokers are upgraded one by one, each is dumped by the tool of its own release.
    SELECT /*+ BROADCAST(logs) */ history.*, logs.* EXCEPT (replica_log_id), struct(last_offset, crc, partition_leader_epoch) AS content
    FROM {history} history
    JOIN logs ON logs.replica_log_id = history.replica_log_id AND dumped > 1 AND base_offset >= comparable_from
    WHERE judged AND crc IS NOT NULL
), versions AS (
    SELECT cluster, topic, partition, topic_id, base_offset, content, count(1) AS holders, bit_or(own_bit) AS held_by,
        min(least_hw) AS least_hw, max(log_start) AS log_start,
        -- Nothing else decides: the broker does, for ids are made of the cluster's name, too.
        max(struct(epoch, leo, broker, replica_log_id)) AS place
    FROM batches
    GROUP BY cluster, topic, partition, topic_id, base_offset, content
), offsets AS (
    -- KIP-101: where replicas differ the log of the newest leader epoch counts; of those, what most of them hold.
    SELECT cluster, topic, partition, topic_id, base_offset, count(1) AS versions, sum(holders) AS holders, bit_or(held_by) AS held_by,
        min(least_hw) AS least_hw, max(log_start) AS log_start,
        max(struct(place.epoch, holders, place.leo, place.broker, place.replica_log_id, content)) AS counts
    FROM versions
    GROUP BY cluster, topic, partition, topic_id, base_offset
), differing AS (
    -- The replicas that agree with others on a batch from here on. What the others agree on behind the end of a dead leader's log says
    -- nothing of that log.
    SELECT *, coalesce(bit_or(IF(versions = 1 AND holders > 1, held_by, NULL)) OVER from_here, 0L) AS agreeing
    FROM offsets
    WINDOW from_here AS (
        PARTITION BY cluster, topic, partition, topic_id
        ORDER BY base_offset DESC
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    )
)
SELECT /*+ BROADCAST(differing) */ batches.*, 'R01' AS rule,
    counts.replica_log_id AS other_log,
    coalesce(batches.base_offset < differing.least_hw, false) OR agreeing & own_bit <> 0 AS settled,
    epoch < counts.epoch OR counts.holders > 1 AS outvoted
FROM batches
JOIN differing
    ON differing.cluster = batches.cluster AND differing.topic = batches.topic AND differing.partition = batches.partition
    AND differing.topic_id = batches.topic_id AND differing.base_offset = batches.base_offset AND versions > 1
WHERE batches.content <> counts.content
    -- Records that were deleted on request stay in their segment, and no consumer gets them. A follower asks where the epoch of its last
    -- batch ends, and a leader that has deleted all of that epoch answers with its log start (`LeaderEpochFileCache.endOffsetFor`): what
    -- the follower has below stays as it is.
    AND NOT coalesce(batches.last_offset < differing.log_start, false)
"""


def differences(histories: "Mapping[str, DataFrame]") -> "DataFrame":
    """Batches of a replica that another replica of the partition, whose log counts, has otherwise.

    The cleaner works on each replica alone, so only what it never touched in any is compared.

    Args:
        histories: history tables by name; producer_history, visibility and overwritten_offsets are read.

    Returns:
        Hits of R01, with other_log (the replica that counts); settled: the batch lies below the high watermark of all replicas, as their
        brokers noted it, or before a batch that it has like others, else a broker that comes back may still cut it off; outvoted: leader
        epochs or the number of replicas tell which one counts. And the rows of overwritten_offsets: what one log had, and has no more.
    """
    from eo_audit.rules.cases import hits  # late, for whoever reads the catalogue and needs no Spark

    rows = histories["producer_history"]
    found = rows.sparkSession.sql(_DIFFERENCES, history=rows, visibility=histories["visibility"])
    beside = hits(SOURCES["producer_history"], found, key="other_log", weight="0", columns=_BESIDE)
    overwritten = histories["overwritten_offsets"].selectExpr("*", "'R01' AS rule")
    return beside.unionByName(hits(SOURCES["overwritten_offsets"], overwritten, key="'then'", weight="0", columns=_THEN))
