"""How often a fitted twin comes near to real runs."""

from pipelines.backtest.fit.judge import comparison_figures, comparison_rows, format_comparisons, share_near


def compared(lag, latency, late, twin, seconds=400, trace="taxi"):
    errors = {"lag": lag, "latency_s": latency, "executors": 0.05}
    return {
        "run": "a-run", "policy": "mpc", "trace": trace, "seconds": seconds, "error": errors,
        "error_of_one": dict.fromkeys(errors, 0.2), "over_target_s": {"measured": late, "twin": twin},
        "executor_s": {"measured": 900.0, "twin": 890.0},
    }  # fmt: skip


RUNS = [
    compared(0.15, 0.16, 20, 25.0),  # off by a quarter
    compared(0.10, None, 20, 25.1, trace="google"),  # by more, and by more than the 4 s that are 1 %
    compared(0.16, 0.10, 0, 4.0),  # 1 % of the seconds
    compared(0.01, 0.01, 0, 4.1),
]


def test_each_curve_and_the_late_seconds_are_judged_by_themselves():
    assert share_near(RUNS) == {
        "lag": 0.75, "latency_s": 0.5, "executors": 1.0, "late": 0.5, "runs": 4, "traces": 2,
    }  # fmt: skip


def test_it_is_told_run_by_run_and_in_all():
    assert comparison_rows(RUNS)[1] == {
        "run": "a-run", "policy": "mpc", "trace": "google", "s": "400", "lag": "10 % (20 %)", "latency": "- (20 %)",
        "executors": "5 % (20 %)", "late s, measured / twin": "20 / 25.1",
    }  # fmt: skip
    said = format_comparisons(RUNS, held_out=True)
    assert said.startswith("each run against a twin fitted to the others: ")
    assert said.endswith("lag 75%, latency 50%, executors 100% of 4 runs; late seconds near in 50%")


def test_runs_that_a_twin_may_have_been_fitted_to_are_no_check_of_it():
    said = format_comparisons(RUNS, held_out=False)
    assert said.startswith("each run against the twin fitted to the lake, which may hold these runs: ")
    assert comparison_figures(RUNS, held_out=False) == {"comparisons": RUNS, "held_out": False}
    assert set(comparison_figures(RUNS, held_out=True)) == {"comparisons", "held_out", "runs", "near"}


def test_where_there_is_no_run_to_compare_it_is_said():
    assert format_comparisons([], held_out=False) == "no run to check it on"
    assert format_comparisons([], held_out=True) == "one run: no other to check it on"
    assert comparison_figures([], held_out=True) == {"comparisons": [], "held_out": True, "runs": []}
