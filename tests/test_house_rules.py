"""The rules of the house: who may import whom, how long things may be, what every public name and column must say."""

import ast
import json
import re
import statistics
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from eo_audit.history.steps import histories, steps, text_of

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = sorted([*(ROOT / "eo_audit").rglob("*.py"), *(ROOT / "jobs").glob("*.py")])
HISTORY_TEXTS = sorted((ROOT / "eo_audit").rglob("*.sql"))
TESTS = sorted(path for path in (ROOT / "tests").rglob("*.py") if "data" not in path.relative_to(ROOT / "tests").parts)
FAMILIES = set((ROOT / "eo_audit" / "rules").glob("*/*.py"))
SCHEMAS = sorted((ROOT / "schemas").glob("*.json"))

LONGEST_FUNCTION = 60
LONGEST_MODULE = 350
LONGEST_LINE = 140  # as ruff has it of modules (pyproject.toml)
MEDIAN_FUNCTION = 10
TEXT_FILES = {"", ".py", ".md", ".toml", ".lock", ".yaml", ".json", ".sh", ".html", ".ipynb"}

# What every room stands on, and the floors above it: a room imports only from floors below its own.
GROUND = ("errors", "words", "config")
FLOORS = (
    ("errors", "words", "model"),
    ("config",),
    ("store",),
    ("dump", "rules", "history"),
    ("ingest", "rebuild", "audit"),
    ("report",),
    ("pipeline", "commands", "gate"),
    ("cli",),
)
# The floors within the one room that is a house of its own: a folder imports only from those below it.
FLOORS_OF_DUMP = (("lines",), ("files",), ("log",), ("fast", "flat"), ("other_lines",), ("reader",), ("parse",), ("ranges",))
# Room -> what it must not import besides: "eo_audit.x" also covers what lies below it.
FORBIDDEN_IMPORTS = {
    "eo_audit/model": ["pyspark", "pyarrow", "numpy", "pandas", "eo_audit"],
    "eo_audit/dump": ["pyspark", "eo_audit.store.tables", "eo_audit.store.session", "eo_audit.store.tasks"],
    "eo_audit/history": ["eo_audit.store.tables", "eo_audit.store.session", "eo_audit.store.tasks"],
    "eo_audit/rules": ["eo_audit.store", "eo_audit.config"],
    "eo_audit/report": ["pyspark", "eo_audit.store.session"],
    "eo_audit/words.py": ["eo_audit", "pyspark"],
}
# Import -> the only modules that may have it.
RESERVED_IMPORTS = {
    "deltalake": {"eo_audit/store/delta_table.py"},
    "delta": {"eo_audit/store/tables.py", "eo_audit/store/session.py"},
    "great_expectations": {"eo_audit/report/gate.py"},
}
# A step of a history or a rule is lazy, and gives the same rows every time.
ACTIONS = {"collect", "toPandas", "toLocalIterator", "take", "head", "cache", "checkpoint", "localCheckpoint", "foreach", "show"}
UNREPEATABLE = {"udf", "pandas_udf", "rand", "randn", "uuid", "current_timestamp", "monotonically_increasing_id"}
UNITS = {"_ms": "ms", "_bytes": "bytes", "byte_offset": "bytes"}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes(path: Path) -> list[ast.AST]:
    """All of a module, walked through once: a dozen rules look at every node."""
    return list(ast.walk(parsed(path)))


def imports(path: Path) -> Iterator[str]:
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def functions(path: Path) -> Iterator[ast.FunctionDef]:
    return (node for node in nodes(path) if isinstance(node, ast.FunctionDef))


def length(function: ast.FunctionDef) -> int:
    """Lines of code of a function: its docstring is no code."""
    documented = ast.get_docstring(function) is not None
    docstring = function.body[0].end_lineno - function.body[0].lineno + 1 if documented else 0  # type: ignore[operator]
    return (function.end_lineno or function.lineno) - function.lineno + 1 - docstring


def module_of(path: Path) -> str:
    return name_of(path).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


PACKAGE = {module_of(path): path for path in PRODUCT if name_of(path).startswith("eo_audit/")}


