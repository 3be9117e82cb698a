from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.dqn.agent.actions import (
    ACTION_S,
    MOVES,
    STAY,
    Advice,
    allowed_moves,
    best_moves,
    least_executors,
    moves_near_advice,
    reward_parts,
)
from models.dqn.agent.observation import FEATURES, decision_interval_s, executors_needed
from models.dqn.environment import recorded
from models.dqn.environment import synthetic_forecasts as foretold
from models.dqn.environment.randomisation import draw_runs
from models.dqn.environment.recorded import Recorded, draw_piece, with_forecasts, with_peaks
from models.dqn.environment.synthetic_loads import RecordedLoad
from models.dqn.environment.vector import GroupedEnvironment, VectorEnvironment
from models.dqn.evaluation import draw_trials
from models.dqn.learner.settings import TrainingLength
from models.forecast.core.series import Series
from models.policy.core.capacity import Capacity, speed_table
from models.twin.sim import kernel
from models.twin.sim.arrivals import running_totals
from models.twin.sim.given import Load, Looks
from models.twin.sim.job import TwinJob

TRACE = RecordedLoad(np.array([10.0, 50.0, 20.0, 80.0, 30.0] * 40), 300.0)
JOB = TwinJob(overhead_s=0.3, per_record_s=0.01, most=12, startup_s=(60.0,))


def test_bounds_mask_the_moves_that_would_leave_them() -> None:
    mask = allowed_moves(np.array([1.0, 5.0, 10.0]), np.ones(3), np.full(3, 10.0))
    at_least, between, ratio_bound = ([MOVES[i] for i in np.flatnonzero(row)] for row in mask)
    assert at_least == [0, 1, 2, 4]
    assert between == [-2, -1, 0, 1, 2, 4]
    assert ratio_bound == [-2, -1, 0]
    assert best_moves(np.array([[9.0, 8, 7, 6, 5, 4]] * 3), mask).tolist() == [STAY, 0, 0]


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 2**32 - 1), st.sampled_from([5.0, 40.0, 700.0]))
def test_whatever_is_done_bounds_and_floor_hold_and_observations_are_finite(seed: int, lead_s: float) -> None:
    chance = np.random.default_rng(seed)
    vector = VectorEnvironment(draw_runs(3, 12, [TRACE], chance, lead_s=lead_s), np.arange(3))
    while not vector.over:
        bottom = least_executors(vector.view, vector.drawn.baseline.busy)
        reward = vector.step(chance.integers(len(MOVES), size=3))
        view = vector.view
        assert ((view.target >= np.maximum(view.least, bottom)) & (view.target <= view.most)).all()
        assert np.isfinite(vector.seen).all()
        assert (np.abs(vector.seen) <= 4).all()
        assert ((reward[:, 1] <= 0) & (reward[:, 1] >= -1)).all()


def test_the_reward_is_in_executor_seconds() -> None:
    most, cost = np.array([20.0]), 150 + 0.5 * 20 * 3 + ACTION_S
    apart = reward_parts(np.array([[150.0], [3.0], [1.0]]), np.array([8.0]), most, 15.0)
    assert apart[0] @ (1.0, 0.5) == pytest.approx((8 * 15 - cost) / (20 * 15))


