"""What the transaction coordinator wrote, id by id: every entry with its predecessor, its legality and its transaction."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession

from eo_audit.history.text import no_rows, run
from eo_audit.model import states as law
from eo_audit.store.frames import of_arrow
from eo_audit.store.schemas import schema

if TYPE_CHECKING:
    import pyarrow as pa


def coordinator_history(
    coordinator_entries: DataFrame,
    section_status: DataFrame,
    clusters: DataFrame,
    unread_spans: DataFrame | None = None,
    replica_logs: "pa.Table | None" = None,
) -> DataFrame:
    """Coordinator entries of the authority replicas, each judged against the id's previous entry.

    Args:
        coordinator_entries: the fact table, all replicas.
        section_status: which sections are read, and where they lie.
        clusters: one row per cluster, for transaction_version, kafka_version and transactional_id_expiration_ms.
        unread_spans: the table; steps across entries that were lost are not judged. Without it, all text is understood.
        replica_logs: the table, in this process; steps across segments that were not dumped are not judged either. Without it, nothing is
            known of listings and the cleaner.

    Returns:
        Rows of the table `coordinator_history`.
    """
    major, minor = law.FENCE_JUMPS_BELOW
    own_major, _ = law.OWN_VERSION_FROM
    spark = coordinator_entries.sparkSession
    return run(
        "coordinator_history",
        coordinator_entries=coordinator_entries,
        section_status=section_status,
        clusters=clusters,
        unread_spans=no_rows(spark, "unread_spans") if unread_spans is None else unread_spans,
        replica_logs=_that_may_lack_segments(spark, replica_logs),
        known_states=_words((*law.KNOWN, law.TOMBSTONE)),
        transient_states=_words(law.TRANSIENT),
        run_states=_words(law.CONTINUES_RUN),
        expirable_states=_words(law.EXPIRABLE),
        continuing_steps=_words(_pairs(law.CONTINUES_RUN)),
        legal_steps=_words(f"{protocol}>{pair}" for protocol, table in law.VALID_PREVIOUS.items() for pair in _pairs(table)),
        epoch_steps=_up_to(law.LARGEST_EPOCH_STEP),
        epoch_steps_of_commit=_by_protocol(law.COMMIT_EPOCH_STEPS),
        epoch_steps_most_of_commit=_up_to({name: max(steps) for name, steps in law.COMMIT_EPOCH_STEPS.items()}),
        ghosts_any=_ghosts("any"),
        ghosts_restarted=_ghosts("restarted"),
        ghosts_same_payload=_ghosts("same_payload"),
        ghosts_forgotten=_ghosts("forgotten"),
        largest_epoch_step=max(law.LARGEST_EPOCH_STEP.values()),
        ghosts_in_sight=law.GHOSTS_IN_SIGHT,
        fence_jumps_below_major=major,
        fence_jumps_below_minor=minor,
        own_version_from_major=own_major,
    )


def _that_may_lack_segments(spark: SparkSession, logs: "pa.Table | None") -> DataFrame:
    """The logs of `__transaction_state` that a listing, or the cleaner's checkpoint, may show to lack segments: of most dumps none, and a
    join with no rows is no Spark job."""
    if logs is None:
        return no_rows(spark, "replica_logs")
    import pyarrow.compute as pc

    listed_missing = pc.greater(pc.fill_null(pc.list_value_length(logs["missing_segments"]), 0), 0)
    cleaned_unlisted = pc.and_(pc.invert(pc.fill_null(logs["listed"], False)), pc.greater(pc.fill_null(logs["uncleaned_from"], 0), 0))
    told = logs.filter(pc.and_(pc.equal(logs["topic"], "__transaction_state"), pc.or_(listed_missing, cleaned_unlisted)))
    return of_arrow(spark, told, schema("replica_logs").spark()) if told.num_rows else no_rows(spark, "replica_logs")


def _words(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(words))


def _pairs(table: Mapping[str, Iterable[str]]) -> list[str]:
    """`before>after` for each pair of a table from a state to those that may precede it."""
    return [f"{before}>{after}" for after, all_before in table.items() for before in all_before]


def _by_protocol(steps: Mapping[str, Iterable[int]]) -> tuple[str, ...]:
    return _words(f"{protocol}>{raised}" for protocol, all_raised in steps.items() for raised in all_raised)


def _up_to(most: Mapping[str, int]) -> tuple[str, ...]:
    return _by_protocol({protocol: range(largest + 1) for protocol, largest in most.items()})


def _ghosts(condition: str) -> tuple[str, ...]:
    return _words(
        f"{ghost.previous}>{ghost.current}>{protocol}>{raised}"
        for ghost in law.GHOSTS
        for protocol in ghost.protocols
        for raised in ghost.epoch_steps
        if ghost.condition == condition
    )
