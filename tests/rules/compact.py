"""Rules' cases as compact rows: `orders-0 14-15 data pid=2 epoch=0 seq=4-5 label=gap skipped_sequences=2`.

A row names its partition (`orders-0`, with `/2` for broker 2), its offsets, then columns: `name=value`, a bare word for true, `!word` for
false. The first bare word of a producer_history row is its kind. Values are numbers, words, `[a-0,b-1]` lists of partitions (offsets for
`uncounted`); `head` and `tail` are records `offset:key:value`, numbers that stand for hashes, `n` for none, `?` for one without a hash;
`@1500` behind them is the record's time, a trailing `!` says that readers do not get it.

Each span that is open gets its row of open_transactions, as the history of the case has it, unless the case names one: `orders-0 6 pid=1
fate=unknown why_unknown=live_tail`; it began there, unless `began_at` says where.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from eo_audit.rules.sources import SOURCES
from eo_audit.store.schemas import schema

Rows = dict[str, object]
LINE = 80  # bytes of each line
NAMES = {
    "pid": "producer_id",
    "epoch": "producer_epoch",
    "id": "transactional_id",
    "txn": "is_transactional",
    "open": "in_open_transaction",
}
RANGES = {"seq": ("base_sequence", "last_sequence")}
OFFSETS = {
    "producer_history": ("base_offset", "last_offset"),
    "transaction_spans": ("first_offset", "last_offset"),
    "coordinator_history": ("entry_offset", "entry_offset"),
    "transaction_instances": ("first_entry_offset", "complete_offset"),
    "instance_partitions": ("data_first_offset", "data_last_offset"),
    "coverage": ("first_offset", "last_offset"),
    "aborted_index": ("span_first_offset", "span_last_offset"),
    "producer_edges": ("first_offset", "last_offset"),
    "repeated_records": ("first_offset", "last_offset"),
    "open_transactions": ("first_offset", "first_offset"),
    "snapshot_states": ("snapshot_offset", "snapshot_offset"),
    "group_offsets": ("record_offset", "record_offset"),
    "section_status": ("segment_base_offset", "last_offset"),
    "marker_keys": ("first_offset", "last_offset"),
    "id_allocation": ("first_offset", "first_offset"),
    "overwritten_offsets": ("first_offset", "last_offset"),
}
DEFAULTS: Mapping[str, Rows] = {
    "producer_history": {
        "judged": True,
        "predecessor": "observed",
        "is_transactional": False,
        "label": "in_sequence",
        "registration": "registered",
    },
    "transaction_spans": {"judged": True, "outcome": "committed", "complete_past": True, "first_epoch": 0, "last_epoch": 0},
    "coordinator_history": {"step": "legal", "epoch_step": "ok", "protocol": "tv0"},
    "transaction_instances": {"protocol": "tv0", "is_last": True, "partitions_complete": True, "timeout_ms": 60_000, "start_ms": 900_000},
    "instance_partitions": {"coverage": "covered", "marker_match": "closing"},
    "coverage": {"state": "covered"},
    "aborted_index": {"state": "match"},
    "producer_edges": {"first_base_sequence": 0},
    "repeated_records": {"original_epoch": 0, "is_transactional": False, "log_repeats": 20, "log_records": 1000},
    "open_transactions": {"ahead_ms": 0},
    "snapshot_states": {"state": "match", "differences": [], "producers": 1},
    "group_offsets": {"is_transactional": True, "outcome": "applied", "wins": True},
    "section_status": {"is_read": True, "supported": True, "end_reason": "eof", "path": "broker-1/orders-0/some.txt"},
    "marker_keys": {},
    "id_allocation": {"row_kind": "user", "is_beyond": False, "is_proved": False, "source": "metadata"},
    "overwritten_offsets": {},
}
UNFINISHED = ("Ongoing", "PrepareCommit", "PrepareAbort")
CLUSTER: Rows = {
    "as_of_ms": 1_000_000,
    "as_of_source": "manifest",
    "coordinator_complete": True,
    "max_transaction_timeout_ms": 900_000,
    "producer_id_expiration_ms": 86_400_000,
    "transactional_id_expiration_ms": 604_800_000,
    "abort_scan_interval_ms": 10_000,
    "skew_ms": 2_000,
    "coordinator_partitions": 50,
    "id_partitions": 50,
    "coordinator_partitions_source": "manifest",
    "settings_known": True,
}


def number_of(*parts: object) -> int:
    """A stable id for a log or a section."""
    return int.from_bytes(hashlib.sha256(json.dumps(parts).encode()).digest()[:7], "big")


@dataclass
class Tables:
    """Rows of all tables of some cases, each case a cluster of its own."""

    rows: dict[str, list[Rows]] = field(default_factory=dict)

    def add_case(self, cluster: str, case: Mapping[str, object]) -> None:
        """Add the rows of a case, and what follows from them: its logs, their sections, the cluster."""
        history = case.get("history") or {}
        assert isinstance(history, dict)
        logs: dict[tuple[str, int, int], int] = {}
        rows: dict[str, list[Rows]] = {name: [] for name in DEFAULTS}
        for name, lines in history.items():
            for at, line in enumerate(lines):
                place, row = parse(name, line)
                if name == "open_transactions":
                    row.setdefault("began_at", row["first_offset"])
                rows[name].append(_addressed(name, {**DEFAULTS[name], **row}, cluster=cluster, place=place, at=at))
                self._add(name, rows[name][-1])
                last = row.get(OFFSETS[name][1])
                logs[place] = max(logs.get(place, 0), last + 1 if isinstance(last, int) and name != "coverage" else 0)
        for place, leo in logs.items():
            self._add_log(cluster, place, leo, dict(_of_log(case, place)))
        own = case.get("cluster") or {}
        assert isinstance(own, dict)
        of_cluster = {**CLUSTER, **own, "cluster": cluster}
        self._add("clusters", of_cluster)
        self._add_fates(of_cluster, rows)

    def _add(self, table: str, row: Rows) -> None:
        self.rows.setdefault(table, []).append({name: value for name, value in row.items() if name in schema(table).columns})

    def _add_fates(self, cluster: Rows, rows: Mapping[str, list[Rows]]) -> None:
        """What becomes of each span that is open, where the case does not say it."""
        told = {(row["replica_log_id"], row["producer_id"]) for row in rows["open_transactions"]}
        for span in rows["transaction_spans"]:
            if span["outcome"] == "open" and (span["replica_log_id"], span["producer_id"]) not in told:
                shared = {name: span[name] for name in ("cluster", "replica_log_id", "producer_id", "first_offset")}
                shared["began_at"] = span["first_offset"]
                self._add("open_transactions", {**DEFAULTS["open_transactions"], **shared, **_fate(span, rows, cluster)})

    def _add_log(self, cluster: str, place: tuple[str, int, int], leo: int, own: Rows) -> None:
        topic, partition, broker = place
        where: Rows = {"cluster": cluster, "topic": topic, "partition": partition, "broker": broker}
        where["replica_log_id"] = number_of(cluster, *place)
        section = number_of("section", cluster, *place)
        path = f"broker-{broker}/{topic}-{partition}/00000000000000000000.log.txt"
        self._add("section_status", {**where, "section_id": section, "path": path, "kind": "log", "supported": True, "end_reason": "eof"})
        ends: Rows = {"log_start": 0, "hw": leo, "hw_source": "checkpoint", "leo": leo, "lso": leo, "lso_if_hw_is_leo": leo}
        numbers = {**ends, "index_state": "dumped", "coverage": "full", "tail_intact": True, **own}
        self._add(
            "visibility", {"is_internal": topic.startswith("__"), **where, **numbers, "blocker_section_id": section, "blocker_length": LINE}
        )
        if own.keys() & {"dumped_at_ms", "clean_end", "leader_epochs", "latest_broker_clock_ms"}:
            self._add("replica_logs", {**where, **own})


def _fate(span: Rows, rows: Mapping[str, list[Rows]], cluster: Rows) -> Rows:
    """What becomes of an open span, from the last transaction of its producer: whether it lists the partition, and has its marker there."""
    of_producer = [row for row in rows["transaction_instances"] if row["producer_id"] == span["producer_id"]]
    if not of_producer:
        return {"fate": "nobody"} if cluster["coordinator_complete"] else {"fate": "unknown", "why_unknown": "no_coordinator"}
    last, place = of_producer[-1], {"topic": span["topic"], "partition": span["partition"]}
    of_last = [row for row in rows["instance_partitions"] if row["instance_id"] == last["instance_id"] and place.items() <= row.items()]
    awaited = last["last_status"] in UNFINISHED or any(row["marker_match"] == "missing" for row in of_last)
    if not awaited or place not in last.get("partitions", []):  # type: ignore[operator]
        return {"fate": "nobody"}
    return {"fate": "decided" if last.get("decision") else "running", "instance_id": last["instance_id"]}


def parse(table: str, line: str) -> tuple[tuple[str, int, int], Rows]:
    """One compact row: its partition (topic, partition, broker) and its columns."""
    words = line.split()
    place, row = place_of(words[0]), {}
    for at, word in enumerate(words[1:]):
        if at == 0 and re.fullmatch(r"\d*-?\d*", word):
            row.update(zip(OFFSETS[table], _range(word), strict=True))
        elif "=" in word:
            row.update(_column(*word.split("=", 1)))
        elif table == "producer_history" and "row_kind" not in row:
            row["row_kind"] = word
        else:
            name = NAMES.get(word.lstrip("!"), word.lstrip("!"))
            row[name] = not word.startswith("!")
    return place, _completed(table, row)


def _completed(table: str, row: Rows) -> Rows:
    """Columns that follow from others, where the row does not name them."""
    first, last = row.get("base_offset"), row.get("last_offset")
    if table == "producer_history" and isinstance(first, int) and isinstance(last, int):
        row.setdefault("count", last - first + 1)
        row.setdefault("below_lso", True)
    for own, prefix in (("last_offset", "records"), ("data_last_offset", "data_records"), ("span_last_offset", "records")):
        start = row.get(own.replace("last", "first"))
        if isinstance(row.get(own), int) and isinstance(start, int):
            row.setdefault(prefix, row[own] - start + 1)  # type: ignore[operator]
    return row


def place_of(word: str) -> tuple[str, int, int]:
    """`orders-0`, `orders-0/2`: topic, partition and broker."""
    name, _, broker = word.partition("/")
    topic, _, partition = name.rpartition("-")
    return topic, int(partition), int(broker or 1)


def _range(word: str) -> tuple[int, int]:
    first, _, last = word.partition("-")
    return int(first), int(last or first)


def _column(name: str, text: str) -> Iterator[tuple[str, object]]:
    if name in RANGES:
        yield from zip(RANGES[name], _range(text), strict=True)
        return
    value: object = int(text) if re.fullmatch(r"-?\d+", text) else text
    if name == "differences":
        value = text.split(",")
    if name == "reason" and ":_" in text:  # a sentence, else a word of the table
        value = text.replace("_", " ")
    if name == "uncounted":
        value = [int(item) for item in text.strip("[]").split(",")]
    elif text.startswith("["):
        places = [place_of(item) for item in text.strip("[]").split(",") if item]
        value = [{"topic": topic, "partition": partition} for topic, partition, _ in places]
    if text in ("true", "false", "null"):
        value = {"true": True, "false": False, "null": None}[text]
    if name in ("head", "tail"):
        value = [_record(item) for item in text.split(",")]
    yield NAMES.get(name, name), value


def _record(item: str) -> Rows:
    what, _, at_ms = item.rstrip("!").partition("@")
    offset, key, value = what.split(":")
    hashes = {name: None if text in ("n", "?") else int(text) for name, text in (("key_hash", key), ("value_hash", value))}
    times = {"timestamp_ms": int(at_ms)} if at_ms else {}
    return {"offset": int(offset), **hashes, **times, "keyed": key != "n", "returned": not item.endswith("!")}


def _addressed(table: str, row: Rows, *, cluster: str, place: tuple[str, int, int], at: int) -> Rows:
    """The row with its log, its cluster and partition, and an address for each of its lines."""
    topic, partition, broker = place
    where: Rows = {"cluster": cluster, "topic": topic, "partition": partition, "broker": broker, "coordinator_partition": partition}
    lines: Rows = {}
    addresses = SOURCES[table].addresses if table in SOURCES else ()
    for nth, (prefix, offset) in enumerate(addresses):
        # A partition of a transaction need not show anything of it.
        if row.get(offset) is not None or (offset == OFFSETS[table][0] and table != "instance_partitions"):
            section = number_of("section", cluster, *place)
            lines |= {f"{prefix}section_id": section, f"{prefix}byte_offset": LINE * (10 * at + nth), f"{prefix}length": LINE}
    instance = row.get("instance_id")
    own = {"instance_id": f"{cluster}/{instance}"} if instance else {}
    return {**where, "replica_log_id": number_of(cluster, *place), **lines, **row, **own}


def _of_log(case: Mapping[str, object], place: tuple[str, int, int]) -> Iterator[tuple[str, object]]:
    """What the case says of a log: a mapping from `orders-0` or `orders-0/2` to columns of visibility."""
    logs = case.get("logs") or {}
    assert isinstance(logs, dict)
    for name, columns in logs.items():
        if place_of(name) == place:
            yield from columns.items()
