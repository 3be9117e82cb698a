"""Small jobs that are searched by a network, by moves and by chance: each drawn several times, by equal evaluations."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from models.placement.learned.schemes import Proposer
from models.placement.learned.training import OURS
from pipelines.bench.placement import learned


def job(share, greedy, random, asked=20, seconds=1.0):
    return {"share": share, "greedy": greedy, "random": random, "asked": asked, "seconds": seconds}


def test_jobs_are_held_against_others_job_by_job():
    # The mean beside greedy moves is the same as one job's; beside random search all of them are above.
    jobs = [job(1.0, 0.6, 0.9), *[job(1.0, 1.0, 0.9, asked=40, seconds=3.0)] * 3]
    found = learned.summarise_search(jobs)
    assert (found["n"], found["asked"], found["seconds"]) == (4, 35, 3.0)
    assert found["above"]["random"] == {name: pytest.approx(0.1) for name in ("mean", "low", "high")}
    greedy = found["above"]["greedy"]
    assert greedy["mean"] == pytest.approx(0.1) and greedy["low"] == pytest.approx(0) and greedy["high"] > 0.1
    assert found["share"]["mean"] == 1 and found["greedy"]["mean"] == pytest.approx(0.9)


def test_a_network_is_trained_once_and_proposes_ten_times_beside_searches_of_as_many_evaluations(monkeypatch):
    monkeypatch.setattr(learned, "SHAPES", ((2, 2),))
    monkeypatch.setattr(learned, "SEEDS", (0,))
    monkeypatch.setattr(learned, "OURS", replace(OURS, transitions=64, trials=2))
    trained, looked_at, proposed = [], {"greedy": [], "random": []}, []
    train, propose = learned.train_placement, learned.SmallSearch.proposed
    monkeypatch.setattr(learned, "train_placement", lambda *given: trained.append(given) or train(*given))

    def noted(self, model, seed):
        found = propose(self, model, seed)
        proposed.append((seed, found[1]))
        return found

    monkeypatch.setattr(learned.SmallSearch, "proposed", noted)
    greedy, random = learned.greedy_search, learned.random_search

    def moved(space, start, score, evaluations):
        looked_at["greedy"].append(evaluations)
        return greedy(space, start, score, evaluations)

    def drawn(space, score, evaluations, seed):
        looked_at["random"].append(evaluations)
        return random(space, score, evaluations, seed)

    monkeypatch.setattr(learned, "greedy_search", moved)
    monkeypatch.setattr(learned, "random_search", drawn)
    saved = []
    found = learned.measure_search(saved.append)
    assert len(trained) == 1 and saved == [found] and list(found["kept"]) == ["0: 2 x 2"]
    seeds, asked = zip(*proposed, strict=True)
    assert len(set(seeds)) == 10 and looked_at == {"greedy": [*asked], "random": [*asked]}
    assert found["asked"] == pytest.approx(sum(asked) / 10) and 0 <= found["random"]["mean"] <= 1
    assert found["share"]["mean"] >= found["greedy"]["mean"]


def test_a_performance_model_that_tells_every_latency_too_high_proposes_the_same(monkeypatch):
    monkeypatch.setattr(learned, "SHAPES", ((2, 2),))
    monkeypatch.setattr(learned, "SEEDS", (0,))
    (one,) = learned.small_searches()
    for name in ("record_past", "train_performance"):
        monkeypatch.setattr(learned, name, lambda *_: None)
    monkeypatch.setattr(learned, "parts_in_time", lambda _: (None,) * 3)

    def proposer(space, evaluator, weights):
        return Proposer(space, evaluator, weights, lambda _: np.zeros(2 * one.start.size), lambda *_: np.zeros(1))

    monkeypatch.setattr(learned, "train_placement", lambda *_: SimpleNamespace(proposer=proposer))
    twin, found = one.evaluator(), []
    for more_ms in (0.0, 1_000.0, -1_000.0):

        def outcomes(placements, before, more_ms=more_ms):
            told = twin.outcomes(placements, before)
            return [outcome._replace(latency_ms=outcome.latency_ms + more_ms) for outcome in told]

        evaluator = SimpleNamespace(outcomes=outcomes)
        monkeypatch.setattr(learned, "LearnedEvaluator", lambda *_, evaluator=evaluator: evaluator)
        found.append(learned._by_performance_model(one.space, one.start, one.began, 0).tolist())
    assert found[0] != one.start.tolist() and found[1:] == found[:1] * 2
