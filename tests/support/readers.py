"""The fast path and the exact reader on one text."""

from eo_audit.dump.parse import FileContext, RangeResult, State, parse_range

CONTEXT = FileContext("cluster", "broker-1/orders-0/00000000000000000000.log.txt", 1)


def read(text: bytes, context: FileContext, *, fast: bool) -> RangeResult:
    """A whole text as one range."""
    return parse_range(text, context=context, base=0, start=0, stop=len(text), state=State.initial(), final=True, fast=fast)


EXACT: dict[tuple[int, bytes], RangeResult] = {}


def exact_reading(text: bytes, context: FileContext) -> RangeResult:
    """By the exact reader, once: it knows no stretches, whatever their size."""
    key = context.dump_file_id, text
    if key not in EXACT:
        EXACT[key] = read(text, context, fast=False)
    return EXACT[key]


def assert_same(text: bytes, context: FileContext = CONTEXT) -> int:
    """Both read the same facts; how many batches."""
    exact, fast = exact_reading(text, context), read(text, context, fast=True)
    assert (exact.ledger, exact.state_out, exact.end_byte) == (fast.ledger, fast.state_out, fast.end_byte)
    assert (exact.crlf, exact.ascii_lossy) == (fast.crlf, fast.ascii_lossy)
    assert exact.facts.keys() == fast.facts.keys()
    for table, told in fast.facts.items():
        told.validate(full=True)
        assert told.equals(exact.facts[table]), table
    return fast.facts["batches"].num_rows if "batches" in fast.facts else 0
