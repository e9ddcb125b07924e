-- What snapshots tell of markers that no dump shows: a producer's entry with a coordinator epoch says that a marker of it stood below the
-- snapshot (`ProducerStateEntry`: -1 until the first one). Where the log shows none, it stood below the log's first offset. It becomes a
-- row here, at the offset before that one, and the transactions that ended there lack nothing: data behind it came late (T02), and no
-- marker is missing (T05). One row per row of `matched`, and per marker that only a snapshot tells of.
--
-- Only the last of the producer's transactions that list the partition is told to have ended there, and only where an earlier one cannot
-- have sent the marker: there is none, or the marker is younger than the completion of all earlier ones.
--
-- matched                                what `marker_match.match_markers` has told without snapshots
-- rows                                   what `sequences.producer_rows` returns
-- reach                                  what `reach.reach` returns
-- farthest_clocks                        what `clock_offsets.farthest_clocks` returns
-- producer_snapshots, section_status, coverage, replica_logs, clusters: the tables
-- never_ms                               `until_ms` of what was not completed lies beyond this
WITH

-- Of offsets that are missing above the first one nobody knows what stood there.
holes AS (
    SELECT replica_log_id, min(IF(state <> 'head_missing' AND lacks_batches(state), first_offset, NULL)) AS hole_at
    FROM {coverage}
    GROUP BY replica_log_id
),
beheaded AS (
    SELECT /*+ BROADCAST(clusters), BROADCAST(holes), BROADCAST(farthest) */
        logs.replica_log_id, logs.first_offset, holes.hole_at,
        clusters.skew_ms + coalesce(farthest.farthest_ms, 0L) AS margin_ms,
        -- Later releases note the time of the marker, and the older ones that of the last data (KAFKA-9144).
        coalesce(NOT clusters.remembers_by_batches, false) AS notes_markers
    FROM {replica_logs} logs
    JOIN {clusters} clusters ON clusters.cluster = logs.cluster
    LEFT JOIN holes ON holes.replica_log_id = logs.replica_log_id
    LEFT JOIN {farthest_clocks} farthest ON farthest.cluster = logs.cluster
    WHERE logs.first_offset > 0
),
snapshots AS (
    SELECT /*+ BROADCAST(sections) */
        entries.replica_log_id, entries.producer_id,
        -- The oldest one: the least may have happened since.
        min(struct(
            sections.segment_base_offset AS offset, entries.coordinator_epoch, entries.current_txn_first_offset AS open_from,
            entries.last_timestamp_ms AS last_ms
        )) AS told
    FROM {producer_snapshots} entries
    JOIN {section_status} sections ON sections.section_id = entries.section_id
    WHERE sections.kind = 'snapshot' AND sections.is_read AND entries.coordinator_epoch >= 0
    GROUP BY entries.replica_log_id, entries.producer_id
),
-- Whatever a control batch says, with or without its record: it may be the marker that the snapshot knows.
shown AS (
    SELECT DISTINCT replica_log_id, producer_id FROM {rows} WHERE row_kind = 'marker'
),
decided AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY replica_log_id, producer_id ORDER BY place DESC) AS from_last,
        max(own.until_ms) OVER (
            PARTITION BY replica_log_id, producer_id ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS earlier_until_ms
    FROM {matched}
    WHERE kind = 0 AND own.decision IS NOT NULL AND own.decided_at_ms IS NOT NULL
),
told_by_snapshots AS (
    SELECT /*+ BROADCAST(logs), BROADCAST(shown) */
        decided.*,
        logs.first_offset, logs.margin_ms, logs.notes_markers,
        snapshots.told,
        greatest(decided.earlier_until_ms, reach.known_from_ms) AS earlier_ms
    FROM decided
    JOIN beheaded logs ON logs.replica_log_id = decided.replica_log_id
    JOIN snapshots ON snapshots.replica_log_id = decided.replica_log_id AND snapshots.producer_id = decided.producer_id
    LEFT JOIN {reach} reach ON reach.cluster = decided.cluster AND reach.producer_id = decided.producer_id
    LEFT ANTI JOIN shown ON shown.replica_log_id = decided.replica_log_id AND shown.producer_id = decided.producer_id
    WHERE decided.from_last = 1 AND coalesce(logs.hole_at >= snapshots.told.offset, true)
),
ended_below_start AS (
    SELECT
        *,
        first_offset - 1 AS stood_at,
        -- With data behind the marker its time is gone from the entry.
        IF(told.open_from IS NULL AND notes_markers, told.last_ms, NULL) AS marker_ms
    FROM told_by_snapshots
    WHERE
        earlier_ms IS NULL
        OR coalesce(notes_markers AND told.open_from IS NULL AND earlier_ms < {never_ms} AND told.last_ms > earlier_ms + margin_ms, false)
),
instances AS (
    SELECT /*+ BROADCAST(found) */
        matched.* EXCEPT (claims, unseen),
        IF(found.place IS NOT NULL AND matched.kind = 0 AND matched.place <= found.place, 'below_start', matched.unseen) AS unseen,
        IF(found.place = matched.place AND matched.kind = 0, found.stood_at, matched.claims) AS claims
    FROM {matched} matched
    LEFT JOIN ended_below_start found ON found.replica_log_id = matched.replica_log_id AND found.producer_id = matched.producer_id
)

SELECT
    replica_log_id, producer_id, cluster, kind, epoch, place, own, marker, coordinator_log_id, found,
    doubtful, ambiguous, legal, lost_among, unseen, hole_behind, match, claims
FROM instances
UNION ALL
SELECT
    replica_log_id, producer_id, cluster, 2, own.marker_epoch, stood_at,
    NULL,
    struct(
        own.decision AS type,
        own.marker_epoch AS epoch,
        told.coordinator_epoch AS coordinator_epoch,
        marker_ms AS at_ms,
        true AS closes,
        own.data_epoch AS data_epoch,
        CAST(NULL AS INT) AS leader_epoch,
        false AS after_hole,
        CAST(NULL AS BIGINT) AS opened_at
    ),
    coordinator_log_id, own, false, false, true, NULL, NULL, hole_behind, 'closing', stood_at
FROM ended_below_start found
