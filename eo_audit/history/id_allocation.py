"""id_allocation: which producer ids the controller gave out, and which were used: what the rules I03 and I04 judge."""

from pyspark.sql import DataFrame

from eo_audit.history.text import run

# The next id itself, or the end of ZooKeeper's newest block, as /latest_producer_id_block has it (`ProducerIdBlockZNode`).
TOLD_BY_MANIFEST = frozenset({"next_producer_id", "producer_id_block.block_end"})
APART_MS = 60_000  # clocks of healthy clusters were seen 30 s apart


def id_allocation(
    producer_id_blocks: DataFrame,
    manifest_entries: DataFrame,
    *,
    producer_history: DataFrame,
    coordinator_history: DataFrame,
    section_status: DataFrame,
    replica_logs: DataFrame,
    coverage: DataFrame,
    clusters: DataFrame,
) -> DataFrame:
    """The table id_allocation; no rows for clusters of which no block is known.

    Args:
        producer_id_blocks: the table.
        manifest_entries: the table, for clusters whose blocks are kept in ZooKeeper.
        producer_history, coordinator_history: the tables, for the first uses.
        section_status: the table, for the sections that are read and how they were decoded.
        replica_logs: the table, for clusters and broker clocks.
        coverage: the table, for holes in the metadata log.
        clusters: the table, for the time of a manifest.
    """
    return run(
        "id_allocation",
        producer_id_blocks=producer_id_blocks,
        manifest_entries=manifest_entries,
        producer_history=producer_history,
        coordinator_history=coordinator_history,
        section_status=section_status,
        replica_logs=replica_logs,
        coverage=coverage,
        clusters=clusters,
        apart_ms=APART_MS,
    )
