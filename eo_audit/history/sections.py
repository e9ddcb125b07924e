"""section_status: which dump sections are read, each segment, index, snapshot and checkpoint once."""

from pyspark.sql import DataFrame

from eo_audit.history.text import no_rows, run

# KAFKA-7687 (2.2): before, a deep dump printed record lines without the batches they are in.
UNSUPPORTED_DIALECT = "0.11-2.1"


def section_status(
    dump_sections: DataFrame,
    dump_files: DataFrame,
    batches: DataFrame,
    *,
    dump_sightings: DataFrame | None = None,
    tool_messages: DataFrame | None = None,
    listed_files: DataFrame | None = None,
    unread_spans: DataFrame | None = None,
    checkpoints: DataFrame | None = None,
    night_listings: DataFrame | None = None,
) -> DataFrame:
    """One row per dump section: is it read, and if not, which section is read instead of it.

    Args:
        dump_sections: the table.
        dump_files: the table, for paths, digests and dump times.
        batches: the table, for the offsets and clocks of each log section.
        dump_sightings: the table; a file is of the newest dump in which its text was met. Without it, each was met once.
        tool_messages, listed_files: the tables, for what is wrong with a file as a whole. Without them, nothing is.
        unread_spans: the table, for snapshots and indexes that are not understood as a whole. Without it, all are.
        checkpoints: the table, for the logs that a broker has. Without it, each has all that it ever had.
        night_listings: listed_files, for the segments that a log has. Without it, it has all that were dumped.
    """
    session = dump_sections.sparkSession
    return run(
        "section_status",
        dump_sections=dump_sections,
        dump_files=dump_files,
        dump_sightings=no_rows(session, "dump_sightings") if dump_sightings is None else dump_sightings,
        tool_messages=no_rows(session, "tool_messages") if tool_messages is None else tool_messages,
        listed_files=no_rows(session, "listed_files") if listed_files is None else listed_files,
        unread_spans=no_rows(session, "unread_spans") if unread_spans is None else unread_spans,
        checkpoints=no_rows(session, "checkpoints") if checkpoints is None else checkpoints,
        night_listings=no_rows(session, "listed_files") if night_listings is None else night_listings,
        batches=batches,
        unsupported_dialect=UNSUPPORTED_DIALECT,
    )
