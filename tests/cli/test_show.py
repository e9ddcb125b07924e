"""`eo-audit show`: the right line, its fields, and never a key or a payload. On real dumps, ingested without Spark."""

import gzip
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from eo_audit import pipeline
from eo_audit.errors import ArgumentError, InputError, WarehouseError
from eo_audit.pipeline import Options
from eo_audit.report.quote import is_kafkas_own, quotable, texts_at
from eo_audit.report.show import Element, parse_address, show
from eo_audit.store.tables import Warehouse

DUMPS = Path(__file__).parent.parent / "data/corpus/dumps"
LOG = "broker-1/orders-0/00000000000000000000.log.txt"
INGESTED = ["hanging_txn_k39", "clean_tv2", "hostile", "compressed@0.11.0.3"]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four inputs ingested: each folder is a cluster; one input is a copy, packed."""
    folder = tmp_path_factory.mktemp("out")
    packed = tmp_path_factory.mktemp("packed")
    (packed / "orders-0").mkdir()
    (packed / "orders-0/00000000000000000000.log.txt.gz").write_bytes(gzip.compress((DUMPS / "hanging_txn_k39" / LOG).read_bytes()))
    moved = shutil.copytree(DUMPS / "idempotent_retry", tmp_path_factory.mktemp("moved") / "idempotent_retry")
    options = Options()
    found = pipeline.discover([*(DUMPS / name for name in INGESTED), packed, moved], options)
    with pipeline.writing(folder, options, spark=lambda: pytest.fail("no Spark for small inputs")) as warehouse:
        pipeline.ingest(warehouse, found, options)
    shutil.rmtree(moved)
    return folder


@pytest.fixture(scope="module")
def element(out: Path) -> Callable[..., Element]:
    warehouse = Warehouse(out)
    return lambda address, cluster="hanging_txn_k39": show(address, warehouse, cluster=cluster)


def byte_of(text: bytes, file: str = LOG, dumps: str = "hanging_txn_k39") -> int:
    return (DUMPS / dumps / file).read_bytes().index(text)


def test_a_batch_with_its_fields(element: Callable[..., Element]) -> None:
    at = byte_of(b"baseOffset: 6 ")
    shown = element(f"{LOG}@{at}")
    assert shown.what == "a batch"
    assert shown.where.startswith(f"{LOG}@{at}, ")
    assert shown.where.endswith("cluster hanging_txn_k39, broker 1, orders-0")
    assert shown.lines[0].startswith("baseOffset: 6 lastOffset: 8 count: 3 ")
    assert ("producer_id", "1") in shown.fields
    assert ("max_timestamp_ms", "1795235111070  (2026-11-21 04:25:11 UTC)") in shown.fields


def test_any_byte_of_a_line_finds_it(element: Callable[..., Element]) -> None:
    at = byte_of(b"baseOffset: 6 ")
    assert element(f"{LOG}@{at + 50}") == element(f"{LOG}@{at}")


def test_a_record_ends_at_its_header_keys(element: Callable[..., Element]) -> None:
    shown = element(f"{LOG}@{byte_of(b'| offset: 6 ')}")
    assert shown.lines == ("| offset: 6 CreateTime: 1795235111070 keySize: 8 valueSize: 105 sequence: 2 headerKeys: [ ...",)
    assert "ORD-" not in str(shown)
    assert ("value_size", "105") in shown.fields


def test_a_marker_is_shown_whole(element: Callable[..., Element]) -> None:
    shown = element(f"{LOG}@{byte_of(b'baseOffset: 5 ')}")
    assert shown.lines[1].endswith("headerKeys: [] endTxnMarker: ABORT coordinatorEpoch: 0")
    assert ("marker_type", "ABORT") in shown.fields


def test_a_coordinator_entry_has_the_fields_of_its_payload(element: Callable[..., Element]) -> None:
    file = "broker-1/__transaction_state-1/00000000000000000000.log.txt"
    shown = element(f"{file}@{byte_of(b'| offset: 14 ', file)}")
    assert shown.what == "an entry of the transaction coordinator"
    assert ("status", "Ongoing") in shown.fields
    assert ("partitions", "orders-0, orders-1, orders-2") in shown.fields
    # Its key and value are the coordinator's own words: nobody's payload, and what a person looks for.
    assert shown.lines[0].split(" key: ")[1].startswith("transaction_metadata::transactionalId=")
    assert shown.lines[0].endswith("txnTimeoutMs=60000")


@pytest.mark.parametrize(
    ("file", "text", "what"),
    [
        ("broker-1/orders-0/00000000000000000014.snapshot.txt", b"producerId: 1 ", "a row of a producer snapshot"),
        ("broker-1/orders-0/00000000000000000000.txnindex.txt", b"version: 0", "an entry of the aborted-transaction index"),
        ("broker-1/replication-offset-checkpoint", b"orders 2", "a row of a checkpoint"),
        ("broker-1/listing.txt", b"1828 orders-0", "a line of the listing"),
        ("manifest.yaml", b"kafka_version", "a line of the manifest"),
    ],
)
def test_sidecars(element: Callable[..., Element], file: str, text: bytes, what: str) -> None:
    shown = element(f"{file}@{byte_of(text, file)}")
    assert shown.what == what
    assert shown.lines[0].startswith(text.decode())


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_what_lies_within_what_was_just_read_is_read_again(compression: str, tmp_path: Path) -> None:
    """More of them than a program may call itself, or open files."""
    text = bytes(range(256)) * 20
    path = tmp_path / "some.log"
    path.write_bytes(gzip.compress(text) if compression == "gzip" else text)
    spans = [(at, 40) for at in range(3_000)]
    assert texts_at(path, spans, compression=compression) == [text[at : at + 40] for at, _ in spans]


def test_a_packed_dump_is_unpacked(element: Callable[..., Element], out: Path) -> None:
    cluster = next(row["cluster"] for row in Warehouse(out).arrow("dump_files").to_pylist() if row["compression"] == "gzip")
    shown = element(f"orders-0/00000000000000000000.log.txt.gz@{byte_of(b'baseOffset: 6 ')}", cluster)
    assert shown.lines[0].startswith("baseOffset: 6 lastOffset: 8")


def test_no_line_of_any_fact_shows_a_payload(out: Path) -> None:
    """Every record and every unread span of hostile dumps and of an unsupported dialect; what a decoder printed is Kafka's own."""
    warehouse = Warehouse(out)
    files = {row["dump_file_id"]: row for row in warehouse.arrow("dump_files").to_pylist()}
    own = {row["section_id"] for row in warehouse.arrow("dump_sections").to_pylist() if is_kafkas_own(row)}
    sections = {row["section_id"]: files[row["dump_file_id"]] for row in warehouse.arrow("dump_sections").to_pylist()}
    shown = [
        show(f"{sections[row['section_id']]['path']}@{row['byte_offset']}", warehouse, cluster=sections[row["section_id"]]["cluster"])
        for table in ("records", "unread_spans")
        for row in warehouse.arrow(table).to_pylist()[::7]
        if sections[row["section_id"]]["cluster"] != "idempotent_retry" and not (table == "records" and row["section_id"] in own)
    ]
    assert len(shown) > 30
    lines = [line for one in shown for line in one.lines]
    assert not [line for line in lines if " payload: " in line or " key: " in line]


