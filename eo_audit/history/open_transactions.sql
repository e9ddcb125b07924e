-- What is open at the end of each log, and whether anybody will end it (KIP-664 calls it hanging if nobody does). One row per span that is
-- open.
--
-- events        what `assignment.judged_events` returns
-- visibility    the table, for where the oldest that is open began
WITH

open_spans AS (
    SELECT *, open_fate(is_ambiguous, known_to_the_end, transform(allowed, c -> c.decision)) AS fate
    FROM {events}
    WHERE is_open AND removed_at IS NULL
)

SELECT /*+ BROADCAST(log) */
    open_spans.cluster, open_spans.replica_log_id, open_spans.producer_id,
    span.span_id AS first_offset,
    -- The broker keeps that offset when the records are deleted (KAFKA-7190), and its tools find the transaction by it.
    least(span.span_id, IF(log.blocker_producer_id = open_spans.producer_id, log.blocker_first_offset, NULL)) AS began_at,
    fate,
    IF(fate = 'unknown', why_unknown, NULL) AS why_unknown,
    -- The one that is not decided will end all that is open; else the last one would have.
    IF(
        is_ambiguous,
        NULL,
        coalesce(try_element_at(filter(allowed, c -> c.decision IS NULL), -1), try_element_at(allowed, -1)).instance_id
    ) AS instance_id,
    began_after_ms, sealed_ms, ahead_ms
FROM open_spans
LEFT JOIN {visibility} log ON log.replica_log_id = open_spans.replica_log_id
