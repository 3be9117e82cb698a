"""A plan as its order carries it: planned from what a job's messages say, looked at again, beside others."""

from dataclasses import replace

import numpy as np
import pytest

from models.backfill.given import BackfillPlanError, ReplayWork
from models.backfill.live.known import PUBLISHED_S, StepGrid, grid_until, lead_times, surroundings
from models.backfill.live.ordered import look_again, overlapping, plan_order, with_plan
from models.backfill.plan import DeadlineError
from models.backfill.replan import STARTS
from models.contract.promised.derive import derive_terms
from models.policy.core.sustained import sustained_rates
from tests.fakes.planned_job import NOW, moment, order, progress
from tidecast.control import Clock
from tidecast.messages import decode, encode
from tidecast.orders import ReplayOrder
from tidecast.replay.pace import SLOW_START_S

HOUR = 3600.0


def due(seconds=HOUR, **fields):
    return order(by=NOW + seconds, sure=0.9, **fields)


def test_steps_are_two_lead_times_long_and_never_shorter_than_one():
    assert StepGrid.until(3600, 60) == StepGrid(30, 120.0)
    assert StepGrid.until(36_000, 60) == StepGrid(48, 750.0)
    assert StepGrid.until(600, 60) == StepGrid(8, 75.0)
    assert StepGrid.until(150, 60) == StepGrid(2, 75.0)
    assert StepGrid.until(30, 60) == StepGrid(1, 30.0)


def test_a_plan_comes_from_what_the_autoscaler_knows_and_goes_into_the_order():
    now = moment()
    plan = plan_order(due(), now)
    assert plan.schedule.chance >= 0.9 and plan.finish.quantile(0.9) <= HOUR
    sent = decode(ReplayOrder, encode(with_plan(due(), plan, now)))
    steps = [sent.executors_at(NOW + (k + 0.5) * plan.step_s) for k in range(len(plan.extra))]
    assert steps == plan.extra.tolist() and max(steps) > 0
    assert sent.schedule[0][0] == NOW and sent.weight == pytest.approx(400_000 / (HOUR - PUBLISHED_S), rel=1e-3)
    assert all(a[1] != b[1] for a, b in zip(sent.schedule, sent.schedule[1:], strict=False))
    weighted = decode(ReplayOrder, encode(with_plan(due(weight=2.5, weighted=True), plan, now)))
    assert weighted.weight == 2.5 and weighted.weighted and not sent.weighted
    assert [level for level, _ in sent.finish] == [0.1, 0.5, 0.9, 0.99]
    assert [at - NOW for _, at in sent.finish] == pytest.approx(
        [plan.finish.quantile(level) for level, _ in sent.finish], abs=0.002
    )
    assert sent.keep_s == pytest.approx(STARTS * np.median(lead_times(now.known)), abs=0.001)


def test_what_is_to_be_done_by_a_deadline_is_planned_to_be_published_by_then():
    now = moment()
    plan, later = plan_order(due(), now), plan_order(due(HOUR + PUBLISHED_S), now)
    steps = StepGrid.until(HOUR - PUBLISHED_S, float(np.median(lead_times(now.known)))).steps
    assert (plan.by_s, steps * plan.step_s) == (HOUR, pytest.approx(HOUR - PUBLISHED_S))
    assert plan.finish.chance(HOUR) == pytest.approx(plan.schedule.chance) and plan.schedule.chance >= 0.9
    assert later.finish.chance(HOUR) < later.finish.chance(HOUR + PUBLISHED_S)  # read by then, and not published
    sent = with_plan(due(), plan, now)
    looked = look_again(sent, moment(orders=[sent], progress=[progress(done=0)]))
    assert looked.plan.finish.chance(HOUR) == pytest.approx(looked.kept_chance)
    assert look_again(sent, now._replace(now_s=NOW + HOUR - PUBLISHED_S + 1)) is None  # nothing more is read in time


