"""`eo-audit setup`: bring beforehand what the first run would fetch."""

import sys

from eo_audit.commands.arguments import Jars, complain


def setup(jars: Jars = None) -> None:
    """Bring the two jars of Delta into the cache. Pinned and checked, as the first run would.

    After it no command needs a network. In a bundle they lie beside the wheels: eo-audit setup --jars jars
    """
    from eo_audit.store.jars import fetch_jars, take_jars
    from eo_audit.store.session import require_java

    folder = take_jars(jars) if jars else fetch_jars(notice=complain)
    sys.stdout.write(f"The jars of Delta are in {folder}; Java is {require_java()}.\n")
