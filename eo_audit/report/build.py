"""report.html of an output folder, from its tables and its verdict."""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from eo_audit.report.content import MAX_EVIDENCE, Quote, build_content, evidence_of
from eo_audit.report.html import render
from eo_audit.report.quote import address_of
from eo_audit.report.results import Results
from eo_audit.words import Row

FILE = "report.html"


def warm_up() -> threading.Thread:
    """Load the charting library in the background while something else works: it takes a second, and every report needs it.

    Returns:
        The thread; nobody has to wait for it.
    """
    # A daemon: a run that fails meanwhile must not wait for a chart library.
    thread = threading.Thread(target=_load, name="eo-audit-charts", daemon=True)
    thread.start()
    return thread


def _load() -> None:
    import eo_audit.report.pictures  # noqa: F401


def write_report(out: Path, verdict: Mapping[str, object] | None = None, *, check: Callable[[], object] = bool) -> Path:
    """Write `report.html` into the output folder of a finished audit.

    Args:
        out: the output folder.
        verdict: what verdict.json will say; the file that is there by default.
        check: raises if the page must not be written any more; asked when it is made, which takes the time.

    Returns:
        The path of the page.

    Raises:
        WarehouseError: no audit has finished there.
    """
    from eo_audit.report.pictures import with_pictures
    from eo_audit.rules.catalogue import RULES

    results = Results(out)
    content = build_content(verdict or results.verdict, results.findings, _quotes(results))
    page = render(with_pictures(content, results.findings, results), {rule.code: rule.slug for rule in RULES})
    path = out / FILE
    check()
    # Aside first: who has the old page open and reloads it gets the old one or the new one.
    waiting = path.with_suffix(".html.new")
    waiting.write_text(page, encoding="utf-8", errors="backslashreplace")
    return waiting.replace(path)


def _quotes(results: Results) -> Quote:
    """All quotes of a report, read in one pass over the dumps."""
    # All at once, because a packed dump can only be read from its start.
    wanted = [(str(f["cluster"]), item) for f in results.findings for item in evidence_of(f)[:MAX_EVIDENCE]]
    texts = results.quotes(wanted)

    def quote(cluster: str, evidence: Row) -> str | None:
        return texts[address_of(cluster, evidence)]

    return quote
