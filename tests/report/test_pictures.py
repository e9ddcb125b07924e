"""What is drawn: a short log whole, of a long one a strip and the batches around findings; the same rows give the same bytes."""

import re

import numpy as np
import pytest

from eo_audit.report.charts import Concern, Window, _label_rows, partition_chart
from eo_audit.report.pictures import MAX_BATCHES, MAX_STRETCHES, _stretches, picture_of_partition
from eo_audit.report.time_charts import MAX_STEPS, _first_shown, _open_at, open_transactions_chart, transactional_id_chart
from tests.report.hand_made import HANGING, STEPS, Row, Rows, batch, finding, partition, step


def long_log(batches: int = 5_000) -> Rows:
    log = partition(leo=2 * batches, hw=2 * batches, lso=2 * batches)
    return Rows([log], [batch(2 * number, number % 3) for number in range(batches)])


def test_a_short_log_is_drawn_whole() -> None:
    reader = Rows([partition()], HANGING)
    picture = picture_of_partition(reader.logs[0], [finding("a1")], reader)
    assert len(picture.charts) == 1
    assert "Offsets 0 to 13, 4 producers, LSO 6, HW 14." in picture.charts[0]
    assert all(text in picture.charts[0] for text in ("LSO 6", "HW 14", "producer 1", "no producer id", "T01"))


def test_a_long_log_is_a_strip_and_the_batches_around_each_finding() -> None:
    reader = long_log()
    findings = [finding("a1", first_offset=100, last_offset=101), finding("b2", first_offset=8_000, last_offset=9_999)]
    picture = picture_of_partition(reader.logs[0], findings, reader)
    assert len(picture.charts) == 3
    assert "The whole log" in picture.charts[0]
    assert re.search(r"Offsets \d+ to 1\d\d,", picture.charts[1])
    assert re.search(r"Offsets 79\d\d to 80\d\d,", picture.charts[2])


@pytest.mark.parametrize(("age", "unit"), [(900, "ms"), (9_000, "s"), (900_000, "min"), (90_000_000, "h"), (900_000_000, "days")])
def test_units_of_time_have_room_beside_the_axis(age: int, unit: str) -> None:
    chart = open_transactions_chart(np.array([0]), np.array([age]))
    assert f"oldest open ({unit})" in chart
    assert f"{unit} after 1970-01-01" in chart


def test_the_name_of_a_finding_at_the_end_stands_on_the_left_of_the_edge() -> None:
    rows = [batch(offset, 0, last_offset=offset) for offset in range(44)]
    last, first = (
        re.search(r'style="[^"]*text-anchor: (\w+)[^"]*"[^>]*>C01<', partition_chart(rows, partition(), [Concern(at, at, "C01")]))
        for at in (43, 2)
    )
    assert last and last.group(1) == "end"
    assert not first or first.group(1) == "start"


def test_places_close_together_share_a_stretch_and_many_are_counted() -> None:
    reader = long_log()
    together, left_out = _stretches(reader.logs[0], [100, 110, 120], reader)
    assert (len(together), left_out) == (1, 0)
    apart, left_out = _stretches(reader.logs[0], [1_000 * number for number in range(9)], reader)
    assert len(apart) == MAX_STRETCHES
    assert left_out == 9 - MAX_STRETCHES
    assert max(len(rows) for rows in apart) <= MAX_BATCHES


def test_a_log_without_batches_has_no_chart() -> None:
    reader = Rows([partition()])
    assert picture_of_partition(reader.logs[0], [], reader).charts == ()


def test_the_same_rows_give_the_same_bytes_in_the_colours_of_the_page() -> None:
    first, second = (partition_chart(HANGING, partition(), [Concern(6, 8, "T01")]) for _ in range(2))
    assert first == second
    assert not re.search(r"#0[0-9a-f]0[0-9a-f]0[0-9a-f]\b", first)
    assert "var(--committed)" in first


def test_names_of_findings_do_not_overlap() -> None:
    window = Window(0, 1_000, 8.0)
    concerns = [Concern(offset, offset, "T01 L01") for offset in (10, 12, 14, 16, 900)]
    assert _label_rows(concerns, window) == {0: 0, 1: 1, 2: 2, 4: 0}


def test_steps_of_an_id_are_the_newest_or_those_around_the_odd_one() -> None:
    steps = [step(number, "Ongoing", number) for number in range(50)]
    assert _first_shown(steps) == 50 - MAX_STEPS
    steps[20] = step(20, "CompleteCommit", 20, step="illegal", step_reason="not_in_table")
    assert _first_shown(steps) == 20 - MAX_STEPS // 2
    assert "no legal step" in transactional_id_chart(steps, [])


@pytest.mark.parametrize("name", ["<script>", "a&b", 'x"y', "$\\frac{1}{$", "\u202e"])
def test_a_name_is_only_text_in_a_chart(name: str) -> None:
    rows: list[Row] = [entry | {"transactional_id": name} for entry in STEPS]
    svg = transactional_id_chart(rows, [{"prepare_offset": 2, "abort_cause": "client_abort"}])
    assert "<script" not in svg
    assert "\u202e" not in svg
    assert "client abort" in svg


def test_open_transactions_at_each_instant_agree_with_counting() -> None:
    random = np.random.default_rng(7)
    begins = random.integers(0, 1_000, 200)
    ends = begins + random.integers(1, 300, 200)
    instants = np.arange(0, 1_300, 7)
    counts, ages = _open_at(instants, begins, ends)
    for instant, count, age in zip(instants, counts, ages, strict=True):
        is_open = (begins <= instant) & (ends > instant)
        assert count == is_open.sum()
        assert age == (instant - begins[is_open].min() if count else 0)
