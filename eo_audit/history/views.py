"""Names for frames that texts read: entries of the session's catalog, made and taken out without a command.

`createOrReplaceTempView` is a command, which is parsed, planned and noted as an execution of its own, and `dropTempView` analyses the whole
view again before it lets go of it: 10 and 2 ms in a warm session, 20 ms each in a young one, where an entry takes 2 to 3 ms and 0.2 ms (a
hundred views in a small audit).
"""

from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession

_PATTERN = "eo_audit_pattern"


class _Catalog:
    """The catalog of a session, and what its entries are made of.

    py4j asks for each part of a name with dots, and Java looks through all jars for a class of that name: asked anew for each view that
    were 1,100 questions in a small audit, 0.5 s of it.
    """

    def __init__(self, session: SparkSession) -> None:
        jvm = session.sparkContext._jvm
        assert jvm is not None
        self.entries = session._jsparkSession.sessionState().catalog()
        self.some = jvm.scala.Some
        self.relation = jvm.org.apache.spark.sql.catalyst.catalog.TemporaryViewRelation
        # What Spark notes of a view beside its plan: taken from one that a command made, and good for all that live as long as their
        # session. It names that one, so whoever reads a view gives it a name in the statement.
        session.range(0).createOrReplaceTempView(_PATTERN)
        self.note = self.entries.getRawTempView(_PATTERN).get().tableMeta()
        self.entries.dropTempView(_PATTERN)


_catalogs: WeakKeyDictionary[SparkSession, _Catalog] = WeakKeyDictionary()


def make(session: SparkSession, name: str, rows: DataFrame) -> None:
    """Let statements of a session read a frame by a name."""
    catalog = _catalog(session)
    plan = catalog.some(rows._jdf.queryExecution().analyzed())
    catalog.entries.createTempView(name, catalog.relation(catalog.note, plan), True)


def drop(session: SparkSession, name: str) -> None:
    """Forget a name; plans that read it stay as they are."""
    _catalog(session).entries.dropTempView(name)


def _catalog(session: SparkSession) -> _Catalog:
    catalog = _catalogs.get(session)
    if catalog is None:
        catalog = _catalogs[session] = _Catalog(session)
    return catalog
