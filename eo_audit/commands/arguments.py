"""What every command of the line takes, and how it complains."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from eo_audit.words import visible

Dumps = Annotated[
    list[Path], typer.Argument(metavar="DUMPS", help="Folders or files of dumps, plain or gzip, as collect-dumps.sh makes them.")
]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Where the results are.")]
ClusterName = Annotated[
    str | None, typer.Option("--cluster", metavar="NAME", help="Name of the cluster, instead of the manifest's or the input folder's.")
]
AsOf = Annotated[
    str | None,
    typer.Option("--as-of", metavar="TIME", help="The audit's now, ISO 8601 or epoch ms (default: when the dumps were made)."),
]
Policy = Annotated[Path | None, typer.Option("--policy", metavar="FILE", help="What fails a run, instead of conf/policy.yaml.")]
AcceptedFile = Annotated[
    Path, typer.Option("--accepted", metavar="FILE", help="Accepted findings (see eo-audit accept); none where there is no such file.")
]
ConfigFile = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="Where Spark runs, instead of conf/local.yaml.")]
ForgetKey = Annotated[bool, typer.Option("--forget-key", help="Throw the key of the hashes of payloads away after the run.")]
BreakLock = Annotated[bool, typer.Option("--break-lock", help="Take the lock from a run that died on another host, at once.")]


def complain(text: str) -> None:
    """One line on standard error, without control characters."""
    # Names in it may come out of a dump, and a terminal obeys control characters.
    sys.stderr.write(f"eo-audit: {visible(text)}\n")
