"""S: the aborted index beside the log (`TransactionIndex`, `AbortedTxn`; KIP-98).

S02  an ABORT marker that closes data has no entry: read_committed consumers get the aborted records.
S03  an entry has no ABORT marker, or begins elsewhere than its transaction: read_committed consumers lose or get records wrongly.

Legal histories that look alike: an entry that stays when its data was compacted away; empty aborts, which have entries before 2.8 and
none later;
a first offset below the log start; an index that was not dumped.
"""

from eo_audit.rules.explain import sidecars as words_of
from eo_audit.rules.rule import Docs, Rule

INDEX = ("aborted_index",)

S02 = Rule(
    "S02",
    "txnindex-missing",
    "critical",
    INDEX,
    "closing_abort",
    where="state = 'missing'",
    explain=words_of.missing,
    needs=("order", "past", "index"),
    docs=Docs(
        "An ABORT marker closes data, and the index of its segment has no entry for it.",
        "ABORT at offset 13 for data from offset 7 on; the .txnindex holds only other transactions.",
        "A compacted transaction, whose entry goes with its data; an ABORT that closes nothing.",
    ),
    cause=(
        "the .txnindex file or an entry of it was lost (a partial copy, a restore without sidecars, a disk fault): a broker takes an "
        'absent file for "no aborts"'
    ),
    remedy="See the finding: the index is rebuilt from the log.",
)
S03 = Rule(
    "S03",
    "txnindex-extra-or-wrong",
    "error",
    INDEX,
    "index_entry",
    where="state IN ('extra', 'wrong_first', 'marker_is_commit')",
    explain=words_of.wrong,
    needs=("order", "past"),
    docs=Docs(
        "An index entry has no ABORT marker at its last offset, or another first offset than the transaction that the marker closes.",
        "An entry for offsets 3 to 5, where offset 5 is a COMMIT.",
        "An entry of a transaction whose data was compacted away or lies below the log start.",
    ),
    cause="an index of another history, or an entry that survived while the log was changed",
    remedy="See the finding: the index is rebuilt from the log.",
)

RULES = (S02, S03)
