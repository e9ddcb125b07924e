"""The two jars that bring Delta to Spark: pinned, checked, and kept in a cache folder. Nothing else is ever fetched.

Spark itself would bring some thirty packages that it has on board already (174 MB), unchecked, and look for them at each start. So they are
left out, the two that remain (10 MB) are compared with their pinned hashes, and later starts need no network.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from eo_audit.errors import ConfigurationError

DELTA_PACKAGE = "io.delta:delta-spark_4.1_2.13:4.4.0"
JARS = {
    "delta-spark_4.1_2.13-4.4.0.jar": "75a9400986853c061f5109f012547de2545a5759e5e752e5ef633dabe16a4f10",
    "delta-storage-4.4.0.jar": "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
}
JARS_BYTES = 9_585_792
# All that Delta's package names besides: of Spark's own distribution, or for catalogs that no audit asks.
_LEFT_OUT = "org.*:*,com.*:*,commons-*:*,javax.*:*,io.airlift:*,io.unitycatalog:*,io.delta:delta-kernel*"
CHECKOUT = Path(__file__).resolve().parents[2]


def cache_folder() -> Path:
    """`.cache` of a checkout; the user's own cache folder where the package is installed."""
    if (CHECKOUT / "pyproject.toml").is_file():
        return CHECKOUT / ".cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "eo-audit"


def jar_paths() -> list[Path]:
    """Where the jars are, or will be."""
    return [cache_folder() / "jars" / name for name in JARS]


def are_there() -> bool:
    """Whether a session can start without a network."""
    return all(path.is_file() for path in jar_paths())


def fetch_jars(*, notice: Callable[[str], object] = str) -> Path:
    """Bring the jars into the cache by Spark's own resolver; nothing to do a second time.

    Args:
        notice: hears what is fetched, before it is.

    Returns:
        Their folder.

    Raises:
        ConfigurationError: Spark cannot fetch them, or they are not the pinned ones.
    """
    folder = cache_folder() / "jars"
    if not are_there():
        folder.mkdir(parents=True, exist_ok=True)
        notice(f"fetching {len(JARS)} jars of Delta ({JARS_BYTES / 1e6:.1f} MB, pinned and checked) into {folder}, once")
        with tempfile.TemporaryDirectory(dir=folder) as ivy:
            said = _resolve(Path(ivy))
            for name in JARS:
                if not (fetched := Path(ivy, "jars", f"io.delta_{name}")).is_file():
                    raise ConfigurationError(f"{name} could not be fetched ({_why(said)}): {_WITHOUT_NETWORK}")
                keep(fetched, JARS[name], folder / name)
    return folder


_WITHOUT_NETWORK = "where there is no network, copy the jars there and run `eo-audit setup --jars FOLDER`"


def take_jars(given: Path) -> Path:
    """Bring the jars into the cache from a folder, such as that of a bundle.

    Raises:
        ConfigurationError: they are not there, or not the pinned ones.
    """
    folder = cache_folder() / "jars"
    for name, sha256 in JARS.items():
        if not (given / name).is_file():
            raise ConfigurationError(f"{given} does not hold {name}")
        folder.mkdir(parents=True, exist_ok=True)
        keep(given / name, sha256, folder / name)
    return folder


def _resolve(ivy: Path) -> str:
    """Let spark-submit fetch into a folder, for a program that does nothing; what it said."""
    import pyspark

    nothing = ivy / "nothing.py"
    nothing.write_text("")
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    settings = [f"spark.jars.ivy={ivy}", f"spark.jars.excludes={_LEFT_OUT}", "spark.ui.enabled=false"]
    options = [word for setting in settings for word in ("--conf", setting)]
    # Spark's own Ivy: it knows the mirrors that a site has set for Spark.
    command = [str(submit), "--master", "local[1]", "--packages", DELTA_PACKAGE, *options, str(nothing)]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", check=False).stderr


def _why(said: str) -> str:
    """The line of Spark's words that tells most: its error, else the last one."""
    lines = [line.strip() for line in said.splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    errors = [line for line in lines if "Exception" in line or "not found" in line]
    return (errors or lines or ["Spark said nothing"])[-1][:200]


def keep(fetched: Path, sha256: str, kept: Path) -> None:
    """Copy a file to its place, whole or not at all, if it is the pinned one.

    Raises:
        ConfigurationError: it is not.
    """
    content = fetched.read_bytes()
    # Whoever answered as the repository: what runs in Spark's process is what this release was tested with.
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ConfigurationError(f"{fetched} is not the pinned file: its SHA-256 is not {sha256}")
    unfinished = kept.with_suffix(f".part-{os.getpid()}")
    unfinished.write_bytes(content)
    unfinished.replace(kept)
