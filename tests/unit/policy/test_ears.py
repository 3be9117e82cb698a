import json
from dataclasses import replace

import numpy as np
import pytest

from configs.contract import Contract, Executors, Planning
from models.forecast.baselines.naive import Naive
from models.forecast.blend.blend import Blend
from models.forecast.core.forecaster import Task
from models.forecast.core.series import Series
from models.policy.catalogue import build
from models.policy.live.evaluation import evaluate
from models.policy.live.held_forecast import with_forecast
from models.policy.live.memory import fresh, with_interval
from models.policy.live.recomputed import recompute_decision
from models.policy.received.nowcast import forecast_offsets
from models.policy.received.outlook import SMOOTH_S
from models.policy.received.peak_calibrator import PeakCalibratorError, describe, revive
from models.policy.received.peaks import LEVELS, Moments, stretch_ends
from models.twin.experiment.foresight import IssuedForecasts, correct_at_looks, issue_stepwise
from models.twin.experiment.peak_training import learn_calibrator, recent_rates
from models.twin.sim.arrivals import draw_arrivals, fill_gaps, rates_per_second

STEP_S, SCALE, DAYS = 300.0, 1.0, 6
PLANNING = Planning(lead_s=60, hold_s=30)
CONTRACT = Contract(job="j", executors=Executors(min=1, max=40), planning=PLANNING)


@pytest.fixture(scope="module")
def load():
    """A load with a daily wave, a noise that lasts, and a burst every two hours."""
    chance, many = np.random.default_rng(4), DAYS * 288
    wave = 600 + 300 * np.sin(2 * np.pi * np.arange(many) / 288)
    burst = np.where(np.arange(many) % 24 < 2, 250.0, 0.0)
    return Series(0.0, STEP_S, np.maximum(wave + burst + 30 * chance.standard_normal(many), 0.0))


@pytest.fixture(scope="module")
def forecaster():
    return Blend(Task(STEP_S, 12, (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)))


