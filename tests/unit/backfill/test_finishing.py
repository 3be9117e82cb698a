"""Finishing times, hand-computed, and by simulated truth."""

import math
from dataclasses import replace

import numpy as np
import pytest

from models.backfill.climb import Climb
from models.backfill.finish import FinishTimes, finish_steps, finishing, replayed, taken_by, weigh
from models.backfill.futures import Futures, draw_futures, held_for
from models.backfill.given import BackfillPlanError, Fleet, LiveOutlook, LivePromise, ReplayWork, SlotRate
from models.backfill.joint import unknown_errors
from models.contract.service_rate import ServiceRate

LEVELS = (0.05, 0.5, 0.95)


def known(steps=4, live=150.0, most=6, lead=50.0, running=2):
    """One future: a slot serves 100 records/s, two executors are held for 150."""
    fleet = Fleet(np.arange(most + 1.0), 1, most, np.array([lead]))
    rates = np.full((1, steps), live)
    held = held_for(rates, 100.0, 0.0, fleet)
    return Futures(rates, held, np.array([100.0]), np.array([1.0]), np.array([lead]), 100.0, fleet, running)


def test_the_rest_goes_to_the_replay_and_a_new_executor_works_from_its_lead_time_on():
    one = np.ones(4, int)
    assert replayed(known(), 0 * one)[0].tolist() == [0, 5_000, 10_000, 15_000, 20_000]
    # The third executor comes after half of the first step: 50 + 100 / 2, then 150 records/s.
    assert replayed(known(), one)[0].tolist() == [0, 10_000, 25_000, 40_000, 55_000]
    assert finishing(known(), one, 25_000).quantile(0.9) == pytest.approx(200)
    assert finishing(known(), one, 17_500).quantile(0.9) == pytest.approx(150)
    chances, hours = weigh(known(), np.stack([0 * one, one]), 25_000, 2)
    assert chances.tolist() == [0, 1]
    assert hours.tolist() == pytest.approx([0, 200 / 3600])


def test_executors_that_start_in_turns_come_one_after_the_other_also_in_the_steps_after():
    turns = replace(known(most=8, lead=40.0), fleet=replace(known(most=8).fleet, growth=1.0))
    # One comes after 40 s, the next ones after 70, 100 and 130 s; a step has 100 s.
    for extra, first, second in ((1, 60, 100), (2, 60 + 30, 200), (4, 60 + 30, 300 + 70)):
        done = replayed(turns, np.full(4, extra))[0]
        assert done[:2].tolist() == pytest.approx([0, 5_000 + 100 * first])
        assert done[2] - done[1] == pytest.approx(5_000 + 100 * second)
        assert done[3] - done[2] == pytest.approx(5_000 + 10_000 * extra)
    few = replace(turns, fleet=replace(turns.fleet, growth=0.0, step_up=2.0))
    assert replayed(few, np.full(4, 3))[0, 1] == pytest.approx(5_000 + 100 * (60 + 60 + 30))
    at_once = replace(turns, fleet=replace(turns.fleet, growth=0.0))
    assert replayed(at_once, np.full(4, 4))[0, 1] == pytest.approx(5_000 + 100 * 4 * 60)
    assert turns.fleet.with_most(5).in_turns and not at_once.fleet.in_turns


def test_whoever_takes_longer_than_a_step_is_away_until_then_unless_it_is_given_back():
    turns = replace(known(most=8, lead=100.0), fleet=replace(known(most=8, lead=100.0).fleet, growth=1.0))
    # They come after 100, 175, 250 and 325 s.
    four = np.diff(replayed(turns, np.full(4, 4))[0])
    assert four.tolist() == pytest.approx([5_000, 17_500, 5_000 + 100 * 250, 5_000 + 100 * 375])
    given_back = np.diff(replayed(turns, np.array([4, 0, 0, 0]))[0])
    assert given_back.tolist() == pytest.approx([5_000] * 4)
    alone = np.diff(replayed(known(lead=130.0), np.full(4, 2))[0])
    assert alone.tolist() == pytest.approx([5_000, 5_000 + 2 * 7_000, 25_000, 25_000])


def climbing(start_s, reading_s, stages=((1.0, 1.0),)):
    """As `known`, with a load that falls after two steps, and a replay that climbs in stages of 20 s."""
    falling = replace(known(), live=np.array([[150.0, 150, 50, 50]]), held=np.array([[2, 2, 1, 1]]))
    return replace(falling, climb=Climb(start_s, 20.0, stages), reading_s=reading_s)


