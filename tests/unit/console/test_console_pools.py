"""The page of pools: what each job has and why, what a pool is short of, and the line on a job's page."""

import pytest

from models.pool.state import MOST_POOLS
from pipelines.bench.team.console.records import NOW, interval, pool, record
from pipelines.console.lists import pools_page
from pipelines.console.pools import pool_of, pool_row, pool_rows
from pipelines.console.read.fold import ReadModel, fold

JOBS = ["payments", "orders", "rides"]


def seen(*records):
    return fold(ReadModel(), records, NOW + 60)


def row(after=1.0, **more):
    return pool_row(seen(pool("shared", NOW, JOBS, **more)).pools["shared"], NOW + after)


def test_without_a_pool_the_page_says_where_its_file_belongs_also_where_contracts_are_elsewhere():
    assert "the folder <code>pools</code>, beside that of the contracts" in pools_page()


def test_a_pool_is_shown_with_what_each_job_has_the_dearest_first():
    shown = row(price_per_core_hour=0.05, memory_gb=24.0)
    assert [one["job"] for one in shown["jobs"]] == ["payments", "orders", "rides"]
    assert (shown["used"], shown["used_gb"]) == (2 * (4 + 2 + 2), 11.2)
    assert (shown["price"], shown["most_price"]) == (pytest.approx(0.8), pytest.approx(0.8))
    assert shown["jobs"][1]["reason"].startswith("yields 2 to payments until 18:20 UTC: ")
    assert (shown["jobs"][1]["granted_replay"], shown["jobs"][1]["wanted_replay"]) == (0, 2)
    assert (shown["trouble"], shown["short"], shown["quotas"]) == ("", None, [])


def test_what_it_will_be_short_of_and_its_quota():
    short = {"enough_cores": 16, "short_from": NOW + 600, "short_until": None, "short_jobs": ["orders"]}
    shown = row(**short, hourly_core_hours=10.0, hour_core_s=9000.0, usable=7.5)
    assert shown["short"] == {"begin": NOW + 600, "until": None, "enough": 16, "jobs": ["orders"]}
    assert (shown["quotas"], shown["usable"]) == ([{"of": "hour", "most": 10.0, "taken": 2.5}], 7.5)


@pytest.mark.parametrize(
    ("more", "after", "trouble"),
    [
        ({"state": "vetoed", "problem": "its hook forbids it"}, 1, "its hook forbids it"),
        ({"problem": "shared.yaml, line 2: wrong"}, 1, "shared.yaml, line 2: wrong"),
        ({"state": "asked"}, 1, ""),
        ({"state": "waits"}, 1, "no job of it has spoken yet: nothing is given away"),
        ({}, 29, ""),
        ({}, 31, "no autoscaler divides it: what was granted stands"),
    ],
)
def test_what_is_wrong_with_a_pool(more, after, trouble):
    assert row(after, **more)["trouble"] == trouble


def test_the_last_word_holds_also_of_a_clock_that_was_set_back_and_a_pool_that_is_gone_is_shown_no_longer():
    model = seen(pool("shared", NOW, JOBS, cores=9), pool("shared", NOW - 5, JOBS, cores=7))
    assert model.pools["shared"].cores == 7
    assert seen(pool("shared", NOW, JOBS), pool("shared", NOW + 1, [], state="gone")).pools == {}


def test_pools_are_bounded_and_change_no_job():
    model = seen(interval("orders", NOW))
    after = fold(model, [pool(f"p{n}", NOW, ["orders"]) for n in range(MOST_POOLS + 3)], NOW + 60)
    assert (len(after.pools), after.refused, after.revision) == (MOST_POOLS, 3, model.revision)
    assert after.jobs is model.jobs


def test_what_is_no_state_of_that_pool_is_refused():
    forged = record("pools", "other", pool("shared", NOW, JOBS).value)
    twice = pool("shared", NOW, ["orders", "orders"])
    blackout = pool("shared", NOW, JOBS, blackouts=[[5.0, 1.0, []]])
    for one in (forged, twice, blackout, record("pools", "shared", b"{}")):
        assert seen(one) == ReadModel(refused=1)


def test_pools_in_trouble_come_first_then_those_that_are_too_small():
    small = pool("b", NOW, JOBS, enough_cores=16, short_from=NOW)
    model = seen(pool("a", NOW, JOBS), small, pool("c", NOW, JOBS, state="vetoed", problem="no"))
    assert [one["pool"] for one in pool_rows(model, NOW)] == ["c", "b", "a"]


def test_a_job_finds_its_pool():
    model = seen(pool("shared", NOW, JOBS), pool("other", NOW, ["clicks"]))
    found = pool_of(model, "orders", NOW)
    assert (found["pool"], found["share"]["granted"], found["share"]["wanted"]) == ("shared", 2, 4)
    assert pool_of(model, "nobody", NOW) is None
