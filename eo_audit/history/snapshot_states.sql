-- What each producer snapshot says beside what a replay of the log below it gives: what S01 judges. One row per producer of a log's newest
-- snapshot or of the log below it, one per producer of whom an older one is wrong, and one per snapshot that holds nobody although the log
-- does.
--
-- 1. A snapshot at offset n is the state of all bytes below n (`ProducerStateManager.takeSnapshot`).
-- 2. A batch or marker of another epoch empties the remembered batches: then none is printed, or -1.
-- 3. Nothing is said behind holes, of compacted logs (the snapshot outlives the batches it speaks of), and of what lies below the first
--    offset dumped. A producer that is missing may have expired (producer.id.expiration.ms, by its own timestamps): it is missed only where
--    its time was not over when the dump was made, by a twenty-fourth of that time, ten minutes at most. Up to 2.4.0 it is forgotten sooner
--    (`clusters.remembers_by_batches`). Where the release is not known, it is missed only if no release forgets it so soon; if some do,
--    nobody can tell. A log outlives the release that wrote it, and what an older one forgot no later one learns again.
-- 4. Nothing is said of a snapshot whose text was understood only in part: who is missing there may stand in the rest.
-- 5. A broker begins from an older one where the newest is damaged, or lies behind what it cuts off. Of those no more is told than what is
--    wrong, and of no more than the newest hundred: each is held against all that its log holds below it.
--
-- rows                                   producer_history
-- producer_snapshots, section_status, replica_logs, visibility, clusters: the tables
WITH