def test_names_of_files_as_they_lie_there_now(element: Callable[..., Element]) -> None:
    assert element(f"{DUMPS / 'hanging_txn_k39' / LOG}@{byte_of(b'baseOffset: 6 ')}").what == "a batch"


def test_the_line_with_which_the_tool_begins_tells_of_what_file_it_is(element: Callable[..., Element]) -> None:
    """Coverage points there for what should follow it and does not."""
    shown = element(f"{LOG}@3", "hanging_txn_k39")
    (line,) = shown.lines
    assert shown.what == "the head of one dumped file" and line.startswith("Dumping /") and line.endswith("orders-0/" + "0" * 20 + ".log")
    assert {("kind", "log"), ("segment_base_offset", "0"), ("dumped_path", line.removeprefix("Dumping "))} <= set(shown.fields)


@pytest.mark.parametrize(
    ("address", "cluster", "error", "said"),
    [
        ("orders-0", None, ArgumentError, "is not FILE@OFFSET"),
        (f"{LOG}@-1", None, ArgumentError, "is not FILE@OFFSET"),
        (f"{LOG}@100", None, ArgumentError, "clean_tv2"),
        ("nowhere.txt@1", None, InputError, "no dump file nowhere.txt"),
        (f"{LOG}@100", "elsewhere", InputError, "of cluster elsewhere"),
        ("broker-1/replication-offset-checkpoint@0", "hanging_txn_k39", InputError, "is in no fact"),
        (f"{LOG}@99999999", "hanging_txn_k39", InputError, "there is no byte 99999999"),
        (f"{LOG}@100", "idempotent_retry", InputError, "cannot be read now"),
    ],
)
def test_one_sentence_for_what_cannot_be_shown(
    address: str, cluster: str | None, error: type[Exception], said: str, element: Callable[..., Element]
) -> None:
    with pytest.raises(error, match=said):
        element(address, cluster)