def room_of(module: str) -> str | None:
    """`store` of `eo_audit.store.tables`, `cli` of `eo_audit.cli`; the package itself is the name of the house, and no room."""
    return module.split(".")[1] if "." in module else None


@cache
def imported_modules(module: str) -> set[str]:
    """Modules of ours that a module imports, at whatever moment, also for its types only."""
    return {found for found in imports(PACKAGE[module]) if found in PACKAGE and found != module}


def arrows() -> dict[str, set[str]]:
    """Room -> rooms that its modules import."""
    found: dict[str, set[str]] = {}
    for module in PACKAGE:
        here = room_of(module)
        if here is not None:
            found.setdefault(here, set()).update(room for other in imported_modules(module) if (room := room_of(other)) not in (None, here))
    return found


def test_every_room_has_a_floor_and_imports_only_from_those_below() -> None:
    floor = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
    assert set(arrows()) == set(floor)
    assert not [f"{room} imports {other}" for room, others in arrows().items() for other in others if floor[other] >= floor[room]]


def test_the_folders_of_dump_import_only_from_those_below() -> None:
    floor = {folder: number for number, folders in enumerate(FLOORS_OF_DUMP) for folder in folders}
    own = {module: module.split(".")[2] for module in PACKAGE if module.startswith("eo_audit.dump.")}
    assert set(own.values()) == set(floor)
    pairs = {(own[module], own[other]) for module in own for other in imported_modules(module) if other in own}
    assert not [f"{here} imports {there}" for here, there in pairs if here != there and floor[there] >= floor[here]]


def test_the_law_says_which_of_it_runs() -> None:
    law = "eo_audit.model."

    def named(modules: set[str]) -> set[str]:
        return {module.removeprefix(law).split(".")[0] for module in modules}

    all_of_it = {module for module in PACKAGE if module.startswith(law) and PACKAGE[module].name != "__init__.py"}
    users = [module for module in PACKAGE if room_of(module) not in (None, "model")]
    running: set[str] = set()
    asked = {found for user in users for found in imported_modules(user)}
    while found := {module for module in asked if module.startswith(law)} - running:
        running |= found
        asked = {other for module in found for other in imported_modules(module)}
    _, in_production, reference = str(ast.get_docstring(parsed(PACKAGE["eo_audit.model"]))).split("\n\n")
    assert set(re.findall(r"`(\w+)`", in_production)) == named(running)
    assert set(re.findall(r"`(\w+)`", reference)) == named(all_of_it - running)


