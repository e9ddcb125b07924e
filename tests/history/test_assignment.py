"""Whose transaction each batch belongs to, and what each marker did: stories that look alike, and what tells them apart."""

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from eo_audit.history.assignment import judged_events
from eo_audit.history.clock_offsets import clock_offsets
from eo_audit.history.coordinator import coordinator_history
from eo_audit.history.cut_logs import cut_logs
from eo_audit.history.instance_partitions import instance_partitions
from eo_audit.history.instances import transaction_instances
from eo_audit.history.marker_match import match_markers
from eo_audit.history.open_transactions import open_transactions
from eo_audit.history.owners import assign_instances
from eo_audit.history.reach import reach, whole_logs
from eo_audit.history.spans import transaction_spans
from tests.support.rows import table
from tests.support.transactions import LISTED, PARTITION, TOPIC, Story, entry_rows, log_rows, other_rows, sibling_rows

GENUINE, LATE, SUSPECTED = ("no", "registered"), ("proved", "registered"), ("suspected", "registered")
UNKNOWN_HERE = (None, None, "unknown")
LATER = ["instance_id", "instance_source", "instance_decision", "registration", "late", "marker_role"]
UNREGISTERED, UNKNOWN = ("no", "unregistered"), ("no", "unknown")

NOT_REGISTERED = """
0 Empty e0
100 Ongoing e0 [B]
150 PrepareAbort e0 [B]
160 CompleteAbort e0
900 Ongoing e0 [A]
950 PrepareCommit e0 [A]
960 CompleteCommit e0"""
TWO_COMMITS = """
    0 Empty e0
    100 Ongoing e0 [A]
    150 PrepareCommit e0 [A]
    160 CompleteCommit e0
    200 Ongoing e0 [A]
    250 PrepareCommit e0 [A]
    260 CompleteCommit e0"""
LATER_COMMITS = re.sub(r"^(\s+)(\d+)", lambda found: f"{found[1]}{int(found[2]) + 10_000}", TWO_COMMITS, flags=re.MULTILINE)
ABORT_THEN_COMMIT = TWO_COMMITS.replace("150 PrepareCommit", "150 PrepareAbort").replace("160 CompleteCommit", "160 CompleteAbort")
DECIDED_AGAIN = "a coordinator that was killed sends the marker of a decision that nobody else has, and its successor decides the same"
FAR_APART = """
    0 Empty e0
    100 Ongoing e0 [A]
    9000 PrepareAbort e0 [A]
    9010 CompleteAbort e0
    60000 Ongoing e0 [A]
    61000 PrepareCommit e0 [A]
    61010 CompleteCommit e0"""
LONG_COMMIT = """
    0 Empty e0
    100 Ongoing e0 [A]
    150 PrepareCommit e0 [A]
    160 CompleteCommit e0
    60000 Ongoing e0 [A]
    90000 PrepareCommit e0 [A]
    90010 CompleteCommit e0
    200000 Ongoing e0 [A]
    200050 PrepareCommit e0 [A]
    200060 CompleteCommit e0
    300000 Ongoing e0 [A]
    300050 PrepareCommit e0 [A]
    300060 CompleteCommit e0"""
TWO_MORE = "\n6 data e0 @200010\n7 COMMIT e0 @200055\n8 data e0 @300010\n9 COMMIT e0 @300055"  # of LONG_COMMIT
ONE_ABORT = """
    0 Empty e0
    100 Ongoing e0 [A]
    150 PrepareAbort e0 [A]
    160 CompleteAbort e0"""
TWO_ABORTS_OF_TV2 = """
    0 Empty e0
    100 Ongoing e0 [A] v2
    150 PrepareAbort e1 [A] v2
    160 CompleteAbort e1 v2
    200 Ongoing e1 [A] v2
    250 PrepareAbort e2 [A] v2
    260 CompleteAbort e2 v2"""
WAITED = """
    0 Empty e0
    50 Ongoing e0 [A]
    67 PrepareCommit e0 [A]
    80 CompleteCommit e0
    130 Ongoing e0 [A]
    156 PrepareCommit e0 [A]
    2763 CompleteCommit e0
    2850 Ongoing e0 [A]
    2862 PrepareCommit e0 [A]
    2867 CompleteCommit e0
    2905 Ongoing e0 [A]
    2926 PrepareCommit e0 [A]
    2989 CompleteCommit e0"""
ON_B_ONLY = ONE_ABORT.replace("[A]", "[B]").replace("Abort", "Commit")
THREE = f"""{TWO_COMMITS.replace("250 PrepareCommit", "250 PrepareAbort").replace("260 CompleteCommit", "260 CompleteAbort")}
    300 Ongoing e0 [A]
    350 PrepareCommit e0 [A]
    360 CompleteCommit e0"""
MANY = "0 Empty e0\n" + "\n".join(
    f"{at} Ongoing e0 [A]\n{at + 20} PrepareCommit e0 [A]\n{at + 25} CompleteCommit e0" for at in range(1_000, 1_500, 50)
)
MANY_MARKERS = "\n".join(f"{n * 2} data e0 @{at}\n{n * 2 + 1} COMMIT e0 @{at + 522}" for n, at in enumerate(range(1_000, 1_500, 50)))

ANEW = """90000 Ongoing e0 [A]
    90020 PrepareCommit e0 [A]
    90025 CompleteCommit e0
    90100 Ongoing e0 [A]
    90120 PrepareAbort e0 [A]
    90125 CompleteAbort e0"""

ENDED_BY_ANOTHER = """
    100000 Ongoing e0 [A]
    100050 PrepareCommit e0 [A]
    100060 CompleteCommit e0
    190000 CompleteCommit e3 as another"""
OF_THE_FIRST = "0 data e0 @99990\n1 COMMIT e0 @100055\n2 data e0 @120000\n3 COMMIT e0 @120050\n4 data e0 @130000"

