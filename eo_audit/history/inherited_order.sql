-- What each chunk of a log inherits from the chunks before it. One row per chunk, for the second run of ordered_batches.
--
-- The first run took each chunk for a log of its own. Here they are summed up, and each chunk's first batch is held against the end of the
-- chunk before, and that of the first one against the start of the log.
--
-- alone    the batches of each chunk, judged as if nothing stood before it: step `with_breaks` of ordered_batches
WITH

chunks AS (
    SELECT
        replica_log_id, chunk,
        min_by(
            struct(base_offset, last_offset, segment_base_offset, cleaned_below, missing_below, base_unknown, behind_removal, starts_at),
            position_in_log
        ) AS first,
        max_by(last_offset, position_in_log) AS last_offset_inside,
        max_by(broken, position_in_log) AS broken_inside,
        max_by(hole_at, position_in_log) AS hole_at_inside,
        max_by(cleaned_at, position_in_log) AS cleaned_at_inside
    FROM {alone}
    GROUP BY replica_log_id, chunk
),
followed AS (
    -- The first chunk that has a batch is the head of the log, whatever its number.
    SELECT
        *,
        coalesce(
            lag(last_offset_inside) OVER (PARTITION BY replica_log_id ORDER BY chunk),
            begins_behind(first.starts_at, first.base_offset, first.base_unknown, first.cleaned_below)
        ) AS previous_last_offset
    FROM chunks
),
checked AS (
    SELECT
        *,
        gap_before(
            previous_last_offset, first.base_offset, first.segment_base_offset, first.base_unknown, first.cleaned_below,
            first.missing_below, first.behind_removal
        ) AS gap,
        is_disorder(previous_last_offset, first.base_offset, first.last_offset, first.segment_base_offset) AS disorder
    FROM followed
),
ends_of_chunks AS (
    SELECT
        *,
        broken_inside OR disorder AS broken,
        coalesce(hole_at_inside, IF(gap IN ('hole', 'removed'), first.base_offset, NULL)) AS hole_at,
        coalesce(cleaned_at_inside, IF(gap = 'compacted', first.base_offset, NULL)) AS cleaned_at
    FROM checked
)

SELECT
    replica_log_id,
    chunk,
    previous_last_offset AS last_offset,
    max(broken) OVER earlier AS broken,
    last(hole_at, true) OVER earlier AS hole_at,
    last(cleaned_at, true) OVER earlier AS cleaned_at
FROM ends_of_chunks
WINDOW earlier AS (PARTITION BY replica_log_id ORDER BY chunk ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
