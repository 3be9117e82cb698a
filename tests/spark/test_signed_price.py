"""The bench of signed plans compares like with like, and gives its figures in the form that the goals read."""

import pytest

from pipelines.bench.signed import price
from pipelines.bench.signed.pairs import PAIRS
from pipelines.figures.goals import goals_of

pytestmark = pytest.mark.spark
RESULTS = {
    "filter and select": (["id", "x"], ["id", "x"]),
    "union": (["id", "x"], ["id", "x"]),
    "final sums in windows": (["key", "count(id)", "sum(x)"], ["key", "n", "s"]),
    "totals": (["key", "count(id)", "sum(x)"], ["key", "n", "s"]),
    "join with a bound": (["key", "id", "other"], ["key", "id", "other"]),
    "change log of sums": (["key", "count(id)", "sum(x)"], ["key", "n", "s"]),
    "final least and greatest in windows": (["key", "min(x)", "max(x)"], ["key", "lo", "hi"]),
    "distinct values in windows": (["key", "x"], ["key", "x"]),
    "least and greatest": (["key", "min(x)", "max(x)"], ["key", "lo", "hi"]),
    "sessions": (["key", "count(id)"], ["key", "n"]),
}


def test_both_forms_of_each_operator_have_the_same_results(one_partition):
    df = one_partition.range(400).selectExpr(
        "id", "id % 3 AS key", "(id * 7) % 11 AS x", "1700000000000 + id * 5 + (id div 50) * 500 AS at"
    )
    assert {pair.name for pair in PAIRS} - {*RESULTS} == {"median"}
    for pair in PAIRS:
        plain, signed = pair.plain(df), pair.signed(df)
        ours, theirs = RESULTS.get(pair.name, (plain.columns[1:], ["key", "mid"]))
        found = [sorted(map(tuple, one.select(*(f"`{c}`" for c in names)).collect())) for one, names in
                 ((plain, ours), (signed, theirs))]  # fmt: skip
        assert found[0] == found[1] and found[0], pair.name


def test_a_small_form_runs_and_is_judged(one_partition, monkeypatch):
    """Of an operator of Spark's own; `test_signed_streams` runs those in Python."""
    monkeypatch.setattr(price, "PAIRS", tuple(pair for pair in PAIRS if pair.name == "totals"))
    size, saved = price.PriceEffort({"passing": 300}, text_rows=300, files=2, pairs=1), []
    figures = price.measure_price(one_partition, size, None, saved.append)
    parsed = "totals, of JSON text"
    assert [[*one["operators"]] for one in saved] == [["totals"], ["totals", parsed]]
    assert figures == saved[-1] == price.measure_price(None, size, figures), "nothing is run again"
    found = figures["operators"]
    assert {name: one["rows"] for name, one in found.items()} == {"totals": 300, parsed: 300}
    assert figures["worst"] == min(found["totals"]["ratio"], found[parsed]["ratio"]) > 0
    in_python = {"least and greatest": {**found["totals"], "own": False, "ratio": 0.0}}
    assert price._found(found | in_python)["worst"] == figures["worst"], "of Spark's own alone"
    goals = goals_of("tidecast bench signed --quick")
    rows = {row.what: row for row in goals.fill_rows(figures)}
    passing = sum(pair.work == "passing" for pair in PAIRS)
    own = sum(pair.own for pair in PAIRS)
    assert len(rows) == len(PAIRS) + passing and sum(row.goal is not None for row in rows.values()) == own + passing
    assert sum(row.measured is not None for row in rows.values()) == len(found)


def test_the_interval_of_a_median_leaves_out_what_chance_would():
    assert price.median_interval([3.0]) == (3.0, 3.0)
    assert price.median_interval([1.0, 5.0, 2.0]) == (1.0, 5.0)
    assert price.median_interval(list(range(9))) == (1, 7)  # 2 · (1 + 9) / 512 = 3.9 %
