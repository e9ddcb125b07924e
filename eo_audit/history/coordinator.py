"""What the transaction coordinator wrote, id by id: every entry with its predecessor, its legality and its transaction."""

from collections.abc import Iterable, Mapping

from pyspark.sql import DataFrame

from eo_audit.history.text import run
from eo_audit.model import states as law


def coordinator_history(coordinator_entries: DataFrame, section_status: DataFrame, clusters: DataFrame) -> DataFrame:
    """Coordinator entries of the authority replicas, each judged against the id's previous entry.

    Args:
        coordinator_entries: the fact table, all replicas.
        section_status: which sections are read, and where they lie.
        clusters: one row per cluster, for transaction_version and kafka_version.

    Returns:
        Rows of the table `coordinator_history`.
    """
    known = {"coordinator_entries": coordinator_entries, "section_status": section_status, "clusters": clusters}
    return run("coordinator_history", **known, **_words(), **_numbers())


def _words() -> dict[str, tuple[str, ...]]:
    """The tables of `model.states` as lists of words."""
    known = {
        "known_states": (*law.KNOWN, law.TOMBSTONE),
        "transient_states": law.TRANSIENT,
        "run_states": law.CONTINUES_RUN,
        "expirable_states": law.EXPIRABLE,
        "continuing_steps": _pairs(law.CONTINUES_RUN),
        "legal_steps": [f"{protocol}>{pair}" for protocol, table in law.VALID_PREVIOUS.items() for pair in _pairs(table)],
        "epoch_steps": _by_protocol({name: range(most + 1) for name, most in law.LARGEST_EPOCH_STEP.items()}),
        "epoch_steps_of_commit": _by_protocol(law.COMMIT_EPOCH_STEPS),
        "epoch_steps_most_of_commit": _by_protocol({name: range(max(steps) + 1) for name, steps in law.COMMIT_EPOCH_STEPS.items()}),
        **{f"ghosts_{condition}": _ghosts(condition) for condition in ("any", "restarted", "same_payload", "forgotten")},
    }
    return {name: tuple(sorted(words)) for name, words in known.items()}


def _numbers() -> dict[str, int]:
    major, minor = law.FENCE_JUMPS_BELOW
    return {
        "largest_epoch_step": max(law.LARGEST_EPOCH_STEP.values()),
        "ghosts_in_sight": law.GHOSTS_IN_SIGHT,
        "expires_after_ms": law.EXPIRES_AFTER_MS,
        "fence_jumps_below_major": major,
        "fence_jumps_below_minor": minor,
    }


def _pairs(table: Mapping[str, Iterable[str]]) -> list[str]:
    """`before>after` for each pair of a table from a state to those that may precede it."""
    return [f"{before}>{after}" for after, all_before in table.items() for before in all_before]


def _by_protocol(steps: Mapping[str, Iterable[int]]) -> list[str]:
    return [f"{protocol}>{raised}" for protocol, all_raised in steps.items() for raised in all_raised]


def _ghosts(condition: str) -> list[str]:
    return [
        f"{ghost.previous}>{ghost.current}>{protocol}>{raised}"
        for ghost in law.GHOSTS
        for protocol in ghost.protocols
        for raised in ghost.epoch_steps
        if ghost.condition == condition
    ]
