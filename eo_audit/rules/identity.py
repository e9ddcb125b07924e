"""I and P12: one job under two identities, which no broker can tell from two jobs.

P12  a producer starts with the records that another one ended with: a restart that sent them again under a new producer id.
I06  two transactional ids work on one partition at the same time and look like one job: neither fences the other.

Only hashes of keys and values of each producer's first and last records are compared. Legal histories that look alike: heartbeats and other
payloads that repeat by nature; records sent again because their transaction was aborted; ids that share a partition on purpose;
Kafka Streams (exactly_once_v2), where the consumer group fences.
"""

from eo_audit.rules.explain import identity as words_of
from eo_audit.rules.resends import candidates
from eo_audit.rules.rule import Docs, Rule

P12 = Rule(
    "P12",
    "payload-dup-across-pids",
    "warning",
    ("producer_edges",),
    "producer_edge",
    find=candidates,
    explain=words_of.resend,
    needs=("payload",),
    docs=Docs(
        "What one producer wrote last, another wrote first: the same keys and values, in the same order, within a restart.",
        "Producer 0 writes records A B C D; a new producer starts, at sequence 0, with A B C D.",
        "Heartbeats; a resend of records whose transaction was aborted; two producers that happen to start with one equal record.",
    ),
    cause="an application restarted (or sent twice) with a new producer id: the broker removes duplicates only within one producer id",
    remedy=(
        "Nothing to repair in the log; safe to leave. De-duplicate downstream by business key, and give the producer a stable "
        "transactional.id."
    ),
)
I06 = Rule(
    "I06",
    "unfenced-siblings",
    "info",
    ("producer_edges", "transaction_spans", "transaction_instances"),
    "producer_edge",
    find=candidates,
    explain=words_of.siblings,
    needs=("payload",),
    docs=Docs(
        "Two transactional producers had transactions open on one partition at the same time, and their records say that they did "
        "the same work.",
        "settlement-host-a and settlement-host-b both commit the payments PAY-1005 to PAY-1008.",
        "Ids that split the work on purpose and share a partition; Kafka Streams ids, which the consumer group fences.",
    ),
    cause="the transactional.id does not name the unit of work (it names a host or is random), so a new owner does not fence the old one",
    remedy=(
        "Nothing to abort. Use one transactional.id per input partition, or a stable instance id together with "
        "sendOffsetsToTransaction and the consumer "
        "group's metadata (brokers and clients from 2.5 on)."
    ),
)

RULES = (P12, I06)