def test_a_replay_that_has_not_begun_waits_until_enough_is_left_and_then_for_its_first_batch():
    falling = climbing(30.0, None)
    # 50 of 200 are a quarter, 50 of 100 half of what is served; so are 150 of 300, where two come in mid step.
    assert replayed(falling, np.zeros(4, int))[0].tolist() == [0, 0, 0, pytest.approx(3_500), pytest.approx(8_500)]
    assert replayed(falling, np.array([0, 2, 0, 0]))[0, 2:4].tolist() == pytest.approx([10_500, 15_500])
    # Where the load is as high as ever there is no better time, and a longer first batch takes of the next step.
    slow = replace(known(), climb=Climb(130.0, 20.0, ((1.0, 1.0),)), reading_s=None)
    assert replayed(slow, np.zeros(4, int))[0, 1:3].tolist() == [0, pytest.approx(3_500)]


def test_one_that_has_just_begun_has_the_rest_of_its_slow_start_whatever_is_left_over():
    just = replayed(climbing(30.0, 0.0), np.zeros(4, int))[0]
    assert just.tolist() == pytest.approx([0, 3_500, 8_500, 13_500, 18_500])
    assert replayed(climbing(30.0, 20.0), np.zeros(4, int))[0, 1] == pytest.approx(4_500)


def test_it_climbs_to_its_last_share_of_what_is_left_over_a_stage_an_interval():
    stages = ((0.5, 0.8), (0.6, 0.9), (0.9, 1.0))
    # 30 s of nothing, 20 s of 0.5 * (160 - 150), 20 s of 0.6 * (180 - 150), then 0.9 of what is left over.
    total = replayed(climbing(30.0, 0.0, stages), np.zeros(4, int))[0]
    assert total[1] == pytest.approx(100 + 360 + 30 * 45)
    assert np.diff(total)[1:].tolist() == pytest.approx([4_500] * 3)
    long_since = replayed(climbing(30.0, 70.0, stages), np.zeros(4, int))[0]
    assert np.diff(long_since).tolist() == pytest.approx([4_500] * 4)


def test_what_its_controller_admits_rises_from_half_of_the_certain_to_nearly_all_of_the_median():
    climb = Climb.admitted(10.0, lambda level: 100.0 * (0.5 + level))
    assert (climb.start_s, climb.interval_s) == (30.0, 10.0)
    assert np.ravel(climb.stages) == pytest.approx([0.5, 0.55, 0.65, 0.7, 0.8, 0.85, 0.95, 1.0])


@pytest.mark.parametrize(("admitted", "reached"), [(0.0, 30), (20.0, 30), (48.0, 40), (80.0, 50), (150.0, np.inf)])
def test_the_stage_that_an_admitted_rate_tells(admitted, reached):
    # Of 200 served at last and 50 live ones: 0.5 * (110 - 50), 0.65 * (140 - 50), 0.8 * (170 - 50), 0.95 * 150.
    climb = Climb.admitted(10.0, lambda level: 100.0 * (0.5 + level))
    assert climb.reached_s(admitted, 200.0, 50.0) == reached


def test_a_stage_in_which_nothing_is_left_over_takes_nothing_from_the_next_one():
    climb = Climb(0.0, 10.0, ((0.5, 0.4), (1.0, 1.0)))
    assert climb.admitted_rps(np.array([20.0]), 20.0, np.array([100.0]), np.array([60.0]))[0] == pytest.approx(20.0)


def test_a_replay_is_admitted_by_the_most_live_records_that_are_forecast():
    assert replayed(replace(known(), high_rps=np.full(4, 170.0)), np.zeros(4, int))[0, -1] == 12_000
    assert replayed(replace(known(), high_rps=np.full(4, 100.0)), np.zeros(4, int))[0, -1] == 20_000


def test_whoever_comes_after_a_backfill_has_what_is_left_of_the_most_that_is_forecast():
    none, forecast = np.zeros(4, int), replace(known(live=110.0), high_rps=np.full(4, 150.0))
    assert replayed(taken_by(forecast, none, 1e9), none)[0, -1] == 0  # 150 live ones at most, and 50 of the first
    first = replace(forecast, most_rps=20.0)
    assert replayed(replace(taken_by(first, none, 1e9), most_rps=math.inf), none)[0, -1] == pytest.approx(12_000)


def test_no_more_than_the_replay_was_ordered_to_have():
    assert replayed(replace(known(), most_rps=20.0), np.zeros(4, int))[0, -1] == 8_000


def test_executors_that_run_already_need_no_start():
    assert replayed(known(running=3), np.ones(4, int))[0, 1] == 15_000


def test_a_dearer_record_takes_longer_and_live_records_come_first():
    future = known()
    dear = Futures(*(future.live, future.held, future.slot_rps, np.array([2.0]), *list(vars(future).values())[4:]))
    assert replayed(dear, np.zeros(4, int))[0, -1] == 10_000
    assert replayed(known(live=700.0), np.full(4, 5))[0, -1] == 0, "live records take all"


