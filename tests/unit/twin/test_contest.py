from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

from models.forecast.core.series import Series
from models.policy.catalogue import CATALOGUE
from models.policy.core.choice import make_choice
from models.policy.rules.fixed import Static
from models.twin.experiment import scenario
from models.twin.experiment.benchmark import BenchmarkCase, Effort, forecast_trace, run_benchmark
from models.twin.experiment.contenders import Contender, Setting, Sweep, Trial, make_contender, with_forecaster
from models.twin.experiment.evaluation import run_trials
from models.twin.experiment.foresight import LEVELS, IssuedForecasts, issue_forecasts
from models.twin.experiment.lanes import _timetable, group_by_lane
from models.twin.experiment.scenario import build_scenario, split_trace
from models.twin.experiment.setup import Setup
from models.twin.sim.arrivals import draw_arrivals
from models.twin.sim.given import Load, Looks
from models.twin.sim.job import ShortLoadError, TwinError, TwinJob, stack
from models.twin.sim.run import advance, set_targets, simulate
from models.twin.sim.state import begin

pytestmark = pytest.mark.study

STEP = 10.0
SERIES = Series(0.0, STEP, 100 + 60 * np.sin(np.arange(360) / 30))  # an hour
TERMS = Setup(lead_s=20.0)
NOTHING_SAID = IssuedForecasts(np.full((10, 12, len(LEVELS)), np.nan), np.full(10, np.nan), STEP, 0.0)


def run_sweeps(contender, sweeps):
    return run_trials([Trial(contender, sweep) for sweep in sweeps])


def made(series=SERIES, setup=TERMS, seeds=2, forecaster="last_value"):
    tune, test = split_trace("toy", series, setup)
    return build_scenario(
        "toy", series, test, setup, range(seeds), {forecaster: issue_forecasts(forecaster, series, tune.start)}
    )


@cache
def ground():
    """The hour as most tests have it; not made by the workers that only collect them."""
    return made()


def test_the_newest_fifth_is_the_test_and_as_much_before_it_for_tuning():
    assert split_trace("toy", SERIES, TERMS) == (range(216, 288), range(288, 360))
    short = replace(TERMS, test_days=300 / 86400, tune_days=200 / 86400)
    assert split_trace("toy", SERIES, short) == (range(310, 330), range(330, 360))


def test_the_highest_rates_need_the_executors_that_the_terms_say():
    capacity_rps = 20 / TERMS.twin_job.per_record_s * (1 - 0.5 / 4)
    assert TERMS.scale_factor(SERIES) * np.quantile(SERIES.values, 0.999) == pytest.approx(capacity_rps, rel=0.01)
    assert ground().warm_s == 960 and ground().arrived.shape == (2, 960 + 720 + 1)


@pytest.mark.parametrize(
    "series, setup, said, kind",
    [
        (Series(0.0, STEP, SERIES.values[:20]), TERMS, "toy: 20 steps of 10 s", ShortLoadError),
        (Series(0.0, STEP, np.where(np.arange(360) == 300, -3.0, SERIES.values)), TERMS, "step 300 is -3", TwinError),
        (
            Series(0.0, STEP, np.where(abs(np.arange(360) - 300) < 3, np.nan, SERIES.values)),
            TERMS,
            "5 rates are missing",
            ShortLoadError,
        ),
        (Series(0.0, 0.5, SERIES.values), TERMS, "steps of 0.5 s", TwinError),
    ],
)
def test_a_trace_that_cannot_be_judged_is_told_why_and_whether_more_of_it_helps(series, setup, said, kind):
    with pytest.raises(TwinError, match=said) as raised:
        split_trace("toy", series, setup)
    assert raised.type is kind


def test_a_static_policy_pays_for_what_it_has():
    swept = run_sweeps(Contender("static", "static"), [Sweep(ground(), Setting(), np.array([30.0]))])[0]
    assert swept.hours.shape == (1, 2)
    assert swept.hours == pytest.approx(30 * 720 / 3600)  # how it came to them is over when the figures begin
    assert (swept.violation == 0).all() and (swept.actions == 0).all()


