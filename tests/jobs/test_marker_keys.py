"""Records with the keys of markers, by their hashes."""

import pyarrow as pa

from eo_audit.dump.lines.hashes import hashes_of
from eo_audit.rebuild.marker_keys import COLUMNS, KEYS, marker_keys

SALT = b"0123456789abcdef"
ABORT, COMMIT, OTHER = hashes_of(KEYS + b"1234", [(0, 4), (4, 8), (8, 12)], SALT)


def _records(*rows: tuple[int, int, int, int | None]) -> pa.Table:
    """Log, offset, key size, hash of the key."""
    told = [dict(zip(("replica_log_id", "offset", "key_size", "key_hash"), row, strict=True)) for row in rows]
    return pa.Table.from_pylist([{**row, "section_id": 7, "byte_offset": row["offset"] * 80, "length": 80} for row in told])


def test_only_the_four_bytes_of_a_marker_count_and_the_first_has_its_address() -> None:
    parts = [
        _records((1, 9, 4, COMMIT), (1, 5, 4, ABORT), (1, 4, 4, OTHER), (1, 3, 1, None)),
        _records((1, 2, 4, COMMIT), (2, 1, 4, COMMIT), (1, 1, 4, None)),
    ]
    rows = marker_keys(parts, logs=[1], sections=[7], salt=lambda: SALT)
    assert rows == [
        {"replica_log_id": 1, "records": 3, "first_offset": 2, "last_offset": 9, "section_id": 7, "byte_offset": 160, "length": 80}
    ]


def test_the_key_is_asked_for_only_where_a_record_may_need_it() -> None:
    def unasked() -> bytes:
        raise AssertionError("nobody needs the key")

    parts = [_records((1, 3, 5, OTHER), (2, 1, 4, COMMIT)), _records((1, 1, 4, None))]
    assert marker_keys(parts, logs=[1], sections=[7], salt=unasked) == []
    assert set(COLUMNS) >= {"key_size", "key_hash"}