def test_a_text_that_was_met_again_is_read_where_it_still_lies(tmp_path: Path) -> None:
    """The folders of earlier nights may be deleted; what has not changed since was ingested from them."""
    out, options = tmp_path / "out", Options()
    for night, at in (("first", 1_795_000_000_000), ("second", 1_795_086_400_000)):
        log = tmp_path / night / LOG
        log.parent.mkdir(parents=True)
        (tmp_path / night / "manifest.yaml").write_text(f"cluster: c\ndumped_at: {at}\n")
        shutil.copy(DUMPS / "hanging_txn_k39" / LOG, log)
        found = pipeline.discover([tmp_path / night], options)
        with pipeline.writing(out, options, spark=lambda: pytest.fail("no Spark for small inputs")) as warehouse:
            pipeline.ingest(warehouse, found, options)
    shutil.rmtree(tmp_path / "first")
    assert show(f"{LOG}@{byte_of(b'baseOffset: 6 ')}", Warehouse(out)).lines[0].startswith("baseOffset: 6 lastOffset: 8")


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Warehouse, Path, int]:
    """A log that was packed and damaged before it was ingested: the warehouse, the file, and where its text ends."""
    folder, out = tmp_path_factory.mktemp("damaged") / "d", tmp_path_factory.mktemp("out")
    path = folder / "broker-1/orders-0/00000000000000000000.log.txt.gz"
    path.parent.mkdir(parents=True)
    # Many logs behind one of a megabyte: long enough that nothing near the damage is unpacked with what was asked for.
    log, large = ((DUMPS / name).read_bytes() for name in (f"hanging_txn_k39/{LOG}", f"hostile/broker-1/big-0/{0:020}.log.txt"))
    packed = bytearray(gzip.compress(log + large + log * 80, compresslevel=1))
    packed[len(packed) // 2 : len(packed) // 2 + 40] = bytes(40)
    path.write_bytes(packed)
    found = pipeline.discover([folder], Options())
    with pipeline.writing(out, Options(), spark=lambda: pytest.fail("no Spark for small inputs")) as warehouse:
        pipeline.ingest(warehouse, found, Options())
    (file,) = Warehouse(out).arrow("dump_files").to_pylist()
    return Warehouse(out), path, file["text_bytes"]


def test_of_a_damaged_gzip_file_what_stands_before_the_damage_is_shown(damaged: tuple[Warehouse, Path, int]) -> None:
    warehouse, path, _ = damaged
    assert show(f"{path}@{byte_of(b'baseOffset: 6 ')}", warehouse).lines[0].startswith("baseOffset: 6 lastOffset: 8")
    batches = sorted(row["byte_offset"] for row in warehouse.arrow("batches").to_pylist())
    assert show(f"{path}@{batches[-1]}", warehouse).lines[0].startswith("baseOffset: ")


def test_of_a_damaged_gzip_file_one_sentence_says_where_and_why(damaged: tuple[Warehouse, Path, int]) -> None:
    warehouse, path, end = damaged
    name = f"broker-1/orders-0/{path.name}"
    said = f"^{re.escape(name)} has {end} bytes of text, where the gzip file is damaged .Error -3 while .*: there is no byte {end + 9}$"
    with pytest.raises(InputError, match=said):
        show(f"{name}@{end + 9}", warehouse)


def test_a_gzip_file_that_was_damaged_since_is_named_with_the_byte_where_it_ends(
    damaged: tuple[Warehouse, Path, int], tmp_path: Path
) -> None:
    warehouse, path, _ = damaged
    last = max(row["byte_offset"] for row in warehouse.arrow("batches").to_pylist())
    whole = path.read_bytes()
    try:
        path.write_bytes(whole[:400] + bytes(40) + whole[440:])
        with pytest.raises(InputError, match=r"cannot be read now: its text ends at byte [\d,]+, where the gzip file is damaged"):
            show(f"{path}@{last}", warehouse)
        path.write_bytes(whole[:4000])
        with pytest.raises(InputError, match=r"cannot be read now: its text ends at byte [\d,]+$"):
            show(f"{path}@{last}", warehouse)
    finally:
        path.write_bytes(whole)


def test_texts_that_overlap_are_read_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"0123456789"))
    (tmp_path / "a").write_bytes(b"0123456789")
    spans = [(1, 4), (3, 4), (3, 1), (9, 1)]
    read = [texts_at(tmp_path / name, spans, compression=how) for name, how in (("a", "none"), ("a.gz", "gzip"))]
    assert read == [[b"1234", b"3456", b"3", b"9"]] * 2