def test_traces_that_share_a_simulation_come_to_the_same_as_alone():
    longer = made(Series(0.0, STEP, np.tile(SERIES.values, 2)))
    planner = Contender("forecast", "forecast", "last_value", Setting(level=0.9))
    sweeps = [Sweep(g, Setting(level=0.9), np.array([0.7, 1.0])) for g in (ground(), longer)]
    both = run_sweeps(planner, sweeps)
    for sweep, swept in zip(sweeps, both, strict=True):
        alone = run_sweeps(planner, [sweep])[0]
        assert swept.hours == pytest.approx(alone.hours) and (swept.violation == alone.violation).all()
        assert (swept.actions == alone.actions).all()


def test_settings_that_share_a_simulation_come_to_the_same_as_alone():
    planner, hours = Contender("mpc", "mpc", "last_value"), []
    settings = [Setting((("hold_s", 30.0), ("utilisation", use))) for use in (0.6, 1.0)]
    sweeps = [Sweep(ground(), setting, np.array([1.0, 3.0])) for setting in settings]
    both = run_sweeps(planner, sweeps)
    for sweep, swept in zip(sweeps, both, strict=True):
        alone = run_sweeps(planner, [sweep])[0]
        assert (swept.hours == alone.hours).all() and (swept.violation == alone.violation).all()
        hours.append(alone.hours.mean())
    assert hours[0] > hours[1], "a lower utilisation is no dearer: the settings did not reach the policy"


def test_policies_that_share_a_simulation_come_to_the_same_as_alone():
    """Bit for bit: some share a lane, some only the looks, one trace is longer than the other, and a lane lacks it."""
    longer = made(Series(0.0, STEP, np.tile(SERIES.values, 2)))
    contenders = [
        Contender("hpa", "hpa"), Contender("flink", "flink"), Contender("schedule", "schedule"),
        Contender("mpc", "mpc", "last_value"), Contender("mpc:truth", "mpc", "truth"), Contender("mpc:none", "mpc"),
        Contender("forecast", "forecast", "last_value", Setting(level=0.75)),
        Contender("true_future", "forecast", "truth", Setting(level=0.9)),
    ]  # fmt: skip
    trials = [
        Trial(one, Sweep(scenario, one.setting.plus({"hold_s": 30.0 + at} if one.policy == "mpc" else {}), knobs))
        for at, one in enumerate(contenders)
        for scenario, knobs in ((ground(), np.array([0.6, 0.9, 1.2])), (longer, np.array([0.8])))
        if scenario is ground() or one.policy != "forecast"
    ]
    shares = []
    for trial, together in zip(trials, run_trials(trials, shares.append), strict=True):
        (alone,) = run_trials([trial])
        assert all(np.array_equal(a, b) for a, b in zip(together, alone, strict=True)), trial.contender.name
    assert shares[0] == 0 and shares[-1] == 1 and shares == sorted(shares)


def test_trials_of_one_kind_of_policy_share_a_lane():
    mpc, settings = Contender("mpc", "mpc", "last_value"), [Setting((("hold_s", hold),)) for hold in (30.0, 300.0)]
    apart = [Contender("mpc:none", "mpc"), Contender("hpa", "hpa")]
    trials = [Trial(mpc, Sweep(ground(), setting, np.ones(1))) for setting in settings]
    trials += [Trial(one, Sweep(ground(), one.setting, np.ones(1))) for one in apart]
    assert group_by_lane(trials) == [[0, 1], [2], [3]]


def test_runs_of_one_call_may_end_at_different_seconds():
    arrived = np.stack([draw_arrivals(np.full(600, 300.0), seed) for seed in (1, 2)])
    cut = arrived.copy()
    cut[1, 301:] = cut[1, 300]
    jobs, looks, seeds = stack([TwinJob(0.5, 0.005)] * 2), Looks(15, 15, 4.0), np.arange(2)
    policy = CATALOGUE["reactive"].make("reactive", TERMS.contract, None)
    both = simulate(jobs, Load(cut, np.arange(2), np.array([600, 300])), policy, looks, seeds)
    short = simulate(jobs, Load(arrived[:, :301], np.arange(2)), policy, looks, seeds)
    for figure in ("executor_s", "violation", "p99_s", "worst_s", "changes"):
        assert getattr(both, figure)[1] == getattr(short, figure)[1]


