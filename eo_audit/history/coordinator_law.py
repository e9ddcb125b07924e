"""The coordinator's law as column expressions: the tables of `model.states` turned into literals.

An entry is a struct of the columns of `ENTRY`, its predecessor another (null where there is none to judge by). The words that
come out are those of `model.coordinator`, and a test holds both against each other row by row.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F

from eo_audit.model import states as law

ENTRY = (
    *("state", "producer_id", "producer_epoch", "timeout_ms", "partitions", "last_update_ms", "start_ms", "entry_offset"),
    *("stretch", "section_id", "byte_offset", "length"),
)


def one_of(column: Column, values: frozenset[str]) -> Column:
    """Whether the column is one of these states; false for null."""
    return F.coalesce(column.isin(sorted(values)), F.lit(False))


def listed(partitions: Column) -> Column:
    """A partition list, where null is the empty one."""
    return F.coalesce(partitions, F.expr("cast(array() as array<struct<topic:string,partition:int>>)"))


def includes(whole: Column, part: Column) -> Column:
    """Whether the first list of partitions has all of the second."""
    return F.size(F.array_except(listed(part), listed(whole))) == 0


def extends(before: Column, entry: Column) -> Column:
    """Whether the entry lists strictly more partitions than the one before it."""
    return includes(entry["partitions"], before["partitions"]) & ~includes(before["partitions"], entry["partitions"])


def protocol_evidence(before: Column, entry: Column, *, client_version: Column, transaction_version: Column) -> Column:
    """What an entry itself tells about its protocol: tv0, tv2 or null."""
    raised = entry["producer_epoch"].cast("long") - before["producer_epoch"]
    printed = entry["start_ms"].isNotNull() & ~one_of(entry["state"], frozenset({law.EMPTY, law.TOMBSTONE}))
    told = (
        F.when((raised == 0) & one_of(entry["state"], law.PREPARED), law.TV0)
        .when((raised == 1) & (entry["state"] == law.PREPARE_COMMIT), law.TV2)
        .otherwise(F.lit(None))
    )
    return (
        F.when(client_version >= 2, law.TV2)
        .when(transaction_version.isin(0, 1), law.TV0)
        .when(printed, law.TV0)
        .when(before["state"] == law.ONGOING, told)
    )


def begins_run(before: Column, entry: Column) -> Column:
    """Whether a transaction begins with this entry."""
    in_run = one_of(entry["state"], frozenset(law.CONTINUES_RUN))
    pairs = [f"{previous}>{current}" for current, all_previous in law.CONTINUES_RUN.items() for previous in sorted(all_previous)]
    continues = F.coalesce(F.concat_ws(">", before["state"], entry["state"]).isin(pairs), F.lit(False))
    other_producer = ~entry["producer_id"].eqNullSafe(before["producer_id"]) & ~one_of(entry["state"], law.COMPLETE)
    return in_run & (~continues | other_producer)


def step(before: Column, entry: Column, *, alive: Column, protocol: Column) -> Column:
    """The step as a struct of `step` and `step_reason`. `alive` is the id's newest entry with a value."""
    state, previous = entry["state"], before["state"]
    known = frozenset({*law.KNOWN, law.TOMBSTONE})
    reason = (
        F.when(state == law.TOMBSTONE, "tombstone_while_open")
        .when(one_of(state, law.COMPLETE) & (state == previous), "double_complete")
        .otherwise("not_in_table")
    )
    return (
        F.when(one_of(state, law.TRANSIENT), _step("illegal", "transient_state"))
        .when(~one_of(state, known), _step("illegal", "unknown_state"))
        .when(~one_of(previous, known), _step("first"))
        .when((previous == law.TOMBSTONE) & (state != law.TOMBSTONE), _after_tombstone(entry, alive=alive, protocol=protocol))
        .when(_is_ghost(before, entry, protocol=protocol), _step("ghost"))
        .when(_is_legal(previous, state, protocol=protocol), _step("legal"))
        .otherwise(F.struct(F.lit("illegal").alias("step"), reason.alias("step_reason")))
    )


def _step(name: str, reason: str | None = None) -> Column:
    return F.struct(F.lit(name).alias("step"), F.lit(reason).cast("string").alias("step_reason"))


def _is_legal(previous: Column, state: Column, *, protocol: Column) -> Column:
    legal = [
        f"{name}>{before}>{after}"
        for name, table in law.VALID_PREVIOUS.items()
        for after, all_before in table.items()
        for before in sorted(all_before)
    ]
    return F.coalesce(F.concat_ws(">", protocol, previous, state).isin(legal), F.lit(False))


