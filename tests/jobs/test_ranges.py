"""Ranges of one dump file, read on their own and folded, give what one reading from the left gives; also where a boundary is forged."""

import gzip
import hashlib
import random
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

from eo_audit.dump import ranges
from eo_audit.dump.files.discovery import DumpFile, discover
from eo_audit.dump.lines.columns import Rows, fact_tables
from eo_audit.dump.parse import FileContext, Ledger, State
from eo_audit.dump.ranges import Range, Reading, Text
from eo_audit.errors import InputError

DUMPS = Path(__file__).parent.parent / "data" / "corpus" / "dumps"
HOSTILE = "broker-1/forged-0/00000000000000000000.log.txt"

Facts = dict[str, list[dict[str, object]]]


def context(file: DumpFile) -> FileContext:
    return FileContext(file.cluster, file.path, 7, file.kind_hint, file.manifest, salt=b"salt" * 4, ingest_id="x")


class Reader:
    """Reads one file in ranges; keeps the facts of each reading and counts what was read again."""

    def __init__(self, file: DumpFile, size: int) -> None:
        self.file, self.size, self.again = file, size, 0
        self.facts: dict[int, dict[str, list[pa.Table]]] = {}

    def read(self, part: Range, state: State | None = None) -> Reading:
        facts: defaultdict[str, list[pa.Table]] = defaultdict(list)

        def sink(found: Mapping[str, Rows | pa.Table]) -> None:
            for name, rows in fact_tables(found).items():
                facts[name].append(rows)

        text = Text(self.file.absolute, self.file.compression)
        reading = ranges.read_range(text, part, size=self.size, context=context(self.file), sink=sink, state=state)
        self.facts[id(reading)] = facts
        self.kept = [*getattr(self, "kept", []), reading]  # ids stay theirs
        return reading

    def reread(self, part: Range, state: State) -> Reading:
        self.again += 1
        return self.read(part, state)

    def folded(self, planned: Sequence[Range]) -> tuple[Facts, Ledger]:
        accepted = ranges.fold([self.read(part) for part in planned], self.reread)
        merged: Facts = defaultdict(list)
        for reading in accepted:
            for name, tables in self.facts[id(reading)].items():
                merged[name] += pa.concat_tables(tables).to_pylist()
        return dict(merged), sum((reading.ledger for reading in accepted), Ledger())


def split(file: DumpFile, points: Sequence[int]) -> tuple[Reader, list[Range]]:
    size = len(file.absolute.read_bytes())
    edges = [0, *points, size]
    surveys = [ranges.survey(Text(file.absolute), start, stop) for start, stop in pairwise(edges)]
    return Reader(file, size), ranges.ranges(surveys)


def in_order(facts: Facts) -> Facts:
    return {name: sorted(rows, key=lambda row: (row["byte_offset"], str(row))) for name, rows in facts.items() if rows}


def hostile() -> DumpFile:
    return next(file for file in discover([DUMPS / "hostile"]) if file.path == HOSTILE)


def forged_lines(content: bytes, true: set[int]) -> list[int]:
    return [match.start() + 1 for match in re.finditer(rb"\nbaseOffset: ", content) if match.start() + 1 not in true]


def test_a_forged_batch_line_on_a_range_boundary_is_refused() -> None:
    refused = 0
    for file in (f for f in discover([DUMPS / "hostile"]) if "/forged-" in f.path and f.path.endswith(".log.txt")):
        whole, ledger = Reader(file, file.stored_bytes).folded([Range(0, file.stored_bytes)])
        for point in forged_lines(file.absolute.read_bytes(), {int(str(row["byte_offset"])) for row in whole["batches"]}):
            reader, planned = split(file, [point])
            facts, split_ledger = reader.folded(planned)
            assert in_order(facts) == in_order(whole)
            assert split_ledger == ledger
            refused += reader.again
    assert refused >= 2


@pytest.mark.parametrize("step", [700, 5_000, 100_000])
@pytest.mark.parametrize("cluster", ["hostile", "dialects_tv2@4.1.0", "dialects_tombstone_k23@2.3.1", "syn_text_truncated"])
def test_any_ranges_fold_to_one_reading(cluster: str, step: int) -> None:
    for file in [f for f in discover([DUMPS / cluster]) if f.kind_hint == "text" and step * 2 < f.stored_bytes < step * 60][:6]:
        whole, ledger = Reader(file, file.stored_bytes).folded([Range(0, file.stored_bytes)])
        reader, planned = split(file, range(step, file.stored_bytes, step))
        facts, split_ledger = reader.folded(planned)
        assert in_order(facts) == in_order(whole), file.path
        assert split_ledger == ledger
        assert ledger.total == file.stored_bytes


def test_most_true_boundaries_need_no_second_reading() -> None:
    file = next(f for f in discover([DUMPS / "clean_k28"]) if f.path.endswith(".log.txt") and f.stored_bytes > 40_000)
    reader, planned = split(file, range(10_000, file.stored_bytes, 10_000))
    reader.folded(planned)
    assert len(planned) > 3
    assert reader.again == 0


