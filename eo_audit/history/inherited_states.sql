-- What a chunk of a replica log inherits from the other chunks: one row per producer id and epoch that occur in it.
--
-- The first run of producer_states began each chunk with nothing. Here each is summed up, and in order of chunks these sums give what the
-- second run begins with. The sums are associative: last row, highest epoch, newest marker or transactional batch, circles of
-- the sequence, front, count of batches; and, from the chunks behind, the next marker.
--
-- states    what the first run of producer_states returns
WITH

producers_rows AS (
    SELECT
        *,
        IF(transaction_event IS NULL, NULL, position_in_log) AS event_at,
        IF(marker IS NULL, NULL, position_in_log) AS marker_at,
        IF(sequences IS NULL, NULL, position_in_log) AS sequenced_at
    FROM {states}
    -- A row without a producer is a group of its own, and inherits nothing.
    WHERE actor >= 0
),
sums AS (
    SELECT
        replica_log_id, chunk, actor, producer_epoch,
        max(position_in_log) AS last_position,
        max_by(row, position_in_log) AS last_row,
        min_by(previous.base_offset, position_in_log) AS row_before,
        max(event_at) AS event_position,
        max_by(transaction_event, event_at) AS event,
        min(marker_at) AS marker_position,
        min_by(marker, marker_at) AS first_marker,
        max_by(newest_start, position_in_log) AS start,
        count(sequences) AS batches,
        min_by(sequences, sequenced_at) AS first_sequences,
        max_by(sequences, sequenced_at) AS last_sequences,
        -- How often the sequences went round within the chunk: the next one counts on from there.
        shiftright(max_by(first_unwrapped - sequences.base, sequenced_at), 31) AS cycles_inside,
        min(first_unwrapped) AS lowest_inside,
        -- Of fronts at one sequence the first of the log counts: its position is negated, for `max` keeps the largest.
        max(IF(is_front, struct(last_unwrapped AS last, -position_in_log AS order, row.base_offset AS offset), NULL)) AS front_inside
    FROM producers_rows
    GROUP BY replica_log_id, chunk, actor, producer_epoch
),

-- What a producer id inherits: its rows are those of all its epochs. By range: the epochs of one chunk do not inherit from each other.
of_producers AS (
    SELECT
        *,
        max_by(last_row, last_position) OVER earlier AS previous,
        max(producer_epoch) OVER earlier AS max_epoch,
        max_by(event, event_position) OVER earlier AS opened,
        -- The marker that ends a span may stand chunks behind it.
        min_by(first_marker, marker_position) OVER (
            PARTITION BY replica_log_id, actor ORDER BY chunk DESC RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS next_marker
    FROM sums
    WINDOW earlier AS (PARTITION BY replica_log_id, actor ORDER BY chunk RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
),
with_starts AS (
    -- A span that seems to start with the chunk's first transactional batch does not, if one was open already.
    SELECT *, IF(NOT start.certain AND coalesce(opened, false), NULL, start.offset) AS started
    FROM of_producers
),
of_spans AS (
    SELECT
        *,
        max_by(started, IF(started IS NULL, NULL, last_position)) OVER (
            PARTITION BY replica_log_id, actor ORDER BY chunk RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS span_start
    FROM with_starts
),

-- What a producer id and epoch inherit. One row a chunk here, so by rows; a producer above has one for each of its epochs.
of_epochs AS (
    SELECT
        *,
        count(*) OVER earlier > 0 AS epoch_known,
        last(last_sequences, true) OVER earlier AS sequences,
        sum(batches) OVER earlier AS batches_before,
        first(coalesce(row_before, previous.base_offset)) OVER earlier AS entered_at
    FROM of_spans
    WINDOW earlier AS (
        PARTITION BY replica_log_id, actor, producer_epoch ORDER BY chunk ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
),
stepped AS (
    SELECT
        *,
        cycle_step(sequences.base, sequences.last, first_sequences.base, begins_anew(sequences, first_sequences)) AS step
    FROM of_epochs
),
counted AS (
    SELECT
        *,
        sum(step + cycles_inside) OVER (
            PARTITION BY replica_log_id, actor, producer_epoch ORDER BY chunk ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS cycles_after
    FROM stepped
),
with_fronts AS (
    SELECT
        *,
        IF(
            front_inside IS NULL,
            NULL,
            struct(
                front_inside.last + (cycles_after - cycles_inside) * 2147483648L AS last,
                front_inside.order AS order,
                front_inside.offset AS offset
            )
        ) AS front_after
    FROM counted
),
handed_on AS (
    SELECT
        *,
        max_by(cycles_after, chunk) OVER earlier AS cycles,
        max(front_after) OVER earlier AS front
    FROM with_fronts
    WINDOW earlier AS (
        PARTITION BY replica_log_id, actor, producer_epoch ORDER BY chunk ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
),
raised AS (
    -- Only the chunks that raised it: a repeat goes to the one that passed its first sequence (step `fronts_and_repeats` of producer_rows).
    SELECT
        *,
        lowest_inside + (cycles_after - cycles_inside) * 2147483648L AS lowest,
        collect_list(IF(
            front_after.last > coalesce(front.last, front_after.last - 1), struct(front_after.last AS last, chunk), NULL
        )) OVER (
            PARTITION BY replica_log_id, actor, producer_epoch ORDER BY chunk ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS all_fronts
    FROM handed_on
),
asked AS (
    -- Only for chunks that repeat what earlier ones hold, and from there on: each row of a chunk carries them through all windows.
    SELECT *, IF(lowest <= front.last, filter(all_fronts, f -> f.last >= lowest), NULL) AS fronts
    FROM raised
)

SELECT
    replica_log_id, chunk, actor, producer_epoch,
    struct(
        previous, max_epoch, opened, span_start, next_marker, epoch_known, entered_at, sequences, cycles, front,
        batches_before AS batches, fronts
    ) AS inherited
FROM asked
