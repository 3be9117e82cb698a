"""The count of random jobs that DQN and LSTM place, and one of them as a whole."""

from functools import partial

import numpy as np
import pytest

from models.placement.allocation.nodes import Nodes
from models.placement.instances.job import ParallelJob
from pipelines.bench.placement import learned, learned_jobs
from pipelines.bench.placement.learned import small_job


def job(start, tried, kept, random):
    return {"start": start, "tried": tried, "kept": kept, "random": random, "looked_at": 320}


def test_jobs_are_counted_by_hand():
    jobs = [
        job(0.3, 0.5, 0.5, 0.4),  # better, and above random search
        job(0.3, 0.4, 0.4, 0.6),
        job(0.3, 0.2, 0.3, 0.5),  # worse, and taken back
        job(0.3, 0.29, 0.29, 0.1),  # worse, and left so; no random search helps
        job(0.3, None, 0.3, 0.3),
    ]
    assert learned_jobs.summarise(jobs) == {
        "changed": 4, "worse_at_first": 2, "worse": 1, "possible": 3, "better": pytest.approx(2 / 3),
        "above_random": pytest.approx(1 / 3), "n": 5,
    }  # fmt: skip
    assert learned_jobs.summarise(jobs[3:])["better"] is None


def test_a_call_goes_on_where_another_one_ended(monkeypatch):
    asked, saved = [], []
    monkeypatch.setattr(learned_jobs, "measure_job", lambda seed: (asked.append(seed), job(0.3, 0.5, 0.5, 0.4))[1])
    monkeypatch.setattr(learned_jobs, "JUDGED", range(100, 103))
    earlier = {"kept": {"101": job(0.3, None, 0.3, 0.4), "7": job(0.3, None, 0.3, 0.4)}}
    found = learned_jobs.measure_learned_jobs(earlier, saved.append)
    assert asked == [100, 102] and len(saved) == 2 and saved[-1] == found
    assert (found["n"], found["better"]) == (3, pytest.approx(2 / 3)) and list(found["kept"]) == ["101", "100", "102"]


def test_a_job_is_learned_and_judged_by_the_twin(monkeypatch):
    made: tuple[ParallelJob, Nodes] = small_job(101, 2, 3)
    monkeypatch.setattr(learned_jobs, "random_job", lambda seed: made)
    monkeypatch.setattr(learned_jobs, "STEPS", 120)
    for name, short in (("train_performance", {"epochs": 2}), ("train_placement", {"transitions": 64})):
        monkeypatch.setattr(learned_jobs, name, partial(getattr(learned_jobs, name), **short))
    found = learned_jobs.measure_job(101)
    assert found["kept"] in (found["start"], found["tried"]) and 0 < found["looked_at"] <= 321
    near = learned.record_past(*made, 60, 3, start=np.array([[1, 0, 0], [0, 1, 0]]))
    assert (near.counts.sum(axis=2) >= 1).all() and len({one.tobytes() for one in near.counts}) > 10
