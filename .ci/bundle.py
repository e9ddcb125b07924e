"""What `make bundle` needs to know: the lines of requirements.lock that the program itself needs, without the tools of its developers."""

import re
import sys
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def needed(name: str, found: dict[str, str]) -> dict[str, str]:
    """A distribution and all that it requires here: canonical name -> version."""
    key = canonicalize_name(name)
    if key not in found:
        here = distribution(name)
        found[key] = here.version
        for line in here.requires or ():
            wanted = Requirement(line)
            if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
                needed(wanted.name, found)
    return found


names = set(needed("eo-audit", {})) - {"eo-audit"}
pins = re.findall(r"^[a-z0-9].*(?:\n    .*)*\n", Path("requirements.lock").read_text(encoding="utf-8"), re.MULTILINE)
sys.stdout.writelines(pin for pin in pins if canonicalize_name(pin.split("==")[0]) in names)