def test_answers_that_are_none_or_out_of_bounds_are_counted_and_the_job_goes_on(monkeypatch):
    class Broken:
        name, knob = "static", "executors"

        def fresh(self, runs):
            return {}

        def decide(self, memory, view):
            return memory, make_choice(np.full(view.runs, np.nan if view.now_s < 100 else 1000.0))

    broken = SimpleNamespace(make=lambda *given: Broken(), interval_s=0.0)
    monkeypatch.setitem(CATALOGUE, "static", broken)
    monkeypatch.setattr("models.policy.catalogue.with_knob", lambda policy, knob: policy)
    swept = run_sweeps(Contender("static", "static"), [Sweep(ground(), Setting(), np.array([1.0]))])[0]
    assert swept.none.tolist() == [[10, 10]] and swept.clamped.tolist() == [[158, 158]]  # a look every 10 s
    assert swept.hours == pytest.approx(TERMS.twin_job.most * 720 / 3600)


def test_who_knows_the_future_is_late_less_often_than_who_reacts():
    sweeps = [Sweep(made(setup=Setup(lead_s=60.0)), Setting(level=0.9), np.array([1.0]))]
    known, reacts = (run_sweeps(one, sweeps)[0] for one in (
        Contender("true_future", "forecast", "truth"), Contender("reactive", "reactive")
    ))  # fmt: skip
    assert known.violation.mean() < reacts.violation.mean() / 2


def test_a_faster_clock_shortens_everything_but_the_job():
    fast = replace(TERMS, speed=5.0)
    ground_ = made(setup=fast)
    assert ground_.seconds - ground_.warm_s == (ground().seconds - ground().warm_s) / 5
    assert ground_.issued["last_value"].step_s == STEP / 5
    assert ground_.rate.max() == pytest.approx(ground().rate.max(), rel=0.01)
    assert ground_.begins_s + ground_.warm_s == pytest.approx(288 * STEP / 5)


def test_a_contest_is_of_a_query_that_is_warm():
    fitted = TwinJob(0.9, 0.005, startup_s=(2.0, 3.0), cold_s=3.0, warmup=0.9, warmup_batches=12.0)
    own, other = Setup(lead_s=2.5, job=fitted).twin_job, Setup(lead_s=60.0, job=fitted).twin_job
    assert own == replace(fitted, warmup=0.0)
    assert other.warmup == 0 and np.median(other.startup_s) == pytest.approx(60.0)


def test_peaks_are_learned_from_no_step_that_is_missing(monkeypatch):
    """Steps of 10 s, of which the second, third and seventh are unknown; the part that is judged begins after that.

    The values that fill them lead to what comes after them, behind the seventh even to what is judged.
    """
    asked = []
    monkeypatch.setattr(scenario, "learn_peaks", lambda *how, unknown: asked.append((how[1], unknown)))
    values = np.array([5.0, np.nan, np.nan, 5.0, 5.0, 5.0, np.nan, 5.0, 9.0, 9.0])
    build_scenario("toy", Series(0.0, STEP, values), range(7, 10), TERMS, range(1), {"last_value": NOTHING_SAID})
    ((rate, unknown),) = asked
    assert unknown.tolist() == np.repeat([False, True, True, False, False, False, True], 10).tolist()
    assert len(rate) == 70 and np.ptp(rate) < 1e-6


def test_a_budget_is_of_the_seconds_that_count_in_which_anything_is_produced():
    resting = replace(ground(), warm_s=2, arrived=np.array([[0.0, 1, 2, 3, 3, 3, 4], [0.0, 0, 0, 0, 0, 0, 9]]))
    assert resting.produced_share == pytest.approx((2 + 1) / 8)


