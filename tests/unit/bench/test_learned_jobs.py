"""The count of random jobs that DQN and LSTM place, and one of them as a whole."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from models.placement.allocation.nodes import Nodes
from models.placement.instances.job import ParallelJob
from models.placement.learned.reward import PlacementOutcome, RewardWeights
from models.placement.learned.schemes import Proposal
from models.placement.learned.training import OURS
from pipelines.bench.placement import learned_jobs
from pipelines.bench.placement.learned import small_job
from pipelines.bench.placement.performance import record_past


def job(start, tried, kept, random):
    return {"start": start, "tried": tried, "kept": kept, "random": random, "looked_at": 320}


def test_jobs_are_counted_by_hand():
    jobs = [
        job(0.3, [0.5], 0.5, 0.4),  # better, and above random search
        job(0.3, [0.2, 0.4], 0.4, 0.6),  # the second one stays
        job(0.3, [0.2, 0.1], 0.3, 0.5),  # worse, and taken back
        job(0.3, [0.29], 0.29, 0.1),  # worse, and left so; no random search helps
        job(0.3, [], 0.3, 0.3),
    ]
    third = pytest.approx(1 / 3)
    assert learned_jobs.summarise(jobs) == {
        "better": pytest.approx(2 / 3), "better_first": third, "above_random": third, "worse": 1, "worse_first": 3,
        "possible": 3, "n": 5,
    }  # fmt: skip
    assert learned_jobs.summarise(jobs[3:])["better"] is None


def test_a_call_goes_on_where_another_one_ended(monkeypatch):
    asked, saved = [], []
    monkeypatch.setattr(learned_jobs, "measure_job", lambda seed: (asked.append(seed), job(0.3, [0.5], 0.5, 0.4))[1])
    monkeypatch.setattr(learned_jobs, "JUDGED", range(100, 103))
    earlier = {"kept": {"101": job(0.3, [], 0.3, 0.4), "7": job(0.3, [], 0.3, 0.4)}}
    found = learned_jobs.measure_learned_jobs(earlier, saved.append)
    assert asked == [100, 102] and len(saved) == 2 and saved[-1] == found
    assert (found["n"], found["better"]) == (3, pytest.approx(2 / 3)) and list(found["kept"]) == ["101", "100", "102"]


def test_a_job_is_learned_and_judged_by_the_twin(monkeypatch):
    made: tuple[ParallelJob, Nodes] = small_job(101, 2, 3)
    monkeypatch.setattr(learned_jobs, "random_job", lambda seed: made)
    monkeypatch.setattr(learned_jobs, "STEPS", 120)
    for name, short in (
        ("train_performance", {"epochs": 2}),
        ("train_placement", {"how": replace(OURS, transitions=64, trials=2)}),
    ):
        monkeypatch.setattr(learned_jobs, name, partial(getattr(learned_jobs, name), **short))
    found = learned_jobs.measure_job(101)
    assert found["kept"] in (found["start"], *found["tried"]) and 0 < found["looked_at"] <= 326


def test_what_is_measured_to_be_worse_is_taken_back_and_the_next_one_tried():
    start, *others = (np.array([[n]]) for n in (4, 5, 6, 7))
    known = {4: (10.0, 0.6), 5: (20.0, 0.4), 6: (20.0, 0.4), 7: (5.0, 0.7)}

    class Twin:
        def outcome(self, counts):
            latency_ms, load = known[int(counts.sum())]
            return PlacementOutcome(latency_ms, np.array([load]))

    said = PlacementOutcome(10.0, np.array([0.6]))
    proposals = [Proposal(one, said, score) for one, score in zip(others, (0.9, 0.8, 0.7), strict=True)]
    tried, kept = learned_jobs._try_online(Twin(), start, said, proposals, RewardWeights())
    assert [int(one.sum()) for one in tried] == [5, 6, 7] and int(kept.sum()) == 7
    for worse in ((20.0, 0.4), (10.0, 0.4)):  # slower, or as quick with instances that bring nothing
        known[7] = worse
        assert learned_jobs._try_online(Twin(), start, said, proposals, RewardWeights())[1] is start


def test_half_of_a_past_lies_near_a_placement():
    made = small_job(101, 2, 3)
    near = record_past(*made, 60, 3, start=np.array([[1, 0, 0], [0, 1, 0]]))
    assert (near.counts.sum(axis=2) >= 1).all() and len({one.tobytes() for one in near.counts}) > 10
