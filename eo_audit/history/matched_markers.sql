-- The markers of each producer in each replica log, and the instances that list its partition, each matched with the other. One row per row
-- of paired_markers: `kind` 0 an instance, 2 a marker.
--
-- paired     the rows of paired_markers
-- answers    what the law says of those that nothing plain tells of (`doubtful_markers.aligned`)
WITH

joined AS (
    SELECT
        paired.*, answers.again, answers.doubtful, answers.legal, answers.lost_among, answers.unseen,
        -- An instance and the marker that the law gave it meet in one window partition, and nobody else does.
        CASE
            WHEN paired.kind = 0 THEN paired.place
            WHEN paired.method IS NULL THEN coalesce(answers.at_entry, -1 - paired.place)
            ELSE -1 - paired.place
        END AS meets_at
    FROM {paired} paired
    LEFT JOIN {answers} answers
        ON answers.replica_log_id = paired.replica_log_id
        AND answers.producer_id = paired.producer_id
        AND answers.kind = paired.kind
        AND answers.place = paired.place
),
-- The instance of each marker; `ambiguous`: some marker of the producer in this log is doubtful; `legal`: nothing is wrong, whichever story
-- is true.
with_instances AS (
    SELECT
        replica_log_id, producer_id, cluster, kind, epoch, place, own, marker, coordinator_log_id,
        IF(
            kind = 2 AND NOT coalesce(doubtful, false),
            IF(method IS NULL, first(own, true) OVER (PARTITION BY replica_log_id, producer_id, meets_at), partner),
            NULL
        ) AS found,
        coalesce(again, false) AS again,
        coalesce(doubtful, false) AS doubtful,
        coalesce(max(doubtful) OVER producer, false) AS ambiguous,
        coalesce(bool_and(legal) OVER producer, true) AS legal,
        lost_among,
        unseen,
        hole_behind
    FROM joined
    WINDOW producer AS (PARTITION BY replica_log_id, producer_id)
),
compared AS (
    SELECT
        *,
        coalesce(found.decision = marker.type, false) AS fits,
        coalesce(found.decision <> marker.type, false) AS odd,
        coalesce(marker.closes AND marker.data_epoch <> found.data_epoch, false) AS foreign
    FROM with_instances
),
-- A coordinator that was elected sends the markers of every PrepareX again
-- (`TransactionStateManager.loadTransactionsForTxnTopicPartition`), and a failed request is retried: the first marker that fits closes,
-- those behind it repeat it.
with_first_fits AS (
    SELECT
        *,
        -- A marker with a wrong epoch may fit an instance whose own marker comes later: that one closes data of the instance's epoch.
        (min(IF(fits, struct(again, foreign, place), NULL)) OVER instance).place AS first_fit,
        min(IF(odd, place, NULL)) OVER instance AS first_odd
    FROM compared
    WINDOW instance AS (PARTITION BY replica_log_id, producer_id, coalesce(own.instance_id, found.instance_id))
),
matched AS (
    SELECT
        *,
        CASE
            WHEN fits AND place = first_fit THEN 'closing'
            WHEN fits THEN 'duplicate'
            WHEN odd AND first_fit IS NULL AND place = first_odd THEN 'contradictory'
        END AS match
    FROM with_first_fits
)

SELECT
    replica_log_id, producer_id, cluster, kind, epoch, place, own, marker, coordinator_log_id, found,
    doubtful, ambiguous, legal, lost_among, unseen, hole_behind,
    match,
    -- The place of the marker that ends the instance, on both.
    CASE
        WHEN kind = 0 THEN coalesce(first_fit, first_odd) WHEN match IN ('closing', 'contradictory') THEN place
    END AS claims
FROM matched