def test_without_a_run(tmp_path: Path) -> None:
    with pytest.raises(WarehouseError, match="holds no ingested dumps"):
        show(f"{LOG}@1", Warehouse(tmp_path))


def test_addresses_may_hold_an_at_sign() -> None:
    assert parse_address("a@b/c.txt@12") == ("a@b/c.txt", 12)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (b"| offset: 1 CreateTime: 2 keysize: -1 valuesize: 5 crc: 9 isvalid: true key: a payload: b\n", "isvalid: true ..."),
        (b"offset: 0 position: 0 CreateTime: 1 isvalid: true keysize: -1 valuesize: 5 headerKeys: [h] payload: x\n", "headerKeys: [ ..."),
        (b'  "card": "4111"\n', "(16 bytes, not quoted: they may be part of a payload)"),
        (b"| offset: 4 headerKeys: [] endTxnMarker: COMMIT coordinatorEpoch: 0 payload: x\n", "headerKeys: [ ..."),
    ],
)
def test_what_may_be_quoted(text: bytes, shown: str) -> None:
    assert quotable(text)[0].endswith(shown)


def test_nothing_behind_a_record_is_quoted() -> None:
    assert len(quotable(b"| offset: 1 headerKeys: [] payload: {\nbaseOffset: 2 lastOffset: 2 payload\n}")) == 1


def test_a_dump_in_whose_place_another_one_lies_is_not_shown(tmp_path: Path) -> None:
    """A folder that is filled anew each night, by a broker whose logs lie elsewhere since: no line is where it was."""
    text, log = (DUMPS / "hanging_txn_k39" / LOG).read_bytes(), tmp_path / "now" / LOG
    log.parent.mkdir(parents=True)
    for at, told in ((1_795_000_000_000, text), (1_795_086_400_000, text.replace(b"Dumping /", b"Dumping /elsewhere/", 1))):
        log.write_bytes(told)
        (tmp_path / "now/manifest.yaml").write_text(f"cluster: c\ndumped_at: {at}\n")
        found = pipeline.discover([tmp_path / "now"], Options())
        with pipeline.writing(tmp_path / "out", Options(), spark=lambda: pytest.fail("no Spark for small inputs")) as warehouse:
            pipeline.ingest(warehouse, found, Options())
    warehouse = Warehouse(tmp_path / "out")
    assert show(f"{LOG}@{told.index(b'baseOffset: 6 ')}", warehouse).lines[0].startswith("baseOffset: 6 ")
    with pytest.raises(InputError, match="is another dump now"):
        show(f"{LOG}@{text.index(b'baseOffset: 6 ')}", warehouse)
