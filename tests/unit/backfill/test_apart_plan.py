"""A backfill in an application of its own: its size, its end and its cost by hand; chosen where that is cheaper."""

import re
from dataclasses import replace

import numpy as np
import pytest

from configs.contract import Contract
from configs.errors import SettingsError
from models.backfill.apart import plan_apart
from models.backfill.given import BackfillPlanError, ReplayWork
from models.backfill.live.apart import plan_order_apart
from models.backfill.live.known import grid_until, surroundings
from models.backfill.live.ordered import look_again, plan_order
from pipelines.backfill import ordering
from pipelines.backfill.text import describe_order
from tests.fakes.planned_job import CONTRACT, NOW, moment, order, plan_at, progress

ZONE = "UTC"
"""It is 22:13:20 there; live records are 100 to 260 per second, a slot serves about 100, eight executors at most."""


def _moment(apart=None, scaling=1.0, most=8, **fields):
    known = moment(**fields)
    stated = CONTRACT.model_dump(mode="json") | ({"backpressure": {"apart": apart}} if apart else {})
    stated["planning"]["scaling"] = scaling
    stated["executors"]["max"] = most
    return known._replace(known=replace(known.known, contract=Contract.model_validate(stated)))


def _around(known, by_s=3600.0):
    around = surroundings(known.known, known.now_s, grid_until(known.known, by_s))
    return replace(around, slot=replace(around.slot, rps=50.0, deviation=0.0), published_s=0.0)


def test_it_takes_the_fewest_executors_that_are_in_time_and_pays_their_start_and_its_driver():
    """90,000 records at 50/s each: 1,800 s by one, 900 s by two, 600 s by three, and 100 s until they work."""
    around = _around(_moment())
    for by_s, executors, took_s in ((1900.0, 1, 1900.0), (1899.0, 2, 1000.0), (1000.0, 2, 1000.0), (999.0, 3, 700.0)):
        found = plan_apart(ReplayWork(90_000), by_s, around, 0.9, np.arange(5.0), 100.0)
        assert found.executors == executors and found.finish.quantile(0.5) == pytest.approx(took_s)
        assert found.hours == pytest.approx((executors + 1) * took_s / 3600)
    assert plan_apart(ReplayWork(90_000), 549.0, around, 0.9, np.arange(5.0), 100.0) is None
    assert plan_apart(ReplayWork(90_000), 551.0, around, 0.9, np.arange(5.0), 100.0).executors == 4
    later = plan_apart(ReplayWork(90_000), 1020.0, replace(around, published_s=30.0), 0.9, np.arange(5.0), 100.0)
    assert (later.executors, later.finish.quantile(0.5)) == (3, pytest.approx(730.0))


def test_a_bound_of_its_rate_and_what_a_record_costs_count():
    around = _around(_moment())
    assert (
        plan_apart(ReplayWork(90_000), 5000.0, around, 0.9, np.arange(5.0), 0.0, most_rps=30.0).finish.quantile(0.5)
        == 3000.0
    )
    assert (
        plan_apart(ReplayWork(90_000, cost=2.0), 3600.0, around, 0.9, np.arange(5.0), 0.0).finish.quantile(0.5)
        == 3600.0
    )


def test_how_sure_it_is_follows_from_what_is_not_known():
    around = replace(_around(_moment()), slot=replace(_around(_moment()).slot, deviation=0.2))
    took = plan_apart(ReplayWork(90_000), 3600.0, around, 0.9, np.arange(5.0), 0.0).finish
    one = plan_apart(ReplayWork(90_000), took.quantile(0.9), around, 0.9, np.arange(5.0), 0.0)
    more = plan_apart(ReplayWork(90_000), took.quantile(0.9) - 1.0, around, 0.9, np.arange(5.0), 0.0)
    assert (one.executors, more.executors) == (1, 2)
    assert np.log(took.quantile(0.9) / took.quantile(0.5)) == pytest.approx(1.2816 * 0.2, rel=0.2)


def test_nothing_changes_without_an_application_in_the_contract():
    known = ordering.plan_cheapest(order(), "23:45", 0.9, ZONE, _moment())
    beside = plan_at(order(), "23:45", 0.9, ZONE, _moment())
    assert (known.order, known.sentence) == (beside.order, beside.sentence) and known.order.apart is None


