-- What is open at the end of each log, and whether anybody will end it (KIP-664 calls it hanging if nobody does).
--
-- events    what `assignment.judged_events` returns
WITH

open_spans AS (
    SELECT *, open_fate(is_ambiguous, known_to_the_end, transform(allowed, c -> c.decision)) AS fate
    FROM {events}
    WHERE span IS NOT NULL AND closer IS NULL AND removed_at IS NULL
)

SELECT
    cluster, replica_log_id, producer_id,
    span.span_id AS first_offset,
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
