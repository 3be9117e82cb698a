import pytest

from pipelines.report.comparison import comparison_sentences, render_comparison


def summary(policy, over, paid, turn):
    spread = {"p50": 1.0, "p95": 2.0, "max": 3.0, "n": 9}
    zero = ("stopped_s", "lost", "duplicated", "scale_ups", "scale_ups_by_forecast", "scale_downs", "stood_in")
    counts = {**dict.fromkeys(zero, 0), "decisions": 10}
    return {
        "id": f"{turn}-{policy}", "policy": policy, "over_target_s": over, "executor_s": paid, "turn": turn,
        "latency_s": spread,
        "decision_to_useful_s": {"p50": None, "p95": None, "n": 0}, "target_utilisation": 0.8, **counts,
    }  # fmt: skip


RUNS = [
    summary("reactive", 99, 999.0, "sweep"),
    summary("forecast", 0, 300.0, "pair 1"),
    summary("reactive", 5, 310.0, "pair 1"),
    summary("reactive", 9, 290.0, "pair 2"),
    summary("forecast", 2, 320.0, "pair 2"),
    summary("forecast", 4, 280.0, "pair 3"),
    summary("reactive", 4, 300.0, "pair 3"),
]


def test_medians_leave_the_sweep_out_and_pairs_are_matched_by_turn():
    said = comparison_sentences(RUNS)
    assert "forecast: 2 s over the target for 300 executor-seconds (median of 3 runs)" in said
    assert "reactive: 5 s over the target for 300 executor-seconds (median of 3 runs)" in said
    assert "Of 3 pairs, forecast had fewer seconds over the target than reactive in 2" in said
    assert said.endswith("no more executor-seconds in 2.")


def test_it_says_where_another_policy_decided():
    assert "stood in" not in comparison_sentences(RUNS)
    agents = [{**summary("dqn", 3, 280.0, f"pair {i}"), "stood_in": 4 * i} for i in (1, 2)]
    assert "In 12 of dqn's 20 decisions another policy stood in." in comparison_sentences([*RUNS, *agents])


def test_every_run_is_on_the_page(tmp_path):
    page = render_comparison(RUNS, tmp_path / "new" / "compare.html").read_text()
    assert all(f">{run['id']}<" in page for run in RUNS)
    assert page.count('class="median"') == 2


def test_no_runs_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="no runs"):
        render_comparison([], tmp_path / "x.html")
