"""What does a live broker say of its transactions? The tables that `kafka-transactions.sh` prints (`TransactionsCommand`, since 3.0).

Each cell is filled up with blanks to the width of its column and ended by a tab (`ToolsUtils.prettyPrintTable`), so all lines of a table
have the same widths. A transactional id is printed raw: it may hold line feeds, and a perfect row. But no row that stands inside an id can
be as wide as the column of that id, which the whole id had to fit into. So widths tell what the tool's own rows are. Where a copy through
a terminal has lost the tabs nothing tells them, and such rows are not read.
"""

import re
from collections.abc import Callable, Mapping

from eo_audit.dump.lines.printed import INT, LONG, SHORT, number, text

Value = str | int | None | list[dict[str, str | int]]


def _whole(bits: int) -> Callable[[str], Value]:
    return lambda cell: number(_digits(cell), bits)


def _digits(cell: str) -> str:
    if not re.fullmatch(r"-?\d{1,19}", cell, re.ASCII):
        raise ValueError(f"{len(cell)} characters are no number")
    return cell


def _if_any(cell: str) -> Value:
    """`None` stands where there is no open transaction, and no start of one."""
    return None if cell == "None" else number(_digits(cell), LONG)


def _name(cell: str) -> Value:
    if not cell:
        raise ValueError("an id or a topic is never empty")
    return text(cell)


def _state(cell: str) -> Value:
    if not re.fullmatch("[A-Z][A-Za-z]{2,30}", cell):
        raise ValueError("not the name of a state")
    return cell


def _partitions(cell: str) -> Value:
    found = [re.fullmatch(r"([\w.-]{1,249})-(\d{1,10})", name, re.ASCII) for name in cell.split(",")] if cell else []
    if None in found:
        raise ValueError("not a list of partitions")
    return [{"topic": one[1], "partition": number(one[2], INT)} for one in found if one is not None]


# The columns of each table, in the order of the tool: as printed, as named in `broker_answers`, and what stands in them.
TABLES: Mapping[str, tuple[tuple[str, str, Callable[[str], Value]], ...]] = {
    "list": (
        ("TransactionalId", "transactional_id", _name),
        ("Coordinator", "coordinator", _whole(INT)),
        ("ProducerId", "producer_id", _whole(LONG)),
        ("TransactionState", "status", _state),
    ),
    "describe": (
        ("CoordinatorId", "coordinator", _whole(INT)),
        ("TransactionalId", "transactional_id", _name),
        ("ProducerId", "producer_id", _whole(LONG)),
        ("ProducerEpoch", "producer_epoch", _whole(SHORT)),
        ("TransactionState", "status", _state),
        ("TransactionTimeoutMs", "timeout_ms", _whole(LONG)),
        ("CurrentTransactionStartTimeMs", "start_ms", _if_any),
        ("TransactionDurationMs", "duration_ms", _if_any),
        ("TopicPartitions", "partitions", _partitions),
    ),
    "describe-producers": (
        ("ProducerId", "producer_id", _whole(LONG)),
        ("ProducerEpoch", "producer_epoch", _whole(SHORT)),
        ("LatestCoordinatorEpoch", "coordinator_epoch", _whole(INT)),
        ("LastSequence", "last_sequence", _whole(INT)),
        ("LastTimestamp", "last_timestamp_ms", _whole(LONG)),
        ("CurrentTransactionStartOffset", "current_txn_first_offset", _if_any),
    ),
    "find-hanging": (
        ("Topic", "topic", _name),
        ("Partition", "partition", _whole(INT)),
        ("ProducerId", "producer_id", _whole(LONG)),
        ("ProducerEpoch", "producer_epoch", _whole(SHORT)),
        ("CoordinatorEpoch", "coordinator_epoch", _whole(INT)),
        ("StartOffset", "current_txn_first_offset", _whole(LONG)),
        ("LastTimestamp", "last_timestamp_ms", _whole(LONG)),
        ("Duration(min)", "duration_minutes", _whole(LONG)),
    ),
}
_HEADS = {tuple(printed for printed, _, _ in columns): command for command, columns in TABLES.items()}
# Copied from a terminal a table has blanks for tabs: it is recognised, and its rows are not believed.
HEAD_LINE = "|".join(r"[ \t]+".join(re.escape(name) for name in names) for names in _HEADS).encode()
_HEAD = re.compile(rb"(?:\xef\xbb\xbf)?(?:%s)[ \t]*" % HEAD_LINE)


def is_head(line: bytes) -> bool:
    """Is it the first line of a table, whatever became of its tabs?"""
    return _HEAD.fullmatch(line) is not None


class AnswerTable:
    """One printed table: which command's, and how wide its columns are.

    Attributes:
        command: a key of `TABLES`.
    """

    def __init__(self, head: bytes) -> None:
        """From its first line, which `is_head`, without its line end."""
        cells = _cells(head.removeprefix(b"\xef\xbb\xbf"))
        self.command = _HEADS[tuple(" ".join(cells).split())]
        self._widths = [_width(cell) for cell in cells] if b"\t" in head else None

    def row(self, line: bytes) -> dict[str, Value] | None:
        """Columns of `broker_answers` that a line says, without its line end; None where it is no row of this table."""
        cells = _cells(line)
        if self._widths is None or [_width(cell) for cell in cells] != self._widths:
            return None
        try:
            # Blanks at the end of an id cannot be told from those that fill its column.
            said = {column: read(cell.rstrip(" ")) for (_, column, read), cell in zip(TABLES[self.command], cells, strict=True)}
        except ValueError:
            return None
        return {"command": self.command, **said}


def _cells(line: bytes) -> list[str]:
    return line.decode("utf-8", "replace").removesuffix("\t").split("\t")


def _width(cell: str) -> int:
    # Java counts UTF-16 units (`String.length`), and so does the format that fills a column up.
    return len(cell.encode("utf-16-le", "surrogatepass")) // 2
