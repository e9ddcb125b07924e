"""A copy of the program in another folder, to be changed by a test, and Python processes that see it instead of this tree."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def copied(names: Iterable[str], folder: Path) -> Path:
    """Files and folders of this tree, by their paths in it, copied into a folder, which is returned."""
    for name in names:
        here = ROOT / name
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if here.is_dir():
            shutil.copytree(here, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(here, folder / name)
    return folder


def run(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A Python process that sees the copy instead of this tree."""
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    return subprocess.run([sys.executable, *arguments], cwd=copy, env=environment, capture_output=True, text=True, check=False)
