"""What our SQL means by its words, whatever a cluster, somebody's own session or a configuration file has set: results depend on that."""

from collections.abc import Mapping

from pyspark.sql import SparkSession

from eo_audit.errors import ConfigurationError

# As the sessions of a machine have it: a cluster's own defaults may be others.
OF_RESULTS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    # Without it `size(NULL)` is -1, and a number that does not fit is cut.
    "spark.sql.ansi.enabled": "true",
    # `end` and its like are names of columns.
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.relationPrecedence": "false",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    # A backslash is written twice in our patterns.
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.crossJoin.enabled": "true",
    "spark.sql.groupByAliases": "true",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.orderByOrdinal": "true",
    "spark.sql.retainGroupColumns": "true",
    "spark.sql.selfJoinAutoResolveAmbiguity": "true",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    # A fact that cannot be read is told, never passed over.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.parquet.binaryAsString": "false",
}
# What words meant in earlier releases of Spark: a hundred switches, of which a session of ours has none.
LEGACY = "spark.sql.legacy."


def refuse_other_meanings(settings: Mapping[str, object]) -> None:
    """Of the settings of a configuration file none may change what our SQL means.

    Raises:
        ConfigurationError: one would.
    """
    for name, value in settings.items():
        ours = OF_RESULTS.get(name)
        if name.startswith(LEGACY) or (ours is not None and str(value).lower() != ours.lower()):
            needed = "leave it out" if ours is None else f"it is {ours}, leave it out"
            raise ConfigurationError(f"the configuration (--config) must not set {name}, on which results depend: {needed}")


def as_ours(spark: SparkSession) -> SparkSession:
    """A session that somebody else started, in which our SQL means what it means on one machine."""
    for name in spark.conf.getAll:
        if name.startswith(LEGACY):
            spark.conf.unset(name)
    for name, value in OF_RESULTS.items():
        spark.conf.set(name, value)
    return spark
