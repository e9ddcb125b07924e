"""Which files of an input are dumps, whose they are, and what is said of the others."""

import bz2
import gzip
import io
import lzma
import os
import re
import tarfile
import zipfile
from pathlib import Path

import pytest

from eo_audit.dump.files.discovery import DumpFile, discover, look_through
from eo_audit.dump.files.identity import ManifestHint
from eo_audit.errors import InputError

DUMPS = Path(__file__).parent.parent / "data" / "corpus" / "dumps"
LOG = b"Dumping /d/orders-0/00000000000000000000.log\nLog starting offset: 0\n"
SEGMENT = "orders-0/00000000000000000000.log.txt"


def tree(root: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return root


def kinds(files: list[DumpFile]) -> dict[str, str]:
    return {file.path: file.kind_hint for file in files}


def test_a_real_input() -> None:
    files = discover([DUMPS / "compaction_k39"])
    assert [file.path for file in files] == sorted(file.path for file in files)
    assert {file.cluster for file in files} == {"compaction_k39"}
    assert {file.dumped_at_source for file in files} == {"manifest"}
    assert {file.own.broker for file in files if "/" in file.path} == {1}
    assert kinds(files)["broker-1/cleaner-offset-checkpoint"] == "cleaner-offset"
    assert kinds(files)["manifest.yaml"] == "manifest"


def test_all_real_inputs_are_dumps_and_nothing_else() -> None:
    found = look_through(sorted(DUMPS.iterdir()))
    assert not found.problems
    assert len(found.files) == sum(path.is_file() for path in DUMPS.rglob("*"))


def test_order_does_not_depend_on_the_order_of_inputs() -> None:
    inputs = sorted(DUMPS.iterdir())[:4]
    assert discover(inputs) == discover(inputs[::-1]) == discover([*inputs, inputs[0]])


def test_names_and_content_decide_together(tmp_path: Path) -> None:
    tree(
        tmp_path / "dumps",
        {
            SEGMENT: LOG,
            "orders-0/00000000000000000000.log.err.txt": b'Exception in thread "main" x\n',
            "orders-0/00000000000000000007.log.err.txt": LOG,
            "orders-0/leader-epoch-checkpoint": b"0\n0\n",
            "orders-0/00000000000000000009.snapshot.txt": b"",
            "b1-replication-offset-checkpoint.txt": b"0\n0\n",
            "listing.txt": b"12 orders-0/1.log\n",
            "manifest.yml": b"cluster: c\n",
            "all.out": b"Picked up JAVA_TOOL_OPTIONS: -D\n" + LOG,
            "README.md": b"What happened\n",
            "incident.md": b"What happened:\n\n" + LOG,
            "plan.md": b"What to do\n",
            "orders-0/meta.properties": b"node.id=1\n",
            "notes.txt": b"What happened\n",
            ".hidden": LOG,
            "orders-0/00000000000000000000.log": b"\0\0\0\0\0\0\0\0\0\0\0\x3d",
            "powershell.txt": LOG.decode().encode("utf-16"),
            "orders-0/00000000000000000003.log.txt": LOG + b"| offset: 0 payload: \0\0\n",
        },
    )
    found = look_through([tmp_path / "dumps"])
    assert kinds(found.files) == {
        SEGMENT: "text",
        "orders-0/00000000000000000000.log.err.txt": "tool_messages",
        "orders-0/00000000000000000003.log.txt": "text",
        "orders-0/00000000000000000007.log.err.txt": "text",
        "orders-0/00000000000000000009.snapshot.txt": "text",
        "orders-0/leader-epoch-checkpoint": "leader-epoch",
        "b1-replication-offset-checkpoint.txt": "replication-offset",
        "listing.txt": "listing",
        "manifest.yml": "manifest",
        "all.out": "text",
    }
    assert {Path(problem.path).name: problem.text for problem in found.problems} == {
        "notes.txt": "does not look like a dump",
        "incident.md": "holds lines of a dump, and is no dump by its name: call it .txt to have it read",
        "dumps": "holds 1 binary segment (orders-0/00000000000000000000.log): these are Kafka's own files; print them with kafka-dump-log, "
        "or collect-dumps.sh does",
        "powershell.txt": "is UTF-16 text, as PowerShell's > writes it: print the dump again from cmd.exe, or convert it with "
        "`iconv -f UTF-16 -t UTF-8 powershell.txt > utf8-powershell.txt`",
    }


def test_gzip_is_known_by_its_first_bytes(tmp_path: Path) -> None:
    packed = gzip.compress(LOG)
    tree(
        tmp_path, {"a/1.log.txt": packed, "a/2.log.txt.gz": packed[:-9], "a/3.log.txt.gz": LOG, "a/4.log.txt.gz": packed[:3] + b"\xff" * 40}
    )
    found = look_through([tmp_path])
    assert {file.path: file.compression for file in found.files} == {
        "a/1.log.txt": "gzip",
        "a/2.log.txt.gz": "gzip",
        "a/3.log.txt.gz": "none",
    }
    assert [problem.text for problem in found.problems] == ["begins like gzip but cannot be unpacked"]


def test_the_cluster_is_the_option_the_manifest_or_the_folder(tmp_path: Path) -> None:
    tree(tmp_path / "in", {f"a/{SEGMENT}": LOG, f"b/{SEGMENT}": LOG, "b/manifest.yaml": b"cluster: said\n"})
    assert {file.path[0]: file.cluster for file in discover([tmp_path / "in"])} == {"a": "in", "b": "said"}
    assert {file.cluster for file in discover([tmp_path / "in"], cluster="option")} == {"option"}
    assert [file.cluster for file in discover([tmp_path / "in" / "a" / SEGMENT])] == ["orders-0"]


def test_the_nearest_manifest_wins_value_by_value(tmp_path: Path) -> None:
    root = tree(
        tmp_path / "in",
        {
            "manifest.yaml": b"cluster: c\ndumped_at: 5\nbroker: 1\n",
            f"x/{SEGMENT}": LOG,
            "x/manifest.yaml": b"broker: 2\n",
            f"y/{SEGMENT}": LOG,
            "y/manifest.yaml": b"dumped_at: 6\n",
        },
    )
    files = {file.path[0]: file for file in discover([root]) if file.kind_hint == "text"}
    assert files["x"].manifest == ManifestHint(cluster="c", broker=2, dumped_at_ms=5)
    assert files["y"].manifest == ManifestHint(cluster="c", broker=1, dumped_at_ms=6)
    assert (files["x"].dump_set, files["y"].dump_set) == ("in", "y")
    assert files["x"].identity("/d/orders-0/00000000000000000000.log").broker_source == "manifest"


def test_dump_times_beside_a_broker_tell_of_its_files(tmp_path: Path) -> None:
    """The manifest's time stays that of the collection's start; a file has its own where dumped-at.txt names it, plain or packed."""
    name = SEGMENT.removesuffix(".txt")
    times = f"7 {name}\n8 orders-1/{'1' * 20}.log\n9 {name}\n".encode()
    tree(
        tmp_path / "in",
        {
            "manifest.yaml": b"dumped_at: 5\n",
            "broker-1/dumped-at.txt": times,
            f"broker-1/{SEGMENT}": LOG,
            f"broker-1/orders-1/{'1' * 20}.log.txt.gz": gzip.compress(LOG),
            "broker-1/orders-0/leader-epoch-checkpoint": b"0\n0\n",
            f"broker-2/{SEGMENT}": LOG,
        },
    )
    files = {file.path: file for file in discover([tmp_path / "in"])}
    said = {path: (file.dumped_at_ms, file.dumped_at_source) for path, file in files.items()}
    assert said == {
        "manifest.yaml": (5, "manifest"),
        "broker-1/dumped-at.txt": (5, "manifest"),
        f"broker-1/{SEGMENT}": (9, "dumped-at"),
        f"broker-1/orders-1/{'1' * 20}.log.txt.gz": (8, "dumped-at"),
        "broker-1/orders-0/leader-epoch-checkpoint": (5, "manifest"),
        f"broker-2/{SEGMENT}": (5, "manifest"),
    }
    assert files["broker-1/dumped-at.txt"].kind_hint == "dump_times"


def test_an_unfinished_collection_is_read_and_says_so(tmp_path: Path) -> None:
    tree(tmp_path / "in", {f"broker-1/{SEGMENT}": LOG, "broker-1/unfinished.txt": b"This ...\n", f"broker-1/.work/texts/{SEGMENT}": LOG})
    found = look_through([tmp_path / "in"])
    assert [file.path for file in found.files] == [f"broker-1/{SEGMENT}"]
    assert [problem.path for problem in found.problems] == [str(tmp_path / "in/broker-1/unfinished.txt")]
    assert "did not finish" in found.problems[0].text


def test_a_manifest_among_the_inputs_speaks_for_the_folders_beside_it(tmp_path: Path) -> None:
    tree(tmp_path, {"manifest.yaml": b"cluster: c\ndumped_at: 5\n", f"broker-1/{SEGMENT}": LOG, f"broker-2/{SEGMENT}": LOG})
    files = discover([tmp_path / "manifest.yaml", tmp_path / "broker-1", tmp_path / "broker-2"])
    assert {file.cluster for file in files} == {"c"}
    assert {file.path: file.own.broker for file in files} == {"manifest.yaml": None, f"broker-1/{SEGMENT}": 1, f"broker-2/{SEGMENT}": 2}
    assert {file.dump_set for file in files} == {tmp_path.name}


def test_an_input_inside_a_brokers_folder_keeps_its_names(tmp_path: Path) -> None:
    tree(tmp_path / "in", {f"broker-1/{SEGMENT}": LOG, f"broker-2/{SEGMENT}": LOG, f"incident-7/broker-1/{SEGMENT}": LOG})
    brokers = discover([tmp_path / "in" / "broker-1", tmp_path / "in" / "broker-2"])
    assert {(file.cluster, file.path) for file in brokers} == {("in", f"broker-1/{SEGMENT}"), ("in", f"broker-2/{SEGMENT}")}
    for given in (f"broker-1/{SEGMENT}", "broker-1/orders-0"):
        (file,) = discover([tmp_path / "in" / given])
        assert (file.path, file.own.broker, file.own.topic) == (f"broker-1/{SEGMENT}", 1, "orders")
        assert Path(file.input_path, file.path) == file.absolute
    (file,) = discover([tmp_path / "in" / "incident-7"])
    assert (file.cluster, file.path) == ("incident-7", f"broker-1/{SEGMENT}")


def test_a_bad_manifest_is_a_problem_and_the_rest_goes_on(tmp_path: Path) -> None:
    found = look_through([tree(tmp_path, {"manifest.yaml": b"cluster: [\n", SEGMENT: LOG})])
    assert len(found.files) == 2
    (problem,) = found.problems
    assert problem.path == str(tmp_path / "manifest.yaml")
    assert problem.text.startswith("is not understood, line 2, column 1: ")


def test_dump_sets_of_one_name_are_told_apart(tmp_path: Path) -> None:
    tree(tmp_path, {f"mon/dumps/{SEGMENT}": LOG, f"tue/dumps/{SEGMENT}": LOG + b"\n"})
    files = discover([tmp_path / "mon" / "dumps", tmp_path / "tue" / "dumps"])
    assert {file.cluster for file in files} == {"dumps"}
    assert len({file.dump_set for file in files}) == 2


def test_links_are_followed_once(tmp_path: Path) -> None:
    root = tree(tmp_path / "in", {f"a/{SEGMENT}": LOG})
    os.symlink(root, root / "a" / "loop")
    os.symlink(root / "a", root / "latest")
    os.symlink(tmp_path / "nowhere", root / "gone.log.txt")
    os.symlink(root / "a" / SEGMENT, root / "z.log.txt")
    found = look_through([root])
    assert [file.path for file in found.files] == [f"a/{SEGMENT}"] == [file.path for file in discover([root, root / "a"])]
    assert [(Path(problem.path).name, problem.text) for problem in found.problems] == [
        ("loop", "leads to a folder that is read already"),
        ("gone.log.txt", "cannot be read: No such file or directory"),
        ("latest", "leads to a folder that is read already"),
    ]


def test_results_among_the_dumps_are_left_out_without_a_word_and_dumps_beside_them_are_not(tmp_path: Path) -> None:
    results = ("warehouse/_lock", "warehouse/batches/part.parquet", "verdict.json", "findings.jsonl", "report.html", "data-docs/index.html")
    tree(tmp_path, {f"out/{name}": b"\0" for name in results})
    tree(tmp_path, {f"out/a-0/{SEGMENT}": LOG, "b/warehouse/part.parquet": b"\0", "b/report.html": b"\0"})
    found = look_through([tmp_path])
    assert [file.path for file in found.files] == [f"out/a-0/{SEGMENT}"]
    assert [Path(problem.path).relative_to(tmp_path).as_posix() for problem in found.problems] == [
        "b/report.html",
        "b/warehouse/part.parquet",
    ]


def test_what_is_no_regular_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tree(tmp_path, {SEGMENT: LOG}) / "pipe.log.txt")
    assert [problem.text for problem in look_through([tmp_path]).problems] == ["is neither a file nor a folder"]


