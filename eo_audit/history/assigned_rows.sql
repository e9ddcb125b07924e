-- Whose each row of data is, and what each marker did: the answers of judged_events, brought to the rows of producer_history. One row per
-- row of producer_history.
--
-- rows         what `sequences.producer_rows` returns
-- events       what `assignment.judged_events` returns
-- cleaned      the same events, or none of them where no log is cleaned
-- instances    transaction_instances
-- never_ms     `until_ms` of what was not completed lies beyond this
WITH

-- When each instance of a producer ended: at its decision, or (where that is not told) no later than the next one began.
instance_ends AS (
    SELECT
        cluster, producer_id, instance_id, protocol, data_epoch, decision, start_ms, first_entry_offset,
        coalesce(completed_at_ms, next_at_ms, {never_ms}) AS until_ms,
        partitions,
        coalesce(decided_at_ms, lead(start_ms) OVER (PARTITION BY cluster, producer_id ORDER BY first_entry_offset)) AS ends_ms
    FROM {instances}
),
-- Spans without a candidate look for the instance of the producer that was running then, be the partition in its list or not. Under TV0 and
-- TV1 an instance's time begins with the latest of the decisions before it: so such times of one producer do not overlap, even where a
-- coordinator's clock went back.
running AS (
    SELECT
        *,
        max(ends_ms) OVER (
            PARTITION BY cluster, producer_id ORDER BY first_entry_offset ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS free_from_ms
    FROM instance_ends
),
asking AS (
    SELECT
        *,
        span IS NOT NULL AND try_element_at(allowed, 1) IS NULL AND known
            -- Older than the marker before it, as its client says: then it is late data of that transaction, whoever was running.
            AND NOT coalesce(before.data_epoch = span.first_epoch AND span.first_ms <= marker_before.at_ms, false) AS is_ownerless
    FROM {events}
),
owned AS (
    SELECT
        events.*,
        IF(
            running.producer_id IS NULL,
            NULL,
            struct(
                running.instance_id, running.protocol, running.data_epoch, running.decision, running.until_ms,
                array_contains(running.partitions, events.log) AS lists
            )
        ) AS owner
    FROM asking events
    LEFT JOIN running
        ON running.cluster = events.cluster
        -- Producer ids are -1 or more: spans that need no owner get a key below, each another one, so that they match nothing and do not
        -- all end up in one task.
        AND running.producer_id = IF(events.is_ownerless, events.producer_id, -2 - events.place)
        AND running.data_epoch = events.span.first_epoch
        AND (
            running.protocol = 'tv2'
            OR (
                coalesce(events.span.first_ms >= running.free_from_ms, true)
                AND coalesce(events.span.first_ms < running.ends_ms, true)
                AND events.span.first_ms >= running.start_ms - events.skew_ms
                AND coalesce(running.start_ms <= events.closer.at_ms - events.ahead_ms + events.tolerance_ms, true)
            )
        )
),
-- Where a cleaned log lacks an ABORT, records below it may stand beside those of the COMMIT behind. A partition is listed before its first
-- record, and all markers of a transaction are written before its completion: what stands before the marker of a transaction that was
-- completed before another one began, in the same coordinator's log, is not that other one's.
unmarked AS (
    SELECT
        replica_log_id, coordinator_log_id, producer_id, span.span_id, place, aborted_before.first_entry_offset AS aborted_from,
        try_element_at(allowed, 1).first_entry_offset AS committed_from
    FROM {cleaned}
    WHERE aborted_before IS NOT NULL
),
marker_bounds AS (
    SELECT /*+ BROADCAST(unmarked) */
        unmarked.replica_log_id, unmarked.producer_id, unmarked.span_id,
        max(IF(events.marker_instance.complete_offset < aborted_from, events.place, -1L)) AS aborted_behind,
        max(events.place) AS committed_behind
    FROM {cleaned} events
    JOIN unmarked
        ON unmarked.replica_log_id = events.replica_log_id AND unmarked.coordinator_log_id = events.coordinator_log_id
        AND events.place > unmarked.span_id AND events.place < unmarked.place
        AND events.marker_role IN ('closing', 'empty') AND events.marker_instance.complete_offset < unmarked.committed_from
    GROUP BY unmarked.replica_log_id, unmarked.producer_id, unmarked.span_id
),
-- What rows need, under the offset by which they find it.
owners AS (
    SELECT /*+ BROADCAST(begun) */
        owned.replica_log_id,
        IF(span IS NULL, place, span.span_id) AS at_offset,
        skew_ms, allowed, before, owner, known, aborted_before, begun.aborted_behind, begun.committed_behind,
        -- The least that the log's clock was ahead of the coordinator's, at the marker before the span and at the one that ended it: it may
        -- have been set between. Null where one of them has no completion.
        IF(
            match = 'closing' AND matched_until_ms < {never_ms} AND before.until_ms < {never_ms},
            least(closer.at_ms - matched_until_ms, marker_before.at_ms - before.until_ms),
            NULL
        ) AS least_ahead_ms,
        array(closer.leader_epoch, marker_before.leader_epoch) AS their_leaders,
        clocklike, marker_role, marker_instance,
        ends_instance(match) AS by_marker,
        match IS NULL AS is_unmatched,
        listing,
        IF(end_is_told, NULL, closer.type) AS untold_end,
        coalesce(span.hole_at, removed_at, ended_unseen_at) AS hole_at
    FROM owned
    LEFT JOIN marker_bounds begun
        ON begun.replica_log_id = owned.replica_log_id AND begun.producer_id = owned.producer_id AND begun.span_id = owned.span.span_id
),

rows_with_keys AS (
    SELECT *, IF(row_kind = 'data' AND span_id IS NOT NULL, span_id, base_offset) AS at_offset FROM {rows}
),
rows_with_owners AS (
    SELECT
        rows.* EXCEPT (at_offset),
        owners.* EXCEPT (replica_log_id, at_offset),
        rows.row_kind = 'data' AND rows.is_transactional AND rows.judged AND owners.known IS NOT NULL
            -- Before a hole the producer's own marker may be missing; under TV2 the epoch tells all the same.
            AND NOT coalesce(rows.base_offset < owners.hole_at AND NOT try_element_at(owners.allowed, 1).protocol <=> 'tv2', false)
            AS is_assigned,
        -- `ProducerStateEntry` knows one producer id, whatever the epoch: a span may hold a fenced producer's data beside its successor's.
        filter(owners.allowed, c -> coalesce(c.data_epoch = rows.producer_epoch, true)) AS own,
        -- Only the broker's time proves when a batch was written, by a clock that wrote one of the markers beside it.
        IF(
            rows.timestamp_type = 'LogAppendTime'
                AND coalesce(array_contains(owners.their_leaders, rows.partition_leader_epoch), rows.partition_leader_epoch IS NULL),
            rows.max_timestamp_ms - owners.least_ahead_ms,
            NULL
        ) AS appended_ms
    FROM rows_with_keys rows
    LEFT JOIN owners ON owners.replica_log_id = rows.replica_log_id AND owners.at_offset = rows.at_offset
),
with_aborted AS (
    SELECT
        *,
        is_assigned AND aborted_before.data_epoch = producer_epoch AS may_be_of_aborted,
        coalesce(base_offset > aborted_behind AND base_offset < committed_behind, false)
            OR coalesce(
                appended_ms >= aborted_before.start_ms - skew_ms AND appended_ms < try_element_at(allowed, 1).start_ms - skew_ms, false
            ) AS is_before_committed
    FROM rows_with_owners
),
-- Choose the owner of each data row. The client's time (CreateTime) proves nothing: it chooses between instances that order allows, and
-- where it alone speaks the answer is `suspected`.
with_genuine AS (
    SELECT
        *,
        IF(
            is_assigned,
            coalesce(
                IF(may_be_of_aborted AND is_before_committed, aborted_before, NULL),
                try_element_at(
                    filter(
                        own,
                        c -> coalesce(
                            max_timestamp_ms >= c.start_ms - skew_ms AND max_timestamp_ms < c.decided_at_ms, c.decided_at_ms IS NULL
                        )
                    ),
                    1
                ),
                try_element_at(own, -1)
            ),
            NULL
        ) AS genuine
    FROM with_aborted
),
beside_before AS (
    SELECT
        *,
        before.data_epoch = producer_epoch AND before.instance_id <> genuine.instance_id AND genuine.protocol <> 'tv2' AS is_of_earlier,
        clocklike AND timestamp_type <> 'LogAppendTime' AND max_timestamp_ms < genuine.start_ms - skew_ms AS looks_earlier,
        may_be_of_aborted AND NOT is_before_committed AND looks_earlier
            AND max_timestamp_ms BETWEEN aborted_before.start_ms - skew_ms AND aborted_before.decided_at_ms AS looks_aborted
    FROM with_genuine
),
-- `late` says that the owner's marker came before the row.
judged_late AS (
    SELECT
        *,
        CASE
            WHEN NOT is_assigned THEN NULL
            WHEN genuine IS NULL AND (owner.lists OR (owner IS NULL AND known AND before.data_epoch = producer_epoch)) THEN 'proved'
            WHEN is_of_earlier AND coalesce(appended_ms < genuine.start_ms - skew_ms, false) THEN 'proved'
            WHEN is_of_earlier AND looks_earlier AND max_timestamp_ms BETWEEN before.start_ms - skew_ms AND before.decided_at_ms
                THEN 'suspected'
            WHEN looks_aborted THEN 'suspected'
            ELSE 'no'
        END AS late
    FROM beside_before
),
with_chosen AS (
    SELECT
        *,
        -- Whole instances have lists and times of their own inside: a CASE takes only structs of one and the same type.
        CASE
            WHEN NOT is_assigned THEN NULL
            WHEN late = 'no' AND genuine IS NOT NULL
                THEN struct(genuine.instance_id, genuine.protocol, genuine.decision, genuine.until_ms)
            WHEN owner IS NOT NULL THEN struct(owner.instance_id, owner.protocol, owner.decision, owner.until_ms)
            WHEN looks_aborted
                THEN struct(aborted_before.instance_id, aborted_before.protocol, aborted_before.decision, aborted_before.until_ms)
            WHEN late <> 'no' THEN struct(before.instance_id, before.protocol, before.decision, before.until_ms)
        END AS chosen
    FROM judged_late
),
doubted AS (
    SELECT
        *,
        (late = 'suspected' AND NOT genuine.decision <=> chosen.decision)
            -- A PrepareX that was never acknowledged is no decision (C09): another leader goes on from the entry before it, and decides
            -- anew.
            OR (NOT by_marker AND chosen.until_ms >= {never_ms} AND coalesce(untold_end <> chosen.decision, false)) AS is_doubtful,
        -- What is known is known of the time at which its span ended, and that may be long behind a hole.
        known AND NOT epoch_regression AND NOT coalesce(base_offset < hole_at, false)
            AND (
                coalesce(listing, 0) = 0
                -- Under TV2 a transaction has data of one epoch: beside data of the next one, which its own transaction listed, this is
                -- nobody's.
                OR coalesce(size(own) = 0 AND size(allowed) > 0 AND forall(allowed, c -> c.protocol = 'tv2'), false)
            ) AS is_nobodys
    FROM with_chosen
)

SELECT
    * EXCEPT (
        skew_ms, allowed, before, owner, known, aborted_before, aborted_behind, committed_behind, may_be_of_aborted, is_before_committed,
        looks_earlier, looks_aborted, least_ahead_ms, their_leaders, clocklike, marker_role, marker_instance, by_marker, is_unmatched,
        listing, untold_end, hole_at, is_assigned, own, genuine, is_of_earlier, appended_ms, late, chosen, is_doubtful, is_nobodys
    ),
    IF(row_kind = 'marker', marker_instance.instance_id, chosen.instance_id) AS instance_id,
    CASE
        WHEN row_kind = 'marker' AND marker_instance IS NULL THEN NULL
        WHEN row_kind = 'marker' AND marker_instance.protocol = 'tv2' THEN 'epoch'
        WHEN row_kind = 'marker' THEN IF(marker_role = 'duplicate' AND in_open_transaction AND is_unmatched, 'time', 'marker')
        WHEN NOT is_assigned THEN NULL
        WHEN late IN ('proved', 'suspected') OR genuine.instance_id = aborted_before.instance_id THEN 'time'
        WHEN chosen.protocol = 'tv2' THEN 'epoch'
        WHEN genuine IS NOT NULL AND by_marker AND size(own) = 1 THEN 'marker'
        WHEN chosen IS NOT NULL THEN 'time'
        WHEN is_nobodys THEN 'none'
    END AS instance_source,
    CASE
        WHEN row_kind = 'marker' THEN marker_instance.decision
        WHEN is_doubtful THEN NULL
        WHEN genuine IS NOT NULL OR late = 'proved' THEN chosen.decision
    END AS instance_decision,
    CASE
        WHEN NOT (row_kind = 'data' AND is_transactional) THEN NULL
        WHEN genuine IS NOT NULL OR late = 'proved' THEN 'registered'
        WHEN chosen IS NOT NULL OR is_nobodys THEN 'unregistered'
        ELSE 'unknown'
    END AS registration,
    late,
    marker_role
FROM doubted
