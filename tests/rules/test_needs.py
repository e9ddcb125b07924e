"""What a rule lacks, in words."""

from eo_audit.rules.needs import Unknown, sentences


def test_a_cluster_is_named_once_for_all_its_partitions() -> None:
    places = ("a: orders-0", "a: orders-1 (broker 2)", "b: orders-0")
    why, bring = sentences({Unknown("cut_off", place) for place in places})
    assert why == "The dump text of a: orders-0, orders-1 (broker 2), b: orders-0 stops before the log does"
    assert bring == "Dump a: orders-0, orders-1 (broker 2), b: orders-0 again, to its end."


def test_one_cluster_needs_no_name() -> None:
    why, _ = sentences({Unknown("cut_off", f"orders-{partition}") for partition in range(6)})
    assert why == "The dump text of orders-0, orders-1, orders-2, orders-3 and 2 more stops before the log does"


def test_text_that_can_be_read_in_two_ways_is_dumped_without_payloads_or_with_a_locale() -> None:
    _, bring = sentences({Unknown("ambiguous", "orders-0")})
    assert "without --print-data-log" in bring
    _, bring = sentences({Unknown("ambiguous_ids", "__transaction_state-3")})
    assert "UTF-8 locale" in bring and "--print-data-log" not in bring
