"""`eo-audit setup`: bring beforehand what the first run would fetch."""

import sys
from pathlib import Path
from typing import Annotated

import typer


def setup(
    jars: Annotated[Path | None, typer.Option("--jars", metavar="DIR", help="Take them from a folder, where there is no network.")] = None,
) -> None:
    """Bring the two jars of Delta into the cache, pinned and checked, as the first run would.

    After it no command needs a network. In a bundle they lie beside the wheels: eo-audit setup --jars jars
    """
    from eo_audit.commands.arguments import complain
    from eo_audit.store.jars import fetch_jars, take_jars
    from eo_audit.store.session import require_java

    folder = take_jars(jars) if jars else fetch_jars(notice=complain)
    sys.stdout.write(f"The jars of Delta are in {folder}; Java is {require_java()}.\n")
