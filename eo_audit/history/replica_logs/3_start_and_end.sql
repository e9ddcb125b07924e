-- Where a log starts and ends: what the broker deleted, what was left out, which of its indexes were dumped, whether the broker had been
-- stopped. Numbers in brackets are those of the head of 1_facts.sql.
--
-- `read` are the segments that are read, in order, and `bases` their base offsets; `dumped` are all that any dump held, read or not.
-- `head` is the lowest base of the newest dump or listing, where one is known to be the newest; `first_base` the lowest base behind the
-- last removal: there the log that can be judged begins. `first_offset` lies above it where its first lines are missing.

-- Each segment beside the next one. What is missing between two, while one dump holds segments on both sides of it, is missing within a
-- dump.
beside_next AS (
    SELECT
        *,
        transform(
            read,
            (s, i) -> struct(
                coalesce(s.end, s.base_offset) AS end,
                get(bases, i + 1) AS next,
                arrays_overlap(
                    transform(filter(dumped, d -> d.base_offset <= s.base_offset), d -> d.dump_set),
                    transform(filter(dumped, d -> d.base_offset >= get(bases, i + 1)), d -> d.dump_set)
                ) AS is_within_dump
            )
        ) AS pairs
    FROM cleaned
),
-- (1, 9) What the broker deleted before a segment, and what may be deleted or lost there.
between_segments AS (
    SELECT
        * EXCEPT (pairs),
        coalesce(
            may_be_remote
                AND start_row < coalesce(head, array_min(bases))
                AND coalesce(epoch_start < coalesce(head, array_min(bases)), true),
            false
        ) AS in_remote,
        transform(
            pairs,
            pair -> struct(
                pair.next,
                -- Of a compacted log only what no dump shows both sides of: what is missing within one dump, the cleaner took.
                coalesce(
                    pair.end < pair.next
                        AND coalesce(greatest(start_row, head) >= pair.next, false)
                        AND NOT (compacted AND pair.is_within_dump),
                    false
                ) AS is_removed,
                coalesce(
                    NOT compacted
                        AND pair.end < pair.next
                        AND newest IS NULL
                        AND NOT exists(listed_logs, base -> base >= pair.end AND base < pair.next)
                        AND coalesce(NOT pair.is_within_dump, false),
                    false
                ) AS is_unordered
            )
        ) AS gaps
    FROM beside_next
),
with_removals AS (
    SELECT
        *,
        array_compact(transform(gaps, gap -> IF(gap.is_removed OR gap.is_unordered, gap.next, NULL))) AS removed_before,
        array_compact(transform(gaps, gap -> IF(gap.is_unordered AND NOT gap.is_removed, gap.next, NULL))) AS unordered_before
    FROM between_segments
),
-- Where what is read begins, behind the last removal.
based AS (
    SELECT *, coalesce(array_max(removed_before), array_min(bases)) AS first_base
    FROM with_removals
),
started AS (
    -- The first lines of the lowest segment may be missing from its text. In one of a tool up to 2.1 a batch that the cleaner emptied
    -- leaves no line, so the first one may stand behind such.
    SELECT
        *,
        coalesce(
            array_min(transform(filter(read, s -> s.base_offset = first_base AND (s.has_sizes OR NOT compacted)), s -> s.cut_before)),
            first_base
        ) AS first_offset
    FROM based
),
-- (1) Where the log itself starts, and which word says so.
with_log_start AS (
    SELECT
        *,
        -- (6) What tells of segments that the broker has and nobody dumped. What a listing does not show was not left out: it was deleted,
        -- perhaps after the checkpoints were written.
        IF(
            in_remote OR size(removed_before) > 0,
            NULL,
            least(IF(listed, NULL, least(start_row, epoch_start)), array_min(listed_logs))
        ) AS told_from,
        CASE
            WHEN size(unordered_before) > 0 THEN NULL
            WHEN in_remote THEN start_row
            -- A listing of another time may show what was deleted since.
            ELSE coalesce(greatest(start_row, least(greatest(head, first_base), IF(listed AND NOT is_listed_then, NULL, told_from))), 0L)
        END AS log_start,
        CASE
            WHEN log_start IS NULL THEN NULL
            WHEN start_row >= log_start THEN 'checkpoint'
            WHEN array_min(listed_logs) = log_start THEN 'listing'
            WHEN epoch_start = log_start THEN 'leader_epochs'
            WHEN exists(dumped, d -> d.base_offset < log_start) THEN 'older_dump'
            ELSE 'segment_base'
        END AS log_start_source,
        transform(read, (s, i) -> struct(s.base_offset, coalesce(get(bases, i + 1), leo) AS end_offset, s.section_id)) AS segments
    FROM started
),
-- What of the log the dumps lack: segments, its head, ends of texts, indexes.
lacking AS (
    SELECT
        *,
        -- null: nothing says so
        array_sort(filter(array_except(listed_logs, bases), base -> base > first_base AND base < array_max(bases)))
            AS missing_segments,
        nullif(least(IF(in_remote, start_row, told_from), first_base, first_offset), first_offset) AS missing_head_from,
        -- Without a listing nobody knows whether a segment that the broker has was left out, and with it what is open.
        coalesce(in_remote AND listed AND array_min(listed_logs) >= first_base AND first_offset = first_base, false) AS only_remote_missing,
        -- collect-dumps.sh, which notes its times, lists the size of a log's newest segment right before its dump: a text that shows less
        -- was cut, also where it was cut between two lines. A listing that was made by hand may be younger than the dump.
        transform(
            filter(
                read,
                s -> s.base_offset < array_max(bases) AND (
                    NOT s.tail_intact
                    OR coalesce(
                        s.has_sizes AND size(dump_times) > 0 AND exists(
                            listed_sizes, l -> l.base_offset = s.base_offset AND l.file_bytes > IF(s.end IS NULL, 0L, s.end_position)
                        ),
                        false
                    )
                )
            ),
            s -> coalesce(s.end, s.base_offset)
        ) AS short_ends,
        -- So was one whose newest segment was listed and could not be dumped. Up to 2.1 the text does not say where its newest batch ends.
        coalesce(
            noted IS NOT NULL AND (
                listed_bytes > IF(
                    coalesce(try_element_at(read, -1).has_sizes, true),
                    coalesce(try_element_at(read, -1).end_position, 0L),
                    try_element_at(read, -1).end_at_most
                )
                OR array_max(listed_logs) > array_max(bases)
            ),
            false
        ) AS listed_longer,
        -- (4) An empty segment whose path has no offset has no base.
        array_sort(array_compact(array_union(
            array_except(
                CASE
                    WHEN listed THEN array_union(
                        array_intersect(bases, listed_indexes),
                        filter(
                            array_except(unlisted, unindexed),
                            base -> NOT coalesce(broker_has_index AND base > array_max(listed_logs) AND base <= snapshot.offset, false)
                        )
                    )
                    WHEN snapshot IS NOT NULL AND broker_has_index THEN slice(bases, 1, 0)
                    ELSE bases
                END,
                indexes
            ),
            array_intersect(
                bases,
                array_union(
                    array_union(indexes_in_part, older_indexes), array_except(array_intersect(unlisted, bare_indexes), unindexed)
                )
            )
        ))) AS unknown_indexes
    FROM with_log_start
),
-- Whether the text ends where the log does.
with_tail AS (
    SELECT
        *,
        -- A snapshot or a listed segment beyond the end of the dump tells of a tail, too; not one that was taken after the files were
        -- listed, which may be younger than the dump of the log.
        coalesce(try_element_at(read, -1).tail_intact, false)
            AND NOT coalesce(snapshot.offset > leo AND (NOT listed OR array_contains(listed_snapshots, snapshot.offset)), false)
            AND NOT coalesce(array_max(listed_logs) > array_max(bases), false)
            AND NOT listed_longer
            AND NOT coalesce(topic = '__transaction_state' AND greatest(hw_row, recovery_row) > leo, false) AS tail_intact,
        -- Where its batches end; where nothing of any is left, all that its segments held is missing: no broker rolls an empty segment.
        coalesce(array_max(transform(read, s -> s.end)), array_min(bases)) AS ends_below
    FROM lacking
),
closed AS (
    SELECT
        *,
        -- A dump tool that died before the first batch leaves the same text: none is called empty of which a listing of any time shows
        -- bytes, or the leader epoch cache an entry behind its end.
        supported AND tail_intact AND forall(read, s -> s.end IS NULL AND s.tail_intact)
            AND NOT coalesce(array_max(bases) > ends_below, false)
            AND NOT coalesce(greatest(hw_row, recovery_row) > leo, false)
            AND NOT coalesce(listed_bytes > 0, false)
            AND NOT exists(epoch_rows, e -> e.offset > leo) AS is_empty,
        -- (5) `UnifiedLog.close` takes a snapshot; a flushed end alone is no stop (log.flush.interval.messages), one beyond the dump's end
        -- is. An index has entries of its own segment (`TransactionIndex` makes the file with the first): one that begins at the end of
        -- what was dumped shows that the log was rolled there (`UnifiedLog.roll` takes a snapshot as well), and went on.
        tail_intact
            -- One that was taken after the files were listed may be of a roll: the broker ran.
            AND coalesce(
                (snapshot.offset = leo AND (NOT listed OR array_contains(listed_snapshots, snapshot.offset))) OR recovery_row > leo, false
            )
            AND NOT coalesce(array_max(concat(indexes, listed_indexes)) >= leo, false)
            -- The script copies the cleaner's checkpoint last: where it was beyond the end, the log had gone on.
            AND NOT coalesce(own_cleaner_row > leo, false) AS has_clean_end,
        exists(
            transform(read, (s, i) -> coalesce(s.end, s.base_offset) < get(bases, i + 1) AND s.base_offset >= first_base), jumps -> jumps
        ) AS jumps
    FROM with_tail
)

