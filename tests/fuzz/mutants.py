"""Dumps that lie and dumps that were damaged, each byte with its origin: the tool wrote it, somebody's record did, or the damage."""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tests.support.dump_text import (
    FLAT_RELEASES,
    RELEASES,
    Batch,
    Rec,
    Style,
    dump,
    dump_pieces,
    forged_lines,
    forged_marker,
    random_batches,
    swallowing_batches,
)
from tests.support.lossy_text import lossy_batches

TOOL: Final = 0
DATA: Final = 1
DAMAGE: Final = 2
Origins = NDArray[np.uint8]
FLAT_SEEDS: Final = 10**12  # from here on: dumps of a line for each record, as up to 2.1
CLEANED_SEEDS: Final = 2 * 10**12  # from here on: batches that the cleaner thinned out
LOSSY_SEEDS: Final = 3 * 10**12  # from here on: payloads that are no text, in batches enough for the fast path

_FILLERS = (b"", b"ordinary", b"\xff" * 300, b"\xff" * 700, "é".encode() * 450, b"line\r\n" * 60, b"a\nb" * 40, b"\xc3(" * 90, b"?" * 50)
_HOSTILE = (
    b"\x1b[31mred\x1b]0;own\x07",
    b"Dumping /x/orders-0/00000000000000000000.log\nLog starting offset: 0\n",
    b"\0\0\0",
    b"\xef\xbb\xbf",
    b"\r\n",
    b"\n\n\n",
    b"\xff\xfe",
    b'Exception in thread "main" java.lang.OutOfMemoryError\n\tat x.y(Z.java:1)\n',
    b"Found 99999999999999999999 invalid bytes at the end of x\n",
    b"| offset: 9223372036854775807 CreateTime: 0 keySize: 2147483647 valueSize: 2147483647 sequence: 0 headerKeys: [] key: x\n",
    b"] key: a payload: b\n",
    b"baseOffset: " * 50,
    b"9" * 4000,
    b"[" * 3000,
    b"]" * 3000,
    b"] payload: " * 400,
    "\u2028\u2029\u202e".encode(),
    b"offset: 1 position: 0 CreateTime: 1 size: 10 magic: 1 compresscodec: NONE crc: 1 isvalid: true\n",
)
_NUMBERS = (
    b"9223372036854775807",
    b"9223372036854775808",
    b"-9223372036854775808",
    b"-1",
    b"0",
    b"2147483648",
    b"9" * 23,
    b"00000",
    b"65536",
    b"2",
)
_SWAPS = (
    (b"keySize", b"keysize"),
    (b"isvalid: true", b"isvalid: false"),
    (b"compresscodec: none", b"compresscodec: gzip"),
    (b"magic: 2", b"magic: 1"),
    (b"isControl: false", b"isControl: true"),
    (b"deleteHorizonMs: OptionalLong.empty ", b""),
    (b"COMMIT", b"ABORT"),
    (b"payload: ", b"payload:"),
)


@dataclass
class Mutant:
    """A dump text; `origins` has the origin of each byte, `undamaged` says that a tool printed it so, `made_by` names the steps."""

    text: bytes
    origins: Origins
    made_by: list[str]
    undamaged: bool = True

    def splice(self, start: int, stop: int, text: bytes, origins: Origins | int = DAMAGE) -> None:
        """Bytes [start, stop) are replaced."""
        new = np.full(len(text), origins, np.uint8) if isinstance(origins, int) else origins
        self.text = self.text[:start] + text + self.text[stop:]
        self.origins = np.concatenate((self.origins[:start], new, self.origins[stop:]))

    def line_starts(self) -> list[int]:
        """Of all lines, the end included."""
        return [0, *(found.end() for found in re.finditer(rb"\n", self.text))]


def mutant(seed: int) -> Mutant:
    """The mutant of a seed, always the same."""
    rng = random.Random(seed)
    if seed >= LOSSY_SEEDS:
        style = Style(rng.choice(("2.3", "2.7", "3.1", "4.3")), ascii=rng.random() < 0.3)
        made = _of_pieces(lossy_batches(rng), style, "lossy")
    else:
        made = _printed(rng, flat=FLAT_SEEDS <= seed < CLEANED_SEEDS, cleaned=seed >= CLEANED_SEEDS)
    for _ in range(rng.choice((0, 0, 1, 1, 2, 3))):
        damage = rng.choice(DAMAGES)
        if made.text:
            damage(rng, made)
            made.made_by.append(damage.__name__.strip("_"))
            made.undamaged = False
    return made


def _printed(rng: random.Random, *, flat: bool = False, cleaned: bool = False) -> Mutant:
    """An undamaged dump, whose records may hold anything."""
    style = Style(rng.choice(RELEASES), printed=rng.random() < 0.8, ascii=rng.random() < 0.15, crlf=rng.random() < 0.1)
    if flat:
        style = replace(style, release=rng.choice(FLAT_RELEASES), deep=rng.random() < 0.9)
    codecs = rng.choice((("none",), ("gzip",), ("none", "gzip")))
    many = rng.choice((2, 5, 12, 30))
    kind = rng.choice(("random", "malformed", "legacy", "swallowing", "value", "key", "header", "header"))
    if kind == "swallowing":
        batches = swallowing_batches(rng.randrange(1 << 30), many)
    else:
        batches = random_batches(rng.randrange(1 << 30), many, codecs=codecs, malformed=kind == "malformed", legacy=kind == "legacy")
    if kind in ("value", "key", "header"):
        _forge(rng, batches, style, kind)
    if cleaned and style.release != "2.8":  # whose record lines print more of their batch
        _clean(rng, batches)
    return _of_pieces(batches, style, kind)


