"""How often a fitted twin comes near to real runs."""

from pipelines.backtest.fit.judge import comparison_rows, format_comparisons, share_near


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
    said = format_comparisons(RUNS)
    assert said.endswith("lag 75%, latency 50%, executors 100% of 4 runs; late seconds near in 50%")