def test_the_picture_of_the_house_is_true() -> None:
    drawing = re.search(r"```mermaid\n(.*?)```", (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"), re.DOTALL)
    assert drawing is not None
    lines = re.findall(r"^ *(\w+) --> ([\w &]+)$", drawing[1], re.MULTILINE)
    drawn = {room: set(others.split(" & ")) for room, others in lines}
    assert drawn == {room: kept for room, others in arrows().items() if room not in GROUND and (kept := others - set(GROUND))}


def test_no_module_imports_one_that_imports_it() -> None:
    """One that is imported late counts too, and one that is only named in types."""
    later = {module: imported_modules(module) for module in PACKAGE}
    while free := {
        module for module, others in later.items() if not others & set(later) or not any(module in known for known in later.values())
    }:
        later = {module: others for module, others in later.items() if module not in free}
    assert not {module: sorted(others & set(later)) for module, others in later.items()}


@pytest.mark.parametrize("folder", FORBIDDEN_IMPORTS)
def test_what_a_room_must_not_import(folder: str) -> None:
    own = folder.removesuffix(".py").replace("/", ".")
    wrong = [
        f"{name_of(path)} imports {module}"
        for path in PRODUCT
        if name_of(path) == folder or name_of(path).startswith(folder + "/")
        for module in imports(path)
        for forbidden in FORBIDDEN_IMPORTS[folder]
        if within(module, forbidden) and not within(module, own)
    ]
    assert not wrong


@pytest.mark.parametrize("package", RESERVED_IMPORTS)
def test_some_packages_have_one_home(package: str) -> None:
    users = {name_of(path) for path in PRODUCT if any(within(module, package) for module in imports(path))}
    assert users <= RESERVED_IMPORTS[package]


def test_no_private_function_or_class_is_dead() -> None:
    """Of those that nobody calls: what a decorator takes is called by whoever made that."""
    dead = [
        f"{name_of(path)}:{node.lineno} {node.name}"
        for path in PRODUCT
        for node in parsed(path).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name.startswith("_") and not node.decorator_list
        if len(re.findall(rf"\b{node.name}\b", path.read_text(encoding="utf-8"))) < 2
    ]
    assert not dead


def test_only_session_builds_a_spark_session() -> None:
    builders = {
        name_of(path)
        for path in PRODUCT
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and node.attr in ("builder", "getOrCreate")
    }
    assert builders == {"eo_audit/store/session.py"}


def strings(path: Path) -> Iterator[ast.Constant]:
    """Every string of a module that is no docstring; the pieces of an f-string, too."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docstrings = {id(node.body[0].value) for node in nodes(path) if isinstance(node, documented) and ast.get_docstring(node)}  # type: ignore[attr-defined]
    for node in nodes(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node


def test_only_the_page_of_a_rule_and_its_family_name_it_by_its_code() -> None:
    """What the rest of the program does for one rule is data of that rule (`eo_audit/rules/rule.py`), never its code in an `if`."""
    codes = {found for path in FAMILIES for found in re.findall(r'^    code="(\w+)",$', path.read_text(encoding="utf-8"), re.MULTILINE)}
    assert len(codes) > 30
    wrong = [
        f"{name_of(path)}:{node.lineno} {node.value!r}"
        for path in PRODUCT
        if path not in FAMILIES
        for node in strings(path)
        if codes & set(re.findall(r"\b[A-Z][0-9]{2}\b", str(node.value)))
    ]
    assert not wrong
    by_letter = [
        f"{name_of(path)}:{node.lineno}"
        for path in PRODUCT
        for node in nodes(path)
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "code"
    ]
    assert not by_letter, "a family is no part of a code"


def test_steps_are_lazy_and_repeatable() -> None:
    wrong = [
        f"{name_of(path)}:{node.lineno} .{node.func.attr}()"
        for path in PRODUCT
        if name_of(path).startswith(("eo_audit/history/", "eo_audit/rules/"))
        for node in nodes(path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ACTIONS | UNREPEATABLE
    ]
    assert not wrong


def test_functions_and_modules_are_short() -> None:
    lengths = {f"{name_of(path)}:{f.lineno} {f.name}": length(f) for path in PRODUCT for f in functions(path)}
    modules = {name_of(path): len(path.read_text(encoding="utf-8").splitlines()) for path in [*PRODUCT, *HISTORY_TEXTS]}
    assert not {name: size for name, size in lengths.items() if size > LONGEST_FUNCTION}
    assert not {name: size for name, size in modules.items() if size > LONGEST_MODULE}
    assert statistics.median(lengths.values()) < MEDIAN_FUNCTION


def test_lines_of_histories_are_no_longer_than_those_of_modules() -> None:
    long = [
        f"{name_of(path)}:{number}"
        for path in HISTORY_TEXTS
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > LONGEST_LINE
    ]
    assert not long


@pytest.mark.parametrize("history", histories())
def test_the_head_of_a_history_says_what_a_row_is_and_what_it_is_made_from(history: str) -> None:
    text = text_of(history)
    head = re.sub(r"\n--\s+", " ", text[: re.search(r"^(?:WITH|SELECT)\b", text, re.MULTILINE).start()])  # type: ignore[union-attr]
    given = set(re.findall(r"(?<!\{)\{([a-z]\w*)\}(?!\})", re.sub(r"--.*", "", text)))
    assert "one row per " in head.lower()
    assert not [name for name in sorted(given) if not re.search(rf"\b{name}\b", head)]


@pytest.mark.parametrize("history", histories())
def test_no_step_of_a_history_has_the_name_of_a_column_or_of_another_history(history: str) -> None:
    """Or of what the text is given: `FROM batches` would be one thing, and `FROM {batches}` another."""
    bare = re.sub(r"--.*", "", text_of(history))
    columns, given = re.findall(r"\bAS (\w+)\b(?! \()", bare), re.findall(r"\{(\w+)\}", bare)
    assert not set(steps(history)) & {*columns, *given, *histories()}


def public_parts(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """The module, its public classes and functions, and the public methods of public classes."""
    yield "the module", tree
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
            yield node.name, node
            members = node.body if isinstance(node, ast.ClassDef) else []
            yield from ((f"{node.name}.{m.name}", m) for m in members if isinstance(m, ast.FunctionDef) and not m.name.startswith("_"))


def test_every_public_name_has_a_docstring_without_types() -> None:
    docstrings = {
        f"{name_of(path)} {name}": ast.get_docstring(node)  # type: ignore[arg-type]
        for path in PRODUCT
        for name, node in public_parts(parsed(path))
        if path.read_text(encoding="utf-8").strip()
    }
    assert not [name for name, text in docstrings.items() if not text]
    types_said_twice = re.compile(r"^\s+\w+ \((?:str|int|bool|list|dict|DataFrame|Column|Path)\b.*\):", re.MULTILINE)
    assert not [name for name, text in docstrings.items() if text and types_said_twice.search(text)]


def test_no_any_no_print() -> None:
    wrong = [
        f"{name_of(path)}:{node.lineno} {node.id}"
        for path in PRODUCT
        for node in nodes(path)
        if isinstance(node, ast.Name) and node.id in ("Any", "print")
    ]
    assert not wrong


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.stem)
def test_every_column_says_what_it_means(path: Path) -> None:
    table = json.loads(path.read_text(encoding="utf-8"))
    assert table["table"] == path.stem
    assert table["description"].strip()
    assert table["family"] in ("facts", "histories", "results")
    assert set(table["key"]) <= {field["name"] for field in table["fields"]}
    for field in table["fields"]:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", field["name"])
        assert field["metadata"].get("comment"), field["name"]
        for suffix, unit in UNITS.items():
            if field["name"].endswith(suffix):
                assert field["metadata"].get("unit") == unit, field["name"]


def asserts_something(function: ast.FunctionDef) -> bool:
    """An assert, a `pytest.raises`, or a call of something whose name says that it asserts."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in ("raises", "warns", "fail") or re.match(r"_?(assert|check|expect)", called):
                return True
    return False


def test_every_test_can_fail() -> None:
    tests = {f"{name_of(path)}:{f.lineno} {f.name}": f for path in TESTS for f in functions(path) if f.name.startswith("test")}
    assert tests
    assert not [name for name, function in tests.items() if not asserts_something(function)]


def texts() -> Iterator[tuple[str, str]]:
    """Every text of the project but dumps (they are as brokers wrote them) and what tools leave behind."""
    own_folders = {".ci", "benchmarks", "conf", "docs", "eo_audit", "examples", "jobs", "notebooks", "schemas", "tests"}
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        ours = (len(parts) == 1 and parts[0] != ".git") or parts[0] in own_folders  # in a work tree .git is a file, and git's own
        skipped = {"data", "dumps", "__pycache__"} & set(parts) or any(part.startswith("broker-") for part in parts)
        if ours and not skipped and path.is_file() and path.suffix in TEXT_FILES:
            yield name_of(path), path.read_text(encoding="utf-8")


def test_no_machine_of_ours_is_named() -> None:
    # Put together, so that this file does not name them either.
    hosts = ["py" + "pi.org", "python" + "hosted", "repo1." + "maven", "repo" + ".maven.apache", "maven" + "-central"]
    folders = ["/" + "work/", "/" + "root/", "/home/" + "runner", "/tmp" + "/team"]
    wrong = [f"{name}: {word}" for name, text in texts() for word in hosts + folders if word in text]
    assert not wrong


def test_requirements_are_pins_and_hashes_only() -> None:
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    pin = re.compile(r"[a-z0-9][a-z0-9._-]*==[^\s;]+( ; [^\\]+)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?")
    assert not [line for line in lines if not pin.fullmatch(line)]
