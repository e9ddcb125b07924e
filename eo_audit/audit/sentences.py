"""Sentences that a person reads first: the headline of a verdict, who holds consumers back and until when, who accepted what."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from eo_audit.rules.catalogue import BY_CODE
from eo_audit.rules.replica_log import COORDINATOR_TOPIC
from eo_audit.rules.rule import SEVERITIES
from eo_audit.rules.waiting import spent
from eo_audit.words import NEVER_TIMES_OUT, Row, brokers, count, digits, duration, moment, place

GRAVEST_FIRST = tuple(reversed(SEVERITIES))
# (cluster, partition) -> the brokers whose copies of it were audited.
Copies = Mapping[tuple[object, str], Collection[object]]


def waiting_for(finding: Row) -> str:
    """What a finding says of consumers that wait for an open transaction (`Rule.waiting`); empty for a rule of another release."""
    rule = BY_CODE.get(str(finding.get("rule")))
    return rule.waiting if rule else ""


def is_paper(finding: Row) -> bool:
    """It is about the coordinator's own entries, and does not show that a record was lost, doubled or wrongly visible."""
    rule = BY_CODE.get(str(finding.get("rule")))
    return rule is not None and not rule.proves_delivery_wrong


def writer(blocker: Row) -> str:
    """Who holds a partition back, the name that people know first: `settlement-7f3a (producer 0)`."""
    producer = f"producer {blocker.get('producer_id')}"
    return f"{blocker['transactional_id']} ({producer})" if blocker.get("transactional_id") else producer


def is_waiting(partition: Row) -> bool:
    """Committed records of a partition wait for an open transaction that the coordinator will end."""
    blocker, lso, hw = partition.get("blocker"), partition.get("lso"), partition.get("hw")
    behind = isinstance(lso, int) and isinstance(hw, int) and lso < hw and bool(partition.get("held_back_records"))
    # A status of the coordinator: it knows of the transaction and will end it. What it does not know hangs, and is a finding.
    return behind and isinstance(blocker, Mapping) and blocker.get("coordinator_status") is not None


def waiting_sentence(partition: Row, *, many: bool = False) -> str:
    """For whom the consumers of a partition wait, for how long already, and until when at the latest.

    Args:
        partition: a row of verdict.json that `is_waiting`.
        many: whether there are several clusters.
    """
    blocker = partition["blocker"]
    assert isinstance(blocker, Mapping)
    where = f"{place(partition)}{_cluster(partition, many=many)}"
    wait = f"{where}: read_committed consumers wait at offset {digits(partition.get('lso'))} for {writer(blocker)}"
    return f"{wait}{_open_for(blocker)}{_ends(blocker)}."


def _open_for(blocker: Row) -> str:
    """`, open for 40 of 60 min`."""
    seconds, timeout = blocker.get("held_back_seconds"), blocker.get("timeout_ms")
    if not isinstance(seconds, int):
        return ""
    return f", open for {spent(seconds * 1_000, timeout)}" if isinstance(timeout, int) else f", open for {duration(seconds * 1_000)}"


def _ends(blocker: Row) -> str:
    """When the coordinator ends it, as far as that is known."""
    frees, status = blocker.get("frees_at_ms"), str(blocker.get("coordinator_status"))
    # Behind PrepareX the decision stands, and a timeout can change it no more (`TransactionMetadata`): nothing is left but to wait.
    if status.startswith("Prepare"):
        return f"; it is decided ({status}), the coordinator is writing the markers"
    timeout = blocker.get("timeout_ms")
    # KIP-939: such a timeout marks a transaction that another coordinator of two phases will end.
    if timeout == NEVER_TIMES_OUT:
        return "; only its owner will end it, for it never times out"
    if not isinstance(frees, int):
        # The entry that began it is in no dump.
        return f"; the coordinator aborts it at the latest {duration(timeout)} after it began" if isinstance(timeout, int) else ""
    now = _now(blocker)
    # A coordinator looks for timeouts every 10 s (60 s up to 2.4; transaction.abort.timed.out.transaction.cleanup.interval.ms): this one
    # was not at work.
    if now is not None and frees < now:
        return f"; the coordinator should have aborted it at {moment(frees, now)}"
    return f"; the coordinator aborts it at {moment(frees, now)} at the latest"


def _now(blocker: Row) -> int | None:
    """The now of the cluster that was dumped, if its dumps tell."""
    now = blocker.get("as_of_ms")
    return now if isinstance(now, int) else None


