"""Ids that count: prefix, subtask and number, as Flink's `TransactionalIdFactory` makes them, in SQL."""

PARTS = "^(.+)-([0-9]+)-([0-9]{1,18})$"
NUMBERED = f"transactional_id RLIKE '{PARTS}'"
PREFIX = f"regexp_extract(transactional_id, '{PARTS}', 1)"
NUMBER = f"CAST(regexp_extract(transactional_id, '{PARTS}', 3) AS long)"
MOST_NAMED = 5  # ids in a message; all are in its details
