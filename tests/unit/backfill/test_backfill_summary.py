import math

from tidecast.backfill.summary import ColumnChange, Summary, count

ORDERS = ColumnChange("orders", 2_513.0, 140.0, ("0042",), 107.0, 31, 1_203.0, 1_310.0)
REVENUE = ColumnChange("revenue", 1e9, 1e5, ("0007", "eu"), 9e4, 2, 1.25, 0.5)


def test_a_line_says_how_many_windows_differ_and_where_most():
    told = Summary(1_214_000, 2_000, 100, 14, 0, 2_114, (REVENUE, ORDERS))
    assert told.text() == (
        "2,114 of 1.2 M windows differ (2,000 other values, 100 new, 14 gone), worst key 0042:"
        " orders 1,203 → 1,310, 107 off in 31 windows"
    )


def test_a_key_of_several_columns_fractions_and_a_single_window():
    told = Summary(10, 1, 0, 0, 3, 1, (ColumnChange("revenue", 1.75, 0.75, ("0007", "eu"), 0.75, 1, 1.25, 0.5),))
    assert told.text() == (
        "1 of 10 windows differ (1 other values, 0 new, 0 gone), worst key 0007/eu: revenue 1.25 → 0.5,"
        " 0.75 off in 1 window; 3 changed by live meanwhile, to be computed again"
    )


def test_nothing_differs():
    assert Summary(7, 0, 0, 0, 0, 0).text() == "0 of 7 windows differ"
    assert Summary(7, 0, 0, 0, 2, 0).text().endswith("differ; 2 changed by live meanwhile, to be computed again")


def test_what_differs_without_numbers_has_no_worst_column():
    still = ColumnChange("orders", 10.0, 0.0, ("a",), 0.0, 1, 5.0, 5.0)
    assert Summary(7, 1, 0, 0, 0, 1, (still,)).worst is None
    assert Summary(7, 1, 0, 0, 0, 1).text() == "1 of 7 windows differ (1 other values, 0 new, 0 gone)"


def test_a_sum_that_is_infinite_on_one_side_changes_most():
    ratio = ColumnChange("ratio", math.inf, math.inf, ("0007",), math.inf, 1, math.inf, 0.5)
    for columns in ((ORDERS, ratio), (ratio, ORDERS)):
        told = Summary(7, 1, 0, 0, 0, 1, columns).text()
        assert told.endswith("worst key 0007: ratio inf → 0.5, inf off in 1 window")


def test_counts():
    assert [count(n) for n in (0, 999, 2_114, 999_999, 1_249_999)] == ["0", "999", "2,114", "999,999", "1.2 M"]