def test_names_that_are_not_utf8_can_be_stored(tmp_path: Path) -> None:
    tree(tmp_path, {SEGMENT: LOG})
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.log.txt")).write_bytes(LOG)
    assert "\ufffd.log.txt" in [file.path for file in discover([tmp_path])]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("missing", "missing cannot be read: No such file or directory"),
        ("empty", "empty holds no dump file"),
        ("code", "code holds no dump file ("),
        ("code/a.py", "a.py does not look like a dump"),
    ],
)
def test_a_bad_input_is_one_sentence(tmp_path: Path, name: str, sentence: str) -> None:
    tree(tmp_path, {"code/a.py": b"import os\n"})
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError) as raised:
        discover([tmp_path / name])
    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)


def test_no_input_at_all() -> None:
    with pytest.raises(InputError):
        discover([])


def test_a_brokers_own_folder_is_one_sentence(tmp_path: Path) -> None:
    names = [f"orders-{n}/{base:020}.{kind}" for n in range(3) for base in (0, 400, 800) for kind in ("log", "index", "timeindex")]
    own = {name: b"" if name.endswith("timeindex") else b"\0" * 200 for name in names}
    broker = tree(
        tmp_path / "kafka-logs", own | {"orders-0/partition.metadata": b"version: 0\n", "replication-offset-checkpoint": b"0\n0\n"}
    )
    found = look_through([broker])
    assert [file.path for file in found.files] == ["orders-0/partition.metadata", "replication-offset-checkpoint"]
    (problem,) = found.problems
    assert problem.path == str(broker)
    assert problem.text.startswith(
        "holds 9 binary segments and 18 indexes and snapshots (orders-0/00000000000000000000.index, ...): these are"
    )
    with pytest.raises(InputError, match=r"holds no dump file .*9 binary segments"):
        look_through([tree(tmp_path / "bare", own)])


