-- Log sections of older dumps that a later leader epoch of the newest dump may contradict, with all that is read of these logs. One row per
-- such section.
--
-- Of most nights none: leaders begin their epochs where the log ends. Asked of sections and checkpoints alone, so that the batches of all
-- nights before need not be read each night.
--
-- section_status, checkpoints   the tables; of checkpoints those of older dumps as well
WITH

-- Dumps of which it is known that another one is newer.
older AS (
    SELECT section_id, replica_log_id, dump_set, dumped_at_ms, last_offset, last_leader_epoch
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
read AS (
    SELECT status.section_id, status.replica_log_id, status.dump_set, status.dumped_at_ms, status.first_offset, status.last_leader_epoch
    FROM {section_status} status
    LEFT SEMI JOIN older ON older.replica_log_id = status.replica_log_id
    WHERE status.kind = 'log' AND status.is_read AND status.dumped_at_ms IS NOT NULL
),
epoch_starts AS (
    SELECT entry.replica_log_id, entry.leader_epoch, entry.offset AS first_offset
    FROM {checkpoints} entry
    JOIN {section_status} file ON file.section_id = entry.section_id
    LEFT SEMI JOIN older ON older.replica_log_id = entry.replica_log_id
    WHERE entry.checkpoint_kind = 'leader-epoch' AND file.is_read
),
-- Where a later epoch begins: as the leader noted it, or not before the segment in which it is first met.
later AS (
    SELECT replica_log_id, leader_epoch, first_offset FROM epoch_starts
    UNION ALL
    SELECT replica_log_id, last_leader_epoch, first_offset FROM read LEFT ANTI JOIN epoch_starts USING (replica_log_id)
),
contested AS (
    SELECT older.*, noted.hw
    FROM older
    JOIN noted ON noted.replica_log_id = older.replica_log_id AND noted.dump_set = older.dump_set
    LEFT SEMI JOIN later
        ON later.replica_log_id = older.replica_log_id
        AND later.leader_epoch > older.last_leader_epoch
        AND later.first_offset < least(older.last_offset + 1, noted.hw)
)

SELECT section_id, replica_log_id, dump_set, dumped_at_ms, false AS is_read, hw FROM contested
UNION ALL
SELECT section_id, replica_log_id, dump_set, dumped_at_ms, true, CAST(NULL AS LONG)
FROM read
LEFT SEMI JOIN contested USING (replica_log_id)
