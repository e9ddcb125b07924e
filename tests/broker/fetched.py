"""What the lab runs that is no part of the project: jars of Kafka and a second client library, pinned, checked, and kept in `.cache`."""

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyspark

from eo_audit.store.jars import cache_folder, keep

_HERE = Path(__file__).parent
JARS = cache_folder() / "broker" / "jars"
PACKAGES = cache_folder() / "broker" / "packages"
_IVY_FILE = """<ivy-module version="2.0"><info organisation="lab" module="lab"/><configurations><conf name="default"/></configurations>
<dependencies>{}<conflict manager="all"/></dependencies></ivy-module>"""


@dataclass(frozen=True)
class Jar:
    """A line of `jars.txt`: the folder that it belongs to, its Maven coordinates, and what it must be."""

    folder: str
    organisation: str
    name: str
    version: str
    sha256: str

    @property
    def path(self) -> Path:
        """Where it is kept."""
        return JARS / self.folder / self.file

    @property
    def file(self) -> str:
        """Its name, the same as in a repository."""
        return f"{self.name}-{self.version}.jar"


def pinned(text: str) -> list[Jar]:
    """The jars of a table: folder, organisation:name:version and SHA-256 on each line; `#` begins a remark."""
    jars = []
    for line in text.splitlines():
        if line and not line.startswith("#"):
            folder, coordinates, sha256 = line.split()
            organisation, name, version = coordinates.split(":")
            jars.append(Jar(folder, organisation, name, version, sha256))
    return jars


def fetch() -> None:
    """Bring everything here that is not here yet; nothing is asked of a network the second time.

    Raises:
        ConfigurationError: what came is not what was pinned.
    """
    missing = [jar for jar in pinned((_HERE / "jars.txt").read_text()) if not jar.path.is_file()]
    if missing:
        sys.stderr.write(f"fetching {len(missing)} jars of Kafka, pinned and checked, into {JARS}, once\n")
        with tempfile.TemporaryDirectory() as folder:
            _resolve(missing, Path(folder))
            for jar in missing:
                jar.path.parent.mkdir(parents=True, exist_ok=True)
                keep(Path(folder, "got", jar.file), jar.sha256, jar.path)
    _fetch_packages(PACKAGES / ".ready", (_HERE / "requirements.txt").read_text())


def _resolve(jars: Sequence[Jar], folder: Path) -> None:
    """Let Ivy fetch, which comes with Spark: the repositories that it asks are those of `eo-audit setup`."""
    asked = sorted({(jar.organisation, jar.name, jar.version) for jar in jars})
    line = '<dependency org="{}" name="{}" rev="{}" transitive="false" conf="default->master"/>'
    (folder / "ivy.xml").write_text(_IVY_FILE.format("".join(line.format(*one) for one in asked)))
    ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    options = ["-ivy", "ivy.xml", "-cache", str(folder / "cache"), "-confs", "default", "-retrieve", "got/[artifact]-[revision].[ext]"]
    done = subprocess.run(["java", "-jar", str(ivy), *options], cwd=folder, capture_output=True, text=True, check=False)
    if missing := [name for _, name, version in asked if not (folder / "got" / f"{name}-{version}.jar").is_file()]:
        raise FileNotFoundError(f"not fetched: {', '.join(missing)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def _fetch_packages(ready: Path, pins: str) -> None:
    """Install the pinned packages beside the project's own, so that `make test` knows nothing of them."""
    if ready.is_file() and ready.read_text() == pins:
        return
    options = ["--quiet", "--disable-pip-version-check", "--require-hashes", "--no-deps", "--upgrade", "--target", str(PACKAGES)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, "-r", str(_HERE / "requirements.txt")], check=True)
    ready.write_text(pins)
