"""Any step of any history, with the tables of a finished rebuild as they are: for a notebook, or `eo-audit export HISTORY.STEP`."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from eo_audit.errors import ArgumentError, WarehouseError
from eo_audit.history.steps import histories, steps
from eo_audit.history.text import Seen, looking_for
from eo_audit.rebuild.step import rebuild_histories
from eo_audit.store.tables import Warehouse

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


class _Finished(Warehouse):
    """Tables that are not written again: what a history is made from is what the finished rebuild left."""

    def overwrite(self, name: str, rows: "DataFrame") -> "DataFrame":
        return self.read(name)

    def overwrite_arrow(self, name: str, rows: "pa.Table") -> "DataFrame":
        return self.read(name)

    def materialise(self, rows: "DataFrame") -> "DataFrame":
        return super().materialise(rows) if self.small else rows.persist()  # nothing is written where somebody only looks


def step_of(name: str, out: Path, spark: "Callable[[], SparkSession]", *, small: bool) -> "DataFrame":
    """The rows of a step.

    Args:
        name: `HISTORY.STEP`.
        out: the output folder of a run.
        spark: gives the session.
        small: as the run was.

    Raises:
        ArgumentError: there is no such step.
        WarehouseError: nothing was rebuilt there.
    """
    history, _, step = name.partition(".")
    if history not in histories():
        raise ArgumentError(f"there is no history {history}; the histories are {', '.join(histories())}")
    if step not in steps(history):
        raise ArgumentError(f"{history} has no step {step}; its steps are {', '.join(steps(history))}")
    warehouse = _Finished(out, spark, small=small)
    if not warehouse.exists("producer_history"):
        raise WarehouseError(f"{warehouse.folder} holds no histories yet: `eo-audit rebuild` makes them")
    # Without one each cluster has a now of its own.
    given = (row["as_of_ms"] for row in warehouse.arrow("clusters").to_pylist() if row["as_of_source"] == "argument")
    as_of = next(given, None)
    with looking_for(history, step):
        try:
            rebuild_histories(warehouse, as_of_ms=as_of, small=small)
        except Seen as seen:
            return seen.rows
    raise ArgumentError(f"{history} is not made of these dumps")


def lines(rows: "DataFrame") -> Iterator[str]:
    """Rows as JSON objects, one a line, without line ends, in no order."""
    # By Spark: Arrow refuses a null struct that has a field without nulls, as `lag(struct(...))` makes them.
    told = rows.selectExpr("to_json(struct(*), map('ignoreNullFields', 'false')) AS line").toArrow()
    for batch in told.to_batches(max_chunksize=2_000):
        yield from batch.column(0).to_pylist()
