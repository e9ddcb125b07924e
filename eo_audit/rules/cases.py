"""From history rows to cases: which rows break which rule, how many of one cause, and the most telling of them.

One scan of each history table serves all the rules that read it; their hits share one shuffle. A hit is a row of rule, key (the cause,
within its replica log), replica_log_id, table, first_offset, last_offset, records, timestamp_ms, weight, section_id, byte_offset and `row`
(the columns that `explain` may read, as JSON).

The steps are SQL expressions, which cost a fraction of the calls to Java that Columns would.
"""

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from eo_audit.rules.rule import Rule
from eo_audit.rules.sources import SOURCES, Source

MOST_TELLING = 20
_OF_CASE = "PARTITION BY rule, replica_log_id, key"
# Down to the row itself, so that no two hits are equal and every run shows the same ones: what has no data has no address.
_MOST_TELLING_FIRST = f"{_OF_CASE} ORDER BY weight DESC, first_offset ASC NULLS LAST, section_id, byte_offset, row"


def cases(histories: Mapping[str, DataFrame], rules: Sequence[Rule]) -> DataFrame:
    """All cases of all `rules`.

    Args:
        histories: history tables by name.
        rules: part of the catalogue.

    Returns:
        The columns of a hit, at most 20 rows for each (rule, replica_log_id, key), with `rank` (1 is the most telling), `hits` (rows of
        the case), `all_records`, `case_first`, `case_last`, `case_timestamp_ms`.
    """
    # A table that no rule of this run reads is not scanned.
    codes = [rule.code for rule in rules]
    tables = sorted({rule.reads[0] for rule in rules if rule.where is not None})
    found = [hits_of_table(SOURCES[table], histories[table], [rule for rule in rules if rule.reads[0] == table]) for table in tables]
    # A function may serve several rules: it runs once, and says in `rule` which of them it found.
    found += [
        find(histories).where(f"rule IN ({_quoted(codes)})") for find in dict.fromkeys(rule.find for rule in rules) if find is not None
    ]
    return most_telling(united(found))


def may_find(rule: Rule, empty: frozenset[str]) -> bool:
    """Whether a rule can find anything where these tables have no rows."""
    return rule.reads[0] not in empty if rule.where is not None else not empty.issuperset(rule.reads)


def hits_of_table(source: Source, rows: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """Rows of one history table that break one of `rules`, once per rule."""
    wheres = {rule.code: f"({rule.where})" for rule in rules if rule.where is not None}
    # Behind a bad checksum or an offset that goes back, labels were reckoned from what may be no batch.
    judged = "judged AND " if source.judged else ""
    suspects = rows.where(f"{judged}({' OR '.join(wheres.values())})")  # nearly all rows are healthy: ask once, then which rule it was
    broken = ", ".join(f"IF({where}, '{code}', NULL)" for code, where in wheres.items())
    found = suspects.selectExpr("*", f"explode(array_compact(array({broken}))) AS rule")
    columns = [column for rule in rules if rule.where is not None for column in rule.columns.split()]
    return hits(source, found, key=_key(rules), weight=_weight(rules), columns=columns)


def hits(source: Source, rows: DataFrame, *, key: str, weight: str, columns: Sequence[str]) -> DataFrame:
    """Rows of a history table that have a `rule`, in the form of a hit.

    Args:
        source: how the table is read.
        rows: its rows that break a rule, with the column `rule`.
        key, weight: SQL (`Rule.by`, `Rule.weight`).
        columns: what the words of these rules read, besides `source.about`.
    """
    prefix = source.addresses[0][0]
    # As JSON: rows of nine tables go through one union, and each has its own columns.
    places = [f"{other}{part}" for other, _ in source.addresses for part in ("section_id", "byte_offset", "length")]
    offsets = [offset for _, offset in source.addresses]
    return rows.selectExpr(
        "rule",
        f"CAST({key} AS string) AS key",
        "replica_log_id",
        f"'{source.table}' AS table",
        f"CAST({source.first} AS long) AS first_offset",
        f"CAST({source.last} AS long) AS last_offset",
        f"CAST({source.records or 'NULL'} AS long) AS records",
        f"CAST({source.timestamp or 'NULL'} AS long) AS timestamp_ms",
        f"CAST({weight} AS long) AS weight",
        f"{prefix}section_id AS section_id",
        f"{prefix}byte_offset AS byte_offset",
        f"to_json(struct({', '.join(dict.fromkeys((*source.about.split(), *offsets, *columns, *places)))})) AS row",
    )


def united(parts: Sequence[DataFrame]) -> DataFrame:
    """Rows of frames that have the same columns in the same order.

    As one union over plans that are analysed already: `DataFrame.union` takes two, and Spark analyses all that is united so far each time
    (36 parts: 5 % of a warm audit, two by two).
    """
    session = parts[0].sparkSession
    jvm = session.sparkContext._jvm
    assert jvm is not None
    plans = jvm.PythonUtils.toSeq([part._jdf.queryExecution().analyzed() for part in parts])
    union = jvm.org.apache.spark.sql.catalyst.plans.logical.Union(plans, False, False)
    return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, union), session)


def most_telling(found: DataFrame) -> DataFrame:
    """The first 20 hits of each case, with the case's totals. Ties go to the lower offset, then to the lower address."""
    return found.selectExpr(
        "*",
        f"row_number() OVER ({_MOST_TELLING_FIRST}) AS rank",
        f"count(1) OVER ({_OF_CASE}) AS hits",
        f"sum(records) OVER ({_OF_CASE}) AS all_records",
        f"min(first_offset) OVER ({_OF_CASE}) AS case_first",
        f"max(last_offset) OVER ({_OF_CASE}) AS case_last",
        f"min(timestamp_ms) OVER ({_OF_CASE}) AS case_timestamp_ms",
    ).where(f"rank <= {MOST_TELLING}")


def _key(rules: Sequence[Rule]) -> str:
    """The cause, by rule: the values of the rule's `by` columns, or nothing."""
    columns = sorted({rule.by for rule in rules if rule.by})
    branches = " ".join(
        f"WHEN rule IN ({_quoted([r.code for r in rules if r.by == by])}) THEN concat_ws(' ', {', '.join(by.split())})" for by in columns
    )
    return f"CASE {branches} END" if branches else "NULL"


def _weight(rules: Sequence[Rule]) -> str:
    branches = " ".join(f"WHEN rule = '{rule.code}' THEN {rule.weight}" for rule in rules if rule.weight is not None)
    return f"coalesce(CASE {branches} END, 0)" if branches else "0"


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