def packed(kind: str) -> bytes:
    """An archive of one dump; a dump inside an uncompressed tar could be read as text."""
    made = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(made, "w") as archive:
            archive.writestr(SEGMENT, LOG)
    else:
        with tarfile.open(fileobj=made, mode=kind) as archive:
            member = tarfile.TarInfo(SEGMENT)
            member.size = len(LOG)
            archive.addfile(member, io.BytesIO(LOG))
    return made.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "command"),
    [
        ("dumps.tar.gz", packed("w:gz"), "tar xzf dumps.tar.gz"),
        ("dumps.tgz", packed("w:gz"), "tar xzf dumps.tgz"),
        ("00000000000000000000.log.txt", packed("w:gz"), "tar xzf 00000000000000000000.log.txt"),
        ("dumps.tar", packed("w:"), "tar xf dumps.tar"),
        ("dumps.out", packed("w:"), "tar xf dumps.out"),
        ("dumps.tar.xz", packed("w:xz"), "tar xf dumps.tar.xz"),
        ("dumps.tar.bz2", packed("w:bz2"), "tar xf dumps.tar.bz2"),
        ("dumps.zip", packed("zip"), "unzip dumps.zip"),
        ("00000000000000000000.log.txt.bz2", bz2.compress(LOG), "bzip2 -dk 00000000000000000000.log.txt.bz2"),
        ("00000000000000000000.log.txt.zst", b"\x28\xb5\x2f\xfd\0rest", "zstd -d 00000000000000000000.log.txt.zst"),
        ("dumps.7z", b"7z\xbc\xaf\x27\x1c\0rest", "7z x dumps.7z"),
        ("dumps.rar", b"something new", "unrar x dumps.rar"),
        ("00000000000000000000.log.txt.lzma", lzma.compress(LOG, lzma.FORMAT_ALONE), "xz -dk 00000000000000000000.log.txt.lzma"),
        ("dumps.out", lzma.compress(LOG, lzma.FORMAT_ALONE), "xz -dk dumps.out"),
        ("00000000000000000000.log.txt.lz", b"LZIP\1\x0crest", "lzip -dk 00000000000000000000.log.txt.lz"),
        ("00000000000000000000.log.txt.Z", b"\x1f\x9d\x90rest", "gzip -dk 00000000000000000000.log.txt.Z"),
        ("00000000000000000000.log.txt.br", b"\x8b\x21rest", "brotli -d 00000000000000000000.log.txt.br"),
        ("replication-offset-checkpoint.br", b"\x8b\x21rest", "brotli -d replication-offset-checkpoint.br"),
        ("dumps.lzo", b"\x89LZO\0\r\n\x1a\nrest", "lzop -d dumps.lzo"),
    ],
)
def test_archives_are_named_and_never_read(tmp_path: Path, name: str, content: bytes, command: str) -> None:
    archive = tree(tmp_path / "in", {name: content}) / name
    said = f"is an archive: unpack it first (`{command}`), and name the folder that comes out of it"
    with pytest.raises(InputError, match=re.escape(f"{archive} {said}")):
        look_through([archive])
    beside = look_through([tree(tmp_path / "in", {SEGMENT: LOG})])
    assert [file.path for file in beside.files] == [SEGMENT]
    assert [(problem.path, problem.text) for problem in beside.problems] == [(str(archive), said)]


