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

-- Whether readers got a record, as a rule that looks for records sent twice asks it: where the aborted index is not known it is taken to be
-- right, for what was sent twice is a duplicate whoever dumped which files.
CREATE OR REPLACE TEMPORARY FUNCTION reached_readers(returned BOOLEAN, span_outcome STRING)
RETURNS BOOLEAN RETURN
coalesce(returned, NOT span_outcome <=> 'aborted');

-- Whether nothing is known of an offset because the index may be older than its log: it tells nothing of what stands behind its newest
-- entry.
CREATE OR REPLACE TEMPORARY FUNCTION may_be_behind_index(at BIGINT, newest_entry BIGINT, index_may_lag BOOLEAN)
RETURNS BOOLEAN RETURN
index_may_lag AND at > coalesce(newest_entry, -1L);

-- Whether a log may have begun behind the first transactions of a producer: none of the others stands before them, and the others are
-- enough for what ended in the log.
CREATE OR REPLACE TEMPORARY FUNCTION may_begin_behind(last_before BIGINT, first_since BIGINT, since BIGINT, ended BIGINT)
RETURNS BOOLEAN RETURN
last_before IS NULL OR (coalesce(last_before < first_since, true) AND since >= coalesce(ended, 0L));

-- Whether one file was dumped before another, or may have been: nobody knows when one of the two was.
CREATE OR REPLACE TEMPORARY FUNCTION is_older(dumped_at_ms BIGINT, than_ms BIGINT)
RETURNS BOOLEAN RETURN
NOT coalesce(dumped_at_ms >= than_ms, dumped_at_ms IS NULL AND than_ms IS NULL);

-- What happens at an offset to a producer of a log, for the look-up of its aborted transactions.
CREATE OR REPLACE TEMPORARY FUNCTION index_event(
    at BIGINT, marker_offset BIGINT, clears BOOLEAN, until BIGINT, is_found BOOLEAN, is_found_unbounded BOOLEAN, unsure_until BIGINT
) RETURNS STRUCT<at: BIGINT, marker_offset: BIGINT, clears: BOOLEAN, until: BIGINT, is_found: BOOLEAN, is_found_unbounded: BOOLEAN,
    unsure_until: BIGINT> RETURN
struct(at, marker_offset, clears, until, is_found, is_found_unbounded, unsure_until);

-- Whether brokers keep a topic for themselves. Their own topics have records with the broker's time.
CREATE OR REPLACE TEMPORARY FUNCTION is_internal(topic STRING) RETURNS BOOLEAN RETURN
coalesce(
    topic IN ('__transaction_state', '__consumer_offsets', '__cluster_metadata', '__share_group_state', '__remote_log_metadata'), false
);

-- What a manifest says under a name; null where it says nothing.
CREATE OR REPLACE TEMPORARY FUNCTION said(manifest ARRAY<STRUCT<name: STRING, value: STRING>>, wanted STRING) RETURNS STRING RETURN
try_element_at(filter(manifest, entry -> entry.name = wanted), 1).value;

-- Apache's version of what a broker calls itself. Confluent's brokers bear the number of the platform since 5.3 (`7.5.0-ccs`; `-ce` with
-- its own parts): 5.x is Apache's 2.x, 6.x begins with 2.6, 7.x is 3.x, 8.x is 4.x. Their bugfix releases go their own ways.
CREATE OR REPLACE TEMPORARY FUNCTION apache_version(version STRING) RETURNS STRING RETURN
CASE
    WHEN NOT version RLIKE '^[5-8][.][0-9]+[.].*-(ccs|ce)$' THEN version
    WHEN startswith(version, '6') THEN concat('2.', CAST(split_part(version, '.', 2) AS INT) + 6)
    WHEN startswith(version, '5') THEN concat('2.', split_part(version, '.', 2))
    ELSE concat(CAST(left(version, 1) AS INT) - 4, '.', split_part(version, '.', 2))
END;

