"""What is kept of a past: for whom a start holds, and that older releases' files are still read."""

import json

import numpy as np
import pytest

from configs.contract import Contract, Planning
from models.policy.received import peak_calibrator
from models.policy.received.outlook import Moment, make_outlook
from models.policy.received.past import Past
from models.policy.received.peak_calibrator import PeakCalibrator, PeakCalibratorError
from models.policy.received.peaks import LEVELS, Line, Peaks
from models.policy.received.rehearsal import Rehearsal, describe, promised, revive

CONTRACT = Contract(job="j", error_budget=0.05)


def peaks():
    one = Peaks(None, None, np.linspace(0, 2, len(LEVELS)), 1.0, np.array([60.0]), 0.9, True)
    return PeakCalibrator(one, one, 60.0, 30.0, 1.0)


def kept(rehearsal):
    return revive(json.loads(json.dumps(describe(rehearsal))))


def test_a_start_holds_for_the_promise_and_the_bounds_that_it_was_found_for():
    found = kept(Rehearsal(None, {"mpc": -0.28}, {"mpc": 9.0, "reactive": 10.0}, promised(CONTRACT)))
    assert found.peaks is None and found.start("mpc", CONTRACT) == -0.28 and found.start("static", CONTRACT) is None
    for change in ({"error_budget": 0.01}, {"latency_target_s": 2.0}, {"executors": {"min": 1, "max": 9}}):
        other = Contract.model_validate({**CONTRACT.model_dump(), **change})
        assert found.start("mpc", other) is None and found.saved("mpc", other) is None


def test_what_a_forecast_saves_is_told_beside_the_reactive_policy_at_the_same_promise():
    found = kept(Rehearsal(None, {"mpc": 0.0}, {"mpc": 9.0, "forecast": 11.0, "reactive": 10.0}, promised(CONTRACT)))
    assert found.saved("mpc", CONTRACT) == pytest.approx(0.1)
    assert found.saved("forecast", CONTRACT) == pytest.approx(-0.1)
    assert found.saved("dqn", CONTRACT) is None and Rehearsal().saved("mpc", CONTRACT) is None


def test_peaks_alone_as_older_releases_kept_them_are_read():
    old = json.loads(json.dumps(peak_calibrator.describe(peaks())))
    found = revive(old)
    assert found.peaks is not None and found.peaks.lead_s == 60 and found.start("mpc", CONTRACT) is None
    both = kept(Rehearsal(peaks(), {"mpc": 1.0}, {"mpc": 9.0}, promised(CONTRACT)))
    assert both.peaks is not None and both.start("mpc", CONTRACT) == 1.0


@pytest.mark.parametrize(
    "data", [None, [], {}, {"steering": {}}, {"steering": {"starts": {"mpc": 1}, "hours": {}, "promise": {}}}]
)
def test_what_is_no_rehearsal_says_so(data):
    with pytest.raises(PeakCalibratorError, match="train again"):
        revive(data)


@pytest.mark.parametrize(
    "wrong",
    [
        {"scores": [1.0, 2.0]},
        {"offsets_s": 60.0},
        {"centre": {"weight": [1.0], "bias": 0.0}, "scale": {"weight": [1.0], "bias": 0.0}},
        {"scores": [[0.0] * len(LEVELS)] * 3},
    ],
)
def test_peaks_that_no_decision_could_be_made_by_are_refused_when_they_are_read(wrong):
    data = json.loads(json.dumps(peak_calibrator.describe(peaks())))
    with pytest.raises(PeakCalibratorError, match="train again"):
        revive({**data, "then": {**data["then"], **wrong}})


@pytest.mark.parametrize("hours", [0.0, -1.0, float("nan")])
def test_hours_that_nothing_can_be_compared_with_are_refused_when_they_are_read(hours):
    with pytest.raises(PeakCalibratorError, match="train again"):
        revive(describe(Rehearsal(None, {"mpc": 1.0}, {"mpc": 9.0, "reactive": hours}, promised(CONTRACT))))


def test_a_forecast_with_a_number_that_no_message_holds_is_none():
    scores = np.array([-1.0] * 9 + [1.0])
    wild = Peaks(Line(np.zeros(22), 0.0), Line(np.zeros(15), 800.0), scores, 1.0, np.array([60.0]))
    held = {
        "quantiles": [[1.0, 2.0]] * 9, "levels": [0.5, 0.9], "step_s": 60.0, "time": 0.0, "wall_time": 0.0,
        "model": "m", "version": "1", "kind": "blend", "last_rps": 1.0,
    }  # fmt: skip
    planning = Planning(lead_s=60.0, hold_s=30.0)
    moment = Moment(1.0, 1.0, 1.0, 1.0, Past())
    assert make_outlook(held, moment, planning, peaks())[0] is not None
    with np.errstate(over="ignore"):
        ahead, _, why = make_outlook(held, moment, planning, PeakCalibrator(wild, wild, 60.0, 30.0, 1.0))
    assert ahead is None and why == "no forecast: a quantile of it is no finite number"
