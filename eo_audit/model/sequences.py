"""Arithmetic of producer sequences: the numbers 0 to 2147483647, then 0 again.

1. `inc` and `dec` go round; -1 is no sequence and stays -1.
2. A distance is read as a step back from 2^30 on: nobody can tell a jump of more than half the circle from a step back.
3. Unwrapped sequences count on over the wrap, so that a whole circle (legal after 2^31 records) is not taken for a repeat.

Source: `DefaultRecordBatch.incrementSequence`, `decrementSequence`, `ProducerAppendInfo.inSequence`.
"""

CIRCLE = 2**31
HALF_CIRCLE = 2**30
NO_SEQUENCE = -1


def inc(sequence: int, by: int) -> int:
    """The sequence `by` records later."""
    return sequence if sequence == NO_SEQUENCE else (sequence + by) % CIRCLE


def dec(sequence: int, by: int) -> int:
    """The sequence `by` records earlier."""
    return sequence if sequence == NO_SEQUENCE else (sequence - by) % CIRCLE


def distance(first: int, second: int) -> int:
    """How many records lie from one sequence to another; negative for a step back."""
    step = (second - first) % CIRCLE
    return step if step < HALF_CIRCLE else step - CIRCLE


def unwrap(base: int, last: int, *, previous_last: int | None) -> tuple[int, int]:
    """The unwrapped first and last sequence of a batch.

    Args:
        base: its base sequence.
        last: its last sequence; lower than the base when the wrap lies inside.
        previous_last: unwrapped last sequence of the batch before it; None starts the count at the base sequence itself.
    """
    first = base if previous_last is None else previous_last + 1 + distance(inc(previous_last % CIRCLE, 1), base)
    return first, first + (last - base) % CIRCLE