# An abort is proposed (T01) for what nobody will end, so that is said only where both logs are known up to one moment.
LEFT_OPEN = "0 data e0 @110\n1 ABORT e0 @155\n2 data e0 @600"
FORGOTTEN = Story(
    "a producer of which the cleaner left no entry: its id has expired, or has another producer",
    "100000 Empty e0 of another",
    "0 data e0 @100",
    {0: (None, *UNKNOWN)},
    first_entry=500,
    fate="unknown",
    why="producer_forgotten",
    sibling_at=100_001,
)
FORGOTTEN_AS_LISTED = replace(
    FORGOTTEN,
    name="the same, and listings show that no segment was left out: an id whose transaction is open is not forgotten",
    fate="nobody",
    why=None,
    listed=True,
)
AFTER_THE_LISTED = replace(
    FORGOTTEN_AS_LISTED,
    name="the same, written when the coordinator's log had been dumped",
    log="0 data e0 @200000",
    fate="unknown",
    stopped=False,
)
FATES = [
    Story("open, and both brokers had been stopped", ONE_ABORT, LEFT_OPEN, fate="nobody"),
    Story("open, and nothing says which dump was made first", ONE_ABORT, LEFT_OPEN, stopped=False, fate="unknown"),
    Story(
        "open, and the coordinator's log goes on behind it by the records' own time",
        f"{ONE_ABORT}\n60000 Ongoing e0 [B]",
        LEFT_OPEN,
        stopped=False,
        fate="unknown",
    ),
    Story(
        "open, and the coordinator's log goes on behind it by a broker's clock",
        f"{ONE_ABORT}\n60000 Ongoing e0 [B]",
        f"{LEFT_OPEN} append",
        stopped=False,
        fate="nobody",
    ),
    Story(
        "open, and the coordinator's log ends before it by a broker's clock",
        f"{ONE_ABORT}\n60000 Ongoing e0 [B]",
        LEFT_OPEN.replace("@600", "@90000 append"),
        stopped=False,
        fate="unknown",
    ),
]
CLEANED_AWAY = Story(
    "completed long before the dumps, nothing of it is here, and the log was cleaned and goes on behind that time",
    TWO_COMMITS,
    "0 data e0 @95\n1 COMMIT e0 @155",
    {0: (1, *GENUINE)},
    {2: ("tail", "unknown")},
    stopped=False,
    dumped_before=True,
    dumped_at=1_000_000,
    uncleaned_from=40,
    other_at=500_000,
)
CLEANED_ABORT = Story(
    "the cleaner took an ABORT and left records: what stands before the marker of a transaction that was completed before the next began",
    """
    0 Empty e0
    100 Ongoing e0 [A]
    150 PrepareCommit e0 [A]
    160 CompleteCommit e0
    9000 Ongoing e0 [A]
    9500 PrepareAbort e0 [A]
    9510 CompleteAbort e0
    20000 Ongoing e0 [A] of another
    20050 PrepareCommit e0 [A] of another
    20060 CompleteCommit e0 of another
    60000 Ongoing e0 [A]
    61000 PrepareCommit e0 [A]
    61010 CompleteCommit e0""",
    "0 data e0 @110\n1 COMMIT e0 @155\n3 data e0 @60490 cleaned\n10 data e0 @60500 cleaned\n11 COMMIT e0 @61005",
    {1: "closing", 3: (2, *GENUINE), 10: (4, *GENUINE), 11: "closing"},
    uncleaned_from=40,
    compacted=True,
    other_at=20_055,
    other_offset=5,
)
CLEANED_ABORTS = [
    CLEANED_ABORT,
    replace(
        CLEANED_ABORT,
        name="the same, and the marker between them was completed when the next transaction had begun",
        entries=CLEANED_ABORT.entries.replace(
            "20060 CompleteCommit e0 of another\n    60000 Ongoing e0 [A]", "60000 Ongoing e0 [A]"
        ).replace("61000 PrepareCommit e0 [A]", "60010 CompleteCommit e0 of another\n    61000 PrepareCommit e0 [A]"),
        rows={3: (4, *GENUINE), 10: (4, *GENUINE), 11: "closing"},
    ),
    replace(
        CLEANED_ABORT,
        name="the same, and the marker between them stands before the records",
        log=CLEANED_ABORT.log.replace("3 data", "7 data"),
        rows={7: (4, *GENUINE), 10: (4, *GENUINE), 11: "closing"},
    ),
    replace(
        CLEANED_ABORT,
        name="the same, and the one before them was committed: its records are there no more",
        entries=CLEANED_ABORT.entries.replace("PrepareAbort", "PrepareCommit").replace("CompleteAbort", "CompleteCommit"),
        rows={3: (4, *GENUINE), 10: (4, *GENUINE), 11: "closing"},
    ),
    replace(
        CLEANED_ABORT,
        name="the same, and the records were written before the aborted transaction began, too",
        entries=CLEANED_ABORT.entries.replace("    9000 Ongoing", "    8000 Ongoing e0 [A] of another\n    9000 Ongoing", 1)
        .replace(
            "    20000 Ongoing e0 [A] of another\n    20050 PrepareCommit e0 [A] of another\n    20060 CompleteCommit e0 of another\n", ""
        )
        .replace(
            "    9000 Ongoing", "    8050 PrepareCommit e0 [A] of another\n    8060 CompleteCommit e0 of another\n    9000 Ongoing", 1
        ),
        other_at=8_055,
        rows={3: (4, *GENUINE), 10: (4, *GENUINE), 11: "closing"},
    ),
    replace(
        CLEANED_ABORT,
        name="the same, and nothing but the time of their client says so",
        log=CLEANED_ABORT.log.replace("@60490", "@9200"),
        other_at=None,
        rows={3: (2, *SUSPECTED), 10: (4, *GENUINE), 11: "closing"},
    ),
    replace(
        CLEANED_ABORT,
        name="the same, by the broker's clock",
        log="0 data e0 @110 append\n1 COMMIT e0 @155\n3 data e0 @9200 append cleaned\n10 data e0 @60500 append\n11 COMMIT e0 @61005",
        other_at=None,
        rows={3: (2, *GENUINE), 10: (4, *GENUINE), 11: "closing"},
    ),
]
STORIES = [
    *FATES,
    *CLEANED_ABORTS,
    Story(
        "two transactions of one epoch",
        TWO_COMMITS,
        "0 data e0 @95\n1 COMMIT e0 @155\n2 data e0 @155\n3 COMMIT e0 @255",
        {0: (1, *GENUINE), 1: "closing", 2: (2, *GENUINE), 3: "closing"},
        {1: ("covered", "closing"), 2: ("covered", "closing")},
    ),
    Story(
        "a COMMIT that comes again half a minute later: whether a clock was set or nobody decided it, it ends nothing",
        """
    0 Empty e0
    161 Ongoing e0 [A]
    492 PrepareCommit e0 [A]
    510 CompleteCommit e0
    523 Ongoing e0 [A]
    570 PrepareAbort e0 [A]
    580 CompleteAbort e0
    600 Ongoing e0 [A]
    640 PrepareCommit e0 [A]
    647 CompleteCommit e0""",
        "0 data e0 @152\n6 COMMIT e0 @504\n7 data e0 @499\n13 ABORT e0 @576\n14 data e0 @575\n20 COMMIT e0 @643\n21 COMMIT e0 @30643",
        {0: (1, *GENUINE), 6: "closing", 7: (2, *GENUINE), 13: "closing", 14: (3, *GENUINE), 20: "closing", 21: "duplicate"},
        {3: ("covered", "closing")},
    ),
    Story(
        "data behind the marker of its transaction",
        ONE_ABORT,
        "0 data e0 @110\n1 ABORT e0 @155\n2 data e0 @600",
        {0: (1, *GENUINE), 1: "closing", 2: (1, *LATE)},
        {1: ("covered", "closing")},
    ),
    Story(
        "data of no listed partition, and a coordinator whose clock went back between two decisions",
        """
    0 Empty e0
    9000 Ongoing e0 [B]
    10500 PrepareCommit e0 [B]
    10510 CompleteCommit e0
    9500 Ongoing e0 [B]
    9900 PrepareCommit e0 [B]
    9910 CompleteCommit e0
    9920 Ongoing e0 [B]
    10200 PrepareCommit e0 [B]
    10210 CompleteCommit e0""",
        "0 data e0 @10030\n1 COMMIT e0 @10205",
        {},
    ),
    Story(
        "late data in the next transaction's span",
        FAR_APART,
        "0 data e0 @200\n1 ABORT e0 @9005\n2 data e0 @8000\n3 data e0 @60500\n4 COMMIT e0 @61005",
        {2: (1, *SUSPECTED), 3: (2, *GENUINE), 4: "closing"},
    ),
    Story(
        "late data by the broker's clock",
        FAR_APART,
        "0 data e0 @200 append\n1 ABORT e0 @9005\n2 data e0 @20000 append\n3 data e0 @60500 append\n4 COMMIT e0 @61005",
        {2: (1, *LATE), 3: (2, *GENUINE)},
    ),
    Story(
        "a producer that sets its own timestamps",
        FAR_APART.replace("100 Ongoing", "10000 Ongoing").replace("9000 ", "19000 ").replace("9010 ", "19010 "),
        "0 data e0 @200\n1 ABORT e0 @19005\n2 data e0 @12000\n3 data e0 @60500\n4 COMMIT e0 @61005",
        {0: (1, *GENUINE), 2: (2, *GENUINE), 3: (2, *GENUINE)},
    ),
    Story(
        "a partition that was never registered",
        ON_B_ONLY,
        "0 data e0 @120",
        {0: (1, *UNREGISTERED)},
        {1: ("not_dumped", "unknown")},
    ),
    Story(
        "data of an epoch whose transaction lists another partition, and a COMMIT of the next one closes both",
        """
        0 Empty e0
        100 Ongoing e0 [A] v2
        150 PrepareCommit e1 [A] v2
        160 CompleteCommit e1 v2
        200 Ongoing e1 [B] v2
        250 PrepareCommit e2 [B] v2
        260 CompleteCommit e2 v2
        5000 Ongoing e2 [A] v2
        5050 PrepareCommit e3 [A] v2
        5060 CompleteCommit e3 v2""",
        "0 data e0 @110\n1 COMMIT e1 @155\n2 data e1 @210\n3 data e2 @5010\n4 COMMIT e3 @5055",
        {0: (1, *GENUINE), 2: (None, *UNREGISTERED), 3: (3, *GENUINE), 4: "closing"},
        transaction_version=2,
    ),
    Story("no transaction was ever begun", "0 Empty e0", "0 data e0 @120\n1 ABORT e0 @900", {0: (None, *UNREGISTERED), 1: "manual"}),
    Story(
        "no coordinator log",
        "",
        "0 data e0 @120\n1 ABORT e0 @900\n2 ABORT e0 @901",
        {0: (None, *UNKNOWN), 1: "unknown", 2: "duplicate"},
        complete=False,
    ),
    Story(
        "an unknown producer in a whole coordinator log",
        "0 Empty e0 of another",
        "0 data e0 @120",
        {0: (None, *UNREGISTERED)},
    ),
    Story(
        "a transactional producer, and a coordinator log that never knew any: it is not the one that it asked for its id",
        "",
        "0 data e0 @120\n1 ABORT e0 @900",
        {0: (None, *UNKNOWN), 1: "unknown"},
    ),
    Story(
        "markers that only a coordinator writes, and a coordinator log that never knew the producer: it is not the one that did",
        "",
        "0 data e0 @120\n1 COMMIT e0 @900",
        {0: (None, *UNKNOWN), 1: "unknown"},
    ),
    Story(
        "an ABORT that only a coordinator writes, and a coordinator log that never knew the producer",
        "",
        "0 data e0 @120\n1 ABORT e1 @900",
        {0: (None, *UNKNOWN), 1: "unknown"},
    ),
    Story(
        "the coordinator's log was cut between two records, and nothing of its broker says so",
        "100 Ongoing e0 [A]\n150 PrepareCommit e0 [A]\n160 CompleteCommit e0",
        "0 data e0 @95\n1 COMMIT e0 @155\n2 data e1 @300\n3 COMMIT e1 @400",
        {0: (1, *GENUINE), 1: "closing", 2: (None, *UNKNOWN), 3: "unknown"},
    ),
    Story(
        "the text of the coordinator's log ends between two records, though its broker had been stopped: a third COMMIT tells",
        TWO_COMMITS,
        "0 data e0 @95\n1 COMMIT e0 @155\n2 data e0 @155\n3 COMMIT e0 @255\n4 data e0 @300\n5 COMMIT e0 @355\n6 data e0 @400",
        {0: (1, *GENUINE), 1: "closing", 2: (2, *GENUINE), 3: "closing", 4: (None, *UNKNOWN), 5: "unknown", 6: (None, *UNKNOWN)},
        {1: ("covered", "closing"), 2: ("covered", "closing")},
    ),
    Story(
        "the head of the coordinator log was compacted away",
        "100000 Ongoing e0 [A]\n100050 PrepareCommit e0 [A]\n100060 CompleteCommit e0",
        "0 data e0 @100\n1 ABORT e0 @200\n2 data e0 @99990\n3 COMMIT e0 @100055\n4 ABORT e0 @200000",
        {0: (None, *UNKNOWN), 1: "unknown", 2: (1, *GENUINE), 3: "closing", 4: "unexplained"},
        first_entry=500,
    ),
    Story(
        "the id went on with another producer behind a hole in the coordinator log: what its first one did meanwhile is told nowhere",
        f"{ENDED_BY_ANOTHER} hole",
        OF_THE_FIRST,
        {0: (1, *GENUINE), 1: "closing", 2: (None, *UNKNOWN), 3: "unknown", 4: (None, *UNKNOWN)},
        first_entry=500,
        fate="unknown",
    ),
    Story(
        "the id went on with another producer, and nothing is missing between: nobody will end what its first one left open",
        ENDED_BY_ANOTHER,
        "0 data e0 @99990\n1 COMMIT e0 @100055\n2 data e0 @120000",
        {0: (1, *GENUINE), 1: "closing"},
        first_entry=500,
        fate="nobody",
    ),
    FORGOTTEN,
    FORGOTTEN_AS_LISTED,
    replace(
        FORGOTTEN_AS_LISTED,
        name="the same, with a coordinator's log that knows none of those whose markers stand in the cluster",
        fate="unknown",
        why="producer_forgotten",
        sibling_at=None,
    ),
    replace(
        AFTER_THE_LISTED,
        name="the same, and nothing dates it, but this log was dumped before the coordinator's",
        fate="nobody",
        dumped_before=True,
    ),
    AFTER_THE_LISTED,
    Story(
        "the coordinator log was cut off",
        TWO_COMMITS,
        "0 data e0 @95\n1 COMMIT e0 @155\n2 data e0 @155\n3 COMMIT e0 @255\n4 data e0 @9000\n5 COMMIT e0 @9100",
        {2: (2, *GENUINE), 4: (None, *UNKNOWN), 5: "unknown"},
        tail="exception",
    ),
    Story(
        "a marker was lost",
        ABORT_THEN_COMMIT,
        "0 data e0 @110\n1 data e0 @155\n2 COMMIT e0 @255",
        {0: (1, *GENUINE), 1: (2, *GENUINE), 2: "closing"},
        {1: ("covered", "missing"), 2: ("covered", "closing")},
    ),
    Story(
        "the last marker was lost",
        TWO_COMMITS,
        "0 data e0 @95\n1 COMMIT e0 @155\n2 data e0 @155",
        {1: "closing", 2: (2, *GENUINE)},
        {2: ("covered", "missing")},
    ),
    Story(
        "a marker was lost, and the one behind it had waited for seconds: its time joins both, and no distance of clocks fits all",
        WAITED,
        "0 data e0 @55\n1 data e0 @140\n2 COMMIT e0 @2761\n3 data e0 @2855\n4 COMMIT e0 @2864\n5 data e0 @2910\n6 COMMIT e0 @2986",
        {2: "unknown", 4: "unknown", 6: "unknown"},
        {1: ("not_judged", "unknown")},
        stopped=False,
    ),
    Story(
        "the copy of a broker that stopped before the others",
        TWO_COMMITS,
        "0 data e0 @95\n1 COMMIT e0 @155\n2 data e0 @155",
        {1: "closing", 2: (2, *GENUINE)},
        {2: ("tail", "unknown")},
        coordinator_broker=2,
    ),
    Story(
        "the copy of a broker that stopped with the others: its own copy of the coordinator's log says so",
        TWO_COMMITS,
        "0 data e0 @95\n1 COMMIT e0 @155\n2 data e0 @155",
        {1: "closing", 2: (2, *GENUINE)},
        {2: ("covered", "missing")},
        coordinator_broker=2,
        own_copy=True,
    ),
    Story(
        "a log that was emptied under a later leader: another partition of the topic is older than the decisions",
        LATER_COMMITS,
        "",
        partition={1: ("covered", "missing"), 2: ("covered", "missing")},
        begun_in=2,
        sibling_at=100,
    ),
    Story(
        "emptied under a later leader, or a topic that was created again and waited for its first record: nothing tells which",
        LATER_COMMITS,
        "",
        partition={1: ("below_start", "unknown"), 2: ("below_start", "unknown")},
        begun_in=2,
        sibling_at=9_900,
    ),
    Story(
        "a topic that was deleted and created again, and holds nothing yet",
        TWO_COMMITS,
        "",
        partition={1: ("below_start", "unknown"), 2: ("below_start", "unknown")},
        begun_in=0,
    ),
    Story(
        "a marker of the other kind",
        ABORT_THEN_COMMIT,
        "0 data e0 @110\n1 COMMIT e0 @155\n2 data e0 @205\n3 COMMIT e0 @255",
        {0: (1, *GENUINE), 1: "contradictory", 2: (2, *GENUINE), 3: "closing"},
        {1: ("covered", "contradictory"), 2: ("covered", "closing")},
    ),
    Story(
        "late data ended by hand, just before the next transaction",
        ABORT_THEN_COMMIT.replace("200 Ongoing", "1200 Ongoing").replace("250 ", "1250 ").replace("260 ", "1260 "),
        "0 data e0 @110\n1 ABORT e0 @155\n2 data e0 @600\n3 ABORT e0 @900\n4 data e0 @1195\n5 COMMIT e0 @1255",
        {1: "closing", 2: (1, *LATE), 3: "manual", 4: (2, *GENUINE), 5: "closing"},
        {1: ("covered", "closing")},
    ),
    Story(
        "a running transaction aborted by hand, then committed",
        "0 Empty e0\n100 Ongoing e0 [AB]\n30000 PrepareCommit e0 [AB]\n30010 CompleteCommit e0",
        "0 data e0 @110\n1 ABORT e0 @9000\n2 COMMIT e0 @30005",
        {0: (1, *GENUINE), 1: "manual", 2: "empty"},
        {1: ("covered", "manual")},
    ),
    Story(
        "markers sent again after a failover",
        "0 Empty e0\n100 Ongoing e0 [A]\n150 PrepareCommit e0 [A]\n5000 CompleteCommit e0 ple2",
        "0 data e0 @110\n1 COMMIT e0 ce0 @155\n2 COMMIT e0 ce2 @4990",
        {1: "closing", 2: "duplicate"},
        {1: ("covered", "closing")},
    ),
    Story(
        "a marker sent again by another clock, within the time of a transaction that is not complete",
        "0 Empty e0\n100 Ongoing e0 [A]\n150 PrepareCommit e0 [A]\n1160 CompleteCommit e0 ple2\n"
        "1200 Ongoing e0 ple2 [A]\n1250 PrepareCommit e0 ple2 [A]",
        "0 data e0 @110\n1 COMMIT e0 ce0 @155\n2 COMMIT e0 ce2 @1300\n3 data e0 @1210",
        {0: (1, *GENUINE), 1: "closing", 2: "duplicate", 3: (2, *GENUINE)},
        {1: ("covered", "closing")},
        stopped=False,
    ),
    Story(
        "two decisions, one of them a ghost, and markers of both",
        "0 Empty e0\n100 Ongoing e0 [A]\n150 PrepareCommit e0 [A]\n70000 PrepareAbort e1 [A]\n70010 CompleteAbort e1",
        "0 data e0 @110\n1 COMMIT e0 @155\n2 ABORT e1 @70005",
        {0: (1, *GENUINE), 1: "contradictory", 2: "empty"},
        {1: ("covered", "contradictory")},
    ),
    Story(
        "a registered partition without data",
        TWO_COMMITS,
        "0 COMMIT e0 @155\n1 data e0 @205\n2 COMMIT e0 @255",
        {0: "empty", 2: "closing"},
        {1: ("covered", "closing"), 2: ("covered", "closing")},
    ),
    Story(
        "clocks of two brokers half a second apart",
        MANY,
        MANY_MARKERS,
        {offset: (offset // 2 + 1, *GENUINE) if offset % 2 == 0 else "closing" for offset in range(20)},
        dict.fromkeys(range(1, 11), ("covered", "closing")),
    ),
    Story(
        "clocks apart, and the head of the log deleted",
        MANY,
        "\n".join(MANY_MARKERS.splitlines()[8:]),
        {offset: (offset // 2 + 1, *GENUINE) if offset % 2 == 0 else "closing" for offset in range(8, 20)},
        {1: ("below_start", "unknown"), 5: ("covered", "closing"), 10: ("covered", "closing")},
        first_offset=8,
    ),
    Story(
        "a topic that was deleted and created anew",
        f"{MANY}\n{ANEW}",
        "0 data e0 @90000\n1 COMMIT e0 @90021\n2 data e0 @90100\n3 ABORT e0 @90121",
        {0: (11, *GENUINE), 1: "closing", 2: (12, *GENUINE), 3: "closing"},
        {1: ("below_start", "unknown"), 11: ("covered", "closing"), 12: ("covered", "closing")},
    ),
    Story(
        "a decision by a clock that was set back for a moment",
        "99000 Empty e0\n100000 Ongoing e0 [A]\n100020 PrepareCommit e0 [A]\n100025 CompleteCommit e0\n"
        "100050 Ongoing e0 [A]\n1000 PrepareAbort e0 [A]\n100075 CompleteAbort e0",
        "0 data e0 @100000\n1 COMMIT e0 @100021\n2 data e0 @100050\n3 ABORT e0 @100071",
        {0: (1, *GENUINE), 1: "closing", 2: (2, *GENUINE), 3: "closing"},
        {1: ("covered", "closing"), 2: ("covered", "closing")},
    ),
    Story(
        "a leader whose clock is five minutes ahead",
        MANY,
        "\n".join(
            f"{n * 2} data e0 @{300_000 + at} append\n{n * 2 + 1} COMMIT e0 @{300_022 + at}" for n, at in enumerate(range(1_000, 1_500, 50))
        ),
        {offset: (offset // 2 + 1, *GENUINE) if offset % 2 == 0 else "closing" for offset in range(20)},
        dict.fromkeys(range(1, 11), ("covered", "closing")),
    ),
    Story(
        "an ABORT that nobody decided, and all before it is gone with the head of the log: a hand's, perhaps, on late data",
        NOT_REGISTERED,
        "7 ABORT e0 @500\n8 data e0 @910\n9 COMMIT e0 @955",
        {7: "unknown", 8: (2, *GENUINE), 9: "closing"},
        first_offset=7,
    ),
    Story(
        "the same, of a log that begins there",
        NOT_REGISTERED,
        "0 ABORT e0 @500\n1 data e0 @910\n2 COMMIT e0 @955",
        {0: "unexplained", 1: (2, *GENUINE), 2: "closing"},
    ),
    Story(
        "an old client timestamp after the head of the log was deleted",
        ABORT_THEN_COMMIT,
        "7 data e0 @110\n8 COMMIT e0 @255",
        {7: (2, *GENUINE), 8: "closing"},
        {1: ("below_start", "unknown"), 2: ("covered", "closing")},
        first_offset=7,
    ),
    Story(
        "a coordinator of an older leader epoch",
        "0 Empty e0 ple3\n100 Ongoing e0 ple3 [A]\n150 PrepareCommit e0 ple3 [A]\n160 CompleteCommit e0 ple3",
        "0 data e0 @110\n1 COMMIT e0 ce1 @155",
        {0: (1, *GENUINE), 1: "closing"},
        {1: ("covered", "closing")},
    ),
    Story(
        "the new protocol: data of the transaction before, behind its marker",
        """0 Empty e0
        100 Ongoing e0 [A] v2
        150 PrepareCommit e1 [A] v2
        160 CompleteCommit e1 v2
        200 Ongoing e1 [A] v2
        250 PrepareCommit e2 [A] v2
        260 CompleteCommit e2 v2""",
        "0 data e0 @110\n1 COMMIT e1 @155\n2 data e0 @120\n3 data e1 @210\n4 COMMIT e2 @255",
        {0: (1, *GENUINE), 1: "closing", 2: (1, *LATE), 3: (2, *GENUINE), 4: "closing"},
        transaction_version=2,
    ),
    Story(
        "the new protocol needs no clock: markers hours away",
        "0 Empty e0\n100 Ongoing e0 [A] v2\n150 PrepareAbort e2 [A] v2\n160 CompleteAbort e2 v2",
        "0 data e0 @110\n1 ABORT e2 @9000000",
        {0: (1, *GENUINE), 1: "closing"},
        {1: ("covered", "closing")},
        transaction_version=2,
    ),
    Story(
        "a marker with the epoch of the next transaction",
        TWO_ABORTS_OF_TV2,
        "0 data e0 @110\n1 ABORT e2 @155\n2 data e1 @210\n3 ABORT e2 @255",
        {2: (2, *GENUINE), 3: "closing"},
        transaction_version=2,
    ),
    Story(
        "under TV2 data of an epoch that no transaction had, within one that lists the partition",
        TWO_ABORTS_OF_TV2,
        "0 data e0 @110\n1 ABORT e1 @155\n2 data e2 @210\n3 ABORT e2 @255",
        {0: (1, *GENUINE), 2: (None, *UNREGISTERED), 3: "closing"},
        transaction_version=2,
    ),
    Story(
        "transaction.version was lowered: transactions go on with the epoch that the last COMMIT of TV2 raised",
        """
        0 Empty e0
        100 Ongoing e0 [A] v2
        150 PrepareCommit e1 [A] v2
        160 CompleteCommit e1 v2
        200 Ongoing e1 [A]
        250 PrepareAbort e1 [A]
        260 CompleteAbort e1
        300 Ongoing e1 [A]
        350 PrepareCommit e1 [A]
        360 CompleteCommit e1""",
        "0 data e0 @110\n1 COMMIT e1 @155\n2 data e1 @210\n3 ABORT e1 @255\n4 data e1 @310\n5 COMMIT e1 @355",
        {0: (1, *GENUINE), 1: "closing", 2: (2, *GENUINE), 3: "closing", 4: (3, *GENUINE), 5: "closing"},
        {1: ("covered", "closing"), 2: ("covered", "closing"), 3: ("covered", "closing")},
    ),
    Story(
        "the same, and its marker was lost: the data tells that it is the one of TV2, though another one waited for seconds",
        """
        0 Empty e0
        50 Ongoing e0 [A] v2
        67 PrepareCommit e1 [A] v2
        80 CompleteCommit e1 v2
        130 Ongoing e1 [A]
        156 PrepareCommit e1 [A]
        2763 CompleteCommit e1
        2850 Ongoing e1 [A]
        2862 PrepareCommit e1 [A]
        2867 CompleteCommit e1
        2905 Ongoing e1 [A]
        2926 PrepareCommit e1 [A]
        2989 CompleteCommit e1""",
        "0 data e0 @55\n1 data e1 @140\n2 COMMIT e1 @2761\n3 data e1 @2855\n4 COMMIT e1 @2864\n5 data e1 @2910\n6 COMMIT e1 @2986",
        {2: "closing", 4: "closing", 6: "closing"},
        {1: ("covered", "missing")},
    ),
    Story(
        "the coordinator's log ends behind the last transaction of TV2: a second COMMIT of its epoch may be one of TV1, or repeats it",
        """
        0 Empty e0
        100 Ongoing e0 [A] v2
        150 PrepareCommit e1 [A] v2
        160 CompleteCommit e1 v2""",
        "0 data e0 @110\n1 COMMIT e1 @155\n2 data e1 @9210\n3 COMMIT e1 @9255",
        {0: (1, *GENUINE), 1: "closing", 3: "unknown"},
        {1: ("covered", "closing")},
    ),
    Story(
        "an ABORT with the data's epoch where the transaction's own is missing",
        """
        0 Empty e0
        100 Ongoing e0 [A] v2
        150 PrepareAbort e1 [A] v2
        160 CompleteAbort e1 v2
        200 Ongoing e1 [A] v2
        250 PrepareAbort e2 [A] v2
        260 CompleteAbort e2 v2
        300 Ongoing e2 [A] v2
        350 PrepareCommit e3 [A] v2
        360 CompleteCommit e3 v2""",
        "0 data e0 @110\n1 ABORT e1 @155\n2 data e1 @210\n3 ABORT e1 @255\n4 data e2 @310\n5 COMMIT e3 @355",
        {2: (2, *GENUINE), 3: "unexplained", 4: (3, *GENUINE), 5: "closing"},
        {1: ("covered", "closing"), 2: ("covered", "missing"), 3: ("covered", "closing")},
        transaction_version=2,
    ),
    Story(
        "the same behind a COMMIT",
        """
        0 Empty e0
        100 Ongoing e0 [A] v2
        150 PrepareCommit e1 [A] v2
        160 CompleteCommit e1 v2
        200 Ongoing e1 [A] v2
        250 PrepareAbort e2 [A] v2
        260 CompleteAbort e2 v2""",
        "0 data e0 @110\n1 COMMIT e1 @155\n2 data e1 @210\n3 ABORT e1 @255",
        {2: (2, *GENUINE), 3: "unexplained"},
        {1: ("covered", "closing"), 2: ("covered", "missing")},
        transaction_version=2,
    ),
    Story(
        "a COMMIT came again within a transaction that was decided half a minute later",
        LONG_COMMIT,
        "0 data e0 @110\n1 COMMIT e0 @155\n2 data e0 @60010\n3 COMMIT e0 @70000\n4 data e0 @89000\n5 COMMIT e0 @90005" + TWO_MORE,
        {1: "closing", 2: (2, *GENUINE), 3: "duplicate", 4: (2, *GENUINE), 5: "closing"},
    ),
    Story(
        "so near to the decision that the clocks may be wrong",
        LONG_COMMIT,
        "0 data e0 @110\n1 COMMIT e0 @155\n2 data e0 @60010\n3 COMMIT e0 @89999\n4 data e0 @90000\n5 COMMIT e0 @90005" + TWO_MORE,
        {1: "closing", 2: (None, *UNKNOWN), 3: "unknown", 5: "unknown"},
    ),
    Story(
        "no marker like it came before",
        LONG_COMMIT.replace("PrepareCommit e0 [A]\n    160 CompleteCommit", "PrepareAbort e0 [A]\n    160 CompleteAbort"),
        "0 data e0 @110\n1 ABORT e0 @155\n2 data e0 @60010\n3 COMMIT e0 @70000\n4 data e0 @89000\n5 COMMIT e0 @90005" + TWO_MORE,
        {1: "closing", 2: (2, *GENUINE), 3: "unexplained", 4: (2, *GENUINE), 5: "closing"},
    ),
    Story(
        "an operator's ABORT before the coordinator's, of the epoch that ended the transaction before",
        TWO_ABORTS_OF_TV2,
        "0 data e0 @110\n1 ABORT e1 @155\n2 data e1 @210\n3 ABORT e1 @230\n4 ABORT e2 @255",
        {2: (2, *GENUINE), 3: "manual", 4: "empty"},
        {1: ("covered", "closing"), 2: ("covered", "manual")},
        transaction_version=2,
    ),
    Story(
        "a timeout whose ABORT has the epoch of the data",
        """
        0 Empty e0
        100 Ongoing e0 [A]
        150 PrepareAbort e1 [A]
        160 CompleteAbort e1
        200 Empty e2
        300 Ongoing e2 [A]
        350 PrepareCommit e2 [A]
        360 CompleteCommit e2""",
        "0 data e0 @110\n1 ABORT e0 @155\n2 data e2 @310\n3 COMMIT e2 @355",
        {0: (1, *GENUINE), 1: "unexplained", 2: (2, *GENUINE), 3: "closing"},
        {1: ("covered", "missing"), 2: ("covered", "closing")},
    ),
    Story(
        DECIDED_AGAIN,
        "0 Empty e0\n100 Ongoing e0 [A]\n5000 PrepareAbort e1 ple2 [A]\n5010 CompleteAbort e1 ple2",
        "0 data e0 @110\n1 ABORT e1 ce1 @3000\n2 ABORT e1 ce2 @5005",
        {0: (1, *GENUINE), 1: "closing", 2: "duplicate"},
        {1: ("covered", "closing")},
    ),
    Story(
        "a hole between the data and the marker that seems to end it",
        ABORT_THEN_COMMIT,
        "0 data e0 @110\n9 data e0 @210 hole\n10 COMMIT e0 @255",
        {0: (None, None, "unknown"), 9: (2, *GENUINE), 10: "closing"},
        {1: ("below_start", "unknown"), 2: ("covered", "closing")},
        stopped=False,
    ),
    Story(
        "the head of a log is missing, and the last of its markers is one whose record was lost",
        THREE,
        "3 COMMIT e0 @155\n4 data e0 @210\n5 marker e0 @255\n6 data e0 @310\n7 marker e0 @355",
        {3: "empty", 4: UNKNOWN_HERE, 6: UNKNOWN_HERE},
        {1: ("covered", "closing"), 2: ("not_judged", "unknown"), 3: ("not_judged", "unknown")},
        first_offset=3,
    ),
    Story(
        "offsets are missing behind the last marker of a producer",
        THREE,
        "0 data e0 @110\n1 COMMIT e0 @155",
        {0: (1, *GENUINE), 1: "closing"},
        {1: ("covered", "closing"), 2: ("not_judged", "unknown"), 3: ("not_judged", "unknown")},
        missing_to=9,
    ),
    Story(
        "the head of a log is missing, and what stood behind the last marker of a producer",
        THREE,
        "3 COMMIT e0 @155",
        {3: "empty"},
        {1: ("covered", "closing"), 2: ("not_judged", "unknown"), 3: ("not_judged", "unknown")},
        first_offset=3,
        missing_to=9,
    ),
    Story(
        "a marker whose record was lost, between two",
        THREE,
        "0 data e0 @110\n1 COMMIT e0 @155\n2 data e0 @210\n3 marker e0 @255\n4 data e0 @310\n5 COMMIT e0 @355",
        {0: (1, *GENUINE), 1: "closing", 2: UNKNOWN_HERE, 4: (3, *GENUINE), 5: "closing"},
        {1: ("covered", "closing"), 2: ("not_judged", "unknown"), 3: ("covered", "closing")},
    ),
    Story(
        "data that no marker ends before offsets that are missing: a transaction may have ended there, and whose it was nobody knows",
        THREE,
        "0 data e0 @110\n1 COMMIT e0 @155\n2 data e0 @310",
        {0: (1, *GENUINE), 1: "closing", 2: UNKNOWN_HERE},
        {1: ("covered", "closing"), 2: ("not_judged", "unknown"), 3: ("not_judged", "unknown")},
        missing_to=9,
    ),
    Story(
        "the same hole, and data behind it that nobody ended",
        THREE,
        "0 data e0 @110\n1 COMMIT e0 @155\n12 data e0 @310 hole",
        {0: (1, *GENUINE), 1: "closing"},
        {1: ("covered", "closing"), 2: ("not_judged", "unknown")},
        missing_to=9,
    ),
    Story(
        "a lost ABORT between two markers that are sure, behind one that may be either of two transactions'",
        """0 Empty e0
        100 Ongoing e0 [A]
        102 PrepareCommit e0 [A]
        104 CompleteCommit e0
        106 Ongoing e0 [A]
        108 PrepareCommit e0 [A]
        110 CompleteCommit e0
        1000 Empty e1
        1100 Ongoing e1 [A]
        1150 PrepareCommit e1 [A]
        1160 CompleteCommit e1
        2000 Ongoing e1 [A]
        2050 PrepareAbort e2 [A]
        2060 CompleteAbort e2
        2100 Empty e3
        3000 Ongoing e3 [A]
        3050 PrepareCommit e3 [A]
        3060 CompleteCommit e3""",
        "0 data e0 @101\n1 COMMIT e0 @106\n2 data e1 @1110\n3 COMMIT e1 @1155\n4 data e1 @2010\n5 COMMIT e3 @3055",
        {0: (None, *UNKNOWN), 1: "unknown", 2: (3, *GENUINE), 3: "closing", 4: (4, *GENUINE), 5: "closing"},
    ),
    Story(
        "a hole inside one transaction, whose epoch tells",
        """
        0 Empty e0
        100 Ongoing e0 [A] v2
        150 PrepareCommit e1 [A] v2
        160 CompleteCommit e1 v2""",
        "0 data e0 @110\n9 data e0 @120 hole\n10 COMMIT e1 @155",
        {0: (1, *GENUINE), 9: (1, *GENUINE), 10: "closing"},
        {1: ("covered", "closing")},
        transaction_version=2,
    ),
    Story(
        "data of an epoch of no transaction, and a hole between it and the marker that seems to end it",
        """
        900 Ongoing e4 [A] v2
        950 PrepareCommit e5 [A] v2
        960 CompleteCommit e5 v2""",
        "0 data e0 @110\n10 COMMIT e5 @955 hole",
        {0: UNKNOWN_HERE, 10: "closing"},
        {1: ("covered", "closing")},
        transaction_version=2,
    ),
    Story(
        "a topic that was deleted, and created again within the tolerance for clocks",
        TWO_COMMITS.replace("200 ", "1200 ").replace("250 ", "1250 ").replace("260 ", "1260 "),
        "0 COMMIT e0 @1255",
        {0: "unknown"},
        {1: ("not_judged", "unknown"), 2: ("not_judged", "unknown")},
    ),
    Story(
        "data that is younger than the dump of the coordinator's log",
        ONE_ABORT,
        "0 data e0 @110\n1 ABORT e0 @155\n2 data e0 @600\n3 ABORT e0 @700\n4 data e0 @710",
        {0: (1, *GENUINE), 1: "closing", 2: (None, *UNKNOWN), 3: "unknown", 4: (None, *UNKNOWN)},
        stopped=False,
    ),
    Story(
        "open, within its timeout",
        "0 Empty e0\n100 Ongoing e0 [A]",
        "0 data e0 @95",
        {0: (1, *GENUINE)},
        {1: ("tail", "pending")},
        stopped=False,
    ),
    Story(
        "late data, then the transaction that lists the partition is running",
        ONE_ABORT + "\n90000 Ongoing e0 [A]",
        "0 data e0 @110\n1 ABORT e0 @155\n2 data e0 @140\n3 data e0 @90001",
        {2: (1, *SUSPECTED), 3: (2, *GENUINE)},
    ),
    Story(
        "completed after the dump of the partition",
        TWO_COMMITS,
        "0 data e0 @95\n1 COMMIT e0 @155\n2 data e0 @155",
        {2: (2, *GENUINE)},
        {2: ("tail", "unknown")},
        stopped=False,
    ),
    Story(
        "completed long before the collection began, and what it wrote is open",
        TWO_COMMITS,
        "0 data e0 @95\n1 COMMIT e0 @155\n2 data e0 @155",
        {2: (2, *GENUINE)},
        {2: ("overdue", "unknown")},
        stopped=False,
        collected_at=1_000_000,
    ),
    Story(
        "completed long before, and its broker led the partition from the log's end on, and lived on",
        TWO_COMMITS + "\n    90000 Empty e1",
        "0 data e0 @95\n1 COMMIT e0 @155\n2 data e0 @155",
        {2: (2, *GENUINE)},
        {2: ("led_on", "unknown")},
        stopped=False,
        collected_at=1_000_000,
        led_from_end=True,
    ),
    Story(
        "its broker led from the log's end on, and may have died soon after the completion",
        TWO_COMMITS + "\n    20000 Empty e1",
        "0 data e0 @95\n1 COMMIT e0 @155\n2 data e0 @155",
        {2: (2, *GENUINE)},
        {2: ("overdue", "unknown")},
        stopped=False,
        collected_at=1_000_000,
        led_from_end=True,
    ),
    Story(
        "the same, but all was deleted up to the log's end, and took the note of its leader along",
        TWO_COMMITS + "\n    90000 Empty e1",
        "0 data e0 @95\n1 COMMIT e0 @155\n2 data e0 @155",
        {2: (2, *GENUINE)},
        {2: ("overdue", "unknown")},
        stopped=False,
        collected_at=1_000_000,
        led_from_end=True,
        log_start=3,
    ),
    Story(
        "completed shortly before a time that may be that of the collection's end",
        TWO_COMMITS,
        "0 data e0 @95\n1 COMMIT e0 @155\n2 data e0 @155",
        {2: (2, *GENUINE)},
        {2: ("perhaps_overdue", "unknown")},
        stopped=False,
        collected_at=800_000,
    ),
    Story(
        "completed so shortly before the manifest's time as clocks may lie apart",
        TWO_COMMITS,
        "0 data e0 @95\n1 COMMIT e0 @155\n2 data e0 @155",
        {2: (2, *GENUINE)},
        {2: ("tail", "unknown")},
        stopped=False,
        collected_at=61_000,
    ),
    Story(
        "completed long before the collection began, and nothing of it is here",
        TWO_COMMITS,
        "0 data e0 @95\n1 COMMIT e0 @155",
        {0: (1, *GENUINE)},
        {2: ("tail", "unknown")},
        stopped=False,
        collected_at=1_000_000,
    ),
    CLEANED_AWAY,
    replace(
        CLEANED_AWAY,
        name="the same, and the log ends before it",
        partition={2: ("overdue", "unknown")},
        other_at=None,
    ),
    replace(
        CLEANED_AWAY,
        name="the same, and nothing is left of what stood at its end",
        partition={2: ("tail", "unknown")},
        other_at=None,
        lacks_end=True,
    ),
    replace(
        CLEANED_AWAY,
        name="the same, and the cleaner was never there",
        partition={2: ("overdue", "unknown")},
        uncleaned_from=0,
    ),
]


@pytest.fixture(scope="module")
def clusters(spark: SparkSession) -> DataFrame:
    rows = [
        {
            "cluster": story.name,
            "coordinator_complete": story.complete and story.tail == "eof",
            "transaction_version": story.transaction_version,
            "kafka_version": "4.0.0" if story.transaction_version == 2 else "3.9.1",
            "abort_scan_interval_ms": 10_000,
            "skew_ms": 2_000,
            "max_transaction_timeout_ms": 900_000,
        }
        for story in STORIES
    ]
    return table(spark, "clusters", rows)


@pytest.fixture(scope="module")
def replica_logs(spark: SparkSession) -> DataFrame:
    places = {"topic": TOPIC, "partition": PARTITION, "tail_intact": True, "uncleaned_from": 0, "broker": 1}
    logs = [
        {"replica_log_id": n, "cluster": story.name, "first_offset": story.first_offset, "clean_end": story.stopped}
        | {"is_empty": not story.log, "first_leader_epoch": story.begun_in, "collected_at_ms": story.collected_at, **places}
        | ({"noted_at": (n, 1)} if story.dumped_before else {})
        | {"dumped_at_ms": story.dumped_at, "uncleaned_from": story.uncleaned_from}
        | ({"leo": 3, "leader_epochs": [(0, 0), (3, 2)]} if story.led_from_end else {})
        | ({"log_start": story.log_start} if story.log_start is not None else {})
        | ({"empty_newest": (2, 9, n, 0, 1)} if story.lacks_end else {})
        | {"oldest_batch_ms": min((row["max_timestamp_ms"] for row in log_rows(n, story)), default=None), "compacted": story.compacted}
        | {
            "newest_broker_clock_ms": max(
                (row["max_timestamp_ms"] for row in log_rows(n, story) if row["row_kind"] == "marker"), default=None
            )
        }
        for n, story in enumerate(STORIES)
    ]
    coordinators = [
        {
            "replica_log_id": log_id,
            "cluster": story.name,
            "topic": "__transaction_state",
            "partition": 0,
            "tail_intact": True,
            "broker": broker,
            "leo": 1_000,
            "listed": story.listed,
            "whole": True,
            **({"noted_at": (n, 2)} if story.dumped_before else {}),
            "dumped_at_ms": story.dumped_at,
            "clean_end": story.stopped,
            "newest_broker_clock_ms": max((row["batch_timestamp_ms"] for row in entry_rows(n, story)), default=None),
        }
        for n, story in enumerate(STORIES)
        for log_id, broker in ((1_000 + n, story.coordinator_broker), *([(2_000 + n, 1)] if story.own_copy else []))
    ]
    siblings = [
        {"replica_log_id": 3_000 + n, "cluster": story.name, "first_offset": 0, "clean_end": story.stopped, "first_leader_epoch": 0}
        | {"topic": TOPIC, "partition": PARTITION + 7, "tail_intact": True, "uncleaned_from": 0, "broker": 1, "compacted": False}
        for n, story in enumerate(STORIES)
        if story.sibling_at is not None
    ]
    return table(spark, "replica_logs", [*logs, *coordinators, *siblings])


@pytest.fixture(scope="module")
def history(spark: SparkSession, clusters: DataFrame) -> DataFrame:
    place = {"topic": "__transaction_state", "partition": 0, "kind": "log", "is_read": True}
    sections = [
        {"section_id": n, "cluster": story.name, "segment_base_offset": story.first_entry, "end_reason": story.tail, **place}
        for n, story in enumerate(STORIES)
    ]
    entries = [row for n, story in enumerate(STORIES) for row in entry_rows(n, story)]
    return coordinator_history(
        table(spark, "coordinator_entries", entries), table(spark, "section_status", sections), clusters
    ).localCheckpoint()


@pytest.fixture(scope="module")
def instances(history: DataFrame, clusters: DataFrame) -> DataFrame:
    return transaction_instances(history, clusters).localCheckpoint()


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> DataFrame:
    found = table(
        spark,
        "producer_history",
        [row for n, story in enumerate(STORIES) for row in (*log_rows(n, story), *other_rows(n, story), *sibling_rows(n, story))],
    )
    return found.drop(*LATER, "truth", "returned", "returned_from_segment", "below_lso").localCheckpoint()


@pytest.fixture(scope="module")
def story_told(
    rows: DataFrame, instances: DataFrame, history: DataFrame, replica_logs: DataFrame, clusters: DataFrame
) -> dict[str, DataFrame]:
    cut = cut_logs(rows, instances, coordinator_history=history, replica_logs=replica_logs).localCheckpoint()
    return {"reach": reach(history, replica_logs, clusters, cut), "whole_logs": whole_logs(history, replica_logs, clusters, cut)}


@pytest.fixture(scope="module")
def covered(spark: SparkSession) -> DataFrame:
    holes = [(n, story.missing_to) for n, story in enumerate(STORIES) if story.missing_to is not None]
    return table(spark, "coverage", [{"replica_log_id": n, "state": "hole", "first_offset": at, "last_offset": at} for n, at in holes])


@pytest.fixture(scope="module")
def matched(
    rows: DataFrame,
    instances: DataFrame,
    covered: DataFrame,
    story_told: dict[str, DataFrame],
    replica_logs: DataFrame,
    clusters: DataFrame,
) -> DataFrame:
    story = {"reach": story_told["reach"], "coverage": covered}
    return match_markers(rows, transaction_spans(rows), instances, **story, replica_logs=replica_logs, clusters=clusters).localCheckpoint()


@pytest.fixture(scope="module")
def clocks(matched: DataFrame) -> DataFrame:
    return clock_offsets(matched).localCheckpoint()


@pytest.fixture(scope="module")
def events(
    rows: DataFrame,
    matched: DataFrame,
    clocks: DataFrame,
    story_told: dict[str, DataFrame],
    replica_logs: DataFrame,
    clusters: DataFrame,
) -> DataFrame:
    known = {"replica_logs": replica_logs, "clusters": clusters}
    return judged_events(rows, transaction_spans(rows), matched, clock_offsets=clocks, **story_told, **known).localCheckpoint()


@pytest.fixture(scope="module")
def assigned(rows: DataFrame, events: DataFrame, instances: DataFrame) -> DataFrame:
    found = assign_instances(rows, events, instances)
    assert found.columns == [*rows.columns, *LATER]
    return found.localCheckpoint()


@pytest.fixture(scope="module")
def numbers(instances: DataFrame) -> dict[str, int]:
    """Number of each instance within its story, from 1 on."""
    found: dict[str, list[tuple[int, str]]] = {}
    for row in instances.collect():
        found.setdefault(row.cluster, []).append((row.first_entry_offset, row.instance_id))
    return {name: place for ids in found.values() for place, (_, name) in enumerate(sorted(ids), start=1)}


@pytest.fixture(scope="module")
def every(assigned: DataFrame) -> list[Row]:
    """All rows, doubled ones too."""
    return assigned.collect()


@pytest.fixture(scope="module")
def said(every: list[Row]) -> dict[tuple[int, int], Row]:
    return {(row.replica_log_id, row.base_offset): row for row in every}


@pytest.mark.parametrize("number", range(len(STORIES)), ids=[story.name for story in STORIES])
def test_rows(number: int, said: dict[tuple[int, int], Row], numbers: dict[str, int]) -> None:
    story = STORIES[number]
    found: dict[int, object] = {}
    for offset in story.rows:
        row = said[number, offset]
        found[offset] = row.marker_role if row.row_kind == "marker" else (numbers.get(row.instance_id), row.late, row.registration)
    assert found == dict(story.rows)


def test_a_marker_of_a_decision_that_was_lost_and_taken_again_is_superseded(
    rows: DataFrame, matched: DataFrame, clocks: DataFrame, story_told: dict[str, DataFrame], replica_logs: DataFrame, clusters: DataFrame
) -> None:
    """Where other producers tell the clocks, the successor's marker alone fits the decision."""
    (number,) = [n for n, story in enumerate(STORIES) if story.name == DECIDED_AGAIN]
    here = f"replica_log_id = {number}"
    by_clocks = matched.selectExpr(
        "* EXCEPT (match, found, claims)",
        f"CASE WHEN {here} AND kind = 2 THEN IF(place = 2, 'closing', NULL) ELSE match END AS match",
        f"IF({here} AND kind = 2, lag(found) OVER (PARTITION BY replica_log_id, kind ORDER BY place), found) AS found",
        f"CASE WHEN {here} AND kind = 2 THEN IF(place = 2, 2, NULL) WHEN {here} AND claims = 1 THEN 2 ELSE claims END AS claims",
    )
    known = {"replica_logs": replica_logs, "clusters": clusters}
    events = judged_events(rows, transaction_spans(rows), by_clocks, clock_offsets=clocks, **story_told, **known)
    told = events.where(f"{here} AND marker IS NOT NULL").orderBy("place").collect()
    assert [(row.marker_role, row.marker_instance.decision) for row in told] == [("superseded", "ABORT"), ("empty", "ABORT")]


def test_nothing_is_lost_or_doubled(said: dict[tuple[int, int], Row], every: list[Row]) -> None:
    assert (
        len(every)
        == len(said)
        == sum(len(log_rows(n, story)) + len(other_rows(n, story)) + len(sibling_rows(n, story)) for n, story in enumerate(STORIES))
    )


def test_decisions_are_those_of_the_owner(said: dict[tuple[int, int], Row], instances: DataFrame) -> None:
    decided = {row.instance_id: row.decision for row in instances.collect()}
    owned = [row for row in said.values() if row.instance_id and row.row_kind == "data"]
    certain = [row for row in owned if row.registration == "registered" and row.late != "suspected"]
    assert certain
    assert all(row.instance_decision == decided[row.instance_id] for row in certain)
    assert all(row.instance_decision is None for row in owned if row not in certain)


@pytest.fixture(scope="module")
def partitions(
    instances: DataFrame,
    assigned: DataFrame,
    events: DataFrame,
    *,
    covered: DataFrame,
    matched: DataFrame,
    story_told: dict[str, DataFrame],
    replica_logs: DataFrame,
    clocks: DataFrame,
    clusters: DataFrame,
) -> dict[str, Row]:
    logs = {"replica_logs": replica_logs, "clock_offsets": clocks, "clusters": clusters}
    told = {"matched": matched, "reach": story_told["reach"], "coverage": covered}
    found = instance_partitions(instances, assigned, events=events, **told, **logs)
    rows = found.where(f"topic = '{TOPIC}'").collect()
    here = [row for row in rows if row.partition == PARTITION or row.replica_log_id is None]
    return {row.instance_id: row for row in sorted(here, key=lambda row: row.partition, reverse=True)}


def _expected_partitions() -> Iterator[tuple[str, int, tuple[str, str]]]:
    for story in STORIES:
        for number, expected in story.partition.items():
            yield story.name, number, expected


@pytest.mark.parametrize(("name", "number", "expected"), list(_expected_partitions()))
def test_partitions(name: str, number: int, expected: tuple[str, str], partitions: dict[str, Row], numbers: dict[str, int]) -> None:
    (instance,) = [found for found, place in numbers.items() if found.startswith(f"{name}/") and place == number]
    row = partitions[instance]
    assert (row.coverage, row.marker_match) == expected
    assert LISTED["A"][0] == row.topic


@pytest.fixture(scope="module")
def fates(spark: SparkSession, events: DataFrame) -> dict[int, tuple[str, str | None]]:
    found = open_transactions(events, table(spark, "visibility", []))
    return {row.replica_log_id: (row.fate, row.why_unknown) for row in found.collect()}


LEFT = [(number, story) for number, story in enumerate(STORIES) if story.fate is not None]


@pytest.mark.parametrize(("number", "story"), LEFT, ids=[story.name for _, story in LEFT])
def test_nobody_ends_it_only_where_the_logs_are_known_to_overlap(
    number: int, story: Story, fates: dict[int, tuple[str, str | None]]
) -> None:
    fate, why = fates[number]
    assert fate == story.fate and (why is not None) == (fate == "unknown")
    assert story.why is None or why == story.why