def held_back(partition: Row) -> str:
    """What lies between the LSO and the high watermark of a partition, and until when: for one line of a table."""
    blocker, held = partition.get("blocker"), partition.get("held_back_records")
    many = isinstance(held, int) and held != 1
    wait = f"{held:,} committed record{'s wait' if many else ' waits'}" if isinstance(held, int) and held else "nothing committed waits"
    if not isinstance(blocker, Mapping):
        return f"{wait}; a transaction that ended above the high watermark"
    frees = blocker.get("frees_at_ms")
    now = _now(blocker)
    until = f", until {moment(frees, now)} at the latest" if isinstance(frees, int) and (now is None or frees >= now) else ""
    return f"{wait} behind {writer(blocker)}{until}"


def stuck_sentence(partition: Row, findings: Sequence[Row], *, many: bool = False) -> str:
    """What a stuck partition means for its consumers: since when, behind whom, and whether time will free them.

    Args:
        partition: a row of verdict.json.
        findings: finding rows.
        many: whether there are several clusters.
    """
    blocker = partition.get("blocker")
    told = blocker if isinstance(blocker, Mapping) else {}
    hanging = _hanging(partition, findings)
    since = f" since {moment(hanging.get('timestamp_ms'))}" if hanging and hanging.get("timestamp_ms") else ""
    ending = "; they go on with its marker, and these dumps do not tell whether that comes"
    if hanging:
        ending = "; only an abort frees them, or that producer's next marker here"
    elif told.get("coordinator_status"):
        ending = _open_for(told) + (_ends(told) or ending)
    where, lso = f"{place(partition)}{_cluster(partition, many=many)}", partition.get("lso")
    if lso is None:
        untold = "these dumps do not tell the last stable offset"
        return f"{where}: nobody knows whether read_committed consumers are stuck behind {writer(told)}: {untold}."
    return f"{where}: read_committed consumers are stuck at offset {digits(lso)}{since} behind {writer(told)}{ending}."


def held_back_sentence(partition: Row, findings: Sequence[Row]) -> str:
    """What a partition whose last stable offset lies below its high watermark means for its consumers.

    Args:
        partition: a row of verdict.json with a blocker.
        findings: finding rows.
    """
    blocker = partition["blocker"]
    assert isinstance(blocker, Mapping)
    if is_waiting(partition):
        return waiting_sentence(partition)
    if blocker.get("coordinator_status") is None or partition.get("held_back_records") != 0 or _hanging(partition, findings):
        return stuck_sentence(partition, findings)
    return f"{waiting_sentence(partition)} No committed record stands behind it, so nobody misses one."


def _hanging(partition: Row, findings: Sequence[Row]) -> Row | None:
    """A finding that nobody will end what holds a partition back. It outweighs what the coordinator says: it does not know of the data."""
    here = (f for f in findings if place(f) == place(partition) and f.get("cluster") == partition.get("cluster"))
    return next((f for f in here if waiting_for(f) == "for_ever"), None)


def _cluster(row: Row, *, many: bool) -> str:
    """Named only where there are several."""
    return f" in cluster {row.get('cluster')}" if many else ""


def copies_of(logs: Iterable[Row]) -> Copies:
    """From rows of replica logs, such as the partitions of verdict.json."""
    copies: dict[tuple[object, str], set[object]] = {}
    for log in logs:
        copies.setdefault((log["cluster"], place(log)), set()).add(log["broker"])
    return copies


def whose(finding: Row, copies: Copies) -> str:
    """On which brokers a finding is seen, where copies of others were audited, too, and do not show it; else nothing.

    Of the coordinator's log one copy speaks for all: what it tells is of no broker.
    """
    found = finding.get("brokers")
    there = copies.get((finding["cluster"], place(finding)), ())
    if not isinstance(found, list) or finding.get("topic") == COORDINATOR_TOPIC or not 0 < len(found) < len(there):
        return ""
    return brokers(found)


def acceptance(entry: Row) -> str:
    """Who accepted a finding until when and why, or that it counts again."""
    if entry["expired"]:
        return f"Accepted by {entry['who']} until {entry['until']} ({entry['why']}): that has expired, it counts again."
    return f"Accepted by {entry['who']} until {entry['until']}: {entry['why']}"


def acceptances(entries: Sequence[Row]) -> list[str]:
    """All accepted findings of a run in a few sentences: `2 accepted by ana until 2026-12-31: why`."""
    told: dict[tuple[object, ...], int] = {}
    for entry in entries:
        key = (entry["expired"], str(entry["until"]), entry["who"], entry["why"])
        told[key] = told.get(key, 0) + 1
    sentences = []
    for (expired, until, who, why), number in sorted(told.items(), key=str):
        again = f" expired on {until} and {'counts' if number == 1 else 'count'} again" if expired else f" until {until}"
        sentences.append(f"{number} accepted by {who}{again}: {why}")
    return sentences


