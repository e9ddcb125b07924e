"""The parts of the lab that need no broker."""

import re
from pathlib import Path

from tests.broker.audits import commands_in
from tests.broker.fetched import pinned
from tests.broker.wire import Producer, batch, crc32c, varint

HERE = Path(__file__).parent


def test_the_checksum_is_castagnolis() -> None:
    assert crc32c(b"123456789") == 0xE3069283  # RFC 3720, the check value of CRC-32C


def test_numbers_are_zigzag_of_variable_length() -> None:
    assert [varint(number) for number in (0, -1, 1, 63, 64, 300)] == [b"\0", b"\1", b"\2", b"\x7e", b"\x80\1", b"\xd8\4"]


def test_a_batch_says_its_own_length_and_checksum() -> None:
    written = batch(Producer("id", 7, 2), 5, [b"a", b"bc"], 1000)
    assert int.from_bytes(written[8:12], "big") == len(written) - 12
    assert int.from_bytes(written[17:21], "big") == crc32c(written[21:])


def test_commands_are_what_stands_between_back_quotes() -> None:
    assert commands_in("Look: `a --b c`. Then `d`, if you like.") == ["a --b c", "d"]


def test_every_jar_is_pinned() -> None:
    jars = pinned((HERE / "jars.txt").read_text(encoding="utf-8"))
    assert {jar.folder for jar in jars} == {"4.3.1", "3.9.1", "2.3.1", "zookeeper"}
    assert all(re.fullmatch("[0-9a-f]{64}", jar.sha256) for jar in jars)
    assert len({jar.path for jar in jars}) == len(jars)
