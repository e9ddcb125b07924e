-- Which dump sections are read: each segment, index, snapshot and checkpoint once, however often it was dumped. One row per dump section.
--
-- Per (replica log, kind, segment base) one section is read: one that this release understands, then deep before shallow, then the newer
-- dump, then the longer text; where nobody knows when one of a log's dumps was made, the longer text alone. An older dump of a segment
-- that a newer dump's segment covers is not read either, nor is its index: the cleaner merges segments, and writes their indexes anew. Nor
-- is one in whose midst a newer dump's segment begins: the log was copied anew from another broker; nor what lies behind the newest
-- segment that a newer dump's listing shows, or behind a batch that was written anew. Of two dumps of a log that is cleaned, of which
-- nobody knows when they were made, the one counts that ends last: what the cleaner has left at two times is no log together. Nothing is
-- read of a topic that was deleted and created anew since, nor of a log or a snapshot that its broker no longer has.
-- Files about a broker (checkpoints, listings, manifests) give way to a newer file of the same name only: a broker has checkpoints in each
-- of its log directories. So does what brokers or consumers answered, all of one file, to a newer one at the same path. Dump times of older
-- collections stay: the newer one may be of other topics. `-future`, `-delete` and `-stray` directories and sections of an unknown log are
-- not read. Nor is a snapshot or an index of which a line was not understood, or that was
-- cut: a producer or an entry that it lacks would be missed in the log's or in the broker's files.
--
-- dump_sections, dump_files   the tables
-- dump_sightings              the table: dumps in which the text of a file was met again
-- batches                     the table, for the offsets and clocks of each log section
-- tool_messages, listed_files the tables, for what is wrong with a file as a whole
-- unread_spans                the table, for sidecars that are not understood as a whole
-- checkpoints                 the table, for the logs that a broker has
-- unsupported_dialect         the word for texts that no release of ours understands
-- night_listings              listed_files, for the newest segment of a log; without rows where nothing was dumped twice
WITH

