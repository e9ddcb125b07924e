"""Do two versions of the reader read the same? `python -m tests.fuzz.same_facts OTHER [DUMPS]`: a work tree of the other one, and dumps."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

from eo_audit.dump.files.discovery import discover
from tests.support.facts import parsed

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "tests/data/corpus/dumps"


def digests(dumps: Path) -> dict[str, str]:
    """A digest of all facts of each file below a folder of inputs."""
    found = {}
    for folder in sorted(dumps.iterdir()):
        for file in discover([folder]):
            facts = {name: table.to_pylist() for name, table in sorted(parsed(file).facts.items())}
            found[f"{folder.name}/{file.path}"] = hashlib.sha256(repr(facts).encode()).hexdigest()
    return found


def of_tree(tree: Path, dumps: Path) -> dict[str, str]:
    """The digests as the reader of a work tree makes them."""
    script = (
        "import json, sys; from pathlib import Path; sys.path.insert(0, sys.argv[2]); from same_facts import digests;"
        "print(json.dumps(digests(Path(sys.argv[1]))))"
    )
    environment = os.environ | {"PYTHONPATH": str(tree)}
    command = [sys.executable, "-c", script, str(dumps), str(Path(__file__).parent)]
    said = subprocess.run(command, cwd=tree, env=environment, check=True, capture_output=True, text=True).stdout
    read: dict[str, str] = json.loads(said)
    return read


if __name__ == "__main__":
    where = Path(sys.argv[2]) if len(sys.argv) > 2 else CORPUS
    ours, others = of_tree(ROOT, where), of_tree(Path(sys.argv[1]).resolve(), where)
    different = sorted(name for name in {*ours, *others} if ours.get(name) != others.get(name))
    sys.exit("\n".join([f"{len(ours)} files, {len(different)} differ", *different]) if different else 0)