SELECT
    replica_log_id, cluster, broker, topic, partition, topic_id, is_internal, supported,
    segments, first_offset, removed_before, unordered_before,
    listed, first_leader_epoch, last_leader_epoch,
    IF(size(unordered_before) = 0, array_sort(epoch_rows), array()) AS leader_epochs,
    is_empty, missing_head_from, in_remote, only_remote_missing, missing_segments,
    log_start, log_start_source,
    -- (2) The checkpoint is written every five seconds (replica.high.watermark.checkpoint.interval.ms); the log start may have passed it.
    IF(
        hw_row IS NULL OR coalesce(checkpoints_are_older, false), leo, greatest(IF(tail_intact, least(hw_row, leo), hw_row), log_start)
    ) AS hw,
    IF(hw_row IS NULL OR coalesce(checkpoints_are_older, false), 'leo', 'checkpoint') AS hw_source,
    leo, tail_intact, listed_longer, short_ends,
    IF(
        try_element_at(read, -1).end IS NULL AND ends_below < try_element_at(read, -1).base_offset,
        struct(
            ends_below - 1 AS newest_below, try_element_at(read, -1).base_offset AS base_offset,
            try_element_at(read, -1).header.section_id, try_element_at(read, -1).header.byte_offset, try_element_at(read, -1).header.length
        ),
        NULL
    ) AS empty_newest,
    supported AND tail_intact AND missing_head_from IS NULL AND NOT exists(read, s -> NOT s.tail_intact) AND size(short_ends) = 0
        AND size(unordered_before) = 0 AND size(array_except(listed_logs, bases)) = 0
        AND (compacted OR NOT coalesce(jumps, false)) AS whole,
    NOT exists(read, s -> s.end IS NOT NULL AND (s.lacks_records OR coalesce(s.decoder, 'plain') IN ('plain', 'other'))) AS decoded,
    exists(read, s -> s.lacks_records) AS lacks_records,
    snapshot.offset AS snapshot_offset,
    snapshot.section_id AS snapshot_section_id,
    CASE
        WHEN size(unknown_indexes) > 0 OR exists(read, s -> s.base_offset IS NULL AND s.end IS NOT NULL) THEN 'not_dumped'
        WHEN size(indexes) > 0 THEN 'dumped'
        ELSE 'absent'
    END AS index_state,
    -- Indexes dumped at another time than their log may be older; collect-dumps.sh, which notes its times, dumps them behind it.
    NOT (has_clean_end OR noted.dumped_at_ms IS NOT NULL) AS index_may_lag,
    unknown_indexes, cleanup_policy, compacted,
    coalesce(
        IF(checkpoints_are_older, NULL, cleaner_row),
        IF(NOT compacted AND (cleaner_is_off OR NOT coalesce(checkpoints_are_older, true) OR cleanup_policy IS NOT NULL), 0L, NULL)
    ) AS uncleaned_from,
    newest_broker_clock_ms, latest_broker_clock_ms, oldest_batch_ms,
    noted.dumped_at_ms AS dumped_at_ms,
    try_element_at(read, -1).dumped_at_ms AS collected_at_ms,
    IF(noted IS NULL, NULL, struct(noted.section_id, noted.byte_offset)) AS noted_at,
    has_clean_end OR (
        is_empty
        AND bool_and(has_clean_end OR is_empty) OVER (PARTITION BY cluster, broker)
        AND bool_or(has_clean_end) OVER (PARTITION BY cluster, broker)
    ) AS clean_end
FROM closed
