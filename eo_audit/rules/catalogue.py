"""The rules of this release, in the order in which a reader meets them. A new rule is one line here, beside its page and its cases."""

from importlib import import_module

from eo_audit.rules.rule import Rule, of_page

_PAGES = (
    "producers.dup_seq_in_window",
    "producers.dup_seq_out_of_window",
    "producers.seq_overlap",
    "producers.seq_gap",
    "producers.epoch_regression",
    "producers.bump_seq_not_zero",
    "producers.first_seq_not_zero",
    "producers.plain_in_open_txn",
    "identity.payload_dup_across_pids",
    "transactions.hanging_txn",
    "transactions.late_data_after_marker",
    "transactions.empty_marker",
    "transactions.missing_marker",
    "transactions.mixed_markers",
    "transactions.unregistered_partition",
    "transactions.marker_epoch_invalid",
    "transactions.open_at_dump_end",
    "transactions.manual_abort",
    "transactions.merged_txn",
    "coordinator.dangling_ongoing",
    "coordinator.prepare_stuck",
    "coordinator.illegal_transition",
    "coordinator.tlog_epoch_regression",
    "coordinator.illegal_field_change",
    "coordinator.ghost_record",
    "coordinator.transient_persisted",
    "coordinator.wrong_tlog_partition",
    "coordinator.double_complete",
    "coordinator.tombstone_while_open",
    "coordinator.abort_cause",
    "visibility.lso_stuck",
    "visibility.aborted_visible",
    "visibility.committed_hidden",
    "sidecars.txnindex_missing",
    "sidecars.txnindex_extra_or_wrong",
    "replicas.replica_divergence",
    "replicas.crc_invalid",
    "replicas.offset_non_monotonic",
    "replicas.offset_hole",
    "replicas.coverage",
    "identity.unfenced_siblings",
)
RULES: tuple[Rule, ...] = tuple(of_page(import_module(f"eo_audit.rules.{page}")) for page in _PAGES)
BY_CODE = {rule.code: rule for rule in RULES}
