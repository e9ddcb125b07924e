"""What a user would do instead: DuckDB splits the lines of a dump and writes Parquet. It believes every line that looks like one."""

from pathlib import Path

import duckdb

_BATCH = (
    *("baseOffset", "lastOffset", "count", "baseSequence", "lastSequence", "producerId", "producerEpoch", "partitionLeaderEpoch"),
    *("isTransactional", "isControl", "deleteHorizonMs", "position", "timestamp", "size", "magic", "compresscodec", "crc", "isvalid"),
)
_RECORD = ("offset", "timestamp", "keySize", "valueSize", "sequence")


def duckdb_to_parquet(dumps: Path, target: Path) -> None:
    """Write the batch lines and the record lines of all log dumps below a folder as two Parquet files.

    Args:
        dumps: folder of a broker's dumps.
        target: the file of batches; the one of records lies beside it.
    """
    connection = duckdb.connect()
    connection.execute("SET threads TO 2")
    files = [str(path) for path in sorted(dumps.rglob("*.log.txt"))]
    # Not strict: payloads that are no text hold the delimiter, and what it would call more columns, or line ends of another kind.
    options = "delim='\\x01', quote='', escape='', header=false, auto_detect=false, max_line_size=4000000, strict_mode=false"
    lines = f"read_csv(?, columns={{'line': 'VARCHAR'}}, {options})"
    words = "string_split(line, ' ')"
    batch = ", ".join(f"{words}[{2 * place + 2}] AS {name}" for place, name in enumerate(_BATCH))
    record = ", ".join(f"{words}[{2 * place + 3}] AS {name}" for place, name in enumerate(_RECORD))
    hashed = "hash(line) AS content"
    kinds = (("baseOffset: ", batch, target), ("| offset: ", f"{record}, {hashed}", target.with_suffix(".records.parquet")))
    for start, columns, path in kinds:
        query = f"SELECT {columns} FROM {lines} WHERE starts_with(line, '{start}')"
        connection.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)", [files])
