-- What each row's producer had done before it, and the next marker behind it, in one replica log or chunk of one. One row per batch.
--
-- A log in one piece is one run of this text. A huge log is cut into chunks, each a task of its own, and what was done in the chunks before
-- takes two runs: the first begins each chunk with nothing, inherited_states sums up these chunks in their order, and the second begins
-- each with what it inherits (`sequences.producer_rows`).
--
-- 1. per producer id: epochs (markers included), the open transaction, the span and the marker that ends it;
-- 2. per producer id and epoch, over data batches with sequences: unwrapped sequences, and the front, their running maximum.
--
-- In order of the text, not of offsets: a log out of order is judged as it stands.
--
-- rows     what producer_events returns, with `inherited`: what its chunk inherits (inherited_states); null: nothing
-- chunk    the column of that name, or 0: work on each log in one piece
WITH

of_producer AS (
    SELECT
        *,
        coalesce(lag(row) OVER in_order, inherited.previous) AS previous,
        coalesce(lead(marker) IGNORE NULLS OVER in_order, inherited.next_marker) AS next_marker,
        -- null: unknown
        coalesce(last(transaction_event, true) OVER before_here, inherited.opened) AS opened,
        greatest(max(producer_epoch) OVER before_here, inherited.max_epoch) AS max_epoch
    FROM {rows}
    WINDOW
        in_order AS (PARTITION BY replica_log_id, {chunk}, actor ORDER BY position_in_log),
        before_here AS (
            PARTITION BY replica_log_id, {chunk}, actor ORDER BY position_in_log ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        )
),
in_span AS (
    SELECT
        *,
        last(
            IF(
                transaction_event AND NOT coalesce(opened, false),
                struct(row.base_offset AS offset, opened IS NOT NULL AS certain),
                NULL
            ),
            true
        ) OVER (
            PARTITION BY replica_log_id, {chunk}, actor ORDER BY position_in_log ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS newest_start
    FROM of_producer
),
of_epoch AS (
    SELECT
        *,
        coalesce(newest_start.offset, inherited.span_start) AS span_start,
        coalesce(last(sequences, true) OVER before_here, inherited.sequences) AS before,
        IF(inherited.epoch_known, inherited.entered_at, first(previous.base_offset) OVER so_far) AS entered_at,
        count(sequences) OVER before_here + coalesce(inherited.batches, 0) AS batches_before
    FROM in_span
    WINDOW
        before_here AS (
            PARTITION BY replica_log_id, {chunk}, actor, producer_epoch
            ORDER BY position_in_log
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ),
        so_far AS (
            PARTITION BY replica_log_id, {chunk}, actor, producer_epoch
            ORDER BY position_in_log
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        )
),
renewed AS (
    SELECT *, begins_anew(before, sequences) AS begins_anew FROM of_epoch
),
stepped AS (
    SELECT *, cycle_step(before.base, before.last, sequences.base, begins_anew) AS step FROM renewed
),
counted AS (
    SELECT
        * EXCEPT (step),
        coalesce(inherited.cycles, 0) + sum(step) OVER (
            PARTITION BY replica_log_id, {chunk}, actor, producer_epoch
            ORDER BY position_in_log
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS cycles
    FROM stepped
),
-- Sequences begin again at 0 after 2^31 - 1 (`DefaultRecordBatch.incrementSequence`): counted on, what comes round again is no repeat.
unwrapped AS (
    SELECT
        * EXCEPT (cycles),
        sequences.base + cycles * 2147483648L AS first_unwrapped,
        sequences.base + cycles * 2147483648L + pmod(sequences.last - sequences.base, 2147483648L) AS last_unwrapped
    FROM counted
),
fronts AS (
    -- Of batches that reach the same sequence the first counts: positions are negated, for `max` keeps the largest.
    SELECT
        *,
        greatest(
            max(IF(
                sequences IS NULL, NULL, struct(last_unwrapped AS last, -position_in_log AS order, row.base_offset AS offset)
            )) OVER (
                PARTITION BY replica_log_id, {chunk}, actor, producer_epoch
                ORDER BY position_in_log
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ),
            inherited.front
        ) AS front
    FROM unwrapped
)

SELECT *, coalesce(last_unwrapped > coalesce(front.last, last_unwrapped - 1), false) AS is_front
FROM fronts
