-- Which existing record offsets a consumer gets of each replica log: maximal runs for each view and reader. One row per run of offsets of a
-- view and reader.
--
-- pieces        what visible_pieces returns
-- visibility    the table
WITH

-- A read is the place of its bit in `seen`: runs are found by numbers, which are quickly sorted.
reads AS (
    SELECT
        replica_log_id, first, last,
        explode(array_compact(array(
            IF(seen & 1 > 0, 0, NULL), IF(seen & 2 > 0, 1, NULL), IF(seen & 4 > 0, 2, NULL), IF(seen & 8 > 0, 3, NULL)
        ))) AS read
    FROM {pieces}
),
reads_of_readers AS (
    -- One reader starts at the log start and reads on; of the other, each segment's fetch starts at the segment's base.
    SELECT /*+ BROADCAST(log) */
        one.replica_log_id, one.read, one.first, one.last,
        IF(
            one.read = 3,
            greatest(
                get(filter(log.segments, s -> one.first >= s.base_offset AND one.first < s.end_offset), 0).base_offset,
                coalesce(log.log_start, log.first_offset)
            ),
            coalesce(log.log_start, log.first_offset)
        ) AS reader_offset
    FROM reads one
    JOIN {visibility} log ON log.replica_log_id = one.replica_log_id
),
started AS (
    SELECT *, IF(coalesce(lag(last) OVER in_order + 1 = first, false), 0, 1) AS starts
    FROM reads_of_readers
    WINDOW in_order AS (PARTITION BY replica_log_id, read, reader_offset ORDER BY first)
),
numbered AS (
    -- The number of starts so far names the run.
    SELECT
        *,
        sum(starts) OVER (
            PARTITION BY replica_log_id, read, reader_offset ORDER BY first ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS run
    FROM started
),
runs AS (
    SELECT replica_log_id, read, reader_offset, min(first) AS first_offset, max(last) AS last_offset
    FROM numbered
    GROUP BY replica_log_id, read, reader_offset, run
)

SELECT /*+ BROADCAST(log) */
    run.replica_log_id, log.cluster, log.broker, log.topic, log.partition,
    array('read_committed', 'read_uncommitted', 'truth_committed', 'read_committed')[run.read] AS view,
    IF(run.read = 3, 'segment', 'log_start') AS reader,
    run.reader_offset, run.first_offset, run.last_offset
FROM runs run
JOIN {visibility} log ON log.replica_log_id = run.replica_log_id
