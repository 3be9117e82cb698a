"""The first screen: what it shows of each job is what all of the records make, and little else is decoded."""

import json
from dataclasses import replace

import pytest

from pipelines.bench.team.console.records import NOW, batch, decision, fleet, forecast, interval, pool, record
from pipelines.console.pools import pool_rows
from pipelines.console.read import newest
from pipelines.console.read.fold import ReadModel, fold
from pipelines.console.read.newest import fold_newest
from pipelines.console.shown import job_row


@pytest.fixture
def crowded(monkeypatch):
    """As with hundreds of jobs: the newest of each key alone."""
    monkeypatch.setattr(newest, "SHARED", dict.fromkeys(newest.SHARED, 1))


def broken(topic, key="orders"):
    return record(topic, key, b'{"kind":"interval"')


def test_the_first_rows_are_those_that_all_of_the_records_make(crowded):
    records, now = [*fleet(40, NOW, 0.2, 9)], NOW + 1
    first, whole = fold_newest(records, now), fold(ReadModel(), records, now)
    assert [*first.jobs] and {*first.jobs} == {*whole.jobs}
    for name, job in whole.jobs.items():
        row, expected = job_row(first.jobs[name], now), job_row(job, now)
        # All of them hold a batch since the decision, with which a 60th of the promise's window is over.
        for figure in ("budget_left", "burn_long", "burn_short"):
            assert row.pop(figure) == pytest.approx(expected.pop(figure), abs=0.02, rel=0.02)
        assert (row.pop("trouble")[:14], first.jobs[name].replays) == (expected.pop("trouble")[:14], job.replays)
        assert row == expected
    assert pool_rows(first, now) == pool_rows(whole, now)


def test_of_metrics_the_newest_interval_and_the_newest_batch_count_and_nothing_else_is_decoded(crowded):
    spaced = replace(found := batch("orders", NOW, 3.0), value=json.dumps(json.loads(found.value), indent=1).encode())
    told = [broken("metrics"), spaced, interval("orders", NOW + 1, 70.0), interval("orders", NOW + 2, 80.0)]
    model = fold_newest(told, NOW + 3)
    job = model.jobs["orders"]
    assert (job.sample.arrival_rps, job.batch.latency_max_s, model.refused) == (80.0, 3.0, 0)
    assert len(job.fine.columns()[0]) == 1


def test_before_a_record_that_nobody_can_read_the_one_before_it_counts(crowded):
    told = [decision("orders", NOW, 4), interval("orders", NOW, 70.0), pool("shared", NOW, ["orders"])]
    model = fold_newest([*told, *(broken(topic) for topic in ("decisions", "metrics"))], NOW + 3)
    job = model.jobs["orders"]
    assert (job.sample.arrival_rps, job.decisions[0].executors, model.refused) == (70.0, 4, 2)
    assert [*model.pools] == ["shared"]


def test_few_jobs_share_as_many_records_as_hundreds_do():
    told = [interval(job, NOW + second) for second in range(600) for job in ("orders", "rides")]
    first = fold_newest([*told, *(decision("orders", NOW + i) for i in range(60))], NOW + 600)
    assert [len(first.jobs[job].fine.columns()[0]) for job in ("orders", "rides")] == [500, 500]
    assert len(first.jobs["orders"].decisions) == 60


def test_of_forecasts_that_of_the_server_that_holds_is_shown_though_another_one_goes_on(crowded):
    held, lasting = forecast("orders", NOW), forecast("orders", NOW + 60, 50.0)
    later = replace(held, value=held.value.replace(b'"epoch":1,', b'"epoch":2,'))
    assert fold_newest([later, lasting], NOW + 70).jobs["orders"].forecast.last_rps == 100.0
