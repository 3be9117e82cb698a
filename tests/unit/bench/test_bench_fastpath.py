"""The bench of the fast path: its figures by hand, and its verdicts."""

import pytest

from pipelines.bench.fastpath.figures import divide_latencies, latency_tail, subtract_floor, summarise_runs
from pipelines.bench.fastpath.page import format_us, judge_goals

FAST, SLOW = [list(range(1000, 101_000, 1000))], [list(range(2000, 202_000, 2000))]


def test_a_paths_figures_are_medians_over_its_runs():
    found = summarise_runs([[1000] * 10, [2000] * 10, [9000] * 10])
    assert (found["p50"], found["p99"], found["count"]) == (2.0, 2.0, 30)
    assert found["range"]["p50"] == [1.0, 9.0] and found["pooled"]["p99"] == 9.0


def test_floor_and_peer_are_compared_run_by_run():
    fast, slow = summarise_runs(FAST), summarise_runs(SLOW)
    assert subtract_floor(slow, fast) == {"p50": 50.0, "p99": 99.0}
    assert subtract_floor(slow, fast, 1e3) == {"p50": 0.05, "p99": 0.099}
    assert divide_latencies(slow, fast) == {"p50": 2.0, "p99": 2.0}
    assert (
        divide_latencies(
            summarise_runs(SLOW * 2),
            fast,
        )["p50"]
        == 2.0
    )
    assert subtract_floor(fast, slow) is None  # slower than the floor by less than nothing: other work was measured
    pairs = [[1000], [5000], [9000]], [[1000], [1000], [8000]]
    assert subtract_floor(*map(summarise_runs, pairs))["p50"] == 1.0


def test_the_curve_says_what_share_took_longer():
    found = latency_tail(FAST[0])
    assert found[0] == (1.0, 1.0)
    at = {round(share, 3): took for share, took in found}
    assert at[0.1] == 90 and at[0.01] == 99 and min(at) == 0.01


@pytest.mark.parametrize(("value", "said"), [(3.14, "3.1 µs"), (99.6, "100 µs"), (1234, "1.2 ms"), (250_000, "250 ms")])
def test_times_are_said_with_the_digits_they_deserve(value, said):
    assert format_us(value) == said


def test_a_goal_is_met_only_where_both_percentiles_are():
    def met(**found):
        return all(one.holds for one in judge_goals(found))

    def verdict(p50, p99):
        return met(socket_added_us={"p50": p50, "p99": p99})

    assert verdict(150, 500) and not verdict(151, 400) and not verdict(100, 501)
    assert judge_goals({"socket_added_us": None}) == []
    swap = {"missed": 0, "doubled": 0, "mixed": 0, "events": 9, "swaps": 1, "longest_gap_ms": 1.0}
    assert met(swap=swap) and len(judge_goals({"swap": swap})) == 4
    assert not any(met(swap={**swap, name: 1}) for name in ("missed", "doubled", "mixed"))
    assert not met(swap={**swap, "swaps": 0})
