-- What holds for a log as a whole: its end, the cleaner and what is known of it, what was listed and when, where the listed log begins.
-- Numbers in brackets are those of the head of 1_facts.sql.

of_cluster AS (
    SELECT
        * EXCEPT (cleaner_row), cleaner_row AS own_cleaner_row,
        -- A follower copies what its leader has left of the log: the cleaner was as far as that of any replica. Where the row of the one
        -- that was farthest is not here, what it wrote anew still shows how far it came at least (`Cleaner.doClean`).
        IF(
            max(cleaner_row) OVER replicas IS NULL, NULL, greatest(max(cleaner_row) OVER replicas, max(cleaned_to) OVER replicas)
        ) AS cleaner_row,
        array_max(filter(
            collect_set(IF(checkpoints_of IS NULL, NULL, struct(coalesce(broker, -1) AS broker, checkpoints_of.dumped_at_ms)))
                OVER cluster_rows,
            of_broker -> of_broker.broker = coalesce(broker, -1)
        )) AS checkpoints,
        -- In text that was not read there may be another one.
        array_contains(
            array_except(
                collect_set(IF(size(indexes) > 0, coalesce(broker, -1), NULL)) OVER cluster_rows,
                collect_set(IF(hides_sections, coalesce(broker, -1), NULL)) OVER cluster_rows
            ),
            coalesce(broker, -1)
        ) AS broker_has_index,
        flatten(collect_list(said) OVER cluster_rows) AS manifest,
        bool_or(coalesce(topic = '__remote_log_metadata', false) OR coalesce(start_row = 0, false)) OVER cluster_rows AS shows_remote
    FROM gathered
    WINDOW cluster_rows AS (PARTITION BY cluster), replicas AS (PARTITION BY cluster, topic, partition)
),
logs AS (
    SELECT
        *,
        transform(read, s -> s.base_offset) AS bases,
        -- Segments that were gone, or not there yet, when their directory was listed, or that were dumped again since: it says nothing of
        -- their indexes.
        IF(
            listed,
            transform(
                filter(
                    read,
                    s -> NOT array_contains(listed_logs, s.base_offset)
                        OR (
                            NOT coalesce(listed_at_ms >= s.dumped_at_ms, listed_at_ms IS NULL AND s.dumped_at_ms IS NULL)
                            AND NOT exists(dump_times, t -> t.base_offset = s.base_offset AND t.noted.dumped_at_ms = s.dumped_at_ms)
                        )
                ),
                s -> s.base_offset
            ),
            array()
        ) AS unlisted,
        -- Indexes that were dumped before their log was dumped again: of what was written between they hold no entry. (Here and above
        -- `is_older` in full: no lambda may call a function.)
        transform(
            filter(
                read,
                s -> exists(
                    indexes_at,
                    i -> i.base_offset = s.base_offset
                        AND NOT coalesce(i.dumped_at_ms >= s.dumped_at_ms, i.dumped_at_ms IS NULL AND s.dumped_at_ms IS NULL)
                )
            ),
            s -> s.base_offset
        ) AS older_indexes,
        -- When its newest segment was dumped, if collect-dumps.sh noted it.
        array_max(transform(
            filter(
                dump_times,
                t -> t.base_offset = try_element_at(read, -1).base_offset AND t.noted.dumped_at_ms <=> try_element_at(read, -1).dumped_at_ms
            ),
            t -> t.noted
        )) AS noted,
        -- A segment without a batch still says that the log had reached its base.
        coalesce(greatest(array_max(transform(read, s -> s.end)), array_max(transform(read, s -> s.base_offset))), 0L) AS leo,
        size(read) > 0 AS supported,
        coalesce(said(manifest, 'broker_config.log.cleaner.enable') = 'false', false) AS cleaner_is_off,
        coalesce(
            exists(manifest, e -> e.name = concat('topics.', topic) OR startswith(e.name, concat('topics.', topic, '.'))), false
        ) AS is_mentioned,
        is_internal(topic) AS is_internal,
        -- Of the newest dump of a log: when, which, its lowest segment. Files of which nobody knows when they were dumped may be of any.
        IF(exists(dumped, d -> d.dumped_at_ms IS NULL), NULL, array_max(dumped)) AS newest
    FROM of_cluster
    WHERE is_log
),
configured AS (
    SELECT
        *,
        coalesce(
            said(manifest, concat('topics.', topic, '.cleanup.policy')),
            -- What brokers create them with, whatever log.cleanup.policy says (`AutoTopicCreationManager`). The share coordinator deletes
            -- the records below its snapshots itself (KIP-932: `ShareCoordinatorService.shareGroupStateTopicConfigs`).
            CASE
                WHEN topic IN ('__transaction_state', '__consumer_offsets') THEN 'compact'
                WHEN topic = '__share_group_state' THEN 'delete'
            END,
            IF(is_mentioned, coalesce(said(manifest, 'broker_config.log.cleanup.policy'), 'delete'), NULL)
        ) AS cleanup_policy,
        IF(
            supported,
            greatest(batch_leader_epoch, array_max(transform(filter(epoch_rows, e -> e.offset <= leo), e -> e.leader_epoch))),
            NULL
        ) AS last_leader_epoch,
        coalesce(
            shows_remote
                OR said(manifest, 'broker_config.remote.log.storage.system.enable') = 'true'
                OR said(manifest, concat('topics.', topic, '.remote.storage.enable')) = 'true',
            false
        ) AS may_be_remote,
        transform(filter(dumped, d -> d.dump_set = newest.dump_set), d -> d.base_offset) AS dumped_then,
        coalesce(NOT coalesce(listed_at_ms < newest.dumped_at_ms, false) AND size(listed_logs) > 0, false) AS is_listed_then,
        -- Checkpoints of an older collection say nothing of what was done to a log since. Null: the broker has none.
        IF(
            checkpoints IS NULL,
            NULL,
            size(read) > 0 AND is_older(checkpoints.dumped_at_ms, IF(noted IS NULL, try_element_at(read, -1).dumped_at_ms, listed_at_ms))
        ) AS checkpoints_are_older,
        array_max(transform(filter(listed_sizes, l -> l.base_offset = array_max(bases)), l -> l.file_bytes)) AS listed_bytes
    FROM logs
),
cleaned AS (
    SELECT
        *,
        CASE
            WHEN cleaner_row IS NOT NULL THEN true
            WHEN cleaner_is_off OR (NOT coalesce(checkpoints_are_older, true) AND NOT shows_cleaning) THEN false
            ELSE coalesce(contains(cleanup_policy, 'compact'), shows_cleaning)
        END AS compacted,
        -- Segments that a listing of any time shows at least as long as their text, and no index beside them: an index is made with its
        -- first entry (`TransactionIndex.append`), so what the text shows has none. Only the cleaner makes a segment shorter. So do
        -- segments whose dump collect-dumps.sh noted: it dumps the indexes behind the log, and lists what there is.
        IF(
            was_created_anew OR shows_cleaning OR coalesce(contains(cleanup_policy, 'compact'), false),
            array(),
            transform(
                filter(
                    read,
                    s -> exists(
                        then_listed,
                        l -> l.base_offset = s.base_offset
                            AND (
                                l.file_bytes >= coalesce(s.end_position, 0L)
                                OR array_contains(then_noted, struct(l.dump_set, l.base_offset, s.dumped_at_ms))
                            )
                            AND NOT array_contains(then_indexed, struct(l.section_id, l.base_offset))
                    )
                ),
                s -> s.base_offset
            )
        ) AS unindexed,
        IF(
            is_listed_then,
            array_min(listed_logs),
            -- A dump of a few segments, brought later, does not show the others gone: the newest segment of all is in a whole one.
            greatest(array_min(listed_logs), IF(array_max(dumped_then) >= array_max(bases), array_min(dumped_then), NULL))
        ) AS head
    FROM configured
),
