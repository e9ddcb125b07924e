"""Settings of a run: one YAML file of `conf/`, with the values of the command line on top."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TypeVar

from eo_audit.errors import ConfigurationError

_PACKAGE = Path(__file__).resolve().parent
MIB = 1 << 20
DEFAULT_ACCEPTED = Path("accepted.yaml")  # accepted findings, in the current folder
MODES = ("local", "cluster")
_LEAST_MEMORY_MB = 512  # Spark refuses a Java with less than 450 (`UnifiedMemoryManager`), of which the collector hides some
T = TypeVar("T")


@dataclass(frozen=True)
class Profile:
    """How a local Java process is started: its memory, its options, and Spark settings; where `most_partitions` is not 0, rows are
    shuffled into a partition for each core, up to so many."""

    driver_memory: str = "1g"
    java_options: str = ""
    most_partitions: int = 0
    spark: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Config:
    """Where Spark runs, how much text one task takes (sizes in bytes), and how much is kept."""

    mode: str = "local"
    master: str = "local[*]"
    small_input_bytes: int = 16 * MIB
    medium_input_bytes: int = 2048 * MIB
    range_bytes: int = 64 * MIB
    ingest_here_bytes: int = 0
    small: Profile = Profile()
    medium: Profile = Profile()
    large: Profile = Profile()
    spark: Mapping[str, str] = field(default_factory=dict)
    keep_audits: int = 30
    forget_key: bool = False

    def profile(self, input_bytes: int | None) -> Profile:
        """The profile for inputs of this size; the large one where the size is not known."""
        if input_bytes is None or input_bytes > self.medium_input_bytes:
            return self.large
        return self.small if input_bytes <= self.small_input_bytes else self.medium


def submitted() -> bool:
    """Was this process started by spark-submit? Then Java runs already, with the cluster's settings."""
    # Set by spark-submit for the Python it starts (`PythonRunner`); Java is there before we are.
    return "PYSPARK_GATEWAY_PORT" in os.environ


def conf_folder() -> Path:
    """`conf/` inside the installed package, else beside it in a checkout."""
    for folder in (_PACKAGE / "conf", _PACKAGE.parent / "conf"):
        if folder.is_dir():
            return folder
    raise ConfigurationError(f"no conf folder beside {_PACKAGE}: the installation is incomplete")


def load(path: Path | None = None, **overrides: object) -> Config:
    """The settings of one YAML file; overrides that are None are left out. Without a file: `conf/cluster.yaml` under spark-submit,
    else `conf/local.yaml`.

    Raises:
        ConfigurationError: the file cannot be read, or names a setting that does not exist.
    """
    path = path or conf_folder() / ("cluster.yaml" if submitted() else "local.yaml")
    content = read_yaml(path, "the configuration")
    if not isinstance(content, dict):
        raise ConfigurationError(f"the configuration {path} is not a list of names and values")
    return _config(path, content | {name: value for name, value in overrides.items() if value is not None})


def _config(path: Path, values: dict[str, object]) -> Config:
    profiles = {name: _fill(Profile, path, values[name]) for name in ("small", "medium", "large") if name in values}
    return _fill(Config, path, values | profiles)


def _fill(kind: type[T], path: Path, values: object) -> T:
    if not isinstance(values, dict):
        raise ConfigurationError(f"the configuration {path} has a list or a value where names are needed: {values!r}")
    unknown = sorted(set(values) - {known.name for known in fields(kind)})  # type: ignore[arg-type]
    if unknown:
        raise ConfigurationError(f"the configuration {path} names settings that do not exist: {', '.join(unknown)}")
    for known in fields(kind):  # type: ignore[arg-type]
        # What is not named keeps its default, nested profiles too.
        if known.name in values:
            _check(path, known.name, values[known.name], known.type)
    return kind(**values)


_WANTED = {"int": "a whole number that is not below 0", "str": "a word", "bool": "true or false"}


def _check(path: Path, name: str, value: object, wanted: object) -> None:
    """A value must be of its setting's kind; nested profiles are checked when they are filled."""
    plain = wanted.__name__ if isinstance(wanted, type) else str(wanted)
    fits = {
        "int": isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62,
        "str": isinstance(value, str),
        "bool": isinstance(value, bool),
        "Profile": isinstance(value, Profile),
    }.get(plain, isinstance(value, dict) and all(isinstance(item, str | int | float) for item in value.values()))
    if not fits:
        raise ConfigurationError(f"the configuration {path}: {name} must be {_WANTED.get(plain, 'names with values')}, not {value!r}")
    if name in ("range_bytes", "keep_audits") and value == 0:
        raise ConfigurationError(f"the configuration {path}: {name} must be above 0")
    if name == "mode" and value not in MODES:
        raise ConfigurationError(f"the configuration {path}: mode must be {' or '.join(MODES)}, not {value}")
    if name == "driver_memory" and _megabytes(str(value)) < _LEAST_MEMORY_MB:
        wanted = f"a number with its unit such as 2g, and {_LEAST_MEMORY_MB}m at least"
        raise ConfigurationError(f"the configuration {path}: driver_memory must be {wanted}, not {value}")


def _megabytes(memory: str) -> float:
    """A size as Java takes it (`-Xmx`), in MiB; 0 for what it does not take."""
    size = re.fullmatch(r"(\d+)([kmgt])", memory.lower())
    return int(size.group(1)) * 1024.0 ** "kmgt".index(size.group(2)) / 1024 if size else 0


# What PyYAML's safe loader lets through: for a date that no calendar has, `0x_`, `!!bool x`, `!!int ''`, five thousand brackets.
_UNUSABLE = (ValueError, LookupError, AttributeError, TypeError, ArithmeticError, RecursionError)


def read_yaml(path: Path, what: str) -> object:
    """The content of a YAML file.

    Args:
        path: the file.
        what: what it is to the person who wrote it, such as "the policy".

    Raises:
        ConfigurationError: it cannot be read, or is not YAML.
    """
    import yaml  # --help needs none

    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{what} {path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, *_UNUSABLE) as error:
        raise ConfigurationError(f"{what} {path} cannot be read as YAML: {why(error)}") from error


def why(error: Exception) -> str:
    """One sentence of what is wrong in some YAML."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, LookupError | AttributeError | TypeError):
        return "a value is not of the kind that its tag names"
    told = " ".join(str(error).split())
    return told if len(told) <= 200 else f"{told[:200]} ..."
