import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from configs.contract import Contract
from configs.errors import SettingsError
from models.dqn.actions import MOVES, floor
from models.dqn.agent import Agent, AgentError, Familiar, describe, revive
from models.dqn.fleet import Fleet, drawn
from models.dqn.learner import Settings
from models.dqn.network import Values
from models.dqn.observation import FEATURES
from models.dqn.policy import Dqn
from models.dqn.reward import PARTS
from models.dqn.training import FINE, Training, train
from models.policy.carried import dump, restore
from models.policy.catalogue import build
from models.policy.view import View, Why, decide
from models.twin.job import Job
from models.twin.run import simulate

CONTRACT = Contract(job="orders", error_budget=0.02)
WIDE = Familiar(
    np.full(len(FEATURES), -4.0), np.full(len(FEATURES), 4.0), np.zeros(len(FEATURES)), np.eye(len(FEATURES)), 1e9
)


def agent(favourite: int, seed: int = 1) -> Agent:
    """One that always likes one move best."""
    network = Values(len(FEATURES), len(MOVES), PARTS, 8, False, torch.Generator().manual_seed(seed))
    layers = {n: getattr(network, n) for n in ("first", "second", "last")}
    weights = {n: (x.weight.detach().numpy().copy(), x.bias.detach().numpy().copy()) for n, x in layers.items()}
    weights["last"][0][:] = 0
    weights["last"][1][favourite * PARTS] = 1.0
    tried = np.array([[1.1, 0.1], [1.3, 0.015], [1.5, 0.001]])
    return Agent(weights, False, WIDE, np.array([1.0, 10.0, 100.0]), tried)


def view(runs: int = 4, **other: object) -> View:
    fleet = Fleet(drawn(runs, 2, (), np.random.default_rng(5), lead_s=60.0), np.arange(runs))
    return replace(fleet.view, **other)


def asked(policy: Dqn, seen: View) -> tuple[np.ndarray, np.ndarray]:
    _, choice = decide(policy, policy.fresh(seen.runs), seen)
    return choice.target, choice.why


def test_the_move_of_highest_value_is_made() -> None:
    seen = view(most=np.full(4, 40.0), target=np.full(4, 20.0), arrival_rps=np.ones(4))
    for favourite, move in enumerate(MOVES):
        target, why = asked(Dqn.of("dqn", CONTRACT, agent(favourite)), seen)
        assert (target == 20 + move).all()
        assert (why == 0).all()


def test_the_target_is_never_below_what_the_observed_rate_needs() -> None:
    seen = view(target=np.full(4, 2.0))
    seen = replace(seen, arrival_rps=seen.capacity.rps(seen.most - 0.0) * 0.9)
    target, _ = asked(Dqn.of("dqn", CONTRACT, agent(0)), seen)
    np.testing.assert_array_equal(target, floor(seen))
    assert (target > 2).all()


def test_between_two_decisions_only_the_floor_moves_the_target() -> None:
    policy = Dqn.of("dqn", CONTRACT, agent(5))
    seen = view(most=np.full(4, 40.0), target=np.full(4, 8.0), arrival_rps=np.ones(4), now_s=100.0)
    memory, choice = decide(policy, policy.fresh(4), seen)
    assert (choice.target == 12).all()
    at_once = replace(seen, now_s=100.0 + policy.pace_s / 2, target=choice.target)
    memory, choice = decide(policy, memory, at_once)
    assert (choice.target == 12).all()
    _, choice = decide(policy, memory, replace(at_once, now_s=100.0 + policy.pace_s))
    assert (choice.target == 16).all()


def test_what_it_was_not_trained_on_is_left_to_the_reactive_planner() -> None:
    narrow = replace(WIDE, high=np.where(np.array(FEATURES) == "lag_s", 0.5, 4.0))
    policy = Dqn.of("dqn", CONTRACT, replace(agent(5), familiar=narrow))
    seen = view(target=np.full(4, 3.0), arrival_rps=np.ones(4))
    lag = np.array([0.0, 0.0, 1e9, 0.0])
    target, why = asked(policy, replace(seen, lag_records=lag, most=np.full(4, 30.0)))
    assert (why & Why.UNFAMILIAR > 0).tolist() == [False, False, True, False]
    safe = policy.fallback.decide(policy.fallback.fresh(4), replace(seen, lag_records=lag, most=np.full(4, 30.0)))[1]
    assert target[2] == safe.target[2]
    assert (target[[0, 1, 3]] == 7).all()


