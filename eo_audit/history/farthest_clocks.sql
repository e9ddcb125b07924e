-- How far the clocks of a cluster lie apart at most, as far as its pairs of a decision and a marker tell. One row per cluster that has any.
--
-- Of a log without a matched marker nobody knows the clock: it may be as far from the coordinator's as that of any other log of its
-- cluster.
--
-- clock_offsets    the table
SELECT
    cluster,
    max(abs(newest_offset_ms)) AS farthest_ms,
    -- A clock that was set by so much between the markers of one log may have been set behind the last pair of another.
    max(greatest(abs(newest_offset_ms - offset_ms), farthest_offset_ms - abs(offset_ms))) AS moved_ms
FROM {clock_offsets}
GROUP BY cluster
