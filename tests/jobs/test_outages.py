"""A whole run over a real outage: its length reaches verdict.json and the sentence that a person reads."""

import re
from itertools import pairwise
from pathlib import Path

from pyspark.sql import SparkSession

import eo_audit
from eo_audit import pipeline

DUMPS = Path(__file__).parents[1] / "data" / "corpus" / "dumps" / "power_outage_long_tv2"
POWER_WAS_OFF_MS = 12_000  # what the scenario did; brokers take their time to come back


def longest_silence_ms() -> int:
    """The longest stretch in which no coordinator wrote, by the batch lines of all their logs."""
    texts = [path.read_text() for path in DUMPS.glob("broker-1/__transaction_state-*/*.log.txt")]
    times = sorted({int(at) for text in texts for at in re.findall(r"^baseOffset: .*? CreateTime: (\d+)", text, re.MULTILINE)})
    return max(after - before for before, after in pairwise(times))


def test_the_length_of_an_outage_is_told(spark: SparkSession, tmp_path: Path) -> None:
    pipeline.run(tmp_path, [DUMPS], pipeline.Options(), spark=lambda: spark)
    verdict = eo_audit.open(tmp_path).verdict
    outage = longest_silence_ms()
    assert outage >= POWER_WAS_OFF_MS
    assert (verdict["verdict"], verdict["timeouts"]) == ("pass", {"transactions": 1, "outage_ms": outage})
    assert f"after an outage of up to {outage / 1_000:.1f} s; its producer was fenced." in str(verdict["headline"])
