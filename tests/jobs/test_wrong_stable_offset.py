"""One wrong lastStableOffset in a .txnindex, from the dump text to the sentence: what a broker's look-up misses then, and why.

A broker walks the index up to the first entry whose lastStableOffset lies at or beyond the fetch: too high, it hides those behind it.
"""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.together import Part, Together

DUMPS = Path(__file__).resolve().parents[1] / "data" / "corpus" / "dumps" / "synthetic_base_k39"
INDEX = "broker-1/orders-0/00000000000000000000.txnindex.txt"
OF_THE_FIRST_ENTRY = "firstOffset: 11 lastOffset: 12 lastStableOffset: 7\n"
SENTENCE = (
    r"^\d+ records? of an aborted transaction of .*producer {}\) at offsets? .* returned to read_committed consumers: (its|their) entry is "
    r"in the aborted index, but an entry before it, of the ABORT at offset 12, has a wrong lastStableOffset \(900000\): the broker's "
    r"look-up ends there$"
)
# The lastStableOffset of the first entry, and the findings of L02: producer id and words.
CASES: Mapping[str, tuple[int, Mapping[int, str]]] = {
    "as the broker wrote it": (7, {}),
    "too high": (900_000, {producer: SENTENCE.format(producer) for producer in (0, 1)}),  # both stand behind it
    "too low": (0, {}),
}


def dumps_of_tests(root: Path) -> Part:
    """The dumps of all cases, each a cluster of its own."""
    for name, (stable_offset, _) in CASES.items():
        copy = root / name.replace(" ", "-")
        shutil.copytree(DUMPS, copy)
        index, manifest = copy / INDEX, copy / "manifest.yaml"
        text = index.read_text(encoding="utf-8")
        assert text.count(OF_THE_FIRST_ENTRY) == 1
        index.write_text(text.replace(OF_THE_FIRST_ENTRY, OF_THE_FIRST_ENTRY.replace("7\n", f"{stable_offset}\n")), encoding="utf-8")
        manifest.write_text(manifest.read_text(encoding="utf-8").replace(DUMPS.name, copy.name), encoding="utf-8")
    return Part([root / name.replace(" ", "-") for name in CASES])


@pytest.mark.parametrize("name", CASES)
def test_the_entry_that_ends_the_look_up_is_named(name: str, one_audit: Together) -> None:
    wanted, found = CASES[name][1], [finding for finding in one_audit.results.findings if finding["rule"] == "L02"]
    mine = {finding["producer_id"]: finding for finding in found if finding["cluster"] == name.replace(" ", "-")}
    assert mine.keys() == wanted.keys(), [finding["message"] for finding in mine.values()]
    for producer, sentence in wanted.items():
        assert re.search(sentence, str(mine[producer]["message"])), mine[producer]["message"]
        assert mine[producer]["cause"] == "an entry of the .txnindex has a wrong lastStableOffset"
