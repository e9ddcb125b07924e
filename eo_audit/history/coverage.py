"""Which offsets of each replica log the dumps show, and what breaks them.

A stretch of batches without a hole is one `covered` row, up to the first bad checksum or offset disorder; behind that nothing is judged.
Offsets missing where the cleaner has been are legal and do not end a stretch. A gap is a hole only in a topic that is known not to be
compacted: in any other the cleaner of this broker, or of the one it was copied from, may have made it, and it is `unexplained`. So it is
where the text before the batch was not understood: the offsets may stand there. Where a listing shows the segment, only the dump lacks it.
Offsets that stand later in the log are out of order, and not missing. What the broker deleted between two dumps was `not_observed`, and is
no hole: what an older dump showed below it stays as it was seen then. Where nothing says which of two dumps is newer, what is missing
between them may have been deleted so, or be lost: it is `unordered`, and nothing is concluded across it.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from eo_audit.history.sql import columns_of, expressions, named

# What tells the order of any two dumps.
DUMPED_AT = "dumped_at in the manifest.yaml of each"
_LOG = ["replica_log_id", "cluster", "broker", "topic", "partition"]
_HERE = "struct(section_id, byte_offset, length)"
_CLEANED = "coalesce(gap = 'compacted', false)"
# Behind the first break nothing is judged, holes neither.
_HOLE = "gap IN ('hole', 'removed') AND (judged OR disorder OR crc_invalid)"
_ODD = f"coalesce({_HOLE}, false) OR disorder OR crc_invalid"
_SEEN = f"struct(previous_last_offset, base_offset, last_offset, gap, disorder, crc_invalid, {_HERE} AS at)"
# One row per stretch without a hole, judged or not.
_STRETCH = {
    "first": "min(base_offset)",
    "last": "max(last_offset)",
    "at": f"min_by({_HERE}, position_in_log)",
    "cleaned_first": f"min(IF({_CLEANED}, previous_last_offset + 1, NULL))",
    "cleaned_last": f"max(IF({_CLEANED}, base_offset - 1, NULL))",
    "cleaned": f"coalesce(sum(IF({_CLEANED}, base_offset - previous_last_offset - 1, NULL)), 0L)",
    "cleaned_at": f"min_by({_HERE}, IF({_CLEANED}, position_in_log, NULL))",
    "short": "count_if(count_short)",
    "short_first": "min(IF(count_short, base_offset, NULL))",
    "short_last": "max(IF(count_short, last_offset, NULL))",
    "short_at": f"min_by({_HERE}, IF(count_short, position_in_log, NULL))",
    "odd": f"collect_list(IF({_ODD}, {_SEEN}, NULL))",
}


def _part(first: str, last: str, *, state: str, reason: str, at: str, when: str = "true") -> str:
    """SQL of a part, as an array of one or none."""
    part = f"""struct({first} AS first_offset, {last} AS last_offset, {state} AS state, CAST({reason} AS STRING) AS reason,
        {at}.section_id AS section_id, {at}.byte_offset AS byte_offset, {at}.length AS length)"""
    return f"filter(array(IF(coalesce({when}, false), {part}, NULL)), part -> part IS NOT NULL)"


_MISSING = "format_string('%d is followed by %d', odd.previous_last_offset, odd.base_offset)"
_LISTED = "filter(missing_segments, base -> base BETWEEN odd.previous_last_offset + 1 AND odd.base_offset - 1)"
_BACK = f"IF(odd.previous_last_offset >= odd.base_offset, {_MISSING}, 'it ends before it starts, or lies below its segment')"
# Stretches behind the first break, and what of a hole none of them holds.
_LATER = "collect_list(IF(judged, NULL, struct(first, last))) OVER (PARTITION BY replica_log_id) AS later"
_INSIDE = "filter(array_sort(later), s -> s.last > odd.previous_last_offset AND s.first < odd.base_offset)"
_NEXT = "array(struct(so_far.next AS first, {last} AS last))"
# The hole without the stretches that stand later in the log: of what is left nobody has seen anything.
_MISSED = f"""aggregate({_INSIDE},
    struct(odd.previous_last_offset + 1 AS next, CAST(array() AS ARRAY<STRUCT<first: BIGINT, last: BIGINT>>) AS parts),
    (so_far, s) -> struct(greatest(so_far.next, s.last + 1) AS next,
        IF(s.first > so_far.next, concat(so_far.parts, {_NEXT.format(last="s.first - 1")}), so_far.parts) AS parts),
    so_far -> IF(so_far.next < odd.base_offset, concat(so_far.parts, {_NEXT.format(last="odd.base_offset - 1")}), so_far.parts))"""
_HOLE_PART = _part(
    "missed.first",
    "missed.last",
    state=f"CASE WHEN size({_LISTED}) > 0 THEN 'segment_missing' WHEN never_cleaned THEN 'hole' ELSE 'unexplained' END",
    reason=f"IF(size({_LISTED}) > 0, format_string('segment %d is listed, and was not dumped', get({_LISTED}, 0)), {_MISSING})",
    at="odd.at",
)
# With a listing that does not tell, a second one would not either.
_WOULD_TELL = f"IF(listed, '{DUMPED_AT}', '{DUMPED_AT}, or a listing.txt or log-start-offset-checkpoint of the newer one')"
_IS_UNORDERED = "array_contains(unordered_before, odd.base_offset)"
_OF_ODD = (
    f"IF(odd.gap = 'hole', flatten(transform({_MISSED}, missed -> {_HOLE_PART})), array())",
    _part(
        "odd.previous_last_offset + 1",
        "odd.base_offset - 1",
        state=f"IF({_IS_UNORDERED}, 'unordered', 'not_observed')",
        reason=f"""IF({_IS_UNORDERED}, concat('nothing says which of two dumps is newer: ', {_WOULD_TELL}, ' would tell'),
            'the broker deleted these segments between two dumps')""",
        at="odd.at",
        when="odd.gap = 'removed'",
    ),
    _part("odd.base_offset", "odd.last_offset", state="'disorder'", reason=_BACK, at="odd.at", when="odd.disorder"),
    _part("odd.base_offset", "odd.last_offset", state="'crc_invalid'", reason="'isvalid: false'", at="odd.at", when="odd.crc_invalid"),
)
_OF_STRETCH = (
    _part(
        "first",
        "last",
        state="IF(judged, 'covered', 'not_judged')",
        reason="IF(judged, NULL, 'behind a bad checksum or an offset disorder')",
        at="at",
    ),
    _part(
        "cleaned_first",
        "cleaned_last",
        state="'compacted'",
        reason="format_string('%d offsets removed by the cleaner', cleaned)",
        at="cleaned_at",
        when="cleaned > 0",
    ),
    _part(
        "short_first",
        "short_last",
        state="'count_short'",
        reason="format_string('%d batches hold fewer records than offsets, in a log that was not compacted there', short)",
        at="short_at",
        when="short > 0",
    ),
    f"flatten(transform(odd, odd -> concat({', '.join(_OF_ODD)})))",
)
_AT_HEADER = "struct(section_id, byte_offset, header_length AS length)"
_END = "coalesce(incomplete_from, section_end + 1, segment_base_offset)"
_IS_NEWEST = "segment_base_offset = newest_segment"
_OF_SECTION = (
    _part(
        "missing_head_from",
        "first_offset - 1",
        state="'head_missing'",
        reason="'older segments were not dumped'",
        at=_AT_HEADER,
        when="is_read AND segment_base_offset = first_offset AND missing_head_from IS NOT NULL",
    ),
    _part(
        _END,
        # The log reached its high watermark, however early the dump of it ends.
        f"greatest({_END}, section_end, IF({_IS_NEWEST}, hw - 1, NULL))",
        state="'truncated'",
        reason="""CASE WHEN doubtful THEN 'unread text: ambiguous'
            WHEN tail_intact THEN 'a snapshot, a listed segment or a checkpoint tells of more' WHEN end_reason = 'exception' THEN
            'the dump tool failed here' ELSE 'the dump ends here, the segment does not' END""",
        at=_AT_HEADER,
        when=f"is_read AND (doubtful OR NOT (tail_intact AND (log_tail_intact OR NOT ({_IS_NEWEST}))))",
    ),
    _part(
        "segment_base_offset",
        "section_end",
        state="'shallow'",
        reason="'printed without --deep-iteration'",
        at=_AT_HEADER,
        when="is_read AND section_end IS NOT NULL AND NOT deep",
    ),
    _part(
        "segment_base_offset",
        "segment_base_offset",
        state="'not_supported'",
        reason="'printed by a kafka-dump-log older than 2.2'",
        at=_AT_HEADER,
        when="NOT supported AND superseded_by IS NULL AND coalesce(dir_kind, 'normal') = 'normal'",
    ),
)


# Unread text explains offsets that are missing before the batch behind it, and at the end of a log that can be read in more than one way.
_UNREAD = {"section_id": "section_id", "unread_end": "byte_offset + length", "unread": "concat('unread text: ', reason)"}
_EXPLAINED = {"state": "IF(unread IS NOT NULL AND state = 'hole', 'unexplained', state)", "reason": "coalesce(unread, reason)"}


def coverage(ordered: DataFrame, section_status: DataFrame, replica_logs: DataFrame, *, unread_spans: DataFrame | None = None) -> DataFrame:
    """Runs of offsets of each replica log with their state, each with the line where it was seen.

    Args:
        ordered: what `in_log_order` returns.
        section_status: the table.
        replica_logs: the table.
        unread_spans: the table; without it, all text was understood.
    """
    if unread_spans is None:
        unread_spans = ordered.selectExpr("section_id", "byte_offset", "length", "'' AS reason").where("false")
    # Where the cleaner works it may have gone on between the copy of its checkpoint and the dump.
    cleaned = "compacted OR coalesce(contains(cleanup_policy, 'compact'), false)"
    never_cleaned = f"uncleaned_from IS NOT NULL AND NOT coalesce({cleaned}, false) AS never_cleaned"
    newest = "array_max(segments.base_offset) AS newest_segment"
    missing = ("missing_head_from", "missing_segments", "unordered_before", "listed")
    numbers = ("hw", "first_offset", *missing, "tail_intact AS log_tail_intact")
    logs = F.broadcast(replica_logs.selectExpr(*_LOG, *numbers, newest, never_cleaned))
    # `hole_at` is the newest hole so far, so it names the stretch; what lies behind the first break is a stretch of its own.
    stretches = ordered.groupBy("replica_log_id", "hole_at", "judged").agg(*expressions(_STRETCH))
    # A stretch becomes all its rows at once (`inline`): nothing is read twice.
    of_batches = (
        stretches.selectExpr("*", _LATER).join(logs, "replica_log_id").selectExpr(*_LOG, f"inline(concat({', '.join(_OF_STRETCH)}))")
    )
    sections = section_status.where("kind = 'log'").drop("first_offset", *_LOG[1:]).withColumnRenamed("last_offset", "section_end")
    sections = sections.join(F.broadcast(_doubtful(ordered, unread_spans)), "section_id", "left").fillna(False, ["doubtful"])
    of_sections = sections.join(logs, "replica_log_id").selectExpr(*_LOG, f"inline(concat({', '.join(_OF_SECTION)}))")
    return _explained(of_batches, unread_spans).unionByName(of_sections).selectExpr(*columns_of("coverage", {}))


def _explained(parts: DataFrame, unread_spans: DataFrame) -> DataFrame:
    """Parts of logs; what is missing before a batch line with unread text right before it is unexplained, and no hole."""
    ending = unread_spans.selectExpr(*named(_UNREAD))
    parts = parts.withColumn("unread_end", F.expr("IF(state IN ('hole', 'unexplained'), byte_offset, NULL)"))
    parts = parts.join(ending, ["section_id", "unread_end"], "left")
    return parts.withColumns({name: F.expr(sql) for name, sql in _EXPLAINED.items()}).drop("unread_end", "unread")


def _doubtful(ordered: DataFrame, unread_spans: DataFrame) -> DataFrame:
    """The sections with text behind their last batch line that can be read in more than one way."""
    spans = unread_spans.where("reason = 'ambiguous'").groupBy("section_id").agg(F.max("byte_offset").alias("doubt_at"))
    last = ordered.join(F.broadcast(spans), "section_id").groupBy("section_id").agg(F.max("byte_offset").alias("last_at"))
    return spans.join(last, "section_id", "left").where("doubt_at > coalesce(last_at, -1L)").selectExpr("section_id", "true AS doubtful")