def test_hours_without_records_are_late_for_nobody() -> None:
    made = draw_runs(2, 60, (), np.random.default_rng(4), [JOB] * 2)
    minute = Load(np.minimum(np.arange(made.load.seconds + 1), 60.0)[None], np.zeros(2, int))
    vector = VectorEnvironment(made._replace(load=minute), np.arange(2))
    while not vector.over:
        np.testing.assert_array_equal(vector.step(vector.advice)[:, 1], 0.0)


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 2**32 - 1), st.sampled_from([2.0, 4.5, 10.0]))
def test_an_episode_is_charged_the_seconds_that_are_late_by_its_end(seed: int, target_s: float) -> None:
    chance = np.random.default_rng(seed)
    made = draw_runs(3, 24, (), chance, [replace(JOB, latency_target_s=target_s, most=3)] * 3)
    seconds = made.load.seconds
    shown = np.repeat(chance.random((3, seconds // 20 + 1)) < 0.5, 20, axis=1)[:, :seconds]  # bursts and rests of 20 s
    load = Load(running_totals(chance.poisson(200 * shown)), np.arange(3))
    vector, charged = VectorEnvironment(made._replace(load=load), np.arange(3)), np.zeros(3)
    while not vector.over:
        reward = vector.step(chance.integers(len(MOVES), size=3))
        assert ((reward[:, 1] <= 0) & (reward[:, 1] >= -1)).all()
        charged -= reward[:, 1] * made.pace_s
    kernel.close(vector._state, made.jobs, load.produced)
    np.testing.assert_allclose(charged, vector._state.x["over"])


def test_needs_are_the_inverse_of_capacity() -> None:
    capacity = Capacity(np.array([speed_table(20, 2, 2000, 0.9)]), np.array([0.5]), np.array([0.01]), 2.0)
    counts = np.arange(1.0, 12.0)
    rates = np.array([capacity.sustained_rps(np.array([n]))[0] for n in counts])
    np.testing.assert_allclose(executors_needed(capacity, rates[None, :])[0], counts)
    between = executors_needed(
        capacity, np.array([[rates[4:6].mean(), 2 * capacity.sustained_rps(np.array([20.0]))[0]]])
    )[0]
    assert 5 < between[0] < 6
    assert between[1] == 40


def test_batches_are_as_long_as_asked_where_it_learns_and_where_it_is_tried() -> None:
    def of_batches(batch_s: float) -> tuple[np.ndarray, float]:
        how = TrainingLength(groups=1, runs=4, decisions=4, trial=(2, 2), batch_s=batch_s)
        return GroupedEnvironment(how, (), [JOB], 1).seen, draw_trials(how, [JOB], (), 1)[0].looks.batch_s

    (short, tried_short_s), (long, tried_long_s) = of_batches(1.0), of_batches(6.0)
    assert (tried_short_s, tried_long_s) == (1.0, 6.0) and (short != long).any()


def test_one_job_twice_as_large_and_fast_looks_the_same() -> None:
    def seen(job: TwinJob) -> np.ndarray:
        made = draw_runs(1, 2, [TRACE], np.random.default_rng(1), [job], batch_s=4.0)
        return VectorEnvironment(made, np.arange(1)).seen[0]

    faster = TwinJob(overhead_s=0.3, per_record_s=0.0001, most=12, startup_s=(60.0,))
    np.testing.assert_allclose(seen(JOB), seen(faster), atol=0.15)  # what is left is Poisson noise


def test_a_job_without_a_forecast_is_told_so() -> None:
    chance = np.random.default_rng(2)
    vector = VectorEnvironment(draw_runs(64, 2, (), chance, lead_s=60.0), np.arange(64))
    heard = vector.seen[:, FEATURES.index("heard")]
    silent = np.isnan(vector.drawn.forecasts.rps[:, 0]).all(axis=(1, 2))
    assert 0 < silent.sum() < 40
    np.testing.assert_array_equal(heard, ~silent)
    same = vector.seen[silent][:, FEATURES.index("ahead_90")]
    np.testing.assert_array_equal(same, vector.seen[silent][:, FEATURES.index("now")])


def test_the_state_in_which_a_run_ends_has_a_forecast_of_its_own() -> None:
    vector = VectorEnvironment(draw_runs(8, 2, (), np.random.default_rng(3), lead_s=60.0), np.arange(8))
    while not vector.over:
        vector.step(vector.advice)
    drawn = vector.drawn
    assert drawn.decisions == 2 and drawn.forecasts.decisions == 3
    heard = ~np.isnan(drawn.forecasts.rps[:, 2]).all(axis=(1, 2))
    np.testing.assert_array_equal(vector.view.ahead.rps[heard], drawn.forecasts.at(2).rps[heard])


def test_what_is_foretold_spreads_as_its_errors_do() -> None:
    rate = 1000 * (1.2 + np.sin(np.arange(40_000) / 600))
    total = np.concatenate([[0.0], np.cumsum(rate)])[None, :].repeat(200, axis=0)
    looks = np.arange(0, 30_000, 300)
    made = [foretold.draw_forecasts(total, looks, 600.0, 60.0, np.random.default_rng(seed)) for seed in range(8)]
    assert {len(one.offsets_s) for one in made} == {2, 4, 6}
    for one in made:
        last = len(one.offsets_s) - 1
        begin = looks + (int(one.offsets_s[last - 1]) if last else 0)
        end = looks + int(one.offsets_s[last])
        means = (total[0, end] - total[0, begin]) / (end - begin)
        peaks = np.array([rate[b:e].max() for b, e in zip(begin, end, strict=True)])
        heard = ~np.isnan(one.rps[:, 0, 0, 0])
        said = one.rps[heard][:, :, last, one.levels.index(0.9)]
        assert 0.8 < ((means if last else peaks) <= said).mean() < 0.98


def test_the_pace_is_a_fifteenth_of_the_lead_time_in_whole_looks() -> None:
    assert [decision_interval_s(*pair) for pair in ((60, 1), (60, 15), (600, 15), (1800, 15), (6, 1))] == [
        4,
        15,
        45,
        60,
        1,
    ]


def test_moves_far_from_the_advice_are_left_out_and_the_nearest_stays() -> None:
    target, plan = np.array([10.0, 10.0, 10.0]), np.array([10.0, 6.0, 30.0])
    advice = Advice(np.array([10.0, 10.0, 30.0]), plan, np.zeros(3, np.int64), np.zeros((3, 3)))
    mask = moves_near_advice(np.ones((3, 6), bool), target, advice)
    near, waiting, far = ([MOVES[i] for i in np.flatnonzero(row)] for row in mask)
    assert near == [-1, 0, 1]
    assert waiting == [-2, -1, 0, 1]  # to let go before the baseline does is allowed
    assert far == [4]


def test_following_the_advice_covers_what_it_asks_for() -> None:
    made = draw_runs(16, 128, (), np.random.default_rng(1_000_003), lead_s=60.0, price=10.0)
    stay, follow = (VectorEnvironment(made, np.arange(16)) for _ in range(2))
    reward = np.zeros((2, 16, 2))
    while not stay.over:
        reward[0] += stay.step(np.full(16, STAY))
        reward[1] += follow.step(follow.advice)
    worth = (reward * stay.weight).sum(axis=2).mean(axis=1)
    assert worth[1] > worth[0]


def test_a_recorded_load_is_heard_as_a_backtest_hears_it() -> None:
    hours = np.arange(6 * 24 * 12) / 12
    series = Series(0.0, 300.0, 500 * (1.3 + np.sin(2 * np.pi * hours / 24)))
    one = with_forecasts(series, 630.0)
    assert isinstance(one, Recorded)
    short = with_forecasts(Series(0.0, 300.0, series.values[:100]), 630.0)
    assert type(short) is RecordedLoad
    looks = Looks(15, 15, 4.0)
    heard = with_peaks([one], 600.0, looks)
    moments = np.arange(60) * 45
    found = draw_piece(heard, 6000, moments, 1000.0, looks, np.random.default_rng(1))
    assert found.heard.shape == (60, 2, 10)
    assert (np.diff(found.heard, axis=2) >= 0).all()
    rate = np.diff(found.expected)
    peaks = np.array([rate[m + 600 : m + 631].max() for m in moments])
    assert (peaks <= found.heard[:, 1, -1]).mean() > 0.9
    assert np.abs(found.heard[:, 1, 0] / peaks - 1).mean() < 0.1


def test_a_recorded_loads_peaks_are_learned_from_no_step_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[np.ndarray] = []
    monkeypatch.setattr(recorded, "learn_peaks", lambda *how: asked.append(how[-1]))
    values = np.where((np.arange(1728) >= 400) & (np.arange(1728) < 500), np.nan, 100.0)
    one = with_forecasts(Series(0.0, 300.0, values), 630.0)
    assert isinstance(one, Recorded)
    for part in one.parted(0.25):
        assert with_peaks([part], 600.0, Looks(15, 15, 4.0)) == []
    gone = np.flatnonzero(asked[0])
    assert (len(asked), len(asked[0]), gone[0], gone[-1], len(gone)) == (1, one.split * 300, 120_000, 149_999, 30_000)
