"""Each notebook runs from its first cell to its last, as a reader would run it."""

import os
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def audited() -> set[str]:
    """Commands that a notebook before has run: two begin with the same audit into the same folder, and it need not run twice."""
    return set()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path: Path, audited: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    notebook = nbformat.read(path, as_version=4)
    commands = {cell.source for cell in notebook.cells if cell.source.startswith("!eo-audit run ")}
    assert len(commands) == 1, "a notebook stands for itself: it makes what it looks at"
    notebook.cells = [cell for cell in notebook.cells if cell.source not in commands & audited]
    audited |= commands
    NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(path.parent)}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    assert any("text/html" in output.get("data", {}) for output in outputs), "a notebook that shows nothing"


def test_notebooks_are_stored_without_outputs() -> None:
    assert len(NOTEBOOKS) == 3
    for path in NOTEBOOKS:
        cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
        assert not any(cell.outputs or cell.execution_count for cell in cells), path