-- 100 * major + minor of a version; null where it is written in another way.
CREATE OR REPLACE TEMPORARY FUNCTION release_of(version STRING) RETURNS INT RETURN
try_cast(get(split(version, '\\.'), 0) AS INT) * 100 + try_cast(get(split(version, '\\.'), 1) AS INT);

-- What is missing before a batch: null, compacted, removed, hole.
CREATE OR REPLACE TEMPORARY FUNCTION gap_before(
    previous_last_offset BIGINT, base_offset BIGINT, segment_base_offset BIGINT, base_unknown BOOLEAN, cleaned_below BIGINT,
    missing_below BIGINT, behind_removal BOOLEAN
) RETURNS STRING RETURN
CASE
    WHEN base_unknown OR NOT coalesce(base_offset > previous_last_offset + 1, false) THEN NULL
    WHEN behind_removal AND base_offset = segment_base_offset THEN 'removed'
    -- What stood in a segment that nobody dumped, or behind the end of a text that was cut, no cleaner has removed.
    WHEN base_offset <= cleaned_below AND NOT coalesce(missing_below > previous_last_offset, false)
        -- The cleaner may have been at the head of a segment before which all was deleted.
        THEN IF(behind_removal AND previous_last_offset < segment_base_offset, 'removed', 'compacted')
    ELSE 'hole'
END;

-- What the first batch of a log follows, where it must show offsets from `starts_at` on and begins behind that: the offset right below.
-- Null where it begins there, or the cleaner may have been before it, or nobody knows where it begins.
CREATE OR REPLACE TEMPORARY FUNCTION begins_behind(
    starts_at BIGINT, base_offset BIGINT, base_unknown BOOLEAN, cleaned_below BIGINT
) RETURNS BIGINT RETURN
IF(starts_at < base_offset AND NOT base_unknown AND coalesce(base_offset > cleaned_below, true), starts_at - 1, NULL);

-- Whether text that was not understood, for a reason of `unread_spans`, may be lines of batches that nothing else shows.
CREATE OR REPLACE TEMPORARY FUNCTION hides_batches(reason STRING) RETURNS BOOLEAN RETURN
reason IN ('lost_batch', 'orphan_record', 'missing_record', 'undelimited_record', 'ambiguous');

-- Whether a state of coverage says that batches may have stood where none were dumped, or none that were understood.
CREATE OR REPLACE TEMPORARY FUNCTION lacks_batches(state STRING) RETURNS BOOLEAN RETURN
state IN ('hole', 'unexplained', 'segment_missing', 'lines_missing', 'not_observed', 'unordered', 'truncated');

-- Whether offsets that nobody saw, or that are not believed, may hold the marker of a transaction (`model.lso.may_have_ended`): they stand
-- behind its beginning, and before the marker that seems to end it.
CREATE OR REPLACE TEMPORARY FUNCTION may_have_ended(
    first_offset BIGINT, marker_offset BIGINT, unseen ARRAY<STRUCT<first_offset: BIGINT, last_offset: BIGINT>>
) RETURNS BOOLEAN RETURN
coalesce(exists(unseen, one -> one.last_offset >= first_offset AND NOT coalesce(one.first_offset >= marker_offset, false)), false);

-- Whether a batch stands where it cannot: at or below the one before it, ended before it starts, or below its segment. A segment's name is
-- the lowest offset it can hold: a batch below it was written into another file.
CREATE OR REPLACE TEMPORARY FUNCTION is_disorder(
    previous_last_offset BIGINT, base_offset BIGINT, last_offset BIGINT, segment_base_offset BIGINT
) RETURNS BOOLEAN RETURN
coalesce(base_offset <= previous_last_offset OR base_offset < segment_base_offset, false) OR last_offset < base_offset;