def _of_pieces(batches: list[Batch], style: Style, kind: str) -> Mutant:
    pieces = dump_pieces(batches, style)
    origins = np.concatenate([np.full(len(text), DATA if data else TOOL, np.uint8) for text, data in pieces])
    return Mutant(b"".join(text for text, _ in pieces), origins, [kind, f"{style}", *(["flat"] if style.is_flat else [])])


def _clean(rng: random.Random, batches: list[Batch]) -> None:
    """The cleaner takes some records of some batches, and not all of one."""
    for batch in batches:
        if batch.magic == 2 and not batch.marker and rng.random() < 0.7:
            batch.gone = frozenset(sorted(index for index in range(len(batch.records)) if rng.random() < 0.4)[: len(batch.records) - 1])


def _forge(rng: random.Random, batches: list[Batch], style: Style, place: str) -> None:
    """A record holds a COMMIT at the very position where the next batch stands, behind text that printing may change."""
    victim = rng.randrange(len(batches))
    filler = rng.choice(_FILLERS) + b"\n"
    if batches[victim].marker:
        batches[victim] = Batch([Rec(b"k", b"v")], 5, 0, transactional=True)
    if place == "header":
        batches[victim].records[0] = Rec(b"k", b"v")
        if batches[victim].codec == "none" or rng.random() < 0.8:
            forged_lines(batches, victim, style, before=rng.choice((b"", b"", b"h" * (70 << 10))) if rng.random() < 0.1 else b"")
        return
    for _ in range(6):
        dump(batches, style)
        forged = filler + forged_marker(batches[victim], style).replace(b"producerId: 7", b"producerId: 5")
        batches[victim].records[0] = Rec(b"k", forged) if place == "value" else Rec(forged, rng.choice((None, b"v")))


# damage, each a function of a generator and the mutant


def _cut_tail(rng: random.Random, made: Mutant) -> None:
    made.splice(rng.randrange(len(made.text)), len(made.text), b"")


def _cut_head(rng: random.Random, made: Mutant) -> None:
    made.splice(0, rng.randrange(len(made.text)), b"")


def _cut_middle(rng: random.Random, made: Mutant) -> None:
    at = rng.randrange(len(made.text))
    made.splice(at, at + rng.choice((1, 40, 400, 4000)), b"")


def _flip(rng: random.Random, made: Mutant) -> None:
    for _ in range(rng.choice((1, 1, 3, 30))):
        at = rng.randrange(len(made.text))
        made.splice(at, at + 1, bytes([rng.choice((10, 13, 32, 45, 48, 57, 91, 93, rng.randrange(256)))]), made.origins[at : at + 1])


def _double_line(rng: random.Random, made: Mutant) -> None:
    start, stop = _line(rng, made)
    made.splice(stop, stop, made.text[start:stop], made.origins[start:stop])


def _drop_line(rng: random.Random, made: Mutant) -> None:
    made.splice(*_line(rng, made), b"")


def _move_line(rng: random.Random, made: Mutant) -> None:
    start, stop = _line(rng, made)
    text, origins = made.text[start:stop], made.origins[start:stop]
    made.splice(start, stop, b"")
    at = rng.choice(made.line_starts())
    made.splice(at, at, text, origins)


def _line(rng: random.Random, made: Mutant) -> tuple[int, int]:
    starts = [*made.line_starts(), len(made.text)]
    index = rng.randrange(len(starts) - 1)
    return starts[index], starts[index + 1]


def _insert(rng: random.Random, made: Mutant) -> None:
    at = rng.randrange(len(made.text) + 1)
    made.splice(at, at, rng.choice(_HOSTILE))


def _number(rng: random.Random, made: Mutant) -> None:
    numbers = [found.span() for found in re.finditer(rb"-?\d+", made.text)]
    if numbers:
        start, stop = rng.choice(numbers)
        new = rng.choice(_NUMBERS)
        made.splice(start, stop, new, int(made.origins[start]))


def _word(rng: random.Random, made: Mutant) -> None:
    old, new = rng.choice(_SWAPS)
    places = [found.start() for found in re.finditer(re.escape(old), made.text)]
    if places:
        at = rng.choice(places)
        made.splice(at, at + len(old), new, int(made.origins[at]))


def _append_other(rng: random.Random, made: Mutant) -> None:
    """Another dump behind it, without a line end between where it was cut."""
    other = _printed(rng, flat="flat" in made.made_by and rng.random() < 0.5)
    made.splice(rng.choice((len(made.text), rng.randrange(len(made.text)))), len(made.text), other.text, other.origins)


def _without_records(rng: random.Random, made: Mutant) -> None:
    starts = [*made.line_starts(), len(made.text)]
    for start, stop in reversed(list(pairwise(starts))):
        if made.text.startswith(b"| ", start) and rng.random() < 0.7:
            made.splice(start, stop, b"")


def _mark(rng: random.Random, made: Mutant) -> None:
    at = rng.choice((0, rng.randrange(len(made.text))))
    made.splice(at, at, rng.choice((b"\xef\xbb\xbf", b"\0", b"\xff\xfe")))


DAMAGES: Final[tuple[Callable[[random.Random, Mutant], None], ...]] = (
    _cut_tail,
    _cut_head,
    _cut_middle,
    _flip,
    _double_line,
    _drop_line,
    _move_line,
    _insert,
    _number,
    _word,
    _append_other,
    _without_records,
    _mark,
)