def test_small_blocks_read_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    file = hostile()
    whole, _ = Reader(file, file.stored_bytes).folded([Range(0, file.stored_bytes)])
    monkeypatch.setattr(ranges, "BLOCK_BYTES", 900)
    monkeypatch.setattr(ranges, "AHEAD_BYTES", 300)
    facts, _ = Reader(file, file.stored_bytes).folded([Range(0, file.stored_bytes)])
    assert in_order(facts) == in_order(whole)


def test_gzip_is_read_as_its_text(tmp_path: Path) -> None:
    plain = hostile()
    packed = tmp_path / "packed.gz"
    packed.write_bytes(gzip.compress(plain.absolute.read_bytes()))
    file = replace(plain, absolute=packed, compression="gzip")
    size = ranges.survey(Text(packed, "gzip")).length
    assert size == plain.stored_bytes
    assert Reader(file, size).folded([Range(0, size)]) == Reader(plain, size).folded([Range(0, size)])


def test_the_digest_is_that_of_the_text_however_it_is_split_or_packed(tmp_path: Path) -> None:
    content = (b"x" * 99 + b"\n") * 30_000
    plain, packed = tmp_path / "a.txt", tmp_path / "a.gz"
    plain.write_bytes(content)
    packed.write_bytes(gzip.compress(content))
    leaves = [hashlib.sha256(content[at : at + ranges.LEAF_BYTES]).digest() for at in range(0, len(content), ranges.LEAF_BYTES)]
    expected = hashlib.sha256(b"".join(leaves)).hexdigest()
    assert ranges.digest([ranges.survey(Text(plain))]) == expected
    assert ranges.digest([ranges.survey(Text(plain), *part) for part in ranges.parts(len(content), ranges.LEAF_BYTES)]) == expected
    assert ranges.digest([ranges.survey(Text(packed, "gzip"))]) == expected


def test_sections_are_found_across_parts(tmp_path: Path) -> None:
    plain = tmp_path / "a.txt"
    plain.write_bytes(b"Dumping a\n" + b"x" * 90 + b"\nDumping b\n" + b"y" * 100)
    surveys = [ranges.survey(Text(plain), start, start + 35) for start in range(0, 211, 35)]
    assert [part.last_section for part in surveys[:5]] == [0, None, None, 101, None]  # its line begins in one part and ends in the next
    assert [part.section for part in ranges.ranges(surveys)] == [None, 0, 0, 0, 101, 101, 101]
    at_the_edge = [ranges.survey(Text(plain), 0, 101), ranges.survey(Text(plain), 101, 211)]
    assert [part.last_section for part in at_the_edge] == [0, 101]


def test_where_payloads_forge_sections_the_first_one_is_in_force(tmp_path: Path) -> None:
    plain = tmp_path / "a.txt"
    plain.write_bytes(b"Dumping a\n" + b"x\nDumping forged\n" * 20)
    surveys = [ranges.survey(Text(plain), start, start + 110) for start in range(0, 330, 110)]
    assert [part.section for part in ranges.ranges(surveys)] == [None, 0, 0]
    assert [part.section for part in ranges.ranges([surveys[0], ranges.Survey(b"", 110, None)])] == [None, surveys[0].last_section]


def test_a_gzip_file_that_is_cut_or_damaged_ends_there(tmp_path: Path) -> None:
    content = random.Random(7).randbytes(1 << 20) * 3
    packed = gzip.compress(content)
    cut, spoilt, unchecked = (tmp_path / name for name in ("cut.gz", "spoilt.gz", "unchecked.gz"))
    cut.write_bytes(packed[: len(packed) // 2])
    spoilt.write_bytes(packed[: len(packed) // 2] + bytes(64) + packed[len(packed) // 2 + 64 :])
    unchecked.write_bytes(packed[:-8] + bytes(8))
    surveys = [ranges.survey(Text(path, "gzip")) for path in (cut, spoilt, unchecked)]
    assert [bool(one.damage) for one in surveys] == [False, True, True]
    assert all(0 < one.length < len(content) for one in surveys[:2])
    for path, one in zip((cut, spoilt, unchecked), surveys, strict=True):
        # However it is asked for, it has the same end.
        with Text(path, "gzip").open() as file:
            pieces = list(iter(lambda: file.read1(999), b""))
        assert sum(map(len, pieces)) == one.length and content.startswith(b"".join(pieces)[:1000])


def test_gzip_members_in_a_row_are_one_text(tmp_path: Path) -> None:
    path = tmp_path / "two.gz"
    path.write_bytes(gzip.compress(b"one ") + gzip.compress(b"two") + bytes(512))
    with Text(path, "gzip").open() as file:
        assert file.read() == b"one two"
    path.write_bytes(gzip.compress(b"one ") + b"and no more gzip")
    assert ranges.survey(Text(path, "gzip")).length == 4 and ranges.survey(Text(path, "gzip")).damage


def test_a_file_that_became_shorter_is_one_sentence() -> None:
    file = hostile()
    with pytest.raises(InputError, match="became shorter"):
        Reader(file, file.stored_bytes + 1).read(Range(0, file.stored_bytes + 1))
