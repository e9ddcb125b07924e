"""What every command of the line takes, and how it complains."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from eo_audit.errors import InputError
from eo_audit.store.folders import refuse_scheme
from eo_audit.words import visible


def on_this_machine(given: str | Path) -> Path:
    """The path of every argument that names a file or a folder.

    Args:
        given: as it was typed, or the default.

    Raises:
        InputError: it is an address such as `s3://bucket/out`.
    """
    path = Path(given)
    refuse_scheme(path, InputError)
    return path


def _place(*names: str, metavar: str, tells: str) -> object:
    """An option that names a file or a folder."""
    return typer.Option(*names, metavar=metavar, parser=on_this_machine, help=tells)


Dumps = Annotated[
    list[Path],
    typer.Argument(metavar="DUMPS", help="Folders or files of dumps, plain or gzip, as collect-dumps.sh makes them."),
]
Out = Annotated[Path, _place("--out", "-o", metavar="DIR", tells="Where the results are.")]
ClusterName = Annotated[
    str | None, typer.Option("--cluster", metavar="NAME", help="Name of the cluster, instead of the manifest's or the input folder's.")
]
AsOf = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        metavar="TIME",
        help="The audit's now, ISO 8601 or epoch ms (default: when the dumps were made). It does not cut the dumps off.",
    ),
]
Policy = Annotated[Path | None, _place("--policy", metavar="FILE", tells="What fails a run, instead of conf/policy.yaml.")]
AcceptedFile = Annotated[
    Path,
    _place(
        "--accepted",
        metavar="FILE",
        tells="Findings that are accepted (eo-audit accept), instead of accepted.yaml here.",
    ),
]
ConfigFile = Annotated[Path | None, _place("--config", metavar="FILE", tells="Where Spark runs, instead of conf/local.yaml.")]
Expectations = Annotated[
    Path | None,
    _place("--expectations", metavar="DIR", tells="Suites of Great Expectations, instead of conf/expectations."),
]
Docs = Annotated[
    Path | None,
    _place("--docs", metavar="DIR", tells="Where the Data Docs go, instead of DIR/data-docs."),
]
ToFile = Annotated[Path, _place("--file", metavar="FILE", tells="Where it is written down.")]
Jars = Annotated[
    Path | None,
    _place("--jars", metavar="DIR", tells="Take them from a folder, where there is no network."),
]
ForgetKey = Annotated[bool, typer.Option("--forget-key", help="Throw the key of the hashes of payloads away after the run.")]
BreakLock = Annotated[bool, typer.Option("--break-lock", help="Take the lock from another run at once: it writes nothing more.")]


def complain(text: str) -> None:
    """One line on standard error, without control characters."""
    # Names in it may come out of a dump, and a terminal obeys control characters.
    sys.stderr.write(f"eo-audit: {visible(text)}\n")
