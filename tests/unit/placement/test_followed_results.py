"""What results tell of the records that were sent, and what sessions come to."""

import math

import pytest

from models.placement.plan.compared import CHOSEN, ONE
from pipelines.bench.placement.real.followed import CountResult, counted_rate, record_latencies
from pipelines.bench.placement.real.measure import TURNS, figures
from pipelines.bench.placement.real.summary import PlacementRuns, summarise

RESULTS = [CountResult(13.0, "a", 3), CountResult(11.0, "a", 1), CountResult(13.0, "b", 1), CountResult(15.0, "a", 3)]
SENT = [(10.0, ["a"]), (10.5, ["a", "b"]), (11.0, ["a"]), (12.0, ["a"])]


def test_a_record_is_as_late_as_the_first_result_that_has_it():
    assert record_latencies(SENT, RESULTS, 0.0, 20.0) == [1.0, 2.5, 2.5, 2.0, math.inf]
    assert record_latencies(SENT, RESULTS, 10.5, 12.0) == [2.5, 2.5, 2.0]
    assert record_latencies(SENT, [], 0.0, 10.1) == [math.inf]


def test_the_rate_is_that_at_which_counts_grow_and_results_told_again_count_once():
    steady = [CountResult(float(at), f"k{at % 3}", 4 * (at // 3 + 1)) for at in range(60)]
    assert counted_rate([*steady, *steady[:30]], 20.0, 59.0) == pytest.approx(4.0)
    assert counted_rate(steady, 20.0, 20.5) is None


def runs(names, p95_s, said_s=2.0, most_rps=100.0, kept_up=False):
    session = {
        "p95_s": p95_s, "said_s": said_s, "followed_s": said_s - 0.5, "most_rps": most_rps, "said_rps": 110.0 + said_s,
        "wrong": 0, "keys": 40, "lost": 1, "kept_up": kept_up,
        "placement": {"blocks": [{"operators": ["x", "y"], "cluster": "east", "executors": 2}]},
    }  # fmt: skip
    return PlacementRuns(names, [session])


CASES = {
    "one": [runs([CHOSEN, ONE], 2.0), runs(["drawn 1"], 4.0, 4.4)],
    "two": [runs([CHOSEN], 3.0, 3.3), runs([ONE], 2.9, 3.0), runs(["drawn 1"], None, 9.0)],
    "three": [runs([CHOSEN], 6.0, 6.6), runs(["each alone"], 5.0, 7.0, kept_up=True)],
}


def test_the_chosen_placement_is_held_against_the_least_latency_that_was_measured():
    found = summarise(CASES, 0)
    assert found["near"] == pytest.approx(2 / 3) and found["n"] == 3
    assert (found["one"], found["one_n"]) == (0.5, 2)
    assert found["cases"]["three"]["ratio"] == pytest.approx(1.2)
    assert found["cases"]["one"]["plans"][0]["queries"] == "x+y@eastx2"
    assert found["followed"]["error"] != found["latency"]["error"]
    assert found["latency"]["n"] == 6 and found["throughput"]["n"] == 7
    assert found["throughput"]["kept_up"] == 1 and 0.1 < found["throughput"]["error"] < 0.2
    assert found["throughput"]["worst"] == pytest.approx(0.19)
    silent = summarise({**CASES, "four": [runs([CHOSEN], 3.0, most_rps=0.0)]}, 0)
    assert silent["throughput"] == found["throughput"]  # nothing came to count: it tells no error
    assert (found["lost"], found["keys"], found["sessions"]) == (7, 280, 7)


def test_a_chosen_placement_whose_records_do_not_arrive_is_not_near_the_best():
    found = summarise({**CASES, "four": [runs([CHOSEN], None), runs([ONE], 3.0)]}, 0)
    assert found["near"] == 0.5 and found["cases"]["four"]["ratio"] is None and found["one"] == pytest.approx(1 / 3)


def test_nothing_is_judged_while_sessions_are_missing():
    found = summarise({"one": [runs([CHOSEN], 2.0)]}, 3)
    assert found["near"] is None and found["one"] is None and found["missing"] == 3
    assert found["latency"]["rank"] is None
    alike = summarise({name: [runs([CHOSEN], 2.0)] for name in "abc"}, 0)
    assert alike["latency"] == {"rank": None, "error": 0.0, "worst": 0.0, "n": 3}


def test_a_turn_that_was_begun_does_not_count_until_every_placement_has_had_it():
    placements = {"words": [([CHOSEN], None), ([ONE], None)]}

    def kept(*cells):
        return {cell: {**runs([], 2.0 + int(cell[-1])).sessions[0], "commit": "abc"} for cell in cells}

    begun = figures(kept("words-0-0"), placements)
    assert (begun["turns"], begun["missing"], begun["near"]) == (0, 1, None)
    first = figures(kept("words-0-0", "words-1-0", "words-0-1", "words-1-2"), placements)
    assert (first["turns"], first["missing"], first["sessions"], first["near"]) == (1, 0, 2, 1.0)
    assert len(first["kept"]) == 4
    every = figures(kept(*(f"words-{at}-{turn}" for at in range(2) for turn in range(TURNS))), placements)
    assert (every["turns"], every["sessions"], TURNS) == (3, 6, 3)
    assert every["cases"]["words"]["plans"][0]["p95_s"] == 3.0