def test_no_more_than_the_fleet_and_no_more_paid_than_it():
    _, hours = weigh(known(), np.full((1, 4), 99), 1e9, 4)
    assert hours[0] == pytest.approx(4 * 4 * 100 / 3600), "4 beside the 2 that are held"


def test_steps_within_which_totals_are_reached():
    done = np.array([0.0, 10.0, 10.0, 30.0])
    assert [float(finish_steps(done, records)) for records in (0, 5, 10, 20, 30, 31)] == [0, 0.5, 1, 2.5, 3, math.inf]


def test_quantiles_of_finishing_times():
    times = FinishTimes(np.array([1.0, 2, 3, math.inf]))
    assert [times.quantile(level) for level in (0.25, 0.26, 0.75, 0.76)] == [1, 2, 3, math.inf]
    assert [times.chance(within) for within in (0.5, 1, 3, 1e9)] == [0, 0.25, 0.75, 0.75]


def drawn(seed, records=3e5, count=256):
    outlook = LiveOutlook(np.array([[400.0, 500, 600]] * 8), LEVELS, 300.0)
    fleet = Fleet(np.arange(21.0), 1, 20, np.array([30.0, 60, 90]))
    slot, work = SlotRate(100.0, 0.05), ReplayWork(records, 1.2, 0.1)
    return draw_futures(outlook, unknown_errors(8), LivePromise(0.1, 1.1), slot, work, fleet, 6, seed, count)


def test_chances_hold_in_futures_that_were_not_looked_at():
    extra = np.full(8, 3)
    told = finishing(drawn(0), extra, 4e5)
    truth = finishing(drawn(99, count=20_000), extra, 4e5)
    places = np.searchsorted(told.seconds, truth.seconds) / len(told.seconds)
    gap = np.abs(places - (np.arange(len(places)) + 0.5) / len(places)).max()
    assert gap < 1.36 / math.sqrt(256), "Kolmogorov's distance at 5 %"
    assert truth.seconds[0] < 0.8 * truth.seconds[-1], "they do scatter"


def test_the_same_seed_gives_the_same_futures_and_another_gives_others():
    assert np.array_equal(drawn(3).live, drawn(3).live)
    assert not np.array_equal(drawn(3).live, drawn(4).live)


def test_what_is_taken_for_live_records_is_never_less_than_they_are():
    future = drawn(0)
    for extra in (0, 3, 14):
        rate = future.replay_rps(np.full(8, extra)) * future.cost[:, None]
        room = future.fleet.worth[future.executors(np.full(8, extra))] * future.slot_rps[:, None]
        assert (rate + np.minimum(future.live, room) <= room * (1 + 1e-12)).all()


def test_a_learned_rate_is_taken_with_its_deviation():
    learned = ServiceRate(400.0, 4.0)
    assert SlotRate.learned(learned).rps == pytest.approx(100, rel=2e-3)
    assert SlotRate.learned(learned).deviation == pytest.approx(learned.deviation / learned.mean, rel=5e-3)


def test_live_executors_are_held_for_the_capacity_that_is_believed_however_sure_that_is():
    """The live job's planner counts the same; by the capacity's lower end more of them were free than there are."""
    outlook = LiveOutlook(np.array([[400.0, 500, 600]] * 8), LEVELS, 300.0)
    fleet, promise = Fleet(np.arange(21.0), 1, 20, np.array([60.0])), LivePromise(0.1, 1.1)
    held = [
        draw_futures(outlook, unknown_errors(8), promise, slot, ReplayWork(1e5), fleet, 6).held
        for slot in (SlotRate(100.0), SlotRate(100.0, 0.2), SlotRate(50.0, 0.2, held_rps=90.0))
    ]
    assert (held[0] == held[1]).all() and (held[0] == held[2]).all()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: ReplayWork(-1),
        lambda: ReplayWork(1, 0),
        lambda: ReplayWork(math.nan),
        lambda: Fleet(np.arange(3.0), 1, 3, np.ones(1)),
        lambda: Fleet(np.arange(3.0), 0, 2, np.ones(1)),
        lambda: Fleet(np.arange(3.0), 1, 2, np.array([math.inf])),
        lambda: LivePromise(1.0),
        lambda: LivePromise(0.1, 0.9),
        lambda: SlotRate(0),
        lambda: LiveOutlook(np.ones((2, 2)), LEVELS, 1.0),
        lambda: LiveOutlook(np.full((2, 3), math.nan), LEVELS, 1.0),
    ],
)
def test_wrong_numbers_are_refused(wrong):
    with pytest.raises(BackfillPlanError):
        wrong()
