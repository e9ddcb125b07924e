"""Names from dumps must reach neither a terminal nor a shell as they are; numbers read as a person says them."""

import subprocess

import pytest

from eo_audit.rules.commands import abort, describe
from eo_audit.rules.needs import Unknown, sentences
from eo_audit.rules.reasons import REASONS
from eo_audit.words import NEVER_TIMES_OUT, count, duration, offsets, partitions, shell, shown, timeout

HOSTILE = [
    "plain",
    "it's",
    "a b",
    "$(rm -rf ~)",
    "`id`",
    "line\nbreak",
    "\x1b[31mred",
    "tab\there 'q' \\n",
    "zażółć",
    "\U0001f600",
    "a;b|c&d",
    "!!",
    "",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_shell_gives_the_name_back(name: str) -> None:
    said = subprocess.run(["bash", "-c", f"printf %s {shell(name)}"], capture_output=True, check=True)
    assert said.stdout.decode() == name
    assert "\n" not in shell(name) and "\x1b" not in shell(name) and "`" not in shell(name)


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_shown_is_printable(name: str) -> None:
    assert shown(name).isprintable()


def test_commands_are_complete_but_for_the_brokers() -> None:
    tool = "kafka-transactions.sh --bootstrap-server $BOOTSTRAP"
    assert abort("a b", 3, 17) == f"`{tool} abort --topic 'a b' --partition 3 --start-offset 17`"
    assert describe("id\n") == f"`{tool} describe --transactional-id $'id\\x0a'`"


def test_numbers_in_words() -> None:
    assert [count(1, "record"), count(3, "batch", "batches"), count(12345, "record")] == ["1 record", "3 batches", "12,345 records"]
    assert [offsets(4, 4), offsets(4, None), offsets(4, 9)] == ["offset 4", "offset 4", "offsets 4 to 9"]
    spoken = [duration(ms) for ms in (None, 800, 2_500, 60_000, 3_600_000, 12_000_000, 300_000_000)]
    assert spoken == ["an unknown time", "800 ms", "2.5 s", "1 min", "1 h", "3 h 20 min", "3 d"]
    assert [timeout(60_000), timeout(NEVER_TIMES_OUT), timeout(None)] == ["1 min", "none", "an unknown time"]
    assert partitions([("b", 0), ("a", 1), ("a", 1)]) == "a-1, b-0"


def test_requests_for_dumps_are_sentences() -> None:
    """One that ends with a command gets its full stop before the next."""
    commands = [because for because, reason in REASONS.items() if reason.bring.endswith("`")]
    others = [because for because, reason in REASONS.items() if not reason.bring.endswith("`")]
    assert commands
    _, bring = sentences({Unknown(commands[0], "orders-0"), Unknown(commands[0], "orders-1"), Unknown(others[0], "orders-2")})
    assert "`. " in bring
