"""Logs of the coordinators that lie and that were damaged: mutants of what topic decoders print, for the agreement of the readers."""

import random
import re
from collections.abc import Callable
from typing import Final

import numpy as np

from tests.fuzz.mutants import DAMAGES, DATA, TOOL, Mutant
from tests.support import commit_text, coordinator_text
from tests.support.dump_text import RELEASES, Style, dump_pieces

TRANSACTIONS: Final = "coordinator"
COMMITS: Final = "commits"
_SWAPS = (
    (b"producerEpoch:", b"producerEpoch="),
    (b"state=Ongoing", b"state=Ongoin"),
    (b"state=", b"state=Odd"),
    (b"partitions=[", b"partitions=Set("),
    (b"]", b"],"),
    (b"]", b""),
    (b"[", b"[["),
    (b",", b",,"),
    (b",", b", "),
    (b"-", b"--"),
    (b"-", b""),
    (b"<DELETE>", b"<DELETE> "),
    (b"<DELETE>", b"null"),
    (b'"version":"1"', b'"version":"2"'),
    (b'"version":"1"', b'"version":1'),
    (b'"data":', b'"date":'),
    (b'"topic":', b'"topic": '),
    (b'"topic":"', b'"topic":"\\u0041'),
    (b'"topic":"', b'"topic":"]}],'),
    (b'"topic":"', b'"topic":"{'),
    (b'"partitionIds":[', b'"partitionIds":[-'),
    (b'"partitionIds":[', b'"partitionIds":[]},{"topic":"a","partitionIds":['),
    (b'"partitionIds":[', b'"partitionIds":[0'),
    (b'"transactionStatus":', b'"transactionStatus":1'),
    (b'"transactionPartitions":null', b'"transactionPartitions":"null"'),
    (b'"transactionTimeoutMs":', b'"transactionTimeoutMs":1.'),
    (b'"producerId":', b'"producerId":1,"producerId":'),
    (b'"type":"1"', b'"type":"2"'),
    (b'"type":"1"', b'"type":"0"'),
    (b'"group":"', b'"groupId":"'),
    (b'"group":"', b'"group":"a"'),
    (b'"offset":', b'"offset":0'),
    (b'"metadata":"', b'"metadata":null,"x":"'),
    (b'"metadata":"', b'"metadata":"a\\"'),
    (b',"commitTimestamp":', b',"commitTimestamp":null,"x":'),
    (b'"topicId":', b'"topicId":1,"x":'),
    (b"endTxnMarker: COMMIT", b"endTxnMarker: COMMITTED"),
    (b'"}} payload: ', b'"}}  payload: '),
    (b'"}} payload: ', b'\\""}} payload: '),
    (b"}}\n", b"}} \n"),
    (b"}}\n", b"}}\r\n"),
    (b" key: ", b" key:"),
    (b"transactionalId=", b"transactionalId=\xff"),
    (b"transactionalId=", b"transactionalId=a"),
    (b'transactionalId":"', b'transactionalId":"a'),
)


def coordinator_mutant(seed: int) -> Mutant:
    """The mutant of a seed, always the same."""
    rng = random.Random(f"coordinator {seed}")
    kind = rng.choice((TRANSACTIONS, TRANSACTIONS, COMMITS))
    # Commits: only the decoder that prints JSON.
    releases = (*RELEASES, "2.7", "3.9", "4.3", "4.3") if kind == TRANSACTIONS else ("3.9", "4.3")
    style = Style(rng.choice(releases), ascii=rng.random() < 0.1, crlf=rng.random() < 0.1)
    hostile = rng.choice((0.0, 0.0, 0.05, 0.3))
    source = coordinator_text if kind == TRANSACTIONS else commit_text
    batches = source.random_log(rng, rng.choice((2, 5, 12, 30)), style, hostile=hostile)
    pieces = dump_pieces(batches, style, path=source.PATH)
    origins = np.concatenate([np.full(len(text), DATA if data else TOOL, np.uint8) for text, data in pieces])
    made = Mutant(b"".join(text for text, _ in pieces), origins, [kind, f"{style}", f"hostile {hostile}"])
    for _ in range(rng.choice((0, 0, 1, 1, 2, 3))):
        damage = rng.choice(_DAMAGES)
        if made.text:
            damage(rng, made)
            made.made_by.append(damage.__name__.strip("_"))
            made.undamaged = False
    return made


def _swap(rng: random.Random, made: Mutant) -> None:
    """A piece of the decoder's grammar is another one."""
    there = [(old, new) for old, new in _SWAPS if old in made.text]
    if there:
        old, new = rng.choice(there)
        at = rng.choice([found.start() for found in re.finditer(re.escape(old), made.text)])
        made.splice(at, at + len(old), new, int(made.origins[at]))


def _size(rng: random.Random, made: Mutant) -> None:
    """The size of a key or value is another one."""
    found = list(re.finditer(rb"(?:key|value)[sS]ize: (-?\d+)", made.text))
    if found:
        start, stop = rng.choice(found).span(1)
        new = int(made.text[start:stop]) + rng.choice((-4, -1, 1, 2, 40))
        made.splice(start, stop, b"%d" % new, int(made.origins[start]))


_DAMAGES: Final[tuple[Callable[[random.Random, Mutant], None], ...]] = (*DAMAGES, _swap, _swap, _swap, _swap, _size, _size)
