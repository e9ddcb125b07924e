"""YAML that a person wrote: read, or refused in one sentence that names the file. PyYAML lets errors of every kind through."""

from pathlib import Path

import yaml

from eo_audit.errors import ConfigurationError

# What PyYAML's safe loader raises for a date that no calendar has, `0x_`, `!!bool x`, `!!int ''`, `!!timestamp x`, five thousand brackets.
UNUSABLE = (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError, ArithmeticError, RecursionError)


def read_yaml(path: Path, what: str) -> object:
    """The content of a YAML file.

    Args:
        path: the file.
        what: what it is to the person who wrote it, such as "the policy".

    Raises:
        ConfigurationError: it cannot be read, or is not YAML.
    """
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{what} {path} cannot be read: {error.strerror}") from error
    except UNUSABLE as error:
        raise ConfigurationError(f"{what} {path} cannot be read as YAML: {why(error)}") from error


def why(error: Exception) -> str:
    """One sentence of what is wrong in some YAML."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, LookupError | AttributeError | TypeError):
        return "a value is not of the kind that its tag names"
    told = " ".join(str(error).split())
    return told if len(told) <= 200 else f"{told[:200]} ..."
