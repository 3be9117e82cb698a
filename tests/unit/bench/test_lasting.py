import numpy as np
import pytest

from pipelines.bench.forecast.lasting import FACTORS, SPANS, evaluate_breaks, format_breaks, summarise_breaks

CELL = "alibaba 1h"


def cell(name, ratio, low=0.5):
    return {
        "cell": name, "before": 100, "judged": 48, "large": False,
        "breaks": {factor: {**dict.fromkeys(SPANS, ratio), "between": [low, 2.0]} for factor in FACTORS},
    }  # fmt: skip


def test_the_last_value_is_as_good_as_itself_after_every_break():
    found = evaluate_breaks(CELL, "last_value")
    assert (found["before"], found["judged"], found["large"]) == (
        168 - 72,
        48,
        False,
    )  # three days less one
    for by_span in found["breaks"].values():
        assert [by_span[span] for span in SPANS] == pytest.approx([1.0, 1.0, 1.0])
        assert by_span["between"] == pytest.approx([1.0, 1.0])


def test_what_repeats_yesterday_pays_on_the_day_of_the_break_only_and_most_for_the_deeper_one():
    fallen, doubled = (evaluate_breaks(CELL, "yesterday")["breaks"][name] for name in FACTORS)
    assert fallen["first day"] > doubled["first day"] > 2
    assert doubled["second day"] == pytest.approx(fallen["second day"])


def test_cells_are_summed_up_by_their_geometric_mean_and_their_worst():
    cells = [cell("a", 0.5), cell("b", 2.0, low=1.1)]
    found = summarise_breaks(cells)["÷ 30"]
    assert found["second day"] == {"mean": pytest.approx(1.0), "worst": {"cell": "b", "ratio": 2.0}}
    assert found["worse"] == ["b"]
    said = format_breaks(cells, summarise_breaks(cells))
    assert "at worst 2.000 (b)" in said and "worse at 95 % after the first day: b" in said
    assert np.sum([line.startswith(("a ", "b ")) for line in said.splitlines()]) == 2