def test_a_plan_knows_by_how_much_starts_slow_each_other_down_and_how_many_may_be_made_at_once():
    now = moment()
    grid = grid_until(now.known, HOUR)
    planning = now.known.contract.planning.model_copy(update={"start_growth": 1.0, "max_step_up": 2})
    shared = replace(now.known, contract=now.known.contract.model_copy(update={"planning": planning}))
    apart, turns = (surroundings(known, NOW, grid).fleet for known in (now.known, shared))
    assert (apart.growth, apart.step_up, turns.growth, turns.step_up) == (0.0, np.inf, 1.0, 2)
    assert turns.lead_s.tolist() == apart.lead_s.tolist()


def test_in_a_replayed_trace_the_schedule_is_in_trace_time():
    clock = Clock(NOW - 1000, 1.4e9, 200.0)
    now = moment(clock)
    dated = order(by=clock.at(NOW + HOUR), sure=0.9)
    sent = with_plan(dated, plan := plan_order(dated, now), now)
    assert plan.by_s == pytest.approx(HOUR)
    at = clock.at(NOW + 2.5 * plan.step_s)
    assert sent.executors_at(at) == plan.extra[2] and sent.schedule[0][0] == pytest.approx(clock.at(NOW))


def test_the_replay_gets_what_its_controller_will_give_it():
    now = moment()
    grid = grid_until(now.known, HOUR)
    around = surroundings(now.known, NOW, grid)
    assert around.slot.rps == pytest.approx(100) and around.slot.deviation == pytest.approx(0.1 * 2.45 / 1.6448536)
    assert around.climb.stages[0] == pytest.approx((0.5, np.exp(-0.1 * 2.45)))  # what a slot certainly serves
    assert around.climb.stages[-1] == pytest.approx((0.95, 1.0)) and around.reading_s is None
    assert around.slot.held_rps == pytest.approx(100 * (1 - 0.5 / now.known.contract.batch_s))
    assert (around.fleet.least, around.fleet.most, around.running) == (1, 8, 3)
    memory = now.known.memory
    box = derive_terms(now.known.contract, sustained_rates(now.known.contract, memory.model, 64)).controls.replay_rps
    assert around.futures(ReplayWork(1.0)).most_rps == pytest.approx(box.max)
    assert surroundings(now.known, NOW, grid, bound_rps=50.0).futures(ReplayWork(1.0)).most_rps == 50.0
    assert (around.high_rps >= around.outlook.median).all()
    with pytest.raises(DeadlineError):
        plan_order(due(most_rps=50.0), now)  # 50/s for an hour are 180,000


def replace_memory(now, **fields):
    known = replace(now.known, memory=replace(now.known.memory, **fields))
    return now._replace(known=known)


def test_too_little_known_is_refused_by_name_with_what_to_do():
    now = moment()
    without = now._replace(known=replace(now.known, issued=None))
    for where, seconds, words in (
        (without, HOUR, "no forecast of job 'orders' yet"),
        (replace_memory(now, executors=None), HOUR, "nothing was heard of job 'orders'"),
        (now, 3 * HOUR, "reaches 1.944 h ahead by the wall's clock, the deadline is 3 h away"),
        (now, -10.0, "passed 10 s ago"),
        (now, 20.0, "is 20 s from now, and 30 s are left for its publication"),
    ):
        with pytest.raises(BackfillPlanError, match=words):
            plan_order(due(seconds), where)


KNOWN = {"scatter": 1e-4}
"""What executors serve is known, so that what comes as planned in the mean is as sure as it was."""


def sent_and_after(seconds, done, **fields):
    """The order as it was planned, and the job some time later."""
    first = moment(**KNOWN)
    standing = with_plan(due(), plan_order(due(), first), first)
    admitted = {"admitted_rps": 150.0, "reading_since": NOW}
    extra = standing.executors_at(NOW + seconds)
    return standing, moment(
        now_s=NOW + seconds,
        orders=[standing],
        progress=[progress(done=done, **admitted)],
        executors=3 + extra,
        **KNOWN,
        **fields,
    )


