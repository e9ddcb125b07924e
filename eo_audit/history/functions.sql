-- Sentences that several histories share. Temporary functions of the session.

-- What was decided about a data or plain row: the coordinator's word on its instance, else the marker that closes its span.
-- believed: whether that marker is really the one.
CREATE OR REPLACE TEMPORARY FUNCTION truth(
    row_kind STRING, is_transactional BOOLEAN, instance_decision STRING, believed BOOLEAN, span_outcome STRING
) RETURNS STRING RETURN
CASE
    WHEN row_kind NOT IN ('data', 'plain') THEN NULL
    WHEN NOT coalesce(is_transactional, false) THEN 'plain'
    WHEN instance_decision = 'COMMIT' THEN 'committed'
    WHEN instance_decision = 'ABORT' THEN 'aborted'
    WHEN believed THEN coalesce(span_outcome, 'unknown')
    ELSE 'unknown'
END;

-- Whether nothing is known of an offset because the index may be older than its log: it tells nothing of what stands behind its newest entry.
CREATE OR REPLACE TEMPORARY FUNCTION may_be_behind_index(at BIGINT, newest_entry BIGINT, index_may_lag BOOLEAN)
RETURNS BOOLEAN RETURN
index_may_lag AND at > coalesce(newest_entry, -1L);

-- What happens at an offset to a producer of a log, for the look-up of its aborted transactions.
CREATE OR REPLACE TEMPORARY FUNCTION index_event(
    at BIGINT, marker_offset BIGINT, clears BOOLEAN, until BIGINT, is_found BOOLEAN, is_found_unbounded BOOLEAN, unsure_until BIGINT
) RETURNS STRUCT<at: BIGINT, marker_offset: BIGINT, clears: BOOLEAN, until: BIGINT, is_found: BOOLEAN, is_found_unbounded: BOOLEAN,
    unsure_until: BIGINT> RETURN
struct(at, marker_offset, clears, until, is_found, is_found_unbounded, unsure_until);

-- What a manifest says under a name; null where it says nothing.
CREATE OR REPLACE TEMPORARY FUNCTION said(manifest ARRAY<STRUCT<name: STRING, value: STRING>>, wanted STRING) RETURNS STRING RETURN
try_element_at(filter(manifest, entry -> entry.name = wanted), 1).value;
