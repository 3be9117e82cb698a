"""A load with a short history, helped by one with a long history."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from models.adapt.network import ForecastOnly, TransferGru
from models.adapt.scale import CONTEXT, DomainScale
from models.adapt.sources import NoSourceError, known_before, transfer_from_sources
from models.adapt.target import LONG_DAYS, AdaptedForecaster
from models.adapt.training import LossWeights, TransferPlan
from models.forecast.baselines.naive import Naive
from models.forecast.core.forecaster import Task
from models.forecast.core.series import Series, SeriesError
from models.forecast.selection.backtest import roll

pytestmark = pytest.mark.study

STEP_S, DAY = 1800.0, 48
TASK = Task(STEP_S, 4, (0.1, 0.5, 0.9))
PLAN = TransferPlan(
    hidden=16, batch=32, pretraining=200, target_only=20, learning_rate=0.02, grid=(LossWeights(0.1, 0.1),)
)  # fmt: skip
HISTORY = {"days": 3, "level": 20.0, "seed": 2, "start_day": 40}


def load(days, level=100.0, seed=1, start_day=0):
    """Quiet nights, a noon, rushes that begin at once: no linear rule of the newest steps foretells them."""
    hours = np.arange(days * DAY) * 2 * np.pi / DAY
    shape = 1 + 3 * np.maximum(np.sin(hours), 0) ** 2 + 1.5 * (np.sin(3 * hours) > 0.7)
    noise = np.abs(np.random.default_rng(seed).normal(0, 0.15, len(hours)))
    return Series(start_day * 86_400.0, STEP_S, level * (shape + noise))


@pytest.fixture(scope="module")
def asked():
    return transfer_from_sources(TASK, load(**HISTORY), {"big": load(17)}, PLAN, seed=3)


def test_a_near_source_teaches_a_short_history(asked):
    assert asked.best() == "big" and asked.verdicts["big"].accepted
    assert asked.verdicts["big"].transfer < 0
    older, held = load(**{**HISTORY, "days": 5}).split(2 * DAY)
    helped, last = (
        roll(f, older, held).scores()["rmse"] for f in (asked.forecasters["big"], Naive(TASK, seasonal=False))
    )
    assert helped < 0.7 * last


def test_the_same_seed_gives_the_same_target_and_what_happened_elsewhere_while_it_is_judged_teaches_nothing():
    """A source of the same days; the gate's part begins after 80 % of the history."""
    history = load(**HISTORY)
    gate_begins = history.start + int(0.8 * len(history)) * STEP_S
    plan = replace(PLAN, hidden=4, batch=16, pretraining=6, adapting=2, tuning=2, target_only=4, every=2)
    beside = load(20, start_day=27)
    later = beside.start + np.arange(len(beside)) * STEP_S >= gate_begins
    garbage = Series(beside.start, STEP_S, np.where(later, 3, 1) * beside.values)
    results = [transfer_from_sources(TASK, history, {"beside": one}, plan, seed=3) for one in (beside, beside, garbage)]
    said = [one.forecasters["beside"].quantiles_of(one.forecasters["beside"].state_after(history)) for one in results]
    for one, other in zip(results[1:], said[1:], strict=True):
        np.testing.assert_array_equal(said[0], other)
        assert results[0].verdicts == one.verdicts and results[0].shapes == one.shapes


def test_what_the_gate_judges_by_lets_no_source_in():
    plan = replace(PLAN, hidden=4, batch=16, pretraining=1, adapting=1, tuning=1, target_only=1, every=1)
    history = load(**HISTORY)
    judged = np.arange(len(history)) >= int(0.8 * len(history))
    noise = np.random.default_rng(3).uniform(1, 200, len(history))
    others = {"near": load(17), "far": Series(0.0, STEP_S, 50 + np.random.default_rng(1).random(20 * DAY))}
    found, garbage = (
        transfer_from_sources(TASK, Series(history.start, STEP_S, values), others, plan, seed=3)
        for values in (history.values, np.where(judged, noise, history.values))
    )
    assert set(found.verdicts) == {"near"} == set(garbage.verdicts)
    assert (found.shapes, found.refused) == (garbage.shapes, garbage.refused)