LS = b"total 8\n-rw-r--r-- 1 kafka kafka 4321 Nov 21 04:25 00000000000000000000.log\n"


@pytest.mark.parametrize("text", [LS, b"./orders-0:\n" + LS, LS.replace(b"rw-r--r-- ", b"rw-r--r--. ")])
def test_a_listing_in_another_form_says_which_one_is_read(text: bytes, tmp_path: Path) -> None:
    found = look_through([tree(tmp_path / "in", {SEGMENT: LOG, "listing.txt": text, "b/listing.txt": b"4321 orders-0/0.log\n"})])
    assert kinds(found.files) == {SEGMENT: "text", "b/listing.txt": "listing"}
    (problem,) = found.problems
    assert problem.text.startswith(r"is what `ls -l` prints: list the log directory with `find . -type f -printf '%s %P\n'`")


def test_text_is_text_whatever_its_name(tmp_path: Path) -> None:
    assert [file.path for file in discover([tree(tmp_path / "in", {"dumps.zip": LOG, "dumps.tar.gz": gzip.compress(LOG)})])] == [
        "dumps.tar.gz",
        "dumps.zip",
    ]


@pytest.mark.parametrize("address", ["s3://bucket/dumps", "hdfs://nn:8020/dumps", "abfss://c@a.dfs.core.windows.net/x"])
def test_an_address_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    with pytest.raises(InputError, match=f"{address} cannot be used: only folders and files"):
        look_through([Path(address)])
    monkeypatch.chdir(tmp_path)
    tree(tmp_path / address.replace("//", "/"), {SEGMENT: LOG})
    assert discover([Path(address)])  # a folder may have that name


