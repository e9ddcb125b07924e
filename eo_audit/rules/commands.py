"""Complete commands for remedies, between back quotes: everything is filled in but $BOOTSTRAP."""

from eo_audit.rules.words import shell

TOOL = "kafka-transactions.sh --bootstrap-server $BOOTSTRAP"


def abort(topic: str, partition: int, start_offset: int) -> str:
    """Abort one hanging transaction on one partition (KIP-664). Only for a partition that the coordinator does not list."""
    return f"`{TOOL} abort --topic {shell(topic)} --partition {partition} --start-offset {start_offset}`"


def describe(transactional_id: str) -> str:
    """What the coordinator knows of a transactional id now."""
    return f"`{TOOL} describe --transactional-id {shell(transactional_id)}`"


def describe_producers(topic: str, partition: int) -> str:
    """Producer states of a partition now, open transactions included."""
    return f"`{TOOL} describe-producers --topic {shell(topic)} --partition {partition}`"


def describe_topic(topic: str) -> str:
    """Leader, replicas and in-sync replicas of a topic now."""
    return f"`kafka-topics.sh --bootstrap-server $BOOTSTRAP --describe --topic {shell(topic)}`"