def test_of_a_fleet_the_nearest_are_tried():
    """Each takes several networks, and a training has to end."""
    plan = replace(PLAN, hidden=4, batch=16, pretraining=1, adapting=1, tuning=1, target_only=1, every=1)
    fleet = {f"job{i:02}": load(14, seed=10 + i) for i in range(10)}
    found = transfer_from_sources(TASK, load(**HISTORY), fleet, plan, seed=3)
    farthest = sorted(fleet, key=found.shapes.__getitem__)[8:]
    assert set(found.refused) == set(farthest) and set(found.verdicts) == set(fleet) - set(farthest)
    assert all(reason.endswith("8 others are nearer") for reason in found.refused.values())


def test_of_a_load_is_known_what_ended_before_and_all_of_another_time():
    beside = load(20)
    assert len(known_before(beside, 10 * 86_400.0, 12 * 86_400.0)) == 10 * DAY
    assert len(known_before(beside, 10 * 86_400.0 + STEP_S - 1, 12 * 86_400.0)) == 10 * DAY  # a step that still goes on
    assert known_before(beside, 30 * 86_400.0, 32 * 86_400.0).end == beside.end
    assert len(known_before(load(20, start_day=13), 0.0, 86_400.0)) == 0  # the steps held out may reach into it
    assert len(known_before(load(20, start_day=15), 0.0, 86_400.0)) == 20 * DAY


def test_stepping_is_as_beginning_with_all_of_it(asked):
    history = load(2, level=20.0, seed=6)
    values = history.values.copy()
    values[60] = math.nan
    target = asked.forecasters["big"]
    whole = target.state_after(Series(history.start, STEP_S, values))
    state = target.state_after(Series(history.start, STEP_S, values[:30]))
    for value in values[30:]:
        state, said = target.step(state, float(value))
    np.testing.assert_allclose(said, target.quantiles_of(whole), rtol=1e-5)
    np.testing.assert_array_equal(said, target.quantiles_of(state))
    assert (np.diff(said, axis=1) >= 0).all() and (said >= 0).all()


def test_it_begins_with_nothing_and_says_what_it_rests_on(asked):
    target = asked.forecasters["big"]
    state = target.state_after(Series(0.0, STEP_S, np.empty(0)))
    assert np.isnan(target.quantiles_of(state)).all() and target.basis(state) == "none"
    state, said = target.step(state, math.nan)
    assert np.isnan(said).all()
    for value in np.full(CONTEXT - 1, 7.0):
        state, said = target.step(state, float(value))
    assert target.basis(state) == "last value" and said[0, 1] == 7.0
    state, said = target.step(state, 7.0)
    assert target.basis(state) == "adapted" and np.isfinite(said).all()


@pytest.mark.filterwarnings("ignore:The tensor attributes .*_flat_weights")  # they are parameters too
def test_what_is_exported_forecasts_as_the_network_does():
    generator = torch.Generator().manual_seed(1)
    network = TransferGru(4, 8, generator)
    torch.nn.init.normal_(network.head.weight, generator=generator)
    x = torch.rand(3, CONTEXT, generator=generator)
    torch.testing.assert_close(ForecastOnly(network)(x), network(x)[1])
    exported = torch.export.export(ForecastOnly(network).eval(), (x,), dynamic_shapes={"x": {0: torch.export.Dim("n")}})
    torch.testing.assert_close(exported.module()(x[:2]), network(x[:2])[1])
    assert AdaptedForecaster(TASK, exported.module(), DomainScale(0.0, 1.0)).horizon == 4


def test_why_a_load_does_not_help_is_said():
    history = load(**HISTORY)
    with pytest.raises(SeriesError, match="there is none"):
        transfer_from_sources(TASK, history, {}, PLAN, 1).best()
    rng = np.random.default_rng(1)
    strangers = {
        "late": Series(0.0, STEP_S, np.concatenate([np.full(5, np.nan), load(20).values])),
        "brief": load(LONG_DAYS - 1),
        "hourly": Series(0.0, 3600.0, np.ones(900)),
        "noise": Series(0.0, STEP_S, 50 + rng.random(20 * DAY)),
    }
    found = transfer_from_sources(TASK, history, strangers, PLAN, 1)
    with pytest.raises(
        NoSourceError,
        match=r"late: it begins with a gap.*brief: 624 steps.*hourly: 900 steps of 3600 s.*noise: its shape is",
    ):
        found.best()
    assert set(found.refused) == set(strangers) and found.shapes["noise"] > 0.5
    with pytest.raises(SeriesError):
        transfer_from_sources(TASK, load(1, start_day=20), {"big": load(20)}, PLAN, 1)