def test_a_combination_never_seen_is_strange_though_each_number_was() -> None:
    chance = np.random.default_rng(1)
    base = chance.uniform(-1, 1, (500, 1))
    known = Familiar.of(np.hstack([base, base + 0.01 * chance.standard_normal((500, 1))]))
    assert known.strange(np.array([[0.9, 0.9], [0.9, -0.9], [5.0, 5.0]])).tolist() == [False, True, True]


def test_the_price_is_the_lowest_that_kept_the_budget() -> None:
    assert Dqn.of("dqn", CONTRACT, agent(0)).caution == 1
    assert agent(0).price_for(0.5) == 1
    assert agent(0).price_for(0.0) == 100


def test_an_agent_is_kept_as_plain_values() -> None:
    kept = json.loads(json.dumps(describe(agent(2, seed=3))))
    x = np.random.default_rng(1).uniform(-1, 1, (5, len(FEATURES)))
    np.testing.assert_array_equal(revive(kept).values(x), agent(2, seed=3).values(x))
    for broken, said in (
        ({**kept, "features": ["load"]}, "features"),
        ({**kept, "moves": [-1, 0, 1]}, "moves"),
        ({**kept, "weights": {"first": kept["weights"]["first"]}}, "lacks"),
        ({**kept, "weights": {**kept["weights"], "last": [[[1.0] * 8], [0.0]]}}, "do not fit"),
    ):
        with pytest.raises(AgentError, match=said):
            revive(broken)


def test_a_policy_without_an_agent_says_what_is_missing() -> None:
    with pytest.raises(SettingsError, match="needs an agent"):
        Dqn.of("dqn", CONTRACT, None)


def test_numpy_and_torch_say_the_same() -> None:
    network = Values(len(FEATURES), len(MOVES), PARTS, 8, True, torch.Generator().manual_seed(1))
    layers = {n: getattr(network, n) for n in ("first", "second", "last")}
    weights = {n: (x.weight.detach().numpy(), x.bias.detach().numpy()) for n, x in layers.items()}
    x = np.random.default_rng(2).standard_normal((6, len(FEATURES))).astype(np.float32)
    with torch.no_grad():
        said = network(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(Agent(weights, True, WIDE, np.ones(1), np.ones((1, 2))).values(x), said, atol=1e-5)


SHORT = Training(
    Settings(hidden=16, batch=32, warm=200, updates=2), fleets=2, runs=8, decisions=16, transitions=1600,
    evaluate_every=50, trial=(4, 8), prices=2,
)  # fmt: skip


def test_training_repeats_itself_and_a_fitted_job_is_gone_on_with() -> None:
    first, again = (train((), (), SHORT, seed=4) for _ in range(2))
    assert json.dumps(describe(first)) == json.dumps(describe(again))
    assert first.curve[-1]["score"] >= first.curve[0]["score"] or len(first.curve) > 1
    job = Job(overhead_s=0.3, per_record_s=0.01, most=12, startup_s=(60.0,))
    short = replace(FINE, fleets=1, runs=8, decisions=8, transitions=400, learner=SHORT.learner, trial=(4, 8), prices=2)
    fitted = train([job], (), short, seed=4, start=first)
    assert fitted.curve[0]["updates"] == 0
    assert np.isfinite(fitted.tried).all()


def test_what_it_carries_survives_as_json() -> None:
    policy = build("dqn", CONTRACT, agent(2))
    seen = view(runs=1)
    memory, _ = decide(policy, policy.fresh(1), seen)
    again = restore(json.loads(json.dumps(dump(memory))), policy)
    later = replace(seen, now_s=seen.now_s + 60)
    for one, other in zip(
        decide(policy, memory, later)[0].items(), decide(policy, again, later)[0].items(), strict=True
    ):
        assert one[0] == other[0]
        np.testing.assert_array_equal(one[1], other[1])


def test_runs_with_prices_of_their_own_share_a_simulation() -> None:
    trained = agent(2)
    trained.weights["last"][0][:] = np.random.default_rng(1).standard_normal(trained.weights["last"][0].shape)
    made = drawn(3, 20, (), np.random.default_rng(3), lead_s=60.0)
    cautions = np.array([-0.5, 1.0, 2.4])

    def targets(caution: np.ndarray | float) -> np.ndarray:
        policy = build("dqn", CONTRACT, trained, caution)
        return simulate(made.jobs, made.load, policy, made.looks, np.arange(3)).targets

    together = targets(cautions)
    for run, caution in enumerate(cautions):
        np.testing.assert_array_equal(together[:, run], targets(float(caution))[:, run])
