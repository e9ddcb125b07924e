"""R: the log as a sequence of batches, and what of it the dumps show (`UnifiedLog`, `RecordBatch`).

R02  a batch fails its checksum.
R03  offsets go back, or a segment holds offsets below its own name.
R04  offsets are missing in a topic that was never compacted.
R07  what the dumps do not show. Not a fault: every rule judges only what is covered.

Nothing behind a bad checksum or a disorder is judged, and nothing is concluded across a hole. Legal histories that look alike: the last
batch of a
segment that is being written, compaction, the same segment dumped twice, a head removed by retention.
"""

from eo_audit.rules.explain import replicas as words_of
from eo_audit.rules.rule import Docs, Rule

COVERAGE = ("coverage",)

R02 = Rule(
    "R02",
    "crc-invalid",
    "critical",
    COVERAGE,
    "batch",
    by="state",
    where="state = 'crc_invalid'",
    explain=words_of.checksum,
    docs=Docs(
        "The bytes of a batch are not what its writer sent.",
        "isvalid: false in the middle of a segment.",
        "The last batch of a file that the broker is writing at that moment.",
    ),
    cause="a disk or memory fault, or a file changed by hand",
    remedy=(
        "Safe to repair while another replica leads: stop this broker, delete this replica's directory, start it and let it be "
        "fetched again. "
        "If no other replica is sound, dump the segment again first: a live file may have been caught half written."
    ),
)
R03 = Rule(
    "R03",
    "offset-non-monotonic",
    "critical",
    COVERAGE,
    "batch",
    by="state",
    where="state = 'disorder'",
    explain=words_of.disorder,
    docs=Docs(
        "A batch starts at or below an offset that the log already has: two records share an offset.",
        "Batch 0 to 2, then a batch that starts at 2.",
        "The same segment dumped twice, or segments dumped in any order: they are put in order first.",
    ),
    cause="KAFKA-7866 (before 2.2.1), KAFKA-19407, or files of two histories in one directory",
    remedy=(
        "Take the partition's leader away from this broker, then delete this replica's directory and let it be fetched again. Safe "
        "while another replica is in sync."
    ),
)
R04 = Rule(
    "R04",
    "offset-hole",
    "error",
    COVERAGE,
    "batch",
    by="state",
    where="state = 'hole'",
    explain=words_of.hole,
    weight="last_offset - first_offset",
    docs=Docs(
        "Offsets are missing inside a log that was never compacted: records are lost, or a segment was not dumped.",
        "Batch 0 to 4, then batch 9 to 12.",
        "A compacted topic; a head removed by retention or DeleteRecords; markers, which take offsets too.",
    ),
    cause="a segment that was not dumped or was lost",
    remedy=(
        "Dump the missing segment first (the finding names its offsets). If it does not exist on this broker, dump the other "
        "replicas: the records may be there."
    ),
)
R07 = Rule(
    "R07",
    "coverage",
    "info",
    COVERAGE,
    "batch",
    by="state",
    where="state NOT IN ('covered', 'compacted', 'hole', 'disorder', 'crc_invalid', 'not_judged')",
    explain=words_of.coverage,
    docs=Docs(
        "Part of a log is not in the dumps, and is not judged.",
        "The first segment dumped starts at offset 5, the log at 0; the text stops inside a record line.",
        "A log that starts at the first segment dumped.",
    ),
    cause="not every segment was dumped, or the dump was cut off",
    remedy="Dump the missing part, if it still exists.",
)

RULES = (R02, R03, R04, R07)
