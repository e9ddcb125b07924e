"""report.html of an output folder, from its tables and its verdict."""

from pathlib import Path

from eo_audit.report.content import build_content
from eo_audit.report.html import render
from eo_audit.report.pictures import with_pictures
from eo_audit.results import Results


def write_report(out: Path) -> Path:
    """Write `report.html` into the output folder of a finished audit.

    Returns:
        The path of the page.

    Raises:
        WarehouseError: no audit has finished there.
    """
    results = Results(out)
    content = build_content(results.verdict, results.findings, results.quote)
    path = out / "report.html"
    waiting = path.with_suffix(".html.new")
    waiting.write_text(render(with_pictures(content, results.findings, results)), encoding="utf-8")
    return waiting.replace(path)
