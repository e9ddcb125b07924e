-- What of each log cannot be told by the coordinator's log, by reason. One row per replica log and reason: rules say `unknown` of it, and
-- why.
--
-- events    what `assignment.judged_events` returns
WITH

unexplained AS (
    SELECT
        *,
        open_fate(is_ambiguous, known_to_the_end, transform(allowed, c -> c.decision)) AS fate
    FROM {events}
    WHERE why_unknown IS NOT NULL AND coalesce(marker_role, 'unknown') = 'unknown'
)

SELECT
    cluster, replica_log_id,
    why_unknown AS why,
    count(marker) AS markers,
    count(span) AS spans,
    min(coalesce(span.span_id, place)) AS first_offset
FROM unexplained
-- What is open has no marker to tell of: where its fate is known, nothing about it is left untold, but whether its producer was ever
-- registered for it.
WHERE NOT (is_open AND fate <> 'unknown' AND why_unknown <> 'producer_forgotten')
GROUP BY cluster, replica_log_id, why_unknown
