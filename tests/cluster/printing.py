"""Dump text of a log and of its sidecars, as `kafka-dump-log` of 3.9 and 4.3 prints it."""

import zlib

from tests.cluster.brokers import INTERNAL
from tests.cluster.replay import Placed, Producer, State

DATA_DIR = "/var/lib/kafka/data"


def name_of(state: State) -> str:
    """topic-partition."""
    return f"{state.log.topic}-{state.log.partition}"


def segment_text(state: State, number: int, *, payloads: bool) -> tuple[str, int]:
    """The text of one segment, and its bytes on disk."""
    base = state.bases[number]
    lines, position = [f"Dumping {DATA_DIR}/{name_of(state)}/{base:020d}.log", f"Log starting offset: {base}"], 0
    decoded = payloads or state.log.topic in INTERNAL
    for batch in state.batches:
        if batch.segment == number:
            lines.append(_batch(state, batch, position))
            lines += _records(state, batch, decoded)
            position += batch.size
    return "\n".join(lines) + "\n", position


def _stamp(state: State, batch: Placed, timestamp_ms: int) -> str:
    if state.log.append_time:
        return f"LogAppendTime: {batch.write.broker_ms}"
    return f"CreateTime: {timestamp_ms}"


def _batch(state: State, batch: Placed, position: int) -> str:
    write = batch.write
    kept = [record.timestamp_ms for _, record in batch.records] or [record.timestamp_ms for record in write.records]
    last_sequence = -1 if write.base_sequence < 0 else (write.base_sequence + batch.last - batch.base) % 2**31
    horizon = "OptionalLong.empty" if batch.horizon_ms is None else f"OptionalLong[{batch.horizon_ms}]"
    content = f"{write.producer_id}:{write.epoch}:{write.base_sequence}:{write.records}:{write.marker}:{write.at}:{len(batch.records)}"
    return (
        f"baseOffset: {batch.base} lastOffset: {batch.last} count: {len(batch.records)} baseSequence: {write.base_sequence} "
        f"lastSequence: {last_sequence} producerId: {write.producer_id} producerEpoch: {write.epoch} "
        f"partitionLeaderEpoch: {write.leader_epoch} isTransactional: {str(write.is_transactional).lower()} "
        f"isControl: {str(write.marker is not None).lower()} deleteHorizonMs: {horizon} position: {position} "
        f"{_stamp(state, batch, max(kept))} size: {batch.size} magic: 2 compresscodec: none "
        f"crc: {zlib.crc32(content.encode())} isvalid: true"
    )


def _records(state: State, batch: Placed, decoded: bool) -> list[str]:
    write, lines = batch.write, []
    for offset, record in batch.records:
        key_size = -1 if record.key is None else len(record.key)
        value_size = -1 if record.value is None else len(record.value)
        if write.marker:
            key_size, value_size = 4, 6
        elif write.entry_sizes:
            key_size, value_size = write.entry_sizes
        sequence = -1 if write.base_sequence < 0 else (write.base_sequence + offset - batch.base) % 2**31
        line = f"| offset: {offset} {_stamp(state, batch, record.timestamp_ms)} keySize: {key_size} valueSize: {value_size}"
        line += f" sequence: {sequence} headerKeys: []"
        if write.marker:
            line += f" endTxnMarker: {write.marker} coordinatorEpoch: {write.coordinator_epoch}"
        elif decoded:
            line += "" if record.key is None else f" key: {record.key.decode()}"
            line += "" if record.value is None else f" payload: {record.value.decode()}"
        lines.append(line)
    return lines


def snapshot_text(state: State, offset: int, known: dict[int, Producer], release: str) -> str:
    """The text of a producer snapshot."""
    lines = [f"Dumping {DATA_DIR}/{name_of(state)}/{offset:020d}.snapshot"]
    for producer_id, producer in sorted(known.items()):
        is_open = "OptionalLong.empty" if producer.open_from is None else f"OptionalLong[{producer.open_from}]"
        line = (
            f"producerId: {producer_id} producerEpoch: {producer.epoch} coordinatorEpoch: {producer.coordinator_epoch} "
            f"currentTxnFirstOffset: {is_open} lastTimestamp: {producer.last_ms}"
        )
        if producer.batch is not None:
            write, count = producer.batch.write, len(producer.batch.write.records)
            line += (
                f" firstSequence: {write.base_sequence} lastSequence: {(write.base_sequence + count - 1) % 2**31} "
                f"lastOffset: {producer.batch.last} offsetDelta: {count - 1} timestamp: {max(r.timestamp_ms for r in write.records)}"
            )
        elif release < "4.3":
            line += " "
        lines.append(line)
    return "\n".join(lines) + "\n"


def index_text(state: State, number: int) -> str | None:
    """The text of the aborted index of a segment; None: there is no such file."""
    entries = [entry for entry in state.aborted if entry.segment == number]
    if not entries:
        return None
    lines = [f"Dumping {DATA_DIR}/{name_of(state)}/{state.bases[number]:020d}.txnindex"]
    lines += [
        f"version: 0 producerId: {e.producer_id} firstOffset: {e.first} lastOffset: {e.last} lastStableOffset: {e.stable}" for e in entries
    ]
    return "\n".join(lines) + "\n"


def epochs_text(state: State) -> str:
    """leader-epoch-checkpoint: each leader epoch and where it begins."""
    return checkpoint_text([f"{epoch} {offset}" for epoch, offset in state.epochs])


def checkpoint_text(rows: list[str]) -> str:
    """A checkpoint file: version, count, rows."""
    return "\n".join(["0", str(len(rows)), *rows]) + "\n"
