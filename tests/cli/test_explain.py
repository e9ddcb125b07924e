"""What a client's exception means, for whoever has only that in hand."""

import io
import re

import pytest
from rich.console import Console

from eo_audit.cli import run_command
from eo_audit.errors import ArgumentError
from eo_audit.report.client_errors import client_errors, errors_of, explain
from eo_audit.rules.catalogue import BY_CODE

# Lines as clients log them: Java, librdkafka, Kafka Streams, Flink.
LOGGED = {
    "ProducerFencedException: There is a newer producer with the same transactionalId which fences the current one.": "PRODUCER_FENCED",
    "Producer attempted an operation with an old epoch. Either there is a newer producer with the same tra": "PRODUCER_FENCED",
    "rdkafka#producer-1| Fatal transaction error: RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH": "INVALID_PRODUCER_EPOCH",
    "InvalidProducerEpochException: Producer attempted to produce with an old epoch.": "INVALID_PRODUCER_EPOCH",
    "Out of order sequence number for producer 3 at offset 9: 5 (incoming seq. number)": "OUT_OF_ORDER_SEQUENCE_NUMBER",
    "Confluent.Kafka.KafkaException: Local: This instance has been fenced by a newer instance": "PRODUCER_FENCED",
    "%3|1795235111.081|FAIL|rdkafka#producer-1| Broker: Unknown Producer Id": "UNKNOWN_PRODUCER_ID",
    "java.lang.IllegalStateException: Cannot attempt operation `abortTransaction` because the previous call to `commitTransaction` "
    "timed out and must be retried": "REQUEST_TIMED_OUT",
    "TimeoutException: Timeout expired after 60000ms while awaiting EndTxn(true)": "REQUEST_TIMED_OUT",
    "Expiring 5 record(s) for orders-0:120001 ms has passed since batch creation": "Expiring records",
    "The following partitions still have unstable offsets which are not cleared on the broker": "UNSTABLE_OFFSET_COMMIT",
    "KafkaException: Cannot execute transactional method because we are in an error state": "KafkaException in an error state",
    "KafkaException: Unhandled error in EndTxnResponse: The version of API is not supported.": "UNSUPPORTED_VERSION",
    "The producer attempted to use a producer id which is not currently assigned to its transactional id.": "INVALID_PRODUCER_ID_MAPPING",
    "ERROR KafkaCommitter - Unable to commit transaction (CommitRequestImpl{state=RECEIVED, numRetries=0, committable=KafkaCommittable{"
    "producerId=19, epoch=0, transactionalId=late-0-5}}) because its producer is already fenced.": "Unable to commit transaction",
}


@pytest.mark.parametrize(("line", "name"), LOGGED.items(), ids=LOGGED.values())
def test_what_a_client_logged_is_known(line: str, name: str) -> None:
    assert [error.names[0] for error in errors_of(line)] == [name]


@pytest.mark.parametrize(
    "words", ["PRODUCER_FENCED", "producer fenced", "90", "ProducerFencedException", "RD_KAFKA_RESP_ERR_PRODUCER_FENCED", "ERR__FENCED"]
)
def test_a_name_or_a_code_is_known_however_it_is_written(words: str) -> None:
    assert [error.names[0] for error in errors_of(words)] == ["PRODUCER_FENCED"]


def test_what_is_no_error_of_a_producer_names_those_that_are() -> None:
    with pytest.raises(ArgumentError, match="PRODUCER_FENCED"):
        errors_of("java.lang.NullPointerException")


@pytest.mark.parametrize("error", client_errors(), ids=lambda error: error.names[0])
def test_every_error_points_at_rules_that_exist_and_fits_the_screen(error: object) -> None:
    assert not {*error.rules} - BY_CODE.keys()  # type: ignore[attr-defined]
    assert error.means.endswith(".") and error.change.rstrip(")`").endswith((".", "id"))  # type: ignore[attr-defined]
    text = io.StringIO()
    explain(error.names[0], Console(file=text, width=100), None)  # type: ignore[attr-defined]
    assert max(map(len, text.getvalue().splitlines())) <= 100


def test_names_and_codes_are_of_one_error_each() -> None:
    names = [name for error in client_errors() for name in error.names]
    codes = [code for error in client_errors() for code in error.codes]
    assert len(names) == len(set(names)) and len(codes) == len(set(codes))


def test_the_command_needs_no_results(capsys: pytest.CaptureFixture[str], tmp_path: object) -> None:
    assert run_command(["explain", "TRANSACTION_ABORTABLE", "--out", f"{tmp_path}"]) == 0
    said = capsys.readouterr().out
    assert "error code 120" in said and "what to change" in said and "in the audit" not in said
    assert run_command(["explain", "nonsense", "--out", f"{tmp_path}"]) == 10
    assert re.search("known are .*UNKNOWN_PRODUCER_ID", capsys.readouterr().err)