def test_a_schedule_stands_while_things_come_as_planned_and_is_made_anew_where_they_do_not():
    plan = plan_order(due(), moment(**KNOWN))
    as_planned = int(plan.replay_rps[: round(1200 / plan.step_s)].sum() * plan.step_s)
    standing, now = sent_and_after(1200, as_planned)
    kept = look_again(standing, now)
    assert not kept.changed and 0.3 < kept.kept_chance <= 1

    slower = replace(now.known.memory.model, per_record_s=0.016)
    standing, now = sent_and_after(1200, as_planned // 3, model=slower)
    late = look_again(standing, now)
    assert late.changed and late.kept_chance < 0.5
    newer = with_plan(standing, late.plan, now)
    until = range(int(now.now_s), int(NOW + HOUR), 60)
    assert sum(map(newer.executors_at, until)) > sum(map(standing.executors_at, until))
    assert newer.wall_time > standing.wall_time and newer.schedule[0] == [now.now_s, int(late.plan.extra[0])]
    assert (newer.by, newer.sure, newer.id) == (standing.by, 0.9, "fix")

    standing, now = sent_and_after(1200, 390_000)
    early = look_again(standing, now)
    assert early.kept_chance == 1 and early.plan.extra.sum() <= sum(plan.extra)


def test_one_whose_first_batch_has_just_begun_is_not_taken_to_be_at_full_speed():
    standing = with_plan(due(), plan_order(due(), moment()), moment())

    def replayed_at_once(now, reading_since):
        said = progress(done=100_000, admitted_rps=150.0, reading_since=reading_since)
        looked = look_again(standing, moment(now_s=now, orders=[standing], progress=[said]))
        return looked.plan.replay_rps[0] * looked.plan.step_s

    now = NOW + 600
    long_since, over, half_way, just = (replayed_at_once(now, now - since) for since in (600, 30, 15, 0))
    assert long_since > over > half_way > just > 0


def test_no_more_than_the_controller_s_box_is_counted_on_however_little_a_record_costs():
    cheap = due(cost=0.05, records=3_000_000)  # 833/s
    with pytest.raises(DeadlineError):
        plan_order(cheap, moment())
    assert plan_order(due(cost=0.05, records=1_000_000), moment()).replay_rps.max() <= 800


def test_a_replay_that_comes_to_half_of_its_rate_is_planned_at_that_once_its_slow_start_is_over():
    standing = with_plan(due(), plan_order(due(), moment()), moment())

    def looked(reached, reading_s=600.0, first=()):
        said = progress(done=100_000, admitted_rps=150.0, reading_since=NOW + 600 - reading_s, reached=reached)
        orders, told = [standing, *(one for one, _ in first)], [said, *(its for _, its in first)]
        return look_again(standing, moment(now_s=NOW + 600, orders=orders, progress=told))

    as_admitted, half = looked(None), looked(0.5)
    assert half.kept_chance < as_admitted.kept_chance
    assert half.plan.extra.sum() > as_admitted.plan.extra.sum()
    assert looked(1.0).kept_chance == as_admitted.kept_chance
    assert looked(0.0).plan.replay_rps[0] > 0

    around = surroundings(moment().known, NOW, grid_until(moment().known, HOUR), reading_s=600.0)
    extra = np.full(around.futures(ReplayWork(1.0)).steps, 2)
    whole, third = (replace(around, reached=r).futures(ReplayWork(1.0)).replay_rps(extra) for r in (1.0, 1 / 3))
    assert third == pytest.approx(whole / 3)
    assert looked(0.1, SLOW_START_S - 1).kept_chance == looked(None, SLOW_START_S - 1).kept_chance

    def chance_behind(reached):
        sooner = order("sooner", 100_000, by=NOW + HOUR / 2, sure=0.9)
        its = progress("sooner", 10_000, records=100_000, reading_since=NOW, reached=reached)
        return looked(None, first=[(sooner, its)]).kept_chance

    assert chance_behind(1.0) < chance_behind(0.2) < as_admitted.kept_chance  # which leaves the more now


@pytest.mark.parametrize(("admitted_rps", "share"), [(None, 1.0), (170.0, 1.0), (60.0, 0.92), (0.0, 0.92)])
def test_one_whose_rate_has_fallen_as_live_records_did_not_bear_it_climbs_again(admitted_rps, share):
    standing = with_plan(due(), plan_order(due(), moment()), moment())

    def first_step(admitted_rps):
        said = progress(done=50_000, admitted_rps=admitted_rps, reading_since=NOW)
        looked = look_again(standing, moment(now_s=NOW + 600, orders=[standing], progress=[said]))
        return looked.plan.replay_rps[0]

    assert first_step(admitted_rps) / first_step(None) == pytest.approx(share, abs=0.02)


def test_what_a_record_costs_is_believed_until_the_slow_start_is_over():
    def cost(since_s, **fields):
        said = progress(done=100, rows=100, work_s=4.0, reading_since=NOW)
        return moment(now_s=NOW + since_s, progress=[said]).work(due(**fields)).cost

    assert cost(SLOW_START_S - 1, cost=0.1) == pytest.approx(0.1)
    assert cost(SLOW_START_S, cost=0.1) > 0.5  # 4 s for 100 records are told beside the belief
    assert cost(1.0) == 1.0  # nothing is believed


@pytest.mark.parametrize(("state", "left"), [
    ("done", 400_000), ("cancelled", 400_000), ("failed", 150_000), ("compared", 150_000), ("running", 150_000),
])  # fmt: skip
def test_a_range_that_is_ordered_again_under_its_name_is_planned_from_its_beginning(state, left):
    told = {"rows": 100, "work_s": 4.0, "reading_since": NOW - 900}
    now = moment(progress=[progress(done=250_000, state=state, **told)], now_s=NOW + 1)
    again = due(wall_time=NOW + 1)
    assert now.left(again) == left
    assert (now.reading_s(again) is None) == (left == 400_000)
    assert plan_order(again, now).work.records == left
    if left == 400_000:
        assert plan_order(again, now).extra.tolist() == plan_order(again, moment(now_s=NOW + 1)).extra.tolist()
        assert now.left(replace(again, wall_time=NOW)) == 150_000  # it is this order's that is over


def test_nothing_is_looked_at_that_does_not_run_or_has_no_deadline_any_more():
    standing, now = sent_and_after(1200, 100_000)
    assert look_again(replace(standing, wanted="pause"), now) is None
    assert look_again(replace(standing, by=None), now) is None
    assert look_again(standing, now._replace(now_s=NOW + HOUR + 1)) is None
    read = now._replace(progress={"fix": progress(state="read", done=400_000)})
    assert look_again(replace(standing, wall_time=NOW - 5), read) is None


def test_one_with_an_earlier_deadline_goes_first_and_a_later_one_takes_nothing():
    first = moment()
    sooner = with_plan(
        due(HOUR / 2, name="sooner", records=200_000), plan_order(due(HOUR / 2, records=200_000), first), first
    )
    alone, beside = (plan_order(due(records=300_000), moment(orders=orders)) for orders in ((), (sooner,)))
    assert beside.schedule.hours > alone.schedule.hours
    bound = plan_order(due(records=300_000), moment(orders=[replace(sooner, most_rps=20.0)]))
    assert bound.schedule.hours < beside.schedule.hours  # it was ordered to have little, and leaves the more
    later = due(1.9 * HOUR, name="later", records=300_000)
    assert plan_order(due(records=300_000), moment(orders=[later])).extra.tolist() == alone.extra.tolist()
    over = moment(orders=[sooner], progress=[progress("sooner", 200_000, "done", 200_000)])
    assert plan_order(due(records=300_000), over).extra.tolist() == alone.extra.tolist()


def test_two_orders_overlap_where_they_have_an_instant_in_common_and_both_stand():
    one = order("one")
    assert overlapping(one, [order("two")]).id == "two"
    assert overlapping(one, [order("two", wanted="done"), order("one")]) is None
    after = order("two", begin_ms=one.end_ms, end_ms=one.end_ms + 1)
    assert overlapping(one, [after]) is None
    assert overlapping(one, [replace(after, begin_ms=one.end_ms - 1)]).id == "two"
    assert overlapping(replace(one, begin_ms=None), [order("two")]) is None


def test_one_that_failed_and_is_resumed_goes_on_where_it_was():
    failed = progress(done=300_000, state="failed", at=NOW - 60)
    assert moment(orders=[due()], progress=[failed]).left(due()) == 100_000
