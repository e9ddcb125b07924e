-- Which instances time and epoch allow for each span and marker, and what each marker did.

-- Candidates whose epoch is in the span, or is the marker's, and which had begun by then.
allowed_by_time AS (
    SELECT
        *,
        IF(
            is_untold,
            slice(candidates, 1, 0),
            filter(
                candidates,
                -- What was open when the coordinator's log ended has ended since, by a marker that only a coordinator writes.
                c -> NOT (span IS NOT NULL AND c.decision IS NULL AND is_unseen AND before IS NOT NULL AND NOT known_to_the_end) AND IF(
                    span IS NULL,
                    c.data_epoch <=> marker.data_epoch AND coalesce(c.start_ms <= marker.at_ms - ahead_ms + tolerance_ms, known),
                    coalesce(
                        c.data_epoch BETWEEN least(span.first_epoch, span.last_epoch) AND greatest(span.first_epoch, span.last_epoch), true
                    )
                    AND IF(
                        by_marker,
                        -- Under TV2 the epoch names the instance, whatever is missing.
                        is_seen OR c.instance_id = instance.instance_id OR c.protocol = 'tv2',
                        is_open OR coalesce(c.start_ms <= closer.at_ms - ahead_ms + tolerance_ms, known)
                    )
                )
            )
        ) AS any_allowed
    FROM explained
),
still_there AS (
    -- The marker of one that ended before all of which the log still tells went with its head: the data is rather a later one's.
    SELECT
        *,
        filter(
            any_allowed,
            c -> NOT coalesce(first_offset > 0 AND coalesce(c.decided_at_offset, c.complete_offset) < oldest_completion_offset, false)
        ) AS young
    FROM allowed_by_time
),
-- Where no marker names one, the younger ones, if there are any.
with_allowed AS (
    SELECT *, IF(NOT by_marker AND size(young) > 0, young, any_allowed) AS allowed FROM still_there
),
with_aborted_before AS (
    SELECT
        *,
        -- What was aborted right before the transaction that a COMMIT ends, where the cleaner was. It takes an ABORT behind its records, so
        -- none of those are left; where some are, the COMMIT has taken them.
        IF(
            compacted AND match = 'closing' AND span IS NOT NULL AND span.hole_at IS NULL AND NOT is_seen
                AND instance.protocol <> 'tv2' AND instance.decision = 'COMMIT',
            try_element_at(
                filter(
                    candidates,
                    c -> c.first_entry_offset < instance.first_entry_offset AND c.data_epoch <=> instance.data_epoch
                        AND coalesce(c.first_entry_offset >= known_from_offset, true)
                ),
                -1
            ),
            NULL
        ) AS before_this
    FROM with_allowed
),
-- And what else a marker may be that is not its instance's: a hand's, or one that its successor repeats.
with_first_allowed AS (
    SELECT
        *,
        try_element_at(allowed, 1) AS first_allowed,
        -- `kafka-transactions.sh abort` writes an ABORT with the data's epoch and the last coordinator epoch of the producer there, or 0.
        marker.type = 'ABORT' AND marker.epoch = marker.data_epoch
            AND (marker.coordinator_epoch = 0 OR marker.coordinator_epoch <=> marker_before.coordinator_epoch) AS by_tool,
        -- A coordinator loads its log up to the end, and not up to the high watermark: killed and back before it is missed, it sends the
        -- markers of a decision that no other broker has (`TransactionStateManager.loadTransactionMetadata`). Its successor decides anew;
        -- where it decides the same, its marker stands right behind.
        NOT marker_behind.marker.closes AND marker_behind.match = 'closing'
            AND marker_behind.marker.type = marker.type AND marker_behind.marker.epoch = marker.epoch
            AND marker_behind.marker.coordinator_epoch > marker.coordinator_epoch AS is_superseded
    FROM with_aborted_before
),
-- What each marker did, in the words of producer_history.marker_role; the order of the cases is part of the law.
with_roles AS (
    SELECT
        *,
        CASE
            WHEN marker IS NULL THEN NULL
            WHEN match = 'closing' THEN IF(marker.closes, 'closing', 'empty')
            WHEN match = 'contradictory' THEN match
            -- Data behind the end of the matched instance is another's; under TV2 the epoch of that data is the epoch of the marker before
            -- it.
            WHEN match = 'duplicate' AND NOT coalesce(marker.closes AND marker.at_ms - ahead_ms > instance.until_ms AND by_tool, false)
                THEN match
            -- Whosever it is, it repeats what the one before it says, and ends nothing.
            WHEN NOT marker.closes AND marker_before.type = marker.type AND marker_before.epoch = marker.epoch THEN 'duplicate'
            WHEN is_ambiguous THEN 'unknown'
            WHEN NOT known THEN 'unknown'
            -- A hand's work as well, on data that stood before the log's first row.
            WHEN NOT marker.closes AND marker.type = 'ABORT' AND marker.data_epoch IS NULL AND first_offset > 0 THEN 'unknown'
            WHEN NOT marker.closes THEN IF(is_superseded, 'superseded', 'unexplained')
            WHEN first_allowed IS NULL THEN CASE WHEN by_tool THEN 'manual' WHEN is_superseded THEN 'superseded' ELSE 'unexplained' END
            -- It is a hand's work while the coordinator has not decided, or decided later: the transaction's own marker comes behind it.
            -- Where none comes, the ABORT stands in the place of the marker that is missing.
            WHEN by_tool AND (
                first_allowed.decision IS NULL
                OR (ends_candidate < {open_end} AND try_element_at(candidates, -1).instance_id = first_allowed.instance_id)
            ) THEN 'manual'
            WHEN first_allowed.decision <> marker.type THEN 'contradictory'
            WHEN is_superseded THEN 'superseded'
            -- It repeats the one before it within a transaction that its coordinator decided later: a producer has one at a time.
            WHEN by_known_clock AND marker_before.type = marker.type AND marker_before.epoch = marker.epoch
                AND first_allowed.start_ms + tolerance_ms + dated_within_ms <= marker.at_ms - ahead_ms
                AND marker.at_ms - ahead_ms + tolerance_ms + dated_within_ms <= first_allowed.decided_at_ms
                THEN 'duplicate'
            ELSE 'unexplained'
        END AS marker_role
    FROM with_first_allowed
)

