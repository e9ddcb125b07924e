"""A Spark session that lasts minutes, for many small audits."""

from dataclasses import replace

from pyspark.sql import SparkSession

from eo_audit.config import load
from eo_audit.store.session import session

# Plans and few rows as in a small run; but Java's second compiler, which a run of seconds does not live to see, saves a third of the CPU
# time of a session that plans for minutes (model clusters 24 s against 48 s, the corpus 13 s against 22 s). It begins forty times as late
# as by default, four times as late as for large inputs (conf/local.yaml): else much of its work is code made fast that soon is not run
# again (rebuild and rules of 324 model clusters, CPU seconds: ten times as late 101 and 102, forty times 93 and 94, a hundred times 100).
COMPILES_LATE = (
    "-XX:Tier4InvocationThreshold=200000 -XX:Tier4MinInvocationThreshold=24000 "
    "-XX:Tier4CompileThreshold=600000 -XX:Tier4BackEdgeThreshold=1600000"
)


def lasting_session() -> SparkSession:
    """With the small profile of `conf/local.yaml`: Delta on, two cores, one shuffle partition."""
    config = load(master="local[2]")
    small = replace(config.small, driver_memory="2g", java_options=f"-XX:+UseSerialGC -XX:MetaspaceSize=256m -Xmn512m {COMPILES_LATE}")
    return session(replace(config, small=small), input_bytes=0)