-- What was dumped in one go. A folder that is filled anew each night is told by its manifest, which has the time its collection began; of
-- files whose own times dumped-at.txt says, the last one before. Where nothing says when, only folders tell dumps of one log apart: two in
-- one folder look like one. A file is of the newest dump in which its text was met.
met AS (
    SELECT
        dump_file_id, path, digest, dumped_at_ms, input_path, dump_set, dumped_at_source, false AS is_again,
        IF(dumped_at_source = 'manifest', dumped_at_ms, NULL) AS collected_from_ms
    FROM {dump_files}
    UNION ALL
    SELECT dump_file_id, NULL, NULL, dumped_at_ms, input_path, dump_set, NULL, true, NULL FROM {dump_sightings}
),
of_collections AS (
    SELECT
        * EXCEPT (collected_from_ms),
        max(collected_from_ms) OVER (
            PARTITION BY input_path, dump_set ORDER BY dumped_at_ms RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS collected_from_ms
    FROM met
),
in_sets AS (
    SELECT
        dump_file_id, path, digest, dumped_at_ms, is_again,
        IF(
            dumped_at_ms IS NULL,
            regexp_extract(IF(endswith(input_path, path), input_path, concat(input_path, '/', path)), '\\A(.*)/[^/]*\\z', 1),
            concat_ws(' ', input_path, dump_set, coalesce(string(collected_from_ms), IF(is_again, string(dumped_at_ms), NULL)))
        ) AS dump_set
    FROM of_collections
),
met_again AS (
    -- Two inputs may have it at one moment: then the name decides, and not which was read first.
    SELECT dump_file_id, max(struct(dumped_at_ms, dump_set)) AS newest FROM in_sets WHERE is_again GROUP BY dump_file_id
),
files AS (
    SELECT /*+ BROADCAST(again) */
        file.dump_file_id, file.path, file.digest,
        IF(again.newest.dumped_at_ms > coalesce(file.dumped_at_ms, -1L), again.newest.dumped_at_ms, file.dumped_at_ms) AS dumped_at_ms,
        IF(again.newest.dumped_at_ms > coalesce(file.dumped_at_ms, -1L), again.newest.dump_set, file.dump_set) AS dump_set
    FROM in_sets file
    LEFT JOIN met_again again ON again.dump_file_id = file.dump_file_id
    WHERE NOT file.is_again
),

in_files AS (
    SELECT /*+ BROADCAST(file) */ section.*, file.path, file.digest, file.dumped_at_ms, file.dump_set
    FROM {dump_sections} section
    JOIN files file ON file.dump_file_id = section.dump_file_id
),

-- The newest collection that tells which logs a broker has, by its listing. There may be others of some directories only: of the metadata's
-- own, where no checkpoint lies, or of those whose disk has not failed (each has its meta.properties).
listings AS (
    SELECT
        section.cluster, section.broker, section.section_id, section.dump_set, section.dumped_at_ms,
        count_if(file.replica_log_id IS NULL AND file.file_name = 'meta.properties') AS directories
    FROM in_files section
    JOIN {listed_files} file ON file.section_id = section.section_id
    WHERE section.broker IS NOT NULL AND section.dumped_at_ms IS NOT NULL AND file.file_bytes IS NOT NULL
    GROUP BY section.cluster, section.broker, section.section_id, section.dump_set, section.dumped_at_ms
),
checkpointed AS (
    SELECT section.cluster, section.broker, section.dump_set, entry.replica_log_id
    FROM in_files section
    JOIN {checkpoints} entry ON entry.section_id = section.section_id
    WHERE entry.checkpoint_kind = 'replication-offset'
),
newest_listings AS (
    SELECT cluster, broker, newest.*
    FROM (
        SELECT
            cluster, broker, max(struct(dumped_at_ms, section_id, dump_set, directories)) AS newest, max(directories) AS most_directories
        FROM listings
        LEFT SEMI JOIN checkpointed USING (cluster, broker, dump_set)
        GROUP BY cluster, broker
    )
    WHERE newest.directories >= greatest(most_directories, 1)
),
-- Logs that it shows, or that a checkpoint of the same collection names, as one that did not finish does.
still_there AS (
    SELECT file.replica_log_id
    FROM {listed_files} file
    JOIN newest_listings newest ON newest.section_id = file.section_id
    UNION
    SELECT named.replica_log_id
    FROM checkpointed named
    JOIN newest_listings newest USING (cluster, broker, dump_set)
),
-- Segments and snapshots that a log had, by the listings of its dumps.
files_of_logs AS (
    SELECT
        file.replica_log_id, section.section_id, section.dump_set, section.dumped_at_ms, file.file_bytes,
        regexp_extract(file.file_name, '[.](log|snapshot)\\z', 1) AS kind,
        try_cast(regexp_extract(file.file_name, '\\A(\\d{{20}})[.](?:log|snapshot)\\z', 1) AS BIGINT) AS base
    FROM in_files section
    JOIN {night_listings} file ON file.section_id = section.section_id
    WHERE file.replica_log_id IS NOT NULL AND file.file_bytes IS NOT NULL AND NOT file.folder RLIKE '-(?:delete|future|stray)\\z'
),
shown AS (
    SELECT replica_log_id, dump_set, max(base) AS last_base, max_by(file_bytes, base) = 0 AS is_last_empty
    FROM files_of_logs
    WHERE kind = 'log'
    GROUP BY replica_log_id, dump_set
),
-- Snapshots that the newest listing of their log lacks, where it shows any snapshots. A broker that cuts off the end of its log removes
-- those behind it (`ProducerStateManager.truncateAndReload`), and what was written there since may reach further than before.
newest_of_logs AS (
    SELECT
        replica_log_id, max_by(section_id, struct(dumped_at_ms, section_id)) AS section_id,
        max_by(dump_set, struct(dumped_at_ms, section_id)) AS dump_set, max(dumped_at_ms) AS dumped_at_ms
    FROM files_of_logs
    WHERE kind = 'log'
    GROUP BY replica_log_id
),
gone_snapshots AS (
    SELECT section.section_id, newest.section_id AS listing_id
    FROM in_files section
    JOIN newest_of_logs newest ON newest.replica_log_id = section.replica_log_id
    LEFT SEMI JOIN files_of_logs one ON one.section_id = newest.section_id AND one.kind = 'snapshot'
    LEFT ANTI JOIN files_of_logs still ON still.section_id = newest.section_id AND still.replica_log_id = section.replica_log_id
        AND still.kind = 'snapshot' AND still.base = section.segment_base_offset
    WHERE section.kind = 'snapshot' AND section.dumped_at_ms < newest.dumped_at_ms AND section.dump_set <> newest.dump_set
),
-- What was dumped before, of a log that is not among them: its topic was deleted, or its partition was moved to another broker. The
-- directory of the metadata may be listed apart.
removed AS (
    SELECT section_id, max(listing_id) AS listing_id
    FROM (
        SELECT section.section_id, newest.section_id AS listing_id
        FROM in_files section
        JOIN newest_listings newest ON newest.cluster = section.cluster AND newest.broker = section.broker
        LEFT ANTI JOIN still_there ON still_there.replica_log_id = section.replica_log_id
        WHERE section.replica_log_id IS NOT NULL AND NOT section.topic <=> '__cluster_metadata'
            AND section.dumped_at_ms < newest.dumped_at_ms
        UNION ALL
        SELECT section_id, listing_id FROM gone_snapshots
    )
    GROUP BY section_id
),