@pytest.fixture(scope="module")
def calibrator(load, forecaster):
    found = learn_calibrator(forecaster, load, PLANNING, SCALE)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def live(load, forecaster):
    """What a running job knows at some moments of its last hours: memory, and the same in the twin's words."""
    first = len(load) - 24
    older = Series(0.0, STEP_S, load.values[:first])
    said = issue_stepwise(forecaster, older, load.values[first:])
    arrived = np.concatenate([[0.0], np.cumsum(np.repeat(load.values, int(STEP_S)))])
    memory, begins = fresh(CONTRACT), first * STEP_S
    found = []
    for second in range(int(begins), int(begins) + 2400):
        sample = {
            "arrival_rps": arrived[second + 1] - arrived[second], "lag_records": 0, "executors": 10,
            "task_ceiling": 4000, "wall_time": second + 1.0, "time": float(second), "span_s": 1.0, "time_scale": 1.0,
        }  # fmt: skip
        memory = with_interval(memory, sample)
        at = int((second + 1 - begins) // STEP_S)
        memory = with_forecast(memory, message(said, at, second + 1.0))
        if second % 127 == 0 and second > begins + 1000:
            found.append((second + 1, memory))
    return said, arrived, found


def message(said: IssuedForecasts, at: int, wall: float):
    """The forecast that served in one step, renewed at a wall time."""
    return {
        "wall_time": wall, "time": said.begins_s + at * STEP_S, "step_s": STEP_S, "levels": list(said.levels),
        "quantiles": said.quantiles[at].tolist(), "epoch": 1, "model": "m", "version": "2", "kind": "network",
        "last_rps": float(said.last[at]),
    }  # fmt: skip


def seen_by(name, memory, now, calibrator=None):
    policy = replace(build("mpc", CONTRACT), name=name) if name == "dqn" else build(name, CONTRACT)
    return evaluate(memory, float(now), CONTRACT, policy, calibrator=calibrator)[1]


@pytest.mark.study
def test_a_live_job_hears_the_peaks_that_the_twin_hears(live, calibrator):
    said, arrived, moments = live
    assert len(moments) > 8
    for second, memory in moments:
        ahead = seen_by("mpc", memory, second, calibrator).ahead
        now, trends = recent_rates(arrived, np.array([second]), int(SMOOTH_S))
        wanted = calibrator.quantiles_rps(Moments(said.newest_at(np.array([float(second)])), now, trends))
        assert (ahead.offsets_s, ahead.levels) == (tuple(stretch_ends(60, 30)), LEVELS)
        assert np.array(ahead.rps) == pytest.approx(wanted[0], rel=1e-4)


def test_without_ears_it_hears_the_curve_that_the_twin_hears(live):
    said, arrived, moments = live
    ends = forecast_offsets(60, 30)
    for second, memory in moments:
        ahead = seen_by("mpc", memory, second).ahead
        assert set(ends) <= set(ahead.offsets_s)
        now, _ = recent_rates(arrived, np.array([second]), int(SMOOTH_S))
        wanted = correct_at_looks(said, np.array([float(second)]), now, ends, STEP_S, None)[0]
        mine = np.array([row for at, row in zip(ahead.offsets_s, ahead.rps, strict=True) if at in ends])
        assert mine == pytest.approx(wanted, rel=1e-4)


def test_where_executors_start_in_turns_it_hears_the_forecast_to_its_end(live):
    second, memory = live[2][0]
    near, slow = (PLANNING.model_copy(update={"start_growth": growth}) for growth in (0.0, 1.0))
    ends = []
    for planning in (near, slow):
        contract = CONTRACT.model_copy(update={"planning": planning})
        ends.append(evaluate(memory, float(second), contract, build("mpc", contract))[1].ahead.offsets_s)
    assert ends[0] == ends[1][: len(ends[0])] and ends[0][-1] == 90
    assert 10.5 * STEP_S <= ends[1][-1] <= 11.5 * STEP_S  # the middle of the last of its 12 steps


def test_only_policies_that_go_by_peaks_hear_them(live, calibrator):
    second, memory = live[2][0]
    assert seen_by("forecast", memory, second, calibrator).ahead == seen_by("forecast", memory, second).ahead
    assert seen_by("reactive", memory, second, calibrator).ahead is None


@pytest.mark.parametrize("change", [{"lead_s": 100}, {"hold_s": 10}])
def test_peaks_of_other_times_than_the_contracts_are_not_listened_to(live, calibrator, change):
    second, memory = live[2][0]
    other = CONTRACT.model_copy(update={"planning": PLANNING.model_copy(update=change)})
    seen = evaluate(memory, float(second), other, build("mpc", other), calibrator=calibrator)[1]
    assert seen.ahead.levels != LEVELS and "peak" not in seen.forecast_note


def test_a_decision_by_peaks_replays_from_its_log(live, calibrator):
    second, memory = live[2][3]
    _, seen, made = evaluate(memory, float(second), CONTRACT, build("mpc", CONTRACT), calibrator=calibrator)
    inputs = json.loads(json.dumps({**seen.inputs(), "contract_hash": CONTRACT.hash}))
    assert "quantile of the peak" in seen.forecast_note
    known = {CONTRACT.hash: CONTRACT}
    assert recompute_decision({"policy": "mpc", "inputs": inputs}, known) == (made.executors, made.reason, made.codes)


def test_the_peaks_hold_their_share_on_the_job_they_were_learned_from(load, forecaster, calibrator):
    assert calibrator.soon.gain < 1 and calibrator.then.gain < 1  # the burst can be foretold
    said = issue_stepwise(forecaster, Series(0.0, STEP_S, load.values[:600]), load.values[600:])
    rate = np.repeat(load.values[600:], int(STEP_S))
    moments = np.arange(1200, len(rate) - 120, 97)
    now, trends = recent_rates(np.concatenate([[0.0], np.cumsum(rate)]), moments, int(SMOOTH_S))
    stays = calibrator.quantiles_rps(Moments(said.newest_at(said.begins_s + moments.astype(float)), now, trends))
    highest = np.array([rate[m : m + 60].max() for m in moments])
    assert np.mean(highest <= stays[:, 0, LEVELS.index(0.9)]) == pytest.approx(0.9, abs=0.08)


def test_the_peaks_of_a_job_that_is_off_at_night_hold_their_share_by_day(load, forecaster):
    """What fills a night is a line to the morning's load, which nobody knew: its errors are next to none."""
    values = np.where(np.arange(len(load)) // 144 % 2 == 1, np.nan, load.values)
    calibrator = learn_calibrator(forecaster, Series(0.0, STEP_S, values), PLANNING, SCALE)
    first = len(values) // 3
    said = issue_stepwise(forecaster, Series(0.0, STEP_S, values[:first]), values[first:])
    rate = rates_per_second(fill_gaps(values)[first:], STEP_S)
    moments = np.arange(1200, len(rate) - 120, 97)
    known = np.isfinite(values[first:])[(moments[:, None] + np.array([-1000, 100])) // int(STEP_S)].all(axis=1)
    moments = moments[known]
    now, trends = recent_rates(draw_arrivals(rate, 1), moments, int(SMOOTH_S))
    stays = calibrator.quantiles_rps(Moments(said.newest_at(said.begins_s + moments.astype(float)), now, trends))
    highest = np.array([rate[m : m + 60].max() for m in moments])
    for level in (0.95, 0.98):
        assert np.mean(highest > stays[:, 0, LEVELS.index(level)]) < 1.5 * (1 - level)


def test_a_past_that_is_known_in_pieces_too_short_to_look_back_on_teaches_nothing(load, forecaster):
    values = np.where(np.arange(len(load)) % 4 == 3, np.nan, load.values)
    assert learn_calibrator(forecaster, Series(0.0, STEP_S, values), PLANNING, SCALE) is None


def test_ears_survive_as_json(live, calibrator):
    again = revive(json.loads(json.dumps(describe(calibrator))))
    second, memory = live[2][1]
    assert seen_by("mpc", memory, second, again) == seen_by("mpc", memory, second, calibrator)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({}, "levels"),
        ({"levels": [0.5]}, r"levels \[0.5\]"),
        (None, "no peaks of this code"),
        ([1], "no peaks of this"),
    ],
)
def test_what_is_no_ears_is_refused(data, said):
    with pytest.raises(PeakCalibratorError, match=said):
        revive(data)


def test_a_past_that_is_too_short_or_too_flattering_teaches_nothing(load, forecaster):
    short = Series(0.0, STEP_S, load.values[:200])
    assert learn_calibrator(forecaster, short, PLANNING, SCALE) is None
    assert learn_calibrator(forecaster, load, PLANNING, 720.0) is None  # 720 times as fast, six days are twelve minutes
    assert learn_calibrator(forecaster, load, PLANNING.model_copy(update={"lead_s": 0.0}), SCALE) is None
    fitted = Naive(forecaster.task)
    assert learn_calibrator(fitted, load, PLANNING, SCALE) is not None
    assert learn_calibrator(object(), load, PLANNING, SCALE) is None
