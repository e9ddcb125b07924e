"""Each notebook runs from its first cell to its last, as a reader would run it."""

import os
import re
import shutil
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.support.canaries import EXAMPLE, WholeRun

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
AUDIT = re.compile(r"!eo-audit run \.\./examples/([\w-]+)/dumps --out \.\./(out/\w+) \| head -n 4")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with notebooks and examples as in a checkout; results go beside them."""
    folder = tmp_path_factory.mktemp("checkout")
    (folder / "notebooks").mkdir()
    (folder / "examples").symlink_to(ROOT / "examples")
    return folder


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path: Path, checkout: Path, whole_run: WholeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Notebooks on the example that `whole_run` has audited, among more dumps, find its results; the command of another is run as it is."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    notebook = nbformat.read(path, as_version=4)
    commands = [found for cell in notebook.cells if (found := AUDIT.fullmatch(cell.source))]
    assert len(commands) == 1, "a notebook stands for itself: it makes what it looks at"
    if ROOT / "examples" / commands[0][1] / "dumps" == EXAMPLE:
        if not (checkout / commands[0][2]).exists():
            shutil.copytree(whole_run.out, checkout / commands[0][2])
        notebook.cells = [cell for cell in notebook.cells if cell.source != commands[0].string]
    NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(checkout / "notebooks")}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    assert any("text/html" in output.get("data", {}) for output in outputs), "a notebook that shows nothing"


def test_the_command_of_some_notebook_is_run() -> None:
    examples = {found[1] for path in NOTEBOOKS for found in AUDIT.finditer(path.read_text(encoding="utf-8"))}
    assert examples - {EXAMPLE.parent.name}


def test_notebooks_are_stored_without_outputs() -> None:
    assert len(NOTEBOOKS) == 3
    for path in NOTEBOOKS:
        cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
        assert not any(cell.outputs or cell.execution_count for cell in cells), path
