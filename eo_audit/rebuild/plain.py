"""Dumps in which nothing is transactional, or nothing repeated: what step 2 need not ask then.

Without a coordinator's entry there is no transaction; without a marker and a transactional batch beside that, nothing that one could own or
end. All that is told of such things has no rows, and plain batches are nobody's. To hear that from Spark took, of
the duplicates example, 17 of 35 runs of texts, with 188 of their 341 steps.
"""

from typing import TYPE_CHECKING

import pyarrow.compute as pc

from eo_audit.history.repeated_records import LEAST_RECORDS
from eo_audit.store.schemas import schema
from eo_audit.store.tables import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Made from markers, spans, transactions and entries of the index; of nothing else.
OF_TRANSACTIONS = ("clock_offsets", "open_transactions", "unmatched", "instance_partitions", "aborted_index")
_OF_OWNER = ("instance_id", "instance_source", "instance_decision", "registration", "late", "marker_role")


def has_transactions(warehouse: Warehouse) -> bool:
    """Whether any dump tells of a transaction; of large dumps this is not looked up, for there the answer costs more than it saves."""
    if not warehouse.small or not (warehouse.is_empty("coordinator_entries") and warehouse.is_empty("aborted_transactions")):
        return True
    batches = warehouse.arrow("batches")
    # Of a batch whose line does not say it nobody knows: then all is asked.
    plain = pc.and_(pc.equal(batches["is_transactional"], False), pc.equal(batches["is_control"], False))
    return not bool(pc.all(pc.fill_null(plain, False)).as_py())


def has_repeats(warehouse: Warehouse) -> bool:
    """Whether records of a log that repeated_records would look at are equal; of large dumps this is not looked up either."""
    if not warehouse.small:
        return True
    records = warehouse.arrow("records")
    logs = records.group_by("replica_log_id").aggregate([([], "count_all")])
    enough = logs.filter(pc.greater_equal(logs["count_all"], LEAST_RECORDS))["replica_log_id"]
    # Without printed payloads there are no hashes.
    hashed = records.filter(pc.and_(pc.is_valid(records["value_hash"]), pc.is_in(records["replica_log_id"], value_set=enough)))
    contents = hashed.group_by(["replica_log_id", "key_hash", "value_hash"]).aggregate([("offset", "min"), ("offset", "max")])
    return bool(pc.any(pc.less(contents["offset_min"], contents["offset_max"])).as_py())


def write_none(warehouse: Warehouse, *names: str) -> None:
    """Write tables without rows; that costs no Spark job."""
    for name in names:
        warehouse.overwrite_arrow(name, schema(name).arrow().empty_table())


def nobodys(rows: "DataFrame") -> "DataFrame":
    """The rows as `owners.assign_instances` returns them, where no row has an owner."""
    return rows.selectExpr("*", *(f"CAST(NULL AS STRING) AS {name}" for name in _OF_OWNER))