known AS (
    SELECT
        cluster, as_of_ms, remembers_by_batches, expiration_known,
        -- What no manifest says was dumped when the newest thing in it was written, or any time later.
        as_of_source <=> 'newest_broker_clock' AS is_now_seen,
        -- Before 3.4 transactional.id.expiration.ms counts. Who expired then is in the log still, and in no snapshot of the release that
        -- the broker has now: the shorter of the two.
        least(producer_id_expiration_ms, transactional_id_expiration_ms) AS expires_ms
    FROM {clusters}
),
logs AS (
    SELECT
        seen.replica_log_id, seen.cluster, seen.leo, seen.first_offset, seen.unjudged_from, seen.holes, seen.compacted,
        coalesce(seen.log_start, seen.first_offset) AS log_start,
        logs.snapshot_section_id,
        known.remembers_by_batches, known.expiration_known, known.is_now_seen, known.expires_ms,
        -- What is older than this may have expired; null: nobody knows. A running broker took its snapshots and forgot its producers until
        -- they were dumped: as_of_ms is when the collection began, and nothing notes when it was over.
        greatest(known.as_of_ms, max(greatest(logs.dumped_at_ms, logs.newest_broker_clock_ms)) OVER (PARTITION BY seen.cluster)) AS now_ms,
        now_ms - known.expires_ms + least(600000L, known.expires_ms DIV 24) AS expired_before_ms
    FROM {visibility} seen
    JOIN {replica_logs} logs ON logs.replica_log_id = seen.replica_log_id
    JOIN known ON known.cluster = seen.cluster
    -- Batches of __consumer_offsets are compacted, and __transaction_state has no producers.
    WHERE NOT seen.is_internal
),
printed_snapshots AS (
    SELECT
        *,
        is_in_part AND segment_base_offset > coalesce(
            max(IF(is_read, segment_base_offset, NULL)) OVER (PARTITION BY replica_log_id), -1L
        ) AS is_half_read
    FROM {section_status}
    WHERE kind = 'snapshot' AND (is_read OR is_in_part)
),
filled AS (
    SELECT section_id, count(1) AS producers FROM {producer_snapshots} GROUP BY section_id
),
known_snapshots AS (
    SELECT /*+ BROADCAST(logs), BROADCAST(filled) */
        logs.* EXCEPT (snapshot_section_id),
        section.section_id, section.byte_offset, section.header_length AS length, section.segment_base_offset AS snapshot_offset,
        filled.section_id IS NULL AS is_empty,
        coalesce(section.section_id = logs.snapshot_section_id, false) OR section.is_half_read AS is_newest,
        row_number() OVER (PARTITION BY section.replica_log_id ORDER BY section.segment_base_offset DESC) AS age,
        CASE
            WHEN section.is_half_read THEN 'half_read'
            WHEN section.segment_base_offset > logs.leo THEN 'cut_off'
            WHEN logs.compacted THEN 'compacted'
            WHEN section.segment_base_offset > logs.unjudged_from THEN 'uncovered'
            WHEN exists(logs.holes, h -> h.first_offset < section.segment_base_offset) THEN 'hole'
        END AS why_not
    FROM printed_snapshots section
    JOIN logs ON logs.replica_log_id = section.replica_log_id
    LEFT JOIN filled ON filled.section_id = section.section_id
    WHERE section.is_read OR section.is_half_read
),
snapshots AS (
    -- An empty one may be as old as it likes: the broker wrote it when it had lost its state, and learned of new producers since.
    SELECT * EXCEPT (age) FROM known_snapshots WHERE is_newest OR is_empty OR age <= 100
),
-- The pieces of a log between its snapshots: each of its batches is replayed once, however many there are above it. Most snapshots lie
-- where a segment begins, and so tell by its name which batches lie below them.
segments AS (
    SELECT replica_log_id, section_id, segment_base_offset FROM {section_status} WHERE kind = 'log' AND is_read
),
named AS (
    SELECT replica_log_id, collect_set(segment_base_offset) AS bases FROM segments GROUP BY replica_log_id
    HAVING bool_and(segment_base_offset IS NOT NULL)
),
cuts AS (
    SELECT
        replica_log_id,
        max(snapshot_offset) AS end,
        collect_set(IF(array_contains(bases, snapshot_offset), snapshot_offset, NULL)) AS at_segments,
        collect_set(IF(array_contains(bases, snapshot_offset), NULL, snapshot_offset)) AS elsewhere
    FROM snapshots
    LEFT JOIN named USING (replica_log_id)
    GROUP BY replica_log_id
),
placed_segments AS (
    SELECT /*+ BROADCAST(cuts) */
        segments.section_id, array_max(filter(cuts.at_segments, cut -> cut <= segments.segment_base_offset)) AS behind_cut
    FROM segments
    JOIN cuts ON cuts.replica_log_id = segments.replica_log_id
),
pieces AS (
    SELECT /*+ BROADCAST(cuts), BROADCAST(placed) */
        rows.replica_log_id,
        greatest(placed.behind_cut, array_max(filter(cuts.elsewhere, cut -> cut <= rows.base_offset))) AS behind_cut,
        rows.producer_id,
        max(struct(rows.base_offset, rows.producer_epoch, rows.max_timestamp_ms)) AS newest,
        max(
            IF(
                rows.row_kind = 'data',
                struct(
                    rows.base_offset, rows.producer_epoch AS epoch, rows.last_sequence, rows.last_offset, rows.max_timestamp_ms,
                    CAST(rows.last_offset - rows.base_offset AS INT) AS offset_delta
                ),
                NULL
            )
        ) AS data,
        max(
            IF(rows.row_kind = 'marker', struct(rows.base_offset, rows.marker_coordinator_epoch AS coordinator_epoch), NULL)
        ) AS marker,
        max(
            IF(
                rows.row_kind = 'marker' OR rows.is_transactional,
                struct(rows.base_offset, IF(rows.row_kind = 'data', rows.span_id, NULL) AS open_from),
                NULL
            )
        ) AS step
    FROM {rows} rows
    JOIN cuts ON cuts.replica_log_id = rows.replica_log_id AND rows.base_offset < cuts.end
    LEFT JOIN placed_segments placed ON placed.section_id = rows.section_id
    WHERE rows.row_kind IN ('data', 'marker') AND rows.judged
    GROUP BY 1, 2, 3
),
replayed AS (
    SELECT /*+ BROADCAST(snapshot) */
        snapshot.section_id, piece.producer_id,
        max(piece.newest).producer_epoch AS epoch,
        max(piece.data) AS data,
        max(piece.marker) AS marker,
        max(piece.step).open_from AS open_from,
        -- Of its last batch, not of its newest: that is the time it is remembered under (`ProducerStateEntry.update`).
        max(piece.newest).max_timestamp_ms AS last_ms,
        max(piece.newest).base_offset AS last_at
    FROM pieces piece
    JOIN snapshots snapshot
        ON snapshot.replica_log_id = piece.replica_log_id AND coalesce(piece.behind_cut, -1L) < snapshot.snapshot_offset
    GROUP BY snapshot.section_id, piece.producer_id
),
printed AS (
    SELECT
        entry.section_id, entry.producer_id,
        struct(
            entry.producer_epoch AS epoch, entry.coordinator_epoch, entry.current_txn_first_offset AS open_from,
            coalesce(entry.last_sequence, -1) AS last_sequence, coalesce(entry.last_offset, -1L) AS last_offset, entry.offset_delta,
            entry.last_timestamp_ms AS last_ms
        ) AS said,
        struct(entry.section_id, entry.byte_offset, entry.length) AS said_at
    FROM {producer_snapshots} entry
),
joined AS (
    SELECT section_id, producer_id, said, said_at, epoch, data, marker, open_from, last_ms, last_at
    FROM replayed
    FULL JOIN printed USING (section_id, producer_id)
),
compared AS (
    SELECT /*+ BROADCAST(snapshot) */
        joined.*,
        snapshot.* EXCEPT (section_id),
        IF(data.epoch = epoch, data.last_sequence, IF(data IS NULL, NULL, -1)) AS last_sequence,
        IF(data.epoch = epoch, data.last_offset, IF(data IS NULL, NULL, -1L)) AS last_offset,
        IF(data.epoch = epoch, data.offset_delta, NULL) AS offset_delta,
        -- An expired producer that only a marker brought back has no batch: its state began anew.
        said.last_offset = -1 AND coalesce(marker.base_offset > data.base_offset, false) AS is_forgotten,
        -- 0.11 remembers the offset of a marker as that of the last batch.
        coalesce(said.last_offset = marker.base_offset AND said.offset_delta = 0, false) AS is_at_marker,
        -- What began below the first offset dumped is known to the snapshot only; up to 2.3 what began below the log start is forgotten.
        CASE
            WHEN said.open_from < snapshot.first_offset THEN open_from IS NOT NULL OR marker IS NULL
            WHEN said.open_from IS NULL THEN coalesce(open_from < snapshot.log_start, false)
            ELSE false
        END AS is_beyond_sight
    FROM joined
    JOIN snapshots snapshot ON snapshot.section_id = joined.section_id
),
differing AS (
    SELECT
        *,
        array_compact(array(
            IF(said.epoch <> epoch, 'epoch', NULL),
            IF(said.last_sequence <> last_sequence AND NOT is_forgotten, 'lastSequence', NULL),
            IF(said.last_offset <> last_offset AND NOT is_forgotten AND NOT is_at_marker, 'lastOffset', NULL),
            IF(said.last_offset >= 0 AND said.offset_delta <> offset_delta AND NOT is_at_marker, 'offsetDelta', NULL),
            -- -1: it expired in between (KAFKA-9144 up to 2.4.0).
            IF(said.coordinator_epoch <> marker.coordinator_epoch AND said.coordinator_epoch <> -1, 'coordinatorEpoch', NULL),
            IF(NOT said.open_from <=> open_from AND NOT is_beyond_sight, 'currentTxnFirstOffset', NULL)
        )) AS differences,
        -- Of a producer of which only markers stand here no snapshot was seen, so nothing is asked.
        data IS NOT NULL AND coalesce(last_ms >= expired_before_ms, true) AS is_young,
        -- What the releases forget that remember a producer by its batches; markers have no time there
        -- (`ProducerStateEntry.lastTimestamp`).
        data.last_offset < log_start OR data.epoch <> epoch OR data.max_timestamp_ms < expired_before_ms AS is_forgotten_early,
        open_from IS NOT NULL OR coalesce(min(IF(said IS NOT NULL AND open_from IS NULL, last_ms, NULL)) OVER before <= last_ms, false)
            AS is_outlived,
        -- The time of the newest batch or producer that is told, which no snapshot can be older than; of clients' clocks.
        greatest(now_ms, IF(is_now_seen, max(greatest(said.last_ms, last_ms)) OVER here, NULL)) AS latest_ms
    FROM compared
    WINDOW here AS (PARTITION BY section_id), before AS (PARTITION BY section_id ORDER BY last_at ROWS UNBOUNDED PRECEDING)
),
judged AS (
    SELECT
        *,
        CASE
            WHEN why_not IS NOT NULL THEN why_not
            -- Dumps of 0.11.0.0 and 0.11.0.1 print no epochs of producers.
            WHEN (data IS NOT NULL AND data.epoch IS NULL) OR (marker IS NOT NULL AND epoch IS NULL) THEN 'no_epochs'
            WHEN epoch IS NULL AND said.last_offset < first_offset THEN 'below_start'
            WHEN said IS NOT NULL THEN NULL
            -- What lies below the log start a broker up to 2.3 may have forgotten before it was upgraded (KAFKA-7190).
            WHEN NOT is_young OR (is_forgotten_early AND remembers_by_batches)
                OR (data.last_offset < log_start AND NOT remembers_by_batches)
                THEN 'expired'
            WHEN expired_before_ms IS NULL OR (is_forgotten_early AND remembers_by_batches IS NULL) THEN 'untold'
            -- An hour is less than anybody sets it to, as far as is known: it is lowered to some, against many short-lived producers.
            WHEN NOT is_outlived AND last_ms < latest_ms - IF(expiration_known, expires_ms, least(expires_ms, 3600000L)) THEN 'unsure'
        END AS reason
    FROM differing
),
with_state AS (
    SELECT
        *,
        CASE
            WHEN reason IS NOT NULL THEN 'not_judged'
            WHEN is_empty THEN 'empty'
            WHEN said IS NULL THEN 'missing'
            WHEN epoch IS NULL THEN 'extra'
            WHEN size(differences) > 0 THEN 'mismatch'
            ELSE 'match'
        END AS state
    FROM judged
),
numbered AS (
    SELECT
        *,
        count(1) OVER (PARTITION BY section_id, state) AS producers,
        row_number() OVER (PARTITION BY section_id, state ORDER BY producer_id) AS number
    FROM with_state
)

SELECT
    replica_log_id, snapshot_offset,
    -- Of a snapshot that holds nobody one row tells.
    IF(state = 'empty', -1L, producer_id) AS producer_id,
    state,
    reason,
    IF(state = 'mismatch', differences, array()) AS differences,
    CAST(IF(state = 'empty', producers, 1) AS INT) AS producers,
    said.epoch AS said_epoch, epoch AS replayed_epoch,
    said.last_sequence AS said_last_sequence, last_sequence AS replayed_last_sequence,
    said.last_offset AS said_last_offset, last_offset AS replayed_last_offset,
    said.offset_delta AS said_offset_delta, offset_delta AS replayed_offset_delta,
    said.coordinator_epoch AS said_coordinator_epoch, marker.coordinator_epoch AS replayed_coordinator_epoch,
    said.open_from AS said_open_from, open_from AS replayed_open_from,
    section_id,
    coalesce(said_at.byte_offset, byte_offset) AS byte_offset,
    coalesce(said_at.length, length) AS length
FROM numbered
WHERE (state <> 'empty' OR number = 1) AND (is_newest OR state IN ('empty', 'missing', 'extra', 'mismatch'))
