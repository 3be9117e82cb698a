from pipelines.backtest.value_map.tables import by_default, by_lead_time
from pipelines.backtest.value_map.text import gap_sentences


def cell(lead, gap, **captured):
    return {"lead_s": lead, "gap": gap, "captured": captured}


def test_the_median_is_over_the_cells_with_a_gap_and_what_captured_nothing_counts():
    cells = [
        cell(60, 0.2, mpc=0.9, forecast=None),
        cell(60, 0.05, mpc=0.5, forecast=0.4),
        cell(60, 0.3, mpc=0.1, forecast=None),
        cell(60, 0.04, mpc=7.0, forecast=7.0),
        cell(60, None, mpc=7.0, forecast=7.0),
        cell(10, 0.1, mpc=0.8),
    ]
    assert by_lead_time(cells, ["mpc", "forecast"]) == [
        {"lead time, s": 10, "captured by `mpc`": 0.8, "captured by `forecast`": None, "cells": 1},
        {"lead time, s": 60, "captured by `mpc`": 0.5, "captured by `forecast`": None, "cells": 3},
    ]


def test_a_default_has_a_row_with_a_column_per_policy():
    summary = {"mpc": {"by_default": {"hpa": 0.8, "keda": 0.4}}, "forecast": {"by_default": {"hpa": 0.9, "keda": None}}}
    assert by_default(summary, ["mpc", "forecast"]) == [
        {"default": "hpa", "`mpc` ÷ it": 0.8, "`forecast` ÷ it": 0.9},
        {"default": "keda", "`mpc` ÷ it": 0.4, "`forecast` ÷ it": None},
    ]


def test_of_an_even_number_of_cells_the_median_is_between_the_middle_two():
    cells = [{"lead_s": 600.0, "gap": gap} for gap in (0.30, 0.02, None)]
    *_, said = gap_sentences({"cells": cells, "leads_s": [600.0]})
    assert said == "With 600 s until an executor works: 16.0 % in the median."
