"""`tidecast bench deadline`: draws within their bounds, what is judged, and going on from a file."""

import json

import numpy as np
import pytest

from pipelines.bench.twin import deadline
from pipelines.bench.twin.deadline import judge_deadlines, kolmogorov_distance, measure_deadlines
from pipelines.bench.twin.deadline_draw import DEADLINE, LOADS, WORK, draw_backfill
from pipelines.bench.twin.drawn import half_of


def test_the_loads_are_twelve_of_both_halves():
    assert len(set(LOADS)) == 12
    assert {half_of(name) for name in LOADS} == {1, 2}


def test_draws_are_the_same_each_time_and_within_their_bounds():
    drawn = [draw_backfill("elb 5min", number) for number in range(3)]
    again, facts = draw_backfill("elb 5min", 2)
    assert facts == drawn[2][1] and again.begins_s == drawn[2][0].begins_s and again.seed == drawn[2][0].seed
    assert len({case.begins_s for case, _ in drawn}) == 3
    for case, facts in drawn:
        assert WORK[0] <= facts["work"] <= WORK[1] and DEADLINE[0] <= facts["ratio"] <= DEADLINE[1]
        assert case.begins_s + case.horizon * case.step_s < case.moments_s[-1]
        assert case.issued.begins_s < case.begins_s, "there are forecasts of before, to learn their errors from"


def part(kept=True, hours=5.0, place=0.5, once=10.0, least=4.0, **more):
    found = {"kept": kept, "hours": hours, "place": place, "busiest": 0.8, "changes": 1, "moves": 2, "finish_s": 1.0}
    costs = {"at_once_hours": once, "own_hours": 20.0, "clairvoyant_hours": least}
    where = {"load": LOADS[0], "number": 0, "sure": 0.9, "fixed": False, "why": ""}
    return {**where, **costs, "replanned": found, "held": found, "rescued": found, **more}


def test_backfills_are_judged_together():
    found = judge_deadlines([part(), part(kept=False, hours=8.0), part(least=0.0, hours=0.0), {"why": "no"}])
    assert (found["n"], found["refused"], found["n_paid"]) == (3, 1, 2)
    assert found["kept"] == pytest.approx(2 / 3)
    assert found["beside_once"] == 0.5 and found["beside_own"] == 0.25
    assert found["beside_clairvoyant"] == pytest.approx((1.25 + 2) / 2)
    assert found["sum_beside_clairvoyant"] == pytest.approx(13 / 8)
    assert judge_deadlines([{"why": "no"}]) == {"n": 0, "refused": 1}


def test_distance_from_uniform_by_hand():
    assert kolmogorov_distance(np.array([0.5])) == 0.5
    assert kolmogorov_distance(np.array([0.25, 0.75])) == 0.25
    assert kolmogorov_distance((np.arange(1000) + 0.5) / 1000) == pytest.approx(0.0005)


def test_backfills_that_a_file_has_are_not_run_again(tmp_path, monkeypatch):
    ran, saved = [], []

    def judge(load, number, sure):
        ran.append((load, number))
        return part(load=load, number=number, sure=sure, work=0.1, ratio=2.0) | {"hours": 1.0}

    monkeypatch.setattr(deadline, "judge_backfill", judge)
    first = measure_deadlines(["a", "b"], 3, 0.9, None, saved.append)
    assert ran == [("a", 0), ("b", 0), ("a", 1)] and [len(one["parts"]) for one in saved] == [2]
    kept = tmp_path / "kept.json"
    kept.write_text(json.dumps({"data": first}))
    again = measure_deadlines(["a", "b"], 4, 0.9, kept)
    assert ran[3:] == [("b", 1)] and len(again["parts"]) == 4
    measure_deadlines(["a"], 1, 0.8, kept)
    assert ran[4:] == [("a", 0)], "asked for another probability"
