"""eo-audit: was delivery exactly once? An audit of Kafka log dumps."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a bare import of the package is quick: Ctrl-C is only heard behind it
    from pathlib import Path

    from eo_audit.report.results import Results

__version__ = "0.1.0"


def open(out: "str | Path") -> "Results":
    """The results of an audit: `eo_audit.open("out").findings`.

    Args:
        out: the folder that `eo-audit run --out` wrote.

    Raises:
        WarehouseError: no audit has finished there.
    """
    from pathlib import Path

    from eo_audit.report.results import Results

    return Results(Path(out))
