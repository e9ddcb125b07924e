-- Offsets of which an older dump of a log shows batches below its high watermark, and the newest one batches of a later leader epoch: for R01.
--
-- Each offset belongs to one leader epoch for good once it is below the high watermark (KIP-101): followers copy the epoch of a batch, and
-- the cleaner keeps it (`MemoryRecords.filterTo`), so cleaned logs are compared like others. What lies above may be cut off when a leader
-- comes back. Where the newest epoch of the newer dump lies below the older dump's the topic was created anew: epochs never fall.
--
-- section_status, batches, checkpoints   the tables; of checkpoints those of older dumps as well
WITH

-- Dumps of which it is known that another one is newer.
older AS (
    SELECT section_id, replica_log_id, dump_set, dumped_at_ms
    FROM {section_status}
    WHERE kind = 'log' AND supersession_reason = 'newer_dump' AND dumped_at_ms IS NOT NULL
),
noted AS (
    SELECT entry.replica_log_id, file.dump_set, max(entry.offset) AS hw
    FROM {checkpoints} entry
    JOIN {section_status} file ON file.section_id = entry.section_id
    WHERE entry.checkpoint_kind = 'replication-offset'
    GROUP BY entry.replica_log_id, file.dump_set
),
sections AS (
    SELECT older.*, false AS is_read, noted.hw
    FROM older
    JOIN noted ON noted.replica_log_id = older.replica_log_id AND noted.dump_set = older.dump_set
    UNION ALL
    SELECT status.section_id, status.replica_log_id, status.dump_set, status.dumped_at_ms, true, NULL
    FROM {section_status} status
    LEFT SEMI JOIN older ON older.replica_log_id = status.replica_log_id
    WHERE status.kind = 'log' AND status.is_read AND status.dumped_at_ms IS NOT NULL
),

-- Which offsets a leader epoch has: epochs rise with offsets, so each has one run.
led AS (
    SELECT /*+ BROADCAST(section) */
        section.replica_log_id, section.is_read, section.dump_set,
        batch.partition_leader_epoch AS leader_epoch,
        max(section.hw) AS hw,
        IF(section.is_read, min(section.dumped_at_ms), max(section.dumped_at_ms)) AS dumped_at_ms,
        min(batch.base_offset) AS first_offset,
        max(batch.last_offset) AS last_offset,
        min(struct(batch.base_offset, batch.section_id, batch.byte_offset, batch.length)) AS first_batch,
        max(struct(batch.base_offset, batch.section_id, batch.byte_offset, batch.length)) AS last_batch
    FROM {batches} batch
    JOIN sections section ON section.section_id = batch.section_id
    WHERE batch.partition_leader_epoch >= 0 AND coalesce(batch.crc_valid, true) AND (section.is_read OR batch.last_offset < section.hw)
    GROUP BY section.replica_log_id, section.is_read, section.dump_set, batch.partition_leader_epoch
),
told AS (
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
        now.first_batch AS batch,
        then.last_batch AS batch_then
    FROM told then
    JOIN told now ON now.replica_log_id = then.replica_log_id
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
        SELECT section.section_id, section.is_read, forked.* FROM sections section
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
        min_by(struct(leader_epoch, leader_epoch_then, batch, dumped_at_ms), struct(first_offset, leader_epoch)) AS first_of,
        max_by(struct(batch_then, dumped_at_ms_then), struct(last_offset, dumped_at_ms_then)) AS last_of
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
            PARTITION BY log.cluster, log.topic, log.partition ORDER BY lost.last_offset DESC, lost.first_offset, log.broker, lost.replica_log_id
        ) AS place
    FROM of_logs lost
    JOIN (SELECT DISTINCT replica_log_id, cluster, broker, topic, partition FROM {section_status}) log
        ON log.replica_log_id = lost.replica_log_id
)

SELECT
    cluster, replica_log_id, broker, topic, partition,
    first_of.batch.section_id, first_of.batch.byte_offset, first_of.batch.length,
    last_of.batch_then.section_id AS then_section_id,
    last_of.batch_then.byte_offset AS then_byte_offset,
    last_of.batch_then.length AS then_length,
    first_offset, last_offset, hw_then,
    first_of.leader_epoch_then, first_of.leader_epoch,
    last_of.dumped_at_ms_then, first_of.dumped_at_ms,
    replicas
FROM of_partitions
WHERE place = 1