-- By how many circles a base sequence is ahead of the batch before it; 0 when there is none before, null without sequences. Sequences run
-- from 0 to 2^31 - 1 = 2147483647 and begin again (`model.sequences`); what is less than half a circle ahead has gone on, else it has come
-- back.
CREATE OR REPLACE TEMPORARY FUNCTION cycle_step(before_base BIGINT, before_last BIGINT, base BIGINT, begins_anew BOOLEAN)
RETURNS BIGINT RETURN
CASE
    WHEN base IS NULL THEN NULL
    WHEN before_last IS NULL THEN 0L
    WHEN begins_anew THEN IF(before_last < before_base, 2L, 1L)
    ELSE
        IF(before_last < before_base, 1L, 0L)
        + shiftright(
            before_last + 1
            + pmod(base - before_last - 1, 2147483648L)
            - IF(pmod(base - before_last - 1, 2147483648L) < 1073741824L, 0L, 2147483648L)
            - base,
            31
        )
END;

-- Whether a producer's sequences begin anew within its epoch (`model.producer_history.begins_anew`); false where nothing is known.
-- before, sequences: what producer_events says of a batch, as a struct
CREATE OR REPLACE TEMPORARY FUNCTION begins_anew(
    before STRUCT<base: BIGINT, last: BIGINT, max_timestamp_ms: BIGINT, may_be_forgotten: BOOLEAN>,
    sequences STRUCT<base: BIGINT, last: BIGINT, max_timestamp_ms: BIGINT, may_be_forgotten: BOOLEAN>
) RETURNS BOOLEAN RETURN
coalesce(
    sequences.base = 0 AND before.may_be_forgotten
        AND NOT coalesce(
            before.base = 0 AND before.last = sequences.last AND before.max_timestamp_ms = sequences.max_timestamp_ms, false
        ),
    false
);

-- What lies between an earlier row at an offset and this one. era: how often the broker deleted segments between two dumps before it.
CREATE OR REPLACE TEMPORARY FUNCTION seen_since(earlier_offset BIGINT, hole_at BIGINT, cleaned_at BIGINT, era INT) RETURNS STRING RETURN
CASE
    -- Of a producer that the log did not show before a hole, the hole may hold more.
    WHEN earlier_offset IS NULL THEN CASE WHEN era > 0 THEN 'removed' WHEN hole_at IS NOT NULL THEN 'hole' ELSE 'not_observed' END
    WHEN hole_at > earlier_offset THEN 'hole'
    WHEN cleaned_at > earlier_offset THEN 'compacted'
    ELSE 'observed'
END;

-- Brokers are stopped one after another, and a copy that stopped first lacks what was written later (KIP-101). That two logs ended at one
-- moment is told by their broker, or by a broker's own copy of the coordinator's log that ends where the copy which tells of it does. What
-- has no broker's name is one broker's.
CREATE OR REPLACE TEMPORARY FUNCTION stopped_together(clean_end BOOLEAN, broker INT, stopped_with ARRAY<INT>) RETURNS BOOLEAN RETURN
coalesce(clean_end AND array_contains(stopped_with, coalesce(broker, -1)), false);

-- Which was dumped first, a log or the coordinator's: 'log', 'coordinator' or 'unknown'. Lines of one dumped-at.txt stand in the order of
-- dumping, whatever the clock did meanwhile. Of two files the times tell, which are one broker's, in whole seconds. A log that holds
-- something younger than its own dump, or than the later one, shows that the clock was set back between them.
CREATE OR REPLACE TEMPORARY FUNCTION dumped_first(
    noted_at STRUCT<section_id: BIGINT, byte_offset: BIGINT>, coordinator_noted_at STRUCT<section_id: BIGINT, byte_offset: BIGINT>,
    broker INT, coordinator_broker INT, dumped_at_ms BIGINT, coordinator_dumped_at_ms BIGINT, latest_ms BIGINT, coordinator_latest_ms BIGINT
) RETURNS STRING RETURN
CASE
    WHEN noted_at.section_id = coordinator_noted_at.section_id
        THEN CASE WHEN noted_at < coordinator_noted_at THEN 'log' WHEN noted_at > coordinator_noted_at THEN 'coordinator' ELSE 'unknown' END
    WHEN NOT (broker <=> coordinator_broker) THEN 'unknown'
    WHEN latest_ms > dumped_at_ms + 1000 OR coordinator_latest_ms > coordinator_dumped_at_ms + 1000 THEN 'unknown'
    WHEN coordinator_dumped_at_ms >= dumped_at_ms AND coalesce(latest_ms <= coordinator_dumped_at_ms + 1000, true) THEN 'log'
    WHEN dumped_at_ms > coordinator_dumped_at_ms AND coalesce(coordinator_latest_ms <= dumped_at_ms + 1000, true) THEN 'coordinator'
    ELSE 'unknown'
