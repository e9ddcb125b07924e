"""marker_keys: records of compacted topics whose key looks like a marker's to a cleaner that asks for it (KAFKA-14055).

A marker's own key is 4 bytes: the version 0 and its type, ABORT 0 or COMMIT 1 (`ControlRecordType`). Up to 3.2.0 the cleaner looked markers
up among the keys of records, too: behind a newer record with the same 4 bytes, such as the integers 0 and 1, it took the marker away.

Keys are stored as keyed hashes only; the key of the warehouse gives the hashes of these two. Done in this process: there is nothing to scan
unless somebody cleans a topic, and no key is hashed unless a record has 4 bytes of it.
"""

from collections.abc import Callable, Collection, Iterable

import pyarrow as pa
import pyarrow.compute as pc

from eo_audit.dump.lines.hashes import hashes_of
from eo_audit.store.schemas import schema
from eo_audit.store.tables import Warehouse

Row = dict[str, int]
KEYS = b"\x00\x00\x00\x00\x00\x00\x00\x01"
KEY_BYTES = 4
COLUMNS = ("replica_log_id", "section_id", "byte_offset", "length", "offset", "key_size", "key_hash")


def marker_keys(records: Iterable[pa.Table], *, logs: Collection[int], sections: Collection[int], salt: Callable[[], bytes]) -> list[Row]:
    """The rows of the table marker_keys.

    Args:
        records: the table records in parts, with `COLUMNS`.
        logs: replica logs that may be compacted.
        sections: dump sections that are read.
        salt: gives the key of the hashes; asked only where it is needed.
    """
    rows: dict[int, Row] = {}
    wanted_logs, wanted_sections = pa.array(sorted(logs), pa.int64()), pa.array(sorted(sections), pa.int64())
    for part in records:
        mine = part.filter(pc.and_(pc.is_in(part["replica_log_id"], wanted_logs), pc.is_in(part["section_id"], wanted_sections)))
        mine = mine.filter(pc.and_kleene(pc.equal(mine["key_size"], KEY_BYTES), pc.is_valid(mine["key_hash"])))
        if mine.num_rows:
            hashes = hashes_of(KEYS, [(0, KEY_BYTES), (KEY_BYTES, 2 * KEY_BYTES)], salt())
            _add(rows, mine.filter(pc.is_in(mine["key_hash"], pa.array(hashes, pa.int64()))))
    return [rows[log] for log in sorted(rows)]


def _add(rows: dict[int, Row], found: pa.Table) -> None:
    """What one part of the records has more; the first record of each log is kept with its address."""
    firsts = found.sort_by([("replica_log_id", "ascending"), ("offset", "ascending")])
    for told in firsts.group_by("replica_log_id").aggregate([("offset", "min"), ("offset", "max"), ("offset", "count")]).to_pylist():
        log, first = told["replica_log_id"], told["offset_min"]
        at = firsts.filter(pc.and_(pc.equal(firsts["replica_log_id"], log), pc.equal(firsts["offset"], first))).slice(0, 1).to_pylist()[0]
        new = {"first_offset": first, **{name: at[name] for name in ("section_id", "byte_offset", "length")}}
        old = rows.get(log, {"replica_log_id": log, "records": 0, "last_offset": told["offset_max"], **new})
        counted = {"records": old["records"] + told["offset_count"], "last_offset": max(old["last_offset"], told["offset_max"])}
        rows[log] = {**old, **(new if first < old["first_offset"] else {}), **counted}


def write_marker_keys(warehouse: Warehouse) -> None:
    """Make the table marker_keys anew, from the records and from what is known of their logs."""
    logs = [row["replica_log_id"] for row in warehouse.arrow("replica_logs").to_pylist() if row["compacted"] and not row["is_internal"]]
    rows: list[Row] = []
    if logs:
        sections = warehouse.arrow("section_status")
        read = sections.filter(sections["is_read"])["section_id"].to_pylist()
        parts = warehouse.scan("records", COLUMNS, key_size=(KEY_BYTES, KEY_BYTES), replica_log_id=(min(logs), max(logs)))
        rows = marker_keys(parts, logs=logs, sections=read, salt=warehouse.salt)
    warehouse.overwrite_arrow("marker_keys", pa.Table.from_pylist(rows, schema=schema("marker_keys").arrow()))
