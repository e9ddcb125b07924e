"""YAML beside the tests."""

from pathlib import Path
from typing import Any

import yaml

# The loader in C where there is one: that in Python takes seconds for all the cases of the rules, and the content is the same.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml(path: Path) -> Any:
    """The content of a file."""
    return yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)
