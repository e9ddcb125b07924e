"""The now that a person gives. It moves the audit's clock only: what the dumps show is read to its end."""

import pyarrow as pa

from eo_audit.errors import ArgumentError
from eo_audit.words import moment


def refuse_before_dumps(as_of_ms: int, *, clusters: pa.Table, logs: pa.Table) -> None:
    """Refuse a now that is before what the brokers wrote: what is open would be younger than its own evidence, and nothing would hang.

    Args:
        as_of_ms: the now as the user gave it.
        clusters: the table; the time of a manifest is when a collection began, and is taken although brokers may have written since.
        logs: the table of replica logs.

    Raises:
        ArgumentError: it is before the newest broker clock of a cluster by more than clocks differ, and before its dumps were made.
    """
    newest: dict[str, int] = {}
    for log in logs.select(["cluster", "newest_broker_clock_ms"]).to_pylist():
        newest[log["cluster"]] = max(log["newest_broker_clock_ms"] or 0, newest.get(log["cluster"], 0))
    for cluster in clusters.select(["cluster", "dumped_at_ms", "skew_ms"]).to_pylist():
        name, made_ms = cluster["cluster"], cluster["dumped_at_ms"]
        shown_ms = newest.get(name, 0)
        if as_of_ms < shown_ms - cluster["skew_ms"] and (made_ms is None or as_of_ms < made_ms):
            what = f"--as-of {moment(as_of_ms)} is before the newest broker clock in the dumps of {name}, {moment(shown_ms)}"
            raise ArgumentError(f"{what}: it does not cut the dumps off; leave it out, or name a time that is not before them")