def test_links_that_lead_out_are_not_followed(tmp_path: Path) -> None:
    """Dumps come from somebody else: they may hold links to everything that is on this machine."""
    root = tree(tmp_path / "in", {f"a/{SEGMENT}": LOG, f"b/c/{SEGMENT}": LOG})
    secret = tree(tmp_path / "secret", {f"a/{SEGMENT}": LOG})
    os.symlink("/", root / "machine")
    os.symlink("/proc", root / "proc")
    os.symlink(secret, root / "folder")
    os.symlink(secret / "a" / SEGMENT, root / "file.log.txt")
    os.symlink("/dev/zero", root / "zero.log.txt")
    os.symlink("/proc/kmsg", root / "kmsg.log.txt")
    os.symlink("../b/c", root / "a" / "inside")
    found = look_through([root])
    assert {file.path for file in found.files} <= {f"a/{SEGMENT}", f"b/c/{SEGMENT}", f"a/inside/{SEGMENT}"}
    left_out = {Path(problem.path).name for problem in found.problems if "leads out of the input" in problem.text}
    assert left_out == {"machine", "proc", "folder", "file.log.txt", "zero.log.txt", "kmsg.log.txt"}
    os.symlink(secret, tmp_path / "named")  # a person named it
    assert [file.path for file in look_through([tmp_path / "named"]).files] == [f"a/{SEGMENT}"]
