"""From how many jobs on each part of a fleet needs a second core: worked out by hand."""

import pytest

from pipelines.bench.fleet.measure import forecasts_per_s, format_work
from pipelines.bench.fleet.second_core import second_core_from, shares_of

SIZE = {
    "jobs": 500, "autoscaler": {"cores": 0.75}, "serving": {"cores": 0.5}, "broker": {"cores": 0.0},
    "records_per_job_s": 1.5, "ingest": {"records": 100_000, "seconds": 50.0, "cpu_s": 80.0, "megabytes": 900.0},
    "training": {"job": "job-0000", "seconds": 50.0, "cpu_s": 36.0, "megabytes": 700.0}, "forecasts_per_s": 600.0,
}  # fmt: skip


def test_a_jobs_share_is_what_it_takes_of_a_core():
    assert shares_of(SIZE) == pytest.approx(
        {"autoscaler": 0.0015, "serving": 0.001, "broker": 0.0, "ingest": 0.0012, "training": 0.01}
    )


def test_a_second_core_is_needed_from_the_first_job_that_does_not_fit_into_one():
    assert second_core_from({"a": 0.25, "b": 0.3, "c": 2.0, "d": 0.0}) == {"a": 5, "b": 4, "c": 1, "d": None}
    assert second_core_from({"a": 0.0015}) == {"a": 667}


def test_nothing_was_ingested():
    assert second_core_from(shares_of(SIZE | {"ingest": {"records": 0, "cpu_s": 9.0}}))["ingest"] is None


def test_forecasts_a_second_are_those_of_a_moment_by_the_time_until_nearly_all_are_there():
    assert forecasts_per_s(500, {"p95_s": 0.5}) == 950.0
    assert forecasts_per_s(500, {"p95_s": None}) is None


def test_it_is_said_in_words():
    told = format_work(SIZE | {"second_core": second_core_from(shares_of(SIZE))})
    assert "100,000 records in 50.0 s (80.0 s of CPU, 900 MB)" in told and "600.0 forecasts/s" in told
    assert "autoscaler 667, serving 1,001, broker -, ingest 834, training 101" in told
