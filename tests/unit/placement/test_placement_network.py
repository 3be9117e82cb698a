"""A placement network in the registry's terms: what it is described as, for which job it is, and how it is judged."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

from configs.settings import ROOT
from configs.topology import load_topology
from models.dqn.learner.learner import Values
from models.placement.learned.described import (
    PlacementModelError,
    describe,
    describe_performance,
    revive,
    revive_performance,
    signature_of,
)
from models.placement.learned.judged import SearchShares, decide, judge_networks
from models.placement.learned.past import steady_steps, twin_past
from models.placement.learned.queries import QueryEvaluator, QuerySpace, weights_of
from models.placement.learned.training import OURS, train_placement
from models.placement.performance.model import train_performance
from models.placement.performance.windows import History, parts_in_time
from models.placement.plan.measured import Measure
from models.placement.rates import rates_of
from pipelines.train.placement.performance import _is_trusted, past_loads

ADVERTS = load_topology("adverts", ROOT / "configs" / "topologies")
BLOCKS = (("parse", "views", "project"), ("join", "count"))


def space(topology=ADVERTS, blocks=BLOCKS, factor=1.0):
    return QuerySpace(Measure(topology, rates_of(topology, factor)), blocks)


@cache
def trained():
    how = replace(OURS, transitions=1_500)
    return train_placement(space(), [QueryEvaluator(space())], weights_of(space()), seed=2, how=how)


def test_a_network_goes_through_json_unchanged():
    again = revive(json.loads(json.dumps(describe(trained(), space()))), space(factor=3.0))
    seen = np.linspace(0, 1, 7)
    assert (again.values(seen) == trained().values(seen)).all() and again.usual_ms == trained().usual_ms
    assert again.curve == trained().curve


def test_a_network_of_another_job_is_refused_by_its_signature():
    described = describe(trained(), space())
    bigger = {**ADVERTS.clusters, "west": ADVERTS.clusters["west"].model_copy(update={"cores": 6})}
    cut = (*BLOCKS[0], "join"), ("count",)
    for other in (space(blocks=cut), space(ADVERTS.model_copy(update={"clusters": bigger}))):
        assert signature_of(other) != signature_of(space())
        with pytest.raises(PlacementModelError, match=r"was trained for .* train one for it"):
            revive(described, other)


@pytest.mark.parametrize("spoilt", [
    [], {"kind": "dqn"}, {"weights": {}}, {"usual_ms": None}, {"curve": None}, {"weights": None},
])  # fmt: skip
def test_what_is_no_network_is_refused(spoilt):
    described = {**describe(trained(), space()), **spoilt} if isinstance(spoilt, dict) else spoilt
    with pytest.raises(PlacementModelError, match="train"):
        revive(described, space())
    weights = describe(trained(), space())["weights"]
    with pytest.raises(PlacementModelError, match="not finite"):
        revive({**describe(trained(), space()), "weights": {**weights, "first.bias": [float("nan")] * 128}}, space())


def test_a_performance_model_goes_through_json_unchanged_and_another_job_s_is_refused():
    past = twin_past(space(), np.linspace(0.5, 2.0, 60), seed=1)
    train, stop, test = parts_in_time(past)
    model = train_performance(train, stop, slots=4, seed=1, epochs=2)
    described = json.loads(json.dumps(describe_performance(model, space())))
    again = revive_performance(described, space(factor=2.0))
    assert (again.predict(test.seen) == model.predict(test.seen)).all() and again.sizes == model.sizes
    assert again.stopped.tolist() == model.stopped.tolist()
    assert again.stopped_log.tolist() == model.stopped_log.tolist()
    with pytest.raises(PlacementModelError, match=r"was trained for .* train one for it"):
        revive_performance(described, space(blocks=((*BLOCKS[0], "join"), ("count",))))
    for spoilt in ({"kind": "placement-dqn"}, {"sizes": [1]}, {"mean": [0.0]}, {"weights": {}}, {"stopped": None}):
        with pytest.raises(PlacementModelError, match="train"):
            revive_performance({**described, **spoilt}, space())


def test_a_performance_model_is_trusted_by_how_many_times_it_is_off_not_by_how_many_ms():
    """In training it erred by 0.1 of log(latency), which was 1,200 ms in the mean: a job of 1 s is said to take two."""
    train, stop, test = parts_in_time(twin_past(space(), np.linspace(0.5, 2.0, 60), seed=1))
    fitted = train_performance(train, stop, slots=4, seed=1, epochs=2)
    error = np.abs(np.log(fitted.predict(stop.seen)[:, 0]) - np.log(stop.label[:, 0])).mean()
    assert fitted.stopped_log[0] == pytest.approx(error)
    model = replace(fitted, stopped=np.array([1200.0, 0.1]), stopped_log=np.array([0.1, 0.1]))
    for times, trusted in ((2.0, False), (0.5, False), (1.2, False), (1.1, True)):  # log(1.2) = 0.18, log(1.1) = 0.10
        job = test._replace(label=model.predict(test.seen) / [times, 1.0])
        assert _is_trusted(model, model.log_errors(job)[:, 0], np.zeros(len(job.label)), None) is trusted


def test_what_a_model_is_trusted_by_holds_all_loads():
    """From half the stated load to twice it, 1.25 in the mean: at the lowest alone, a model errs far less."""
    loads = past_loads()
    _, stop, _ = parts_in_time(History(loads, np.ones((len(loads), 1, 1)), np.column_stack([loads, loads])))
    found = stop.seen[:, :, 0]
    assert found.min() < 0.6 and found.max() > 1.9 and found.mean() == pytest.approx(1.25, abs=0.05)


def test_a_past_in_the_twin_is_what_placements_come_to_at_each_load():
    past = twin_past(space(), np.array([1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 0.5]), seed=3)
    assert past.counts.shape == (7, 2, 2) and past.rps.tolist() == [600.0] * 3 + [1200.0] * 3 + [300.0]
    assert (past.counts[2] == past.counts[3]).all() and (past.counts[0] == past.counts[1]).all()
    # The placement of a step is in force from its end on: the fourth was measured under that of the third.
    outcome = QueryEvaluator(space(factor=2.0)).outcome(past.counts[2])
    assert past.measured[3].tolist() == [outcome.latency_ms, outcome.mean_load]
    seen = steady_steps(space(), past.counts[0], 1.5)
    assert seen.shape == (4, 5) and seen[0].tolist() == [900.0, *past.counts[0].reshape(-1)]


def test_it_is_held_against_all_placements_and_simple_searches():
    untrained = replace(trained(), network=Values(7, 8, 1, 128, torch.Generator().manual_seed(3)))
    shares, less = judge_networks([trained(), untrained], [space(), space(factor=2.0)], seed=1)
    assert shares.starts == less.starts >= 10 and shares.network >= 0.95
    # As many different ones of the 44 placements as the network's walks come by are looked at by the searches, too.
    assert 0 < shares.greedy < shares.random < shares.network
    assert judge_networks([trained()], [space(), space(factor=2.0)], seed=1) == [shares]


def test_who_takes_the_champion_s_place():
    good, better = SearchShares(0.95, 0.9, 0.94, 20), SearchShares(0.99, 0.9, 0.94, 20)
    assert decide(good, None) == (True, "promoted: it comes to 0.950 of the best, drawn placements to 0.940")
    assert decide(good._replace(starts=0), None) == (
        False, "rejected: at these loads no placement is better than another"
    )  # fmt: skip
    assert decide(better, good)[0] and decide(good, good)[0]
    assert decide(good, better) == (
        False, "rejected: it comes to 0.950 of the best, drawn placements to 0.940, the champion to 0.990"
    )  # fmt: skip
    assert decide(good._replace(random=0.98), None) == (
        False, "rejected: it comes to 0.950 of the best, drawn placements to 0.980 at as many evaluations"
    )  # fmt: skip