END;

-- Whether a marker may be the one of an instance. Its coordinator epoch is not above the leader epoch of CompleteX: both are one counter,
-- `EndTransactionMarker.coordinatorEpoch` is the leader epoch of the `__transaction_state` partition, which the batches of PrepareX and
-- CompleteX print as partitionLeaderEpoch. It may be below that of PrepareX: ZooKeeper's controller raises a leader's epoch when a follower
-- dies, too, and no coordinator hears of it (`ReplicaManager.makeLeaders`). Only the law of markers in doubt asks where that cannot be.
CREATE OR REPLACE TEMPORARY FUNCTION may_be_its_marker(
    marker_type STRING, epoch INT, coordinator_epoch INT, decision STRING, marker_epoch INT, complete_leader_epoch INT
) RETURNS BOOLEAN RETURN
coalesce(decision = marker_type AND marker_epoch = epoch, false)
    AND coalesce(coordinator_epoch <= complete_leader_epoch, true);

-- How far two clocks surely lie apart, of which pairs tell a least and a most: while 0 lies between the bounds the clocks may be one; else
-- the bound next to 0 is the distance that is proved.
CREATE OR REPLACE TEMPORARY FUNCTION proved_distance(least DOUBLE, most DOUBLE) RETURNS DOUBLE RETURN
CASE WHEN least <= 0 AND most >= 0 THEN 0 WHEN abs(least) < abs(most) THEN least ELSE most END;

-- Whether a marker ends the instance that it was matched with: others repeat it, or are nobody's.
CREATE OR REPLACE TEMPORARY FUNCTION ends_instance(match STRING) RETURNS BOOLEAN RETURN
coalesce(match IN ('closing', 'contradictory'), false);

-- Whether anybody will end what is open behind the last marker of a producer; decisions are those of the instances that may own it.
CREATE OR REPLACE TEMPORARY FUNCTION open_fate(is_ambiguous BOOLEAN, known_to_the_end BOOLEAN, decisions ARRAY<STRING>)
RETURNS STRING RETURN
CASE
    WHEN is_ambiguous THEN 'unknown'
    WHEN exists(decisions, decision -> decision IS NULL) THEN 'running'
    WHEN size(decisions) > 0 THEN 'decided'
    WHEN known_to_the_end THEN 'nobody'
    ELSE 'unknown'
END;

-- Java's `String.hashCode` of a text whose UTF-16 code units are given as hexadecimal digits: 32 bits with sign, as a long. Java's char is
-- a code unit: a character outside the first plane counts as two.
CREATE OR REPLACE TEMPORARY FUNCTION java_hash(digits STRING) RETURNS BIGINT RETURN
aggregate(
    transform(
        slice(sequence(0, length(digits) DIV 4), 1, length(digits) DIV 4),
        i -> CAST(conv(substring(digits, 4 * i + 1, 4), 16, 10) AS BIGINT)
    ),
    0L,
    (h, unit) -> pmod(h * 31 + unit, 4294967296L),
    h -> IF(h < 2147483648, h, h - 4294967296L)
);

-- The partition of a hash among so many: `Utils.abs(hashCode) % n`, where abs of the smallest integer is 0.
CREATE OR REPLACE TEMPORARY FUNCTION partition_of(hash BIGINT, partitions BIGINT) RETURNS BIGINT RETURN
mod(IF(hash = -2147483648, 0L, abs(hash)), partitions);
