"""Small stories of one transactional id: what the coordinator wrote, what stands in one partition, and what follows from both."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

PRODUCER = 7
TIMEOUT_MS = 60_000
HOLE = 20  # so many entries are missing
LISTED = {"A": ("orders", 0), "B": ("orders", 1)}
TOPIC, PARTITION = LISTED["A"]

_ENTRY = re.compile(
    r"(?P<at>\d+) (?P<status>\w+) e(?P<epoch>\d+)(?: ple(?P<ple>\d+))?(?: \[(?P<parts>\w*)\])?(?P<v2> v2)?"
    r"(?P<other> of another| as another)?(?P<hole> hole)?"
)
_ROW = re.compile(
    r"(?P<offset>\d+) (?P<what>data|COMMIT|ABORT|marker) e(?P<epoch>\d+)(?: ce(?P<ce>\d+))? @(?P<at>-?\d+)"
    r"(?P<append> append)?(?P<hole> hole)?(?P<cleaned> cleaned)?"
)


@dataclass(frozen=True)
class Story:
    """One story, a cluster of its own.

    `entries`: "time status eEPOCH [PARTITIONS]", one a line, of partitions A (this log) and B; batch times are 1 ms later; "of another"
    behind that of another id and producer, "as another" behind one of this id and another producer; "hole" behind one that stands behind
    a hole.
    `log`: "offset data|COMMIT|ABORT|marker eEPOCH ceEPOCH @time", in offset order; a plain marker is one whose record was lost; "hole"
    behind a row that stands behind a hole, "cleaned" behind one before which the cleaner took something.
    `led_from_end`: its broker became the partition's leader where the log ends.
    `log_start`: where the log starts, once its head was deleted.
    `lacks_end`: behind its last batch offsets are missing up to its newest segment, which is empty.
    `missing_to`: the last of the offsets that are missing in the log; behind all rows no row tells of it.
    `rows`: by offset, what must be said of the row; a marker's role, or of data (number of its transaction, late, registration).
    `partition`: by number of the transaction, coverage and marker_match in this log.
    `fate`, `why`: what becomes of the data that is open at the end of the log, or why nobody knows (the table open_transactions).
    `stopped`: the brokers had been stopped before both logs were dumped.
    `coordinator_broker`: where the coordinator's log was dumped; this one was on broker 1.
    `own_copy`: broker 1's copy of the coordinator's log was dumped as well, and ends where the other does.
    `begun_in`: the leader epoch in which the log began; without a row it is empty.
    `listed`: a listing shows that no segment of the coordinator's log was left out.
    `dumped_before`: dumped-at.txt has this log before the coordinator's.
    `collected_at`: when the collection of this log began, as its manifest says.
    `dumped_at`: when both logs were dumped, as dumped-at.txt says.
    `uncleaned_from`: how far the cleaner came in this log, whose topic is `compacted`.
    `other_at`: when a marker of another producer was written to this log, at the end or at `other_offset`.
    `sibling_at`: when a marker of another producer was written to another partition of the topic.
    """

    name: str
    entries: str
    log: str
    rows: Mapping[int, object] = field(default_factory=dict)
    partition: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    transaction_version: int | None = 0
    complete: bool = True
    first_entry: int = 0
    tail: str = "eof"
    first_offset: int = 0
    stopped: bool = True
    coordinator_broker: int = 1
    own_copy: bool = False
    begun_in: int | None = None
    sibling_at: int | None = None
    fate: str | None = None
    why: str | None = None
    listed: bool = False
    dumped_before: bool = False
    collected_at: int | None = None
    dumped_at: int | None = None
    uncleaned_from: int = 0
    other_at: int | None = None
    other_offset: int = 50
    compacted: bool = False
    led_from_end: bool = False
    log_start: int | None = None
    lacks_end: bool = False
    missing_to: int | None = None


def entry_rows(number: int, story: Story) -> list[dict[str, object]]:
    """Rows of coordinator_entries, in the JSON form (with start) for TV2, in the text form otherwise."""
    rows, start, skipped = [], -1, 0
    for place, line in enumerate(filter(None, map(str.strip, story.entries.splitlines()))):
        found = _ENTRY.fullmatch(line)
        assert found, line
        at, status = int(found["at"]), found["status"]
        start = at if status == "Ongoing" and (not rows or rows[-1]["status"] != "Ongoing") else start
        start = -1 if status == "Empty" else start
        skipped += HOLE if found["hole"] else 0
        rows.append(
            {
                "section_id": number,
                "byte_offset": place * 100,
                "length": 100,
                "replica_log_id": 1_000 + number,
                "entry_offset": story.first_entry + place + skipped,
                "partition_leader_epoch": int(found["ple"] or 0),
                "batch_timestamp_ms": at + 1,
                "transactional_id": "another" if found["other"] == " of another" else "writer",
                "tombstone": False,
                "producer_id": PRODUCER + 1 if found["other"] else PRODUCER,
                "producer_epoch": int(found["epoch"]),
                "timeout_ms": TIMEOUT_MS,
                "status": status,
                "partitions": [LISTED[name] for name in found["parts"] or ""],
                "last_update_ms": at,
                "start_ms": start if story.transaction_version == 2 else None,
                "client_transaction_version": 2 if found["v2"] else None,
            }
        )
    return rows


def log_rows(number: int, story: Story) -> list[dict[str, object]]:
    """Rows of producer_history as the sequences leave them."""
    rows: list[dict[str, object]] = []
    span: int | None = None
    epoch: int | None = None
    for line in filter(None, map(str.strip, story.log.splitlines())):
        found = _ROW.fullmatch(line)
        assert found, line
        offset, is_data = int(found["offset"]), found["what"] == "data"
        opened, span = span, (span if span is not None else offset) if is_data else span
        rows.append(
            {
                "replica_log_id": number,
                "section_id": 10_000 + number,
                "byte_offset": offset * 100,
                "length": 100,
                "row_kind": "data" if is_data else "marker",
                "base_offset": offset,
                "last_offset": offset,
                "count": 1,
                "producer_id": PRODUCER,
                "producer_epoch": int(found["epoch"]),
                "is_transactional": True,
                "timestamp_type": "LogAppendTime" if found["append"] else "CreateTime",
                "max_timestamp_ms": int(found["at"]),
                "marker_type": found["what"] if found["what"] in ("COMMIT", "ABORT") else None,
                "marker_coordinator_epoch": None if is_data else int(found["ce"] or 0),
                "judged": True,
                "predecessor": next(
                    (name for name, said in (("hole", "hole"), ("compacted", "cleaned")) if found[said]),
                    "observed" if rows else "not_observed",
                ),
                "previous_epoch": epoch,
                "label": "in_sequence" if is_data else "marker",
                "in_open_transaction": opened is not None,
                "span_id": span,
            }
        )
        epoch = int(found["epoch"])
        span = span if is_data else None
    return _with_outcomes(rows)


def sibling_rows(number: int, story: Story) -> list[dict[str, object]]:
    """The row of another partition, if the story has one; its number is that of the story and 3,000."""
    log = "" if story.sibling_at is None else f"0 COMMIT e0 @{story.sibling_at}"
    return [row | {"producer_id": PRODUCER + 1} for row in log_rows(3_000 + number, replace(story, log=log))]


def other_rows(number: int, story: Story) -> list[dict[str, object]]:
    """The marker of another producer at the end of the log, if the story has one."""
    log = "" if story.other_at is None else f"{story.other_offset} COMMIT e0 @{story.other_at}"
    return [row | {"producer_id": PRODUCER + 1} for row in log_rows(number, replace(story, log=log))]


def _with_outcomes(rows: Sequence[dict[str, object]]) -> list[dict[str, object]]:
    ended = {row["span_id"]: "committed" if row["marker_type"] == "COMMIT" else "aborted" for row in rows if row["marker_type"]}
    return [row | {"span_outcome": ended.get(row["span_id"], "open") if row["span_id"] is not None else None} for row in rows]
