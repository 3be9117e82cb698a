import pytest

from pipelines.report.comparison import comparison_sentences, render_comparison


def summary(policy, over, paid, turn):
    spread = {"p50": 1.0, "p95": 2.0, "max": 3.0, "n": 9}
    zero = ("stopped_s", "lost", "duplicated", "scale_ups", "scale_ups_by_forecast", "scale_downs", "stood_in")
    counts = {**dict.fromkeys(zero, 0), "decisions": 10}
    return {
        "id": f"{turn}-{policy}", "policy": policy.split(":")[0], "contestant": policy, "over_target_s": over,
        "promise": {"late_share": over / 100, "kept": over <= 5, "announced": 0.4 if over else None},
        "executor_s": paid, "turn": turn, "latency_s": spread,
        "decision_to_useful_s": {"p50": None, "p95": None, "n": 0}, **counts,
    }  # fmt: skip


RUNS = [
    summary("mpc", 0, 300.0, 1),
    summary("reactive", 5, 310.0, 1),
    summary("static:6", 0, 600.0, 1),
    summary("reactive", 9, 290.0, 2),
    summary("mpc", 2, 320.0, 2),
    summary("mpc", 4, 280.0, 3),
    summary("reactive", 4, 350.0, 3),
]


def test_medians_are_by_contestant_and_costs_are_compared_within_a_turn():
    said = comparison_sentences(RUNS)
    assert "mpc: promise kept in 3 of 3 runs; late in 2.0% of the seconds, 300 executor-seconds (medians)." in said
    assert "reactive: promise kept in 2 of 3 runs; late in 5.0% of the seconds, 310 executor-seconds" in said
    assert "static:6: promise kept in 1 of 1 run;" in said
    assert said.count("the danger was announced") == 1  # in the run of `reactive` that broke it
    # 300/310, 320/290, 280/350: the middle one; and 300/600 in the only turn that both have.
    assert "mpc took 0.968 x the executor-seconds of reactive (median of 3 turns)." in said
    assert said.endswith("mpc took 0.500 x the executor-seconds of static:6 (median of 1 turns).")


def test_it_says_where_another_policy_decided():
    assert "stood in" not in comparison_sentences(RUNS)
    agents = [{**summary("dqn", 3, 280.0, i), "stood_in": 4 * i} for i in (1, 2)]
    assert "In 12 of dqn's 20 decisions another policy stood in." in comparison_sentences([*RUNS, *agents])


def test_every_run_is_on_the_page(tmp_path):
    page = render_comparison(RUNS, tmp_path / "new" / "compare.html").read_text()
    assert all(f">{run['id']}<" in page for run in RUNS)
    assert page.count('class="median"') == 3


def test_no_runs_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="no runs"):
        render_comparison([], tmp_path / "x.html")