def _after_tombstone(entry: Column, *, alive: Column, protocol: Column) -> Column:
    same_producer = alive["producer_id"].eqNullSafe(entry["producer_id"]) & alive["state"].isNotNull()
    survived = same_producer & _is_legal(alive["state"], entry["state"], protocol=protocol)
    is_new = entry["state"] == law.EMPTY
    return (
        F.when(survived | (alive["state"].isNull() & ~is_new), _step("ghost"))
        .when(is_new, _step("legal"))
        .otherwise(_step("illegal", "not_in_table"))
    )


def _is_ghost(before: Column, entry: Column, *, protocol: Column) -> Column:
    raised = entry["producer_epoch"].cast("long") - before["producer_epoch"]
    both_print = before["start_ms"].isNotNull() & entry["start_ms"].isNotNull()
    shrank = includes(before["partitions"], entry["partitions"]) & ~includes(entry["partitions"], before["partitions"])
    fields = ("producer_id", "producer_epoch", "timeout_ms", "last_update_ms", "start_ms")
    same_fields = [before[name].eqNullSafe(entry[name]) for name in fields]
    conditions = {
        "any": F.lit(True),
        "restarted": (both_print & (before["start_ms"] != entry["start_ms"])) | (~extends(before, entry) & ~(shrank & both_print)),
        "same_payload": _all(*same_fields, F.size(listed(before["partitions"])) == F.size(listed(entry["partitions"])))
        & includes(before["partitions"], entry["partitions"]),
        "forgotten": F.size(listed(entry["partitions"])) == 0,
    }
    fits = [
        (before["state"] == ghost.previous)
        & (entry["state"] == ghost.current)
        & protocol.isin(sorted(ghost.protocols))
        & before["producer_id"].eqNullSafe(entry["producer_id"])
        & raised.isin(sorted(ghost.epoch_steps))
        & conditions[ghost.condition]
        for ghost in law.GHOSTS
    ]
    return F.coalesce(_any(*fits), F.lit(False))


def epoch_step(before: Column, entry: Column, *, protocol: Column, may_jump: Column) -> Column:
    """The step of the epoch: ok, regression, jump, pid_change_epoch_not_zero or not_judged."""
    raised = entry["producer_epoch"].cast("long") - before["producer_epoch"]
    largest = F.lit(None).cast("int")
    for name, most in law.LARGEST_EPOCH_STEP.items():
        largest = F.when(protocol == name, most).otherwise(largest)
    burned = may_jump & (protocol != law.TV2) & (entry["state"] == law.PREPARE_ABORT)
    return (
        F.when(raised.isNull(), "not_judged")
        .when(
            ~before["producer_id"].eqNullSafe(entry["producer_id"]),
            F.when(entry["producer_epoch"] == 0, "ok").otherwise("pid_change_epoch_not_zero"),
        )
        .when(raised < 0, "regression")
        .when((raised <= largest) | burned, "ok")
        .otherwise("jump")
    )


def field_change(before: Column, entry: Column) -> Column:
    """The first field that changed and may not, for a step that is legal by its states; else null."""
    state, previous = entry["state"], before["state"]
    pairs = [f"{old}>{new}" for new, all_old in law.CONTINUES_RUN.items() for old in sorted(all_old)]
    continues = F.concat_ws(">", previous, state).isin(pairs)
    keeps = (state == law.ONGOING) | one_of(state, law.COMPLETE)
    same_list = includes(entry["partitions"], before["partitions"]) & includes(before["partitions"], entry["partitions"])
    same_producer = before["producer_id"].eqNullSafe(entry["producer_id"])
    return (
        F.when(previous.isNull() | state.isin(law.EMPTY, law.TOMBSTONE) | (previous == law.TOMBSTONE), F.lit(None))
        .when(~before["timeout_ms"].eqNullSafe(entry["timeout_ms"]), "timeout")
        .when(
            (state == law.ONGOING) & (previous == law.ONGOING) & ~includes(entry["partitions"], before["partitions"]), "partitions_shrank"
        )
        .when(one_of(state, law.PREPARED) & continues & ~same_list, "prepare_partitions")
        .when(continues & (before["start_ms"] != entry["start_ms"]), "start")
        .when(one_of(state, law.COMPLETE) & (F.size(listed(entry["partitions"])) > 0), "complete_partitions")
        .when(keeps & same_producer & ~before["producer_epoch"].eqNullSafe(entry["producer_epoch"]), "epoch")
    )


def _all(*conditions: Column) -> Column:
    result = F.lit(True)
    for condition in conditions:
        result = result & condition
    return result


def _any(*conditions: Column) -> Column:
    result = F.lit(False)
    for condition in conditions:
        result = result | condition
    return result