def test_two_knob_values_are_enough():
    case = BenchmarkCase("toy", SERIES, forecast_trace("toy", SERIES, TERMS, ("last_value",)))
    found = run_benchmark([case], TERMS, [Contender("static", "static")], Effort(knobs=2, seeds=1, oracle=False))
    assert len(set(found[0].results["static"].knobs.tolist())) == 2
    also = Contender("static", "static", beside=(3.5,))
    assert 3.5 in run_benchmark([case], TERMS, [also], Effort(2, 1, oracle=False))[0].results["static"].knobs


@pytest.mark.parametrize("hours", [0.5, 2, 6])
def test_a_timetable_is_as_flat_as_the_days_that_it_was_learned_from(hours):
    a_day = round(24 / hours)
    values = np.where(np.arange(10 * a_day) % a_day < a_day // 2, 200.0, 100.0)
    series = Series(0.0, 3600.0 * hours, values)
    table = _timetable(build_scenario("t", series, split_trace("t", series, TERMS)[1], TERMS, range(1)))
    assert sorted(table / table.max()) == [0.5] * 12 + [1.0] * 12


def test_a_peak_cannot_need_more_executors_than_the_job_may_have():
    assert Setup(job=TwinJob(0.5, 0.005, most=8), executors=8).peak_executors == 8
    with pytest.raises(TwinError, match="executors=9: the job has 1 to 8"):
        Setup(job=TwinJob(0.5, 0.005, most=8), executors=9)


def test_a_load_in_a_jobs_own_records_needs_the_job():
    with pytest.raises(TwinError, match="name one with --job"):
        Setup(as_is=True)


def test_a_load_in_a_jobs_own_records_needs_what_it_needs():
    job = TwinJob(0.5, 0.005, least=2, most=8)  # an executor processes 175 records/s in batches of 4 s
    own = Setup(job=job, as_is=True)
    rates = {100.0: 2, 3.5 * 175: 4, 8 * 175: 8, 8 * 175 + 1: None}
    loads = {rps: Series(0.0, STEP, np.array([rps, np.nan, rps])) for rps in rates}
    assert {rps: own.executors_at_peak(load) for rps, load in loads.items()} == rates
    assert [own.peak_rps(load) for load in loads.values()] == list(rates)
    scaled = Setup(job=job, executors=5)
    assert [scaled.executors_at_peak(load) for load in loads.values()] == [5] * 4
    assert scaled.peak_rps(loads[100.0]) == pytest.approx(5 * 175, rel=0.02)


def test_a_load_is_not_both_scaled_to_executors_and_taken_as_it_is():
    with pytest.raises(TwinError, match=r"executors=3 and as_is: .* Leave out --executors, or --as-is"):
        Setup(job=TwinJob(0.5, 0.005), executors=3, as_is=True)


def test_every_executor_that_is_asked_for_comes_and_is_paid():
    job = TwinJob(0.5, 0.006, most=100, tasks=4000, startup_s=(60.0,))
    load = Load(np.arange(0, 1201 * 100.0, 100.0)[None], np.zeros(1, np.int64))
    jobs, state = stack([job]), begin(stack([job]), np.ones(1), np.arange(1))
    set_targets(state, jobs, np.full(1, 80.0), 0)
    advance(state, jobs, load, 0, 1200)
    assert state.x["executors"] == 80
    assert simulate(jobs, load, Static("static", 80.0), Looks(), np.arange(1)).executor_s[0] == 80 * 1200


def test_the_planner_without_a_forecast_is_swept_by_what_it_keeps_spare():
    """Each trial beside the planner as it is: they are of one policy, but not of one lane."""
    none, ours = with_forecaster(make_contender("mpc"), ""), Contender("mpc", "mpc")
    sweep = Sweep(ground(), Setting(), np.array([0.5, 1.0]))
    half, by_price = run_trials([Trial(none, sweep), Trial(ours, sweep)])
    dear, cheap = half.means[1]
    assert 1.8 < dear / cheap < 2.3 and half.violation[0].mean() <= half.violation[1].mean()
    assert by_price.means[1][0] == pytest.approx(by_price.means[1][1], rel=0.05)  # its price hardly tells it anything
