-- Offsets of which an older dump of a log shows batches below its high watermark, and the newest one a later leader epoch: for R01. One row
-- per partition that lost offsets so.
--
-- Each offset belongs to one leader epoch for good once it is below the high watermark (KIP-101): followers copy the epoch of a batch, and
-- the cleaner keeps it (`MemoryRecords.filterTo`), so cleaned logs are compared like others. What lies above may be cut off when a leader
-- comes back. Where the newest epoch of the newer dump lies below the older dump's the topic was created anew: epochs never fall.
--
-- contested                              what contested_sections returns
-- section_status, batches, checkpoints   the tables; of checkpoints those of older dumps as well
WITH

-- A leader notes where its epoch begins before it has written anything (`Partition.makeLeader`).
epoch_starts AS (
    SELECT
        entry.replica_log_id, file.dump_set, file.dumped_at_ms, entry.leader_epoch, entry.offset AS first_offset,
        struct(entry.offset AS base_offset, entry.section_id, entry.byte_offset, entry.length) AS line
    FROM {checkpoints} entry
    JOIN {section_status} file ON file.section_id = entry.section_id
    LEFT SEMI JOIN {contested} contested ON contested.replica_log_id = entry.replica_log_id
    WHERE entry.checkpoint_kind = 'leader-epoch' AND file.is_read AND file.dumped_at_ms IS NOT NULL
),
written AS (
    SELECT /*+ BROADCAST(section) */
        section.*, batch.partition_leader_epoch AS leader_epoch, batch.base_offset AS first_offset, batch.last_offset,
        struct(batch.base_offset, batch.section_id, batch.byte_offset, batch.length) AS line
    FROM {batches} batch
    JOIN {contested} section ON section.section_id = batch.section_id
    WHERE batch.partition_leader_epoch >= 0 AND coalesce(batch.crc_valid, true) AND (section.is_read OR batch.last_offset < section.hw)
),
-- Which offsets a leader epoch has: epochs rise with offsets, so each has one run.
led AS (
    SELECT
        replica_log_id, is_read, dump_set, leader_epoch,
        max(hw) AS hw,
        IF(is_read, min(dumped_at_ms), max(dumped_at_ms)) AS dumped_at_ms,
        min(first_offset) AS first_offset,
        max(last_offset) AS last_offset,
        min(line) AS first_line,
        max(line) AS last_line
    FROM (
        SELECT replica_log_id, is_read, dump_set, leader_epoch, hw, dumped_at_ms, first_offset, last_offset, line FROM written
        UNION ALL
        SELECT replica_log_id, true, dump_set, leader_epoch, NULL, dumped_at_ms, first_offset, NULL, line FROM epoch_starts
    )
    GROUP BY replica_log_id, is_read, dump_set, leader_epoch
),
with_newest_epoch AS (
    SELECT *, max(leader_epoch) OVER (PARTITION BY replica_log_id, is_read, IF(is_read, '', dump_set)) AS newest_epoch FROM led
),
contradicted AS (
    SELECT
        then.replica_log_id, then.dump_set, then.hw,
        greatest(now.first_offset, then.first_offset) AS first_offset,
        then.last_offset,
        then.leader_epoch AS leader_epoch_then,
        now.leader_epoch,
        then.dumped_at_ms AS dumped_at_ms_then,
        now.dumped_at_ms,
        now.first_line AS line,
        then.last_line AS line_then
    FROM with_newest_epoch then
    JOIN with_newest_epoch now ON now.replica_log_id = then.replica_log_id
    -- What one folder held at two times has one checkpoint.
    WHERE now.is_read AND NOT then.is_read AND now.dumped_at_ms > then.dumped_at_ms AND now.dump_set <> then.dump_set
        AND now.leader_epoch > then.leader_epoch AND now.newest_epoch >= then.newest_epoch
        AND now.first_offset <= then.last_offset
),
-- A topic that was created anew, and nobody dumped its id, looks the same from its first epochs on; only what lies before tells: both dumps
-- have a batch there that is one, as its producer numbered it or as its checksum says.
forked AS (
    SELECT replica_log_id, dump_set, min(first_offset) AS first_offset FROM contradicted GROUP BY replica_log_id, dump_set
),
before_fork AS (
    SELECT /*+ BROADCAST(section) */
        section.replica_log_id, section.dump_set, section.is_read,
        struct(
            batch.base_offset, batch.last_offset, batch.partition_leader_epoch,
            IF(batch.base_sequence >= 0, struct(batch.producer_id, batch.producer_epoch AS epoch, batch.base_sequence), NULL) AS numbered,
            IF(batch.base_sequence >= 0, NULL, batch.crc) AS crc
        ) AS content
    FROM {batches} batch
    JOIN (
        SELECT section.section_id, section.is_read, forked.* FROM {contested} section
        JOIN forked ON forked.replica_log_id = section.replica_log_id AND (section.is_read OR section.dump_set = forked.dump_set)
    ) section ON section.section_id = batch.section_id
    WHERE batch.last_offset < section.first_offset AND (batch.base_sequence >= 0 OR batch.crc IS NOT NULL)
),
of_one_life AS (
    SELECT DISTINCT replica_log_id, dump_set
    FROM (
        SELECT replica_log_id, dump_set
        FROM before_fork
        GROUP BY replica_log_id, dump_set, content
        HAVING bool_or(is_read) AND NOT bool_and(is_read)
    )
),
of_logs AS (
    SELECT
        replica_log_id,
        min(first_offset) AS first_offset,
        max(last_offset) AS last_offset,
        max(hw) AS hw_then,
        min_by(struct(leader_epoch, leader_epoch_then, line, dumped_at_ms), struct(first_offset, leader_epoch)) AS first_of,
        max_by(struct(line_then, dumped_at_ms_then), struct(last_offset, dumped_at_ms_then)) AS last_of
    FROM contradicted
    LEFT SEMI JOIN of_one_life ON of_one_life.replica_log_id = contradicted.replica_log_id AND of_one_life.dump_set = contradicted.dump_set
    GROUP BY replica_log_id
),
-- One loss, however many replicas followed the leader that had less.
of_partitions AS (
    SELECT
        lost.*, log.cluster, log.broker, log.topic, log.partition,
        count(1) OVER (PARTITION BY log.cluster, log.topic, log.partition) AS replicas,
        row_number() OVER (
            PARTITION BY log.cluster, log.topic, log.partition
            ORDER BY lost.last_offset DESC, lost.first_offset, log.broker, lost.replica_log_id
        ) AS place
    FROM of_logs lost
    JOIN (SELECT DISTINCT replica_log_id, cluster, broker, topic, partition FROM {section_status}) log
        ON log.replica_log_id = lost.replica_log_id
)

SELECT
    cluster, replica_log_id, broker, topic, partition,
    first_of.line.section_id, first_of.line.byte_offset, first_of.line.length,
    last_of.line_then.section_id AS then_section_id,
    last_of.line_then.byte_offset AS then_byte_offset,
    last_of.line_then.length AS then_length,
    first_offset, last_offset, hw_then,
    first_of.leader_epoch_then, first_of.leader_epoch,
    last_of.dumped_at_ms_then, first_of.dumped_at_ms,
    replicas
FROM of_partitions
WHERE place = 1
