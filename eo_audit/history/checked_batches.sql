-- Batches with the checksums that the tool looked at without --deep-iteration: with it tools before 2.2 print none (`DumpLogSegments`), and
-- where a segment was printed both ways, the deep text is read. One row per batch.
--
-- batches, section_status    the tables
WITH

-- Of two nights the replica may have been fetched anew between them.
printed_twice AS (
    SELECT shallow.section_id, deep.section_id AS read_section_id, deep.next_segment_base IS NOT NULL AS is_closed
    FROM {section_status} shallow
    JOIN {section_status} deep ON deep.section_id = shallow.superseded_by AND deep.dump_set = shallow.dump_set
    WHERE deep.lacks_checksums AND deep.is_read AND shallow.supersession_reason = 'deep_beats_shallow'
),
shallow_batches AS (
    SELECT /*+ BROADCAST(twice) */
        twice.read_section_id AS section_id,
        batch.position,
        batch.crc_valid,
        -- A broker may have been writing the last batch of its newest segment while the tool read it.
        twice.is_closed OR batch.position < max(batch.position) OVER (PARTITION BY batch.section_id) AS is_written
    FROM {batches} batch
    JOIN printed_twice twice ON twice.section_id = batch.section_id
),
bad AS (
    SELECT DISTINCT section_id, position FROM shallow_batches WHERE NOT crc_valid AND is_written
)

SELECT /*+ BROADCAST(bad) */
    batch.* EXCEPT (crc_valid),
    IF(bad.position IS NULL, batch.crc_valid, false) AS crc_valid
FROM {batches} batch
LEFT JOIN bad ON bad.section_id = batch.section_id AND bad.position = batch.position