def test_the_cheaper_one_is_taken_and_the_other_told():
    """Where executors lose worth by number, live's third and fourth bring little, and the first one elsewhere a lot."""
    stated = {"executors": 8, "command": "start {executors}", "start_s": 10.0}
    beside = ordering.plan_cheapest(order(), "23:45", 0.9, ZONE, _moment(stated))
    assert beside.order.apart is None and beside.order.schedule
    own = float(re.search(r"in an application of its own: ([\d.]+)\)", beside.sentence)[1])
    assert own > beside.hours

    apart = ordering.plan_cheapest(order(), "23:45", 0.9, ZONE, _moment(stated, scaling=0.5))
    assert apart.order.schedule == [] and apart.order.finish and apart.order.by == beside.order.by
    assert apart.order.apart == 1 and apart.order.task_rows == pytest.approx(4.0 / 0.01, abs=1)
    told = re.fullmatch(
        r"400 k records; in an application of its own, 1 executor; done by 23:\d\d \(90 %\), .* with 99 %; "
        r"([\d.]+) executor-hours with its driver \(beside live records: ([\d.]+)\)",
        apart.sentence,
    )
    assert told, apart.sentence
    assert float(told[1]) == pytest.approx(apart.hours, rel=0.05) and float(told[2]) > float(told[1])
    zoned = ordering.plan_cheapest(order(), "00:45", 0.9, "Europe/Berlin", _moment(stated, scaling=0.5))
    assert zoned.order.apart == 1 and zoned.sentence.endswith("; times of Europe/Berlin"), zoned.sentence
    assert describe_order(apart.order).endswith("by 1 executor of its own")


def test_a_deadline_that_cannot_be_kept_beside_live_records_is_kept_apart_or_refused():
    many = order(records=1_000_000)
    with pytest.raises(BackfillPlanError, match="cannot be met"):
        ordering.plan_cheapest(many, "22:40", 0.9, ZONE, _moment())
    roomy = {"executors": 20, "command": "start {executors}", "start_s": 10.0}
    found = ordering.plan_cheapest(many, "22:40", 0.9, ZONE, _moment(roomy))
    assert found.order.apart > 5 and "(beside live records not in time)" in found.sentence
    frozen = ordering.plan_cheapest(many, "22:40", 0.9, ZONE, _moment(roomy, mode="freeze"))
    assert frozen.order.apart == found.order.apart  # it needs nothing of the live job's agent
    with pytest.raises(BackfillPlanError, match="cannot be met") as refused:
        ordering.plan_cheapest(many, "22:40", 0.9, ZONE, _moment(roomy | {"executors": 2}))
    told = re.search(
        r"An application of its own is not in time either: with all 2 executors \(backpressure.apart in the job's "
        r"contract\) it is done by (\d\d:\d\d) \(90 %\)",
        str(refused.value),
    )
    known = _moment(roomy | {"executors": 2})
    due, _ = ordering.read_due(many, "23:59", 0.9, ZONE, NOW)
    both = plan_order_apart(due, known)
    assert both.executors == 2
    assert "23:45" < told[1] <= "23:59" and both.finish.quantile(0.9) == pytest.approx(6200, abs=600)


def test_it_has_as_many_executors_as_its_contract_allows_however_few_the_live_job_has():
    """A deadline that takes more than four times as many executors as the live job may have."""
    small = _moment({"executors": 60, "command": "start {executors}", "start_s": 10.0}, most=2, tasks=200)
    found = ordering.plan_cheapest(order(records=4_000_000), "23:13", 0.9, ZONE, small)
    assert 8 < found.order.apart < 60 and found.order.finish[2][1] <= found.order.by


def test_what_runs_apart_is_not_planned_anew_and_takes_nothing_from_what_runs_beside_live():
    first = order("first", by=NOW + 3600.0, sure=0.9)
    said = progress("first", done=0)
    known = _moment(orders=[replace(first, apart=2)], progress=[said])
    assert look_again(replace(first, apart=2), known) is None
    later = order("later", by=NOW + 5400.0, sure=0.9, begin_ms=0, end_ms=1)
    taken = _moment(orders=[replace(first, schedule=[[NOW, 5]])], progress=[said])
    alone = plan_order(later, known).schedule.hours
    assert alone == plan_order(later, _moment()).schedule.hours != plan_order(later, taken).schedule.hours


@pytest.mark.parametrize(("apart", "told"), [
    ({"executors": 0, "command": "start"}, "executors"),
    ({"executors": 2}, "command"),
    ({"executors": 2, "command": "start 'it"}, "no command"),
    ({"executors": 2, "command": "start {cores}"}, "executors"),
    ({"executors": 2, "command": "start {executors.real.imag.up}"}, "no command"),
    ({"executors": 2, "command": "  "}, "empty command"),
    ({"executors": 2, "command": "start", "start_s": 0}, "start_s"),
    ({"executors": 2, "command": "start", "cores": 2}, "cores"),
])  # fmt: skip
def test_an_application_that_cannot_be_started_is_refused_with_the_contract(apart, told, tmp_path):
    import yaml

    from configs.contract import load_contract

    (tmp_path / "orders.yaml").write_text(yaml.safe_dump({"job": "orders", "backpressure": {"apart": apart}}))
    with pytest.raises(SettingsError, match=told) as refused:
        load_contract("orders", tmp_path)
    assert "orders.yaml, line" in str(refused.value)


def test_the_number_of_executors_stands_in_its_command_where_it_is_asked_for():
    stated = Contract.model_validate(
        {"job": "orders", "backpressure": {"apart": {"executors": 4, "command": "run 'my job.py' --n {executors}"}}}
    ).backpressure
    assert stated.apart.argv(3) == ["run", "my job.py", "--n", "3"]
    assert "apart" not in Contract.model_validate({"job": "orders", "backpressure": {"seed": 1}}).text
