"""manifest.yaml: what it says, and one sentence about what is wrong with it."""

import pytest

from eo_audit.dump.files.identity import ManifestHint
from eo_audit.dump.files.manifest import hint, read_manifest

BAD = [
    (b"cluster: [\n", "line 2, column 1: "),
    (b"cluster: a: b\n", "line 1, column 11: mapping values are not allowed here"),
    (b"cluster: \xff\n", "byte 10: not UTF-8"),
    (b"- cluster\n", "line 1: not a list of `name: value`"),
    (b"a: &x [1]\nb: [*x, *x]\n", "line 2: aliases are not understood"),
    (b"dumped_at: 2026-13-45\n", "line 1: month must be in 1..12"),
    (b"a: !!python/object:os.system x\n", "line 1, column 4: could not determine a constructor"),
    (b"a" * (1 << 20) + b": 1\n", "larger than 1048576 bytes"),
    (b"a: {" * 5000, ""),
    (b"a: \0\n", "unacceptable character"),
    (b"a: {b: {c: {d: {e: {f: {g: {h: {i: {j: {k: {l: 1}}}}}}}}}}}\n", "line 1: nested too deeply"),
]


@pytest.mark.parametrize(("content", "error"), BAD, ids=[error or "deep" for _, error in BAD])
def test_a_bad_manifest_is_one_sentence_with_a_position(content: bytes, error: str) -> None:
    manifest = read_manifest(content)
    assert manifest.error is not None
    assert manifest.error.startswith(error)
    assert "\n" not in manifest.error
    assert not manifest.entries


def test_names_are_dotted_and_values_are_text() -> None:
    content = b'kafka_version: "3.9.1"\ntransaction_version: 2\nlist: [1, two]\nyes: true\nno:\n'
    content += b'topics: {"a.b": {}, orders: {cleanup.policy: compact}}\n'
    assert read_manifest(content).values == {
        "kafka_version": "3.9.1",
        "transaction_version": "2",
        "topics.a.b": None,
        "topics.orders.cleanup.policy": "compact",
        "list": '[1, "two"]',
        "True": "true",
        "False": None,
    }


MOMENTS = {
    b"1795234711701": 1795234711701,
    b'"1795234711701"': 1795234711701,
    b"2026-11-21T05:31:00Z": 1795239060000,
    b'"2026-11-21T06:31:00+01:00"': 1795239060000,
    b"2026-11-21 05:31:00": 1795239060000,
    b"2026-11-21": 1795219200000,
    b"yesterday": None,
    b"": None,
}


@pytest.mark.parametrize("written", MOMENTS)
def test_when_the_dump_was_made(written: bytes) -> None:
    assert hint(read_manifest(b"dumped_at: " + written + b"\n")).dumped_at_ms == MOMENTS[written]


def test_what_it_says_of_the_files_beside_it() -> None:
    said = hint(read_manifest(b"cluster: 7\nbroker: 3\ntopic: orders\npartition: 0\n"))
    assert said == ManifestHint(cluster="7", broker=3, topic="orders", partition=0)
    assert hint(read_manifest(b"broker: one\npartition: -1\ncluster:\n")) == ManifestHint()


def test_text_beyond_ascii_keeps_its_place() -> None:
    content = "# été\ncluster: zürich\nbroker: 1\n".encode()
    manifest = read_manifest(content)
    assert [content[entry.start : entry.stop].decode() for entry in manifest.entries] == ["cluster: zürich", "broker: 1"]