def headline(
    verdict: Row,
    findings: Sequence[Row],
    stuck: Sequence[Row],
    why_unknown: str | None = None,
    *,
    waiting: Sequence[Row] = (),
    many: bool = False,
) -> str:
    """The verdict in one or two sentences; what holds consumers back comes first.

    Args:
        verdict: the content of verdict.json.
        findings: finding rows that nobody accepted, the gravest first.
        stuck: rows of its `partitions` whose LSO is held back by a finding above info.
        why_unknown: what most rules lacked.
        waiting: rows of its `partitions` that wait for a transaction which the coordinator will end, the longest first.
        many: whether there are several clusters.
    """
    waits = waiting_sentence(waiting[0], many=many) + _more(len(waiting), "waits", "wait") if waiting else ""
    if verdict["verdict"] == "unknown":
        why = f" {why_unknown.rstrip('.')}." if why_unknown else ""
        return f"{waits} These dumps do not show whether delivery was exactly once.{why}".strip()
    if verdict["verdict"] == "pass":
        return _passed(verdict, findings, waits)
    # What holds consumers back is told before what was lost: it goes on costing until somebody acts.
    if stuck:
        return stuck_sentence(stuck[0], findings, many=many) + _more(len(stuck), "is stuck", "are stuck")
    return _failed(verdict, findings, waits, many=many)


def _more(number: int, one: str, several: str) -> str:
    return {1: "", 2: f" One more partition {one}."}.get(number, f" {number - 1:,} more partitions {several}.")


def _failed(verdict: Row, findings: Sequence[Row], waits: str, *, many: bool) -> str:
    grave = [finding for finding in findings if finding["severity"] in ("critical", "error")]
    held = verdict.get("held_back")
    if not grave and isinstance(held, Mapping) and held.get("decides") == "fail":
        return f"{waits} That is longer than the policy allows ({', '.join(held['limits'])}); delivery itself was not shown wrong."
    worst = next(iter(findings), None)
    if worst is None:
        return "Delivery was not exactly once."
    # Broken rules of the coordinator's log are no proof that a record was lost: the headline must not claim it.
    only_paper = bool(grave) and all(is_paper(finding) for finding in grave)
    what = "Delivery was not exactly once"
    if only_paper:
        what = "The coordinator's log breaks its own rules; delivery itself was not shown wrong"
    # Its message speaks of "this partition" and of offsets: without the place they are of none.
    where = f"{place(worst)}{_cluster(worst, many=many)}: " if worst.get("topic") else ""
    of_cluster = "" if where else _cluster(worst, many=many)
    return f"{what}{of_cluster}. {where}{str(worst['message']).rstrip('.')}. {waits}".strip()


def _passed(verdict: Row, findings: Sequence[Row], waits: str) -> str:
    found = verdict.get("accepted")
    accepted = sum(not entry["expired"] for entry in found) if isinstance(found, list) else 0
    warnings = sum(f["severity"] != "info" for f in findings)
    look = f" {count(warnings, 'warning')} to look at." if warnings else ""
    aborted = timeouts_sentence(verdict)
    if accepted:
        kept = f"As far as these dumps show, no promise was broken but for {count(accepted, 'accepted finding')}."
    elif waits:
        kept = "Otherwise delivery was exactly once, as far as these dumps show."
    else:
        kept = "Delivery was exactly once, as far as these dumps show: no promise was broken."
    return f"{waits} {kept}{aborted}{look}".strip()


def timeouts_sentence(verdict: Row) -> str:
    """What a pass has to say of transactions that timed out, with a blank in front; nothing where none did.

    The coordinator raises the epoch when it aborts after a timeout, so the producer that began is fenced (KIP-360, KIP-588).
    """
    told = verdict.get("timeouts")
    if not isinstance(told, Mapping):
        return ""
    number, within, outage = told["transactions"], told.get("in_outage"), told.get("outage_ms")
    some = f", {within} of them" if within != number else ""
    after = f"{some} after an outage of up to {duration(outage)}" if isinstance(outage, int) else ""
    was, fenced = ("was", "its producer was") if number == 1 else ("were", "their producers were")
    return f" {count(number, 'transaction')} {was} aborted by timeout{after}; {fenced} fenced."
