-- Whose each row of data is, and what each marker did: the answers of judged_events, brought to the rows of producer_history.
--
-- rows         what `sequences.producer_rows` returns
-- events       what `assignment.judged_events` returns
-- instances    transaction_instances
-- never_ms     `until_ms` of what was not completed lies beyond this
WITH

-- When each instance of a producer ended: at its decision, or (where that is not told) no later than the next one began.
ended AS (
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
    FROM ended
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
-- What rows need, under the offset by which they find it.
owners AS (
    SELECT
        replica_log_id,
        IF(span IS NULL, place, span.span_id) AS at_offset,
        skew_ms, allowed, before, owner, known,
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
),

placed AS (
    SELECT *, IF(row_kind = 'data' AND span_id IS NOT NULL, span_id, base_offset) AS at_offset FROM {rows}
),
found AS (
    SELECT
        rows.* EXCEPT (at_offset),
        owners.* EXCEPT (replica_log_id, at_offset),
        rows.row_kind = 'data' AND rows.is_transactional AND rows.judged AND owners.known IS NOT NULL
            -- Before a hole the producer's own marker may be missing; under TV2 the epoch tells all the same.
            AND NOT coalesce(rows.base_offset < owners.hole_at AND NOT try_element_at(owners.allowed, 1).protocol <=> 'tv2', false)
            AS is_assigned,
        -- `ProducerStateEntry` knows one producer id, whatever the epoch: a span may hold a fenced producer's data beside its successor's.
        filter(owners.allowed, c -> coalesce(c.data_epoch = rows.producer_epoch, true)) AS own
    FROM placed rows
    LEFT JOIN owners ON owners.replica_log_id = rows.replica_log_id AND owners.at_offset = rows.at_offset
),
-- Choose the owner of each data row. The client's time (CreateTime) proves nothing: it chooses between instances that order allows, and
-- where it alone speaks the answer is `suspected`.
with_genuine AS (
    SELECT
        *,
        IF(
            is_assigned,
            coalesce(
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
    FROM found
),
beside_before AS (
    SELECT
        *,
        before.data_epoch = producer_epoch AND before.instance_id <> genuine.instance_id AND genuine.protocol <> 'tv2' AS is_of_earlier,
        -- Only the broker's time proves when a batch was written, by a clock that wrote one of the markers beside it.
        IF(
            timestamp_type = 'LogAppendTime'
                AND coalesce(array_contains(their_leaders, partition_leader_epoch), partition_leader_epoch IS NULL),
            max_timestamp_ms - least_ahead_ms,
            NULL
        ) AS appended_ms
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
            WHEN is_of_earlier
                AND timestamp_type <> 'LogAppendTime' AND max_timestamp_ms < genuine.start_ms - skew_ms
                AND clocklike AND max_timestamp_ms BETWEEN before.start_ms - skew_ms AND before.decided_at_ms THEN 'suspected'
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
                -- Under TV2 a transaction has data of one epoch: beside data of the next one, which its own transaction listed, this is nobody's.
                OR coalesce(size(own) = 0 AND size(allowed) > 0 AND forall(allowed, c -> c.protocol = 'tv2'), false)
            ) AS is_nobodys
    FROM with_chosen
)

SELECT
    * EXCEPT (
        skew_ms, allowed, before, owner, known, least_ahead_ms, their_leaders, clocklike, marker_role, marker_instance, by_marker, is_unmatched,
        listing, untold_end, hole_at, is_assigned, own, genuine, is_of_earlier, appended_ms, late, chosen, is_doubtful, is_nobodys
    ),
    IF(row_kind = 'marker', marker_instance.instance_id, chosen.instance_id) AS instance_id,
    CASE
        WHEN row_kind = 'marker' AND marker_instance IS NULL THEN NULL
        WHEN row_kind = 'marker' AND marker_instance.protocol = 'tv2' THEN 'epoch'
        WHEN row_kind = 'marker' THEN IF(marker_role = 'duplicate' AND in_open_transaction AND is_unmatched, 'time', 'marker')
        WHEN NOT is_assigned THEN NULL
        WHEN late IN ('proved', 'suspected') THEN 'time'
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