-- Only what is read, and of lists that nobody looks into their size alone: 206 fields were written of each row, and these are half of them
-- (docs/performance.md).
SELECT
    cluster, replica_log_id, producer_id, place, removed_at, ended_unseen_at, marker, span, began_after_ms, sealed_ms, log,
    skew_ms, ahead_ms, tolerance_ms,
    of_doubtful, before, marker_before, closer, is_open, match, instance.until_ms AS matched_until_ms, is_ambiguous,
    -- Those that may have written the span. Under TV2 no transaction has data of another epoch than its own (KIP-890).
    size(filter(
        candidates,
        c -> span IS NULL OR c.protocol <> 'tv2' OR coalesce(
            c.data_epoch BETWEEN least(span.first_epoch, span.last_epoch) AND greatest(span.first_epoch, span.last_epoch), true
        )
    )) AS listing,
    clocklike, known, end_is_told, why_unknown, known_to_the_end, allowed, marker_role, coordinator_log_id,
    IF(before_this.decision = 'ABORT', before_this, NULL) AS aborted_before,
    CASE
        WHEN marker_role IN ('unknown', 'unexplained') THEN NULL
        WHEN marker_role = 'duplicate' THEN coalesce(instance, before)
        WHEN marker_role = 'superseded' THEN marker_behind.instance
        WHEN marker_role = 'manual' OR match = 'duplicate' THEN first_allowed
        ELSE coalesce(instance, first_allowed)
    END AS marker_instance
FROM with_roles
