"""Each notebook runs from its first cell to its last, as a reader would run it."""

import os
import re
import shutil
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
AUDITED = {"hanging-transaction": "out/hanging", "duplicates-and-gaps": "out/duplicates"}
AUDIT = re.compile(r"!eo-audit run \.\./examples/([\w-]+)/dumps --out \.\./(out/\w+) \| head -n 4")


@pytest.fixture(scope="module")
def checkout(hanging_example: Path, all_examples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with notebooks and examples as in a checkout, and beside them results that hold what the commands of the notebooks make."""
    folder = tmp_path_factory.mktemp("checkout")
    (folder / "notebooks").mkdir()
    (folder / "examples").symlink_to(ROOT / "examples")
    shutil.copytree(hanging_example, folder / AUDITED["hanging-transaction"])
    shutil.copytree(all_examples, folder / AUDITED["duplicates-and-gaps"])
    return folder


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On results that are there; that `eo-audit run DUMPS --out DIR` makes them, as it is installed, is what `whole_run` shows."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    notebook = nbformat.read(path, as_version=4)
    (command,) = (found for cell in notebook.cells if (found := AUDIT.fullmatch(cell.source)))  # it makes what it looks at
    assert AUDITED[command[1]] == command[2]
    notebook.cells = [cell for cell in notebook.cells if cell.source != command.string]
    NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(checkout / "notebooks")}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    assert any("text/html" in output.get("data", {}) for output in outputs), "a notebook that shows nothing"


def test_notebooks_are_stored_without_outputs() -> None:
    assert len(NOTEBOOKS) == 3
    for path in NOTEBOOKS:
        cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
        assert not any(cell.outputs or cell.execution_count for cell in cells), path
