"""Proposals for the shipped jobs are measured: all jobs, each as its lake would hold it, and what became of them."""

import pytest

from configs.settings import load
from pipelines.bench.team import init, shipped_jobs
from pipelines.bench.team.shipped_jobs import HOURS, list_jobs, load_of, simulated_job


def test_every_shipped_job_is_one_and_its_load_fits_its_executors():
    jobs = list_jobs(load())
    assert len(jobs) == 8 and {"word_count", "key_window", "ride_count", "key_totals"} <= set(jobs)
    job = simulated_job(jobs["word_count"])
    assert job.least == job.most == jobs["word_count"].executors.max
    arrived = load_of(job, jobs["word_count"], 5, 1)
    assert len(arrived) == HOURS * 3600 + 1 and arrived[-1] == load_of(job, jobs["word_count"], 5, 1)[-1]
    assert arrived[-1] != load_of(job, jobs["word_count"], 7, 1)[-1]


@pytest.mark.study
def test_a_proposal_is_judged_by_the_check_by_its_twin_and_by_the_job(monkeypatch):
    told, every = [], list_jobs(load())
    monkeypatch.setattr(init, "list_jobs", lambda settings: {"key_window": every["key_window"]})
    monkeypatch.setattr(shipped_jobs, "HOURS", 1.1)
    found = init.measure_proposals(load(), told.append)
    (row,) = found["jobs"]
    assert told == ["key_window"] and (found["n"], found["passed"], found["held"]) == (1, 1, 1)
    assert row["target_s"] >= row["kept_s"] and row["executors"][1] >= row["were"] == 2
    assert row["late"] <= init.BUDGET and found["next"] == (row["next_late"] <= init.BUDGET)
    assert not init._passes("job: key_window\nlatency: 3\n", every["key_window"])
