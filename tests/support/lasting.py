"""A Spark session that lasts minutes, for many small audits."""

from dataclasses import replace

from pyspark.sql import SparkSession

from eo_audit.config import load
from eo_audit.store.session import session

# Plans and few rows as in a small run; but Java's second compiler, which a run of seconds does not live to see, saves a third of the CPU
# time of a session that plans for minutes (model clusters 24 s against 48 s, the corpus 13 s against 22 s). It begins ten times as late as
# by default, as for large inputs (conf/local.yaml): else a third of a first audit is code made fast that soon is not run again.
COMPILES_LATE = (
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 "
    "-XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)


def lasting_session() -> SparkSession:
    """With the small profile of `conf/local.yaml`: Delta on, two cores, one shuffle partition."""
    config = load(master="local[2]")
    small = replace(config.small, driver_memory="2g", java_options=f"-XX:+UseSerialGC -XX:MetaspaceSize=256m -Xmn512m {COMPILES_LATE}")
    return session(replace(config, small=small), input_bytes=0)
