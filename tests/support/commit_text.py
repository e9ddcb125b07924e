"""A log of offset commits as the JSON decoder of `kafka-dump-log --offsets-decoder` (3.8 and later) prints it."""

import json
import random
from typing import Final

from tests.support.coordinator_text import random_name
from tests.support.dump_text import Batch, Piece, Rec, Style, printed

PATH: Final = "/data/__consumer_offsets-5/00000000000000000000.log"
_TOPICS = ("orders", "a.b_c", "x-1")
_METADATA = (b"", b"", b"", b"host-7", b'"', b"\\", b"\n", b"?", b"\xff", b"\xc3\xa9", b'","commitTimestamp":5', b"{}")


def commit(group: bytes, topic: str, partition: int, fields: dict[str, object] | None, style: Style, *, version: int = 3) -> Rec:
    """The record of a commit with the fields of its value, or a tombstone."""
    name = json.dumps(group.decode("utf-8", "replace"), ensure_ascii=False)[1:-1].encode()
    tail = json.dumps({"topic": topic, "partition": partition}, separators=(",", ":"))[1:].encode() + b"}"
    payload = b"<DELETE>"
    if fields is not None:
        payload = json.dumps({"version": str(version), "data": fields}, separators=(",", ":"), ensure_ascii=False).encode()
    pieces: tuple[Piece, ...] = (
        (b' key: {"type":"1","data":{"group":"', False),
        (printed(name, style), True),
        (b'",' + tail + b" payload: ", False),
        (printed(payload, style), fields is not None),
    )
    size = None if fields is None else bytes(24 + len(str(fields.get("metadata", ""))))
    return Rec(bytes(10 + len(group) + len(topic)), size, decoded=pieces)


def random_log(rng: random.Random, count: int, style: Style, *, hostile: float) -> list[Batch]:
    """Batches of commits, a third of them transactional and followed by their marker; now and then what is no commit."""
    batches: list[Batch] = []
    while len(batches) < count:
        transactional = rng.random() < 0.3
        records = [_record(rng, style, hostile) for _ in range(rng.choice((1, 1, 2, 6)))]
        stamps = tuple(1_700_000_000_000 + rng.randrange(50) for _ in records)
        codec = rng.choice(("none", "none", "none", "lz4"))
        batches.append(Batch(records, 5 if transactional else -1, codec=codec, timestamps=stamps, transactional=transactional))
        if transactional:
            batches.append(Batch([Rec(b"", b"")], 5, transactional=True, marker=rng.choice(("COMMIT", "ABORT"))))
    return batches


def _record(rng: random.Random, style: Style, hostile: float) -> Rec:
    if rng.random() < 0.1 * hostile:
        text = b' key: {"type":"2","data":{"group":"g"}} payload: {"version":"3","data":{"members":[]}}'
        return Rec(bytes(5), bytes(20), decoded=((text, False),))
    name, topic, partition = random_name(rng, hostile), rng.choice(_TOPICS), rng.randrange(50)
    if rng.random() < 0.1:
        return commit(name, topic, partition, None, style)
    metadata = rng.choice(_METADATA if rng.random() < hostile else _METADATA[:4]).decode("utf-8", "replace")
    version = rng.choice((1, 3, 3, 4))
    fields: dict[str, object] = {"offset": rng.randrange(10**6)} | ({"leaderEpoch": rng.choice((-1, 0, 7))} if version >= 3 else {})
    fields |= {"metadata": metadata, "commitTimestamp": 1_700_000_000_000}
    fields |= {"expireTimestamp": -1} if version == 1 else {}
    fields |= {"topicId": "ywkgJzfISRGP0UN2q1Y88A"} if version == 4 and rng.random() < 0.7 else {}
    return commit(name, topic, partition, fields, style, version=version)
