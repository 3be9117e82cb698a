from pipelines.bench.forecast.series_rows import series_rows


def cell(name, steps, ratio, off):
    covered = {interval: float(interval) for interval in ("0.8", "0.9", "0.95")}
    champion = {
        "ratio": ratio,
        "pinball_ratio": 0.7,
        "coverage": {"1": covered, "2": covered | {"0.8": 0.8 + off / 100}},
    }
    return {"cell": name, "test_steps": steps, "best_naive": "last_value", "models": {"champion": champion}}


def test_a_series_is_a_row_and_the_longest_comes_first():
    rows = series_rows([cell("short", 299, 1.2, 3.0), cell("long", 2400, 0.5, -4.0)], ["ridge", "champion"])
    assert [row["series"] for row in rows] == ["long", "short"]
    assert rows[0] == {
        "series": "long",
        "test rows": "2,400",
        "best naive": "last value",
        "ridge ÷": None,
        "champion ÷": 0.5,
        "pinball ÷": 0.7,
        "coverage off": "-4.0 / +0.0 / +0.0",
    }
    assert rows[1]["test rows"] == "299 *" and rows[1]["coverage off"].startswith("+3.0")
