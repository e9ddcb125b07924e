"""L: what read_committed consumers get (`UnifiedLog.lastStableOffset`, `ProducerStateManager`, the consumer's aborted-transaction
filter; KIP-98).

L01  the last stable offset stands still behind an open transaction: committed records behind it are held back.
L02  records of an aborted transaction are returned to read_committed consumers.
L03  committed records are hidden from read_committed consumers.

Legal histories that look alike: a transaction that is open inside its timeout; data above the last stable offset, which nobody judges
yet; emptied
batches; aborted data that the cleaner removed with its index entry.
"""

from eo_audit.rules.explain import visibility as words_of
from eo_audit.rules.rule import Docs, Rule

SEEN = "row_kind IN ('data', 'plain') AND below_lso AND coalesce(count, 1) > 0"
# Two readers: one that reads from the log start on, and one whose fetch starts at the segment and looks further ahead in its index.
SOMEBODY_GETS = "(coalesce(returned, false) OR coalesce(returned_from_segment, false))"
SOMEBODY_MISSES = "(NOT coalesce(returned, true) OR NOT coalesce(returned_from_segment, true))"

L01 = Rule(
    "L01",
    "lso-stuck",
    "critical",
    ("visibility",),
    "transactional_batch",
    by="blocker_producer_id",
    # A transaction whose marker is not below a high watermark that lags holds the LSO for a moment only.
    where="lso < hw AND lso = lso_if_hw_is_leo AND lso < leo AND blocker_producer_id IS NOT NULL",
    explain=words_of.stuck,
    needs=("past", "end", "coordinator"),
    docs=Docs(
        "An open transaction holds the last stable offset back: read_committed consumers get nothing behind it.",
        "LSO 6, high watermark 14, the blocker is hanging (T01).",
        "A transaction open inside its timeout (info); a high watermark that merely lags behind the log's end.",
    ),
    cause="an open transaction at the last stable offset",
    remedy="See the finding: it points at T01, C01 or C02.",
)
L02 = Rule(
    "L02",
    "aborted-visible",
    "critical",
    ("producer_history",),
    "transactional_batch",
    where=f"{SEEN} AND truth = 'aborted' AND {SOMEBODY_GETS}",
    explain=words_of.aborted_visible,
    needs=("order", "past", "matched", "index"),
    docs=Docs(
        "Records of a transaction that was aborted reach read_committed consumers of this replica.",
        "An ABORT marker without its .txnindex entry; aborted data that a later COMMIT closed.",
        "Aborted data above the last stable offset; batches that the cleaner has emptied.",
    ),
    cause="the aborted index does not know the transaction, or a COMMIT closed it",
    remedy=(
        "See the finding that is named as its incident; consumers may already have read these records: correct them downstream by offset."
    ),
)
L03 = Rule(
    "L03",
    "committed-hidden",
    "critical",
    ("producer_history",),
    "transactional_batch",
    where=f"{SEEN} AND truth IN ('committed', 'plain') AND {SOMEBODY_MISSES}",
    explain=words_of.committed_hidden,
    needs=("order", "past", "index"),
    docs=Docs(
        "Committed records are dropped by the read_committed filter of this replica.",
        "An index entry whose marker says COMMIT: the producer stays in the consumer's aborted set and its next transaction is hidden too.",
        "Records above the last stable offset: not hidden, only not yet returned.",
    ),
    cause="a wrong or superfluous entry in the .txnindex, or an ABORT on one partition of a committed transaction",
    remedy="See the finding that is named as its incident. A read_uncommitted consumer still gets the records.",
)

RULES = (L01, L02, L03)
