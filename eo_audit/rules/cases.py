"""From history rows to cases: which rows break which rule, how many of one cause, and the most telling of them.

One scan of each history table serves all the rules that read it; their hits share one shuffle. A hit is a row of:
rule, key (the cause, within its replica log), replica_log_id, table, first_offset, last_offset, records, timestamp_ms, weight,
addresses and `row` (the columns that
`explain` may read, as JSON).
"""

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from eo_audit.rules.rule import Rule
from eo_audit.rules.sources import SOURCES, Source

MOST_TELLING = 20
HIT = (
    "rule",
    "key",
    "replica_log_id",
    "table",
    "first_offset",
    "last_offset",
    "records",
    "timestamp_ms",
    "weight",
    "section_id",
    "byte_offset",
    "row",
)


def cases(histories: Mapping[str, DataFrame], rules: Sequence[Rule]) -> DataFrame:
    """All cases of all `rules`.

    Args:
        histories: history tables by name.
        rules: part of the catalogue.

    Returns:
        The columns of a hit, at most 20 rows for each (rule, replica_log_id, key), with `rank` (1 is the most telling), `hits` (rows of
        the case), `all_records`,
        `case_first`, `case_last`, `case_timestamp_ms`.
    """
    tables = sorted({rule.reads[0] for rule in rules if rule.where is not None})
    found = [
        hits_of_table(SOURCES[table], histories[table], [r for r in rules if r.where is not None and r.reads[0] == table])
        for table in tables
    ]
    found += [rule.find(histories) for rule in rules if rule.find is not None]
    return most_telling(reduce(DataFrame.unionByName, found))


def hits_of_table(source: Source, rows: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """Rows of one history table that break one of `rules` (all of which read it), once per rule."""
    broken = F.array_compact(F.array(*[F.when(rule.where(), F.lit(rule.code)) for rule in rules if rule.where is not None]))
    judged = rows.where("judged") if source.judged else rows
    return hits(source, judged.select("*", F.explode(broken).alias("rule")), key=_key(rules), weight=_weight(rules))


def hits(source: Source, rows: DataFrame, *, key: Column, weight: Column) -> DataFrame:
    """Rows of a history table, with their `rule`, in the form of a hit."""
    records = F.expr(source.records) if source.records else F.lit(None)
    timestamp = F.expr(source.timestamp) if source.timestamp else F.lit(None)
    prefix = source.addresses[0][0]
    places = [f"{other}{part}" for other, _ in source.addresses for part in ("section_id", "byte_offset", "length")]
    return rows.select(
        "rule",
        key.cast("string").alias("key"),
        F.col("replica_log_id"),
        F.lit(source.table).alias("table"),
        F.expr(source.first).cast("long").alias("first_offset"),
        F.expr(source.last).cast("long").alias("last_offset"),
        records.cast("long").alias("records"),
        timestamp.cast("long").alias("timestamp_ms"),
        weight.cast("long").alias("weight"),
        F.col(f"{prefix}section_id").alias("section_id"),
        F.col(f"{prefix}byte_offset").alias("byte_offset"),
        F.to_json(F.struct(*dict.fromkeys((*source.row.split(), *places)))).alias("row"),
    )


def _key(rules: Sequence[Rule]) -> Column:
    """The cause, by rule: the value of the rule's `by` column, or nothing."""
    columns = sorted({rule.by for rule in rules if rule.by})
    return F.coalesce(F.lit(None).cast("string"), *[F.when(_is_one_of(rules, by), F.col(by).cast("string")) for by in columns])


def _is_one_of(rules: Sequence[Rule], by: str) -> Column:
    return F.col("rule").isin([rule.code for rule in rules if rule.by == by])


def _weight(rules: Sequence[Rule]) -> Column:
    weights = [F.when(F.col("rule") == rule.code, rule.weight()) for rule in rules if rule.weight is not None]
    return F.coalesce(*weights, F.lit(0))


def most_telling(found: DataFrame) -> DataFrame:
    """The first 20 hits of each case, with the case's totals. Ties go to the lower offset, then to the lower address."""
    of_case = Window.partitionBy("rule", "replica_log_id", "key")
    order = of_case.orderBy(F.desc("weight"), F.asc_nulls_last("first_offset"), "section_id", "byte_offset")
    totals = found.select(
        *HIT,
        F.row_number().over(order).alias("rank"),
        F.count(F.lit(1)).over(of_case).alias("hits"),
        F.sum("records").over(of_case).alias("all_records"),
        F.min("first_offset").over(of_case).alias("case_first"),
        F.max("last_offset").over(of_case).alias("case_last"),
        F.min("timestamp_ms").over(of_case).alias("case_timestamp_ms"),
    )
    return totals.where(F.col("rank") <= MOST_TELLING)
