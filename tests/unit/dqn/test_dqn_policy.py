import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from configs.contract import Contract
from configs.errors import SettingsError
from models.dqn import evaluation, training
from models.dqn.agent.actions import MOVES, PARTS, REACH, STAY, Advice, advise, least_executors, violation_cost_at
from models.dqn.agent.model import AgentError, DqnModel, Familiar, describe, revive
from models.dqn.agent.observation import FEATURES
from models.dqn.agent.policy import Dqn, maker
from models.dqn.environment.randomisation import draw_runs
from models.dqn.environment.synthetic_loads import RecordedLoad
from models.dqn.environment.vector import VectorEnvironment
from models.dqn.evaluation import MARGINS, choose_margin, draw_trials, score
from models.dqn.learner.learner import Values
from models.dqn.learner.settings import FINE, LearnerSettings, TrainingLength
from models.dqn.training import train
from models.policy.catalogue import build
from models.policy.core.carried import dump, restore
from models.policy.core.choice import Why
from models.policy.core.policy import decide
from models.policy.core.view import View
from models.twin.sim.given import Load
from models.twin.sim.job import TwinJob
from models.twin.sim.run import simulate

CONTRACT = Contract(job="orders", error_budget=0.02)
SEED = 6
"""Of four runs of which one hears nothing, and which have room above and below what they are advised."""
WIDE = Familiar(
    np.full(len(FEATURES), -4.0), np.full(len(FEATURES), 4.0), np.zeros(len(FEATURES)), np.eye(len(FEATURES)), 1e9
)


def agent(favourite: int, seed: int = 1) -> DqnModel:
    """One that always likes one move best."""
    network = Values(len(FEATURES), len(MOVES), PARTS, 8, torch.Generator().manual_seed(seed))
    layers = {n: getattr(network, n) for n in ("first", "second", "last")}
    weights = {n: (x.weight.detach().numpy().copy(), x.bias.detach().numpy().copy()) for n, x in layers.items()}
    weights["last"][0][:] = 0
    weights["last"][1][(favourite + 1) * PARTS] = 1.0
    tried = np.array([[1.1, 0.1], [1.3, 0.015], [1.5, 0.001]])
    return DqnModel(weights, WIDE, np.array([1.0, 10.0, 100.0]), np.zeros(3), tried)


def view(runs: int = 4, **other: object) -> View:
    vector = VectorEnvironment(draw_runs(runs, 2, (), np.random.default_rng(SEED), lead_s=60.0), np.arange(runs))
    return replace(vector.view, **other)


def asked(policy: Dqn, seen: View) -> tuple[np.ndarray, np.ndarray]:
    _, choice = decide(policy, policy.fresh(seen.runs), seen)
    return choice.target, choice.why


def advised(policy: Dqn, seen: View) -> Advice:
    """What the baseline says at first sight."""
    baseline = replace(policy.baseline, violation_cost=violation_cost_at(10.0**policy.violation_cost))
    return advise(baseline, baseline.fresh(seen.runs), seen)[1]


def at_rest(runs: int = 4, **other: object) -> View:
    """A view with a target that nobody would change much."""
    seen = view(runs)
    said = advised(Dqn.of("dqn", CONTRACT, agent(0)), seen)
    return replace(seen, most=np.maximum(seen.most, said.target + 6), target=said.target, **other)


def hears(seen: View) -> np.ndarray:
    """(runs,) whether there is a forecast."""
    assert seen.ahead is not None
    heard: np.ndarray = np.isfinite(seen.ahead.rps).all(axis=(1, 2))
    return heard


def test_the_move_of_highest_value_is_made_among_those_near_the_advice() -> None:
    seen = at_rest()
    for favourite, move in enumerate(MOVES):
        policy = Dqn.of("dqn", CONTRACT, agent(favourite))
        said = advised(policy, seen)
        low, high = np.minimum(said.plan, said.target) - REACH, said.target + REACH
        target, why = asked(policy, seen)
        bottom = least_executors(
            seen, replace(policy.baseline, violation_cost=violation_cost_at(10.0**policy.violation_cost)).busy
        )
        near = (seen.target + move >= low) & (seen.target + move <= high)
        np.testing.assert_array_equal(target[near], np.maximum(seen.target + move, bottom)[near])
        assert ((target <= np.maximum(high, bottom)) & (target >= low)).all()
        ahead = (target > seen.target) & (bottom <= seen.target) & hears(seen)
        assert (why == np.where(ahead, int(Why.FORECAST), 0)).all()


def test_a_raise_beyond_what_is_observed_is_the_forecasts_where_there_is_one() -> None:
    policy, seen = Dqn.of("dqn", CONTRACT, agent(MOVES.index(1))), at_rest()
    target, why = asked(policy, seen)
    raised = target > seen.target
    assert raised[hears(seen)].any() and raised[~hears(seen)].any()
    np.testing.assert_array_equal(why & Why.FORECAST > 0, raised & hears(seen))
    deaf = replace(seen, ahead=None)
    assert not (asked(policy, deaf)[1] & Why.FORECAST).any()


def test_far_from_the_advice_the_move_that_comes_nearest_is_made() -> None:
    policy, seen = Dqn.of("dqn", CONTRACT, agent(STAY)), at_rest()
    far = replace(seen, target=np.maximum(seen.target - 12, 1.0), most=np.full(4, 60.0))
    plan = advised(policy, far).target
    assert (plan - far.target > 4 + REACH).any()
    target, _ = asked(policy, far)
    rises = np.maximum(far.target + 4, least_executors(far, policy.utilisation))
    np.testing.assert_array_equal(target[plan - far.target > 4 + REACH], rises[plan - far.target > 4 + REACH])


def test_with_all_heed_it_does_what_it_is_advised() -> None:
    seen = at_rest()
    policy = replace(Dqn.of("dqn", CONTRACT, agent(MOVES.index(1))), margin=MARGINS[-1])
    target, _ = asked(policy, seen)
    np.testing.assert_array_equal(target, advised(policy, seen).target)
    assert (asked(replace(policy, margin=0.0), seen)[0] != target).any()


def test_another_move_than_the_advised_one_must_be_worth_enough_more() -> None:
    one, mask, price = agent(3), np.ones((2, len(MOVES)), bool), np.array([0.0, 99.0])
    seen, followed = np.zeros((2, len(FEATURES)), np.float32), np.array([STAY, STAY])
    near_advice = replace(one, margins=np.full(3, 0.5))
    assert near_advice.choose_moves(seen, price, mask, followed).tolist() == [3, STAY]  # 1 against 0.5 and 5
    assert one.choose_moves(seen, price, mask, followed).tolist() == [3, 3]


def test_between_two_prices_the_more_heedful_counts() -> None:
    one = replace(agent(3), margins=np.array([0.1, 0.3, 1e9]))
    assert one.margin_at(np.array([0.2, 1.0, 2.0, 10.0, 50.0, 100.0, 500.0])).tolist() == [
        0.1, 0.1, 0.3, 0.3, 1e9, 1e9, 1e9,
    ]  # fmt: skip
    assert replace(one, prices=np.zeros(0), margins=np.zeros(0)).margin_at(np.array([1.0])) == [0.0]


def test_the_target_is_never_below_what_the_observed_rate_needs() -> None:
    seen, policy = view(target=np.full(4, 2.0)), Dqn.of("dqn", CONTRACT, agent(0))
    seen = replace(seen, arrival_rps=seen.capacity.sustained_rps(seen.most - 0.0) * 0.9)
    target, _ = asked(policy, seen)
    assert (
        target
        >= least_executors(
            seen, replace(policy.baseline, violation_cost=violation_cost_at(10.0**policy.violation_cost)).busy
        )
    ).all()
    assert (target > 2).all()


def test_between_two_decisions_only_the_floor_moves_the_target() -> None:
    policy, seen = Dqn.of("dqn", CONTRACT, agent(MOVES.index(1))), at_rest(now_s=100.0)
    memory, first = decide(policy, policy.fresh(4), seen)
    at_once = replace(seen, now_s=100.0 + policy.pace_s / 2, target=first.target)
    memory, choice = decide(policy, memory, at_once)
    np.testing.assert_array_equal(choice.target, first.target)
    busy = replace(at_once, arrival_rps=seen.capacity.sustained_rps(first.target + 3))
    held = np.maximum(first.target, least_executors(busy, policy.utilisation))
    assert (held > first.target).any()
    np.testing.assert_array_equal(decide(policy, memory, busy)[1].target, held)
    raised = replace(at_once, now_s=100.0 + policy.pace_s, target=first.target - 1)
    assert (decide(policy, memory, raised)[1].target >= first.target - 1).all()


def test_executors_start_in_the_turns_of_the_contract_whoever_asks_for_them() -> None:
    """Two executors, the rate needs 8, one may start at once: 3, and 4 when a start is over, as `mpc` would."""
    planning = CONTRACT.planning.model_copy(update={"max_step_up": 1})
    one_by_one = CONTRACT.model_copy(update={"planning": planning})
    bold = MOVES.index(4)
    narrow = WIDE._replace(high=np.where(np.array(FEATURES) == "lag_s", -3.0, 4.0))
    seen = view(1, now_s=1000.0, least=np.ones(1), most=np.full(1, 30.0), ahead=None, lag_records=np.zeros(1))
    seen = replace(seen, target=np.full(1, 2.0), executors=np.full(1, 2.0), starting=np.zeros(1), leaving=np.zeros(1))
    seen = replace(seen, since_raise_s=np.full(1, np.inf))
    for made in (agent(bold), replace(agent(bold), familiar=narrow)):
        policy = Dqn.of("dqn", one_by_one, made)
        busy = replace(policy.baseline, violation_cost=violation_cost_at(10.0)).busy
        rising = replace(seen, arrival_rps=seen.capacity.sustained_rps(np.full(1, 8.0)) * busy * 0.99)
        assert least_executors(rising, busy).tolist() == [8]
        memory, first = decide(policy, policy.fresh(1), rising)
        assert first.target.tolist() == [3]
        begun = replace(rising, target=first.target, starting=np.ones(1))
        for later_s in (0.5, 1.0):  # between two decisions, and at one
            soon = replace(begun, now_s=1000.0 + later_s * policy.pace_s, since_raise_s=np.full(1, 1.0))
            waits = decide(policy, memory, soon)[1]
            assert waits.target.tolist() == [3] and (waits.why & Why.TURN > 0).all()
            over = replace(soon, executors=np.full(1, 3.0), starting=np.zeros(1))
            over = replace(over, since_raise_s=np.full(1, policy.lead_s))
            assert decide(policy, memory, over)[1].target.tolist() == [4]


def slowed() -> tuple[View, list[Dqn]]:
    """Two executors of a job whose starts slow each other down, forecasts for all but the third run, and two agents.

    The first knows nothing of what it sees, the second likes to have four more. The advice is 5, 6, 2 and 4.
    """
    contract = CONTRACT.model_copy(update={"planning": CONTRACT.planning.model_copy(update={"start_growth": 0.7})})
    narrow = WIDE._replace(high=np.where(np.array(FEATURES) == "lag_s", -3.0, 4.0))
    seen = view(now_s=1000.0, least=np.ones(4), most=np.full(4, 30.0), lag_records=np.zeros(4), target=np.full(4, 2.0))
    seen = replace(seen, executors=np.full(4, 2.0), starting=np.zeros(4), leaving=np.zeros(4))
    bold = agent(MOVES.index(4))
    policies = [Dqn.of("dqn", contract, made) for made in (replace(bold, familiar=narrow), bold)]
    return replace(seen, since_raise_s=np.full(4, np.inf)), policies


def test_what_is_advised_is_begun_as_it_is_advised() -> None:
    """Of nine missing executors, three start at once, and of three alone one would."""
    seen, policies = slowed()
    for policy in policies:
        assert advised(policy, seen).plan.tolist() == [11, 10, 2, 6]
        assert advised(policy, seen).target.tolist() == asked(policy, seen)[0].tolist() == [5, 6, 2, 4]


def test_a_hold_says_that_the_advised_raise_waits_for_its_turn() -> None:
    """An executor starts, and nothing arrives: the forecast's raise waits, where there is one, and the agent stays."""
    seen, (_, bold) = slowed()
    waiting = replace(seen, starting=np.ones(4), target=np.full(4, 3.0), since_raise_s=np.ones(4))
    waiting = replace(waiting, arrival_rps=np.zeros(4))
    target, why = asked(replace(bold, agent=agent(STAY)), waiting)
    assert advised(bold, waiting).target.tolist() == target.tolist() == [3, 3, 1, 3]
    assert (why & Why.TURN > 0).tolist() == [True, True, False, True]


def test_what_it_was_not_trained_on_is_left_to_the_adviser() -> None:
    narrow = WIDE._replace(high=np.where(np.array(FEATURES) == "lag_s", 0.5, 4.0))
    policy = Dqn.of("dqn", CONTRACT, replace(agent(5), familiar=narrow))
    seen = view(target=np.full(4, 3.0), arrival_rps=np.ones(4), most=np.full(4, 30.0))
    seen = replace(seen, lag_records=np.array([0.0, 0.0, 1e9, 0.0]))
    target, why = asked(policy, seen)
    assert (why & Why.UNFAMILIAR > 0).tolist() == [False, False, True, False]
    assert target[2] == advised(policy, seen).target[2] > 7


def test_a_combination_never_seen_is_strange_though_each_number_was() -> None:
    chance = np.random.default_rng(1)
    base = chance.uniform(-1, 1, (500, 1))
    known = Familiar.from_observations(np.hstack([base, base + 0.01 * chance.standard_normal((500, 1))]))
    assert known.is_unfamiliar(np.array([[0.9, 0.9], [0.9, -0.9], [5.0, 5.0]])).tolist() == [False, True, True]


def test_the_price_is_the_lowest_that_kept_the_budget() -> None:
    assert Dqn.of("dqn", CONTRACT, agent(0)).violation_cost == 1
    assert agent(0).price_for(0.5) == 1
    assert agent(0).price_for(0.0) == 100
    with pytest.raises(AgentError, match="never tried"):
        replace(agent(0), prices=np.zeros(0), margins=np.zeros(0), tried=np.zeros((0, 2))).price_for(0.5)


def test_an_agent_is_kept_as_plain_values() -> None:
    kept = json.loads(json.dumps(describe(agent(2, seed=3))))
    x = np.random.default_rng(1).uniform(-1, 1, (5, len(FEATURES)))
    nothing = [float("nan")] * len(kept["weights"]["last"][1])
    np.testing.assert_array_equal(revive(kept).action_values(x), agent(2, seed=3).action_values(x))
    for broken, said in (
        ({**kept, "features": ["load"]}, "features"),
        ({**kept, "moves": [-1, 0, 1]}, "moves"),
        ({**kept, "weights": {"first": kept["weights"]["first"]}}, "lacks"),
        ({**kept, "weights": {**kept["weights"], "last": [[[1.0] * 8], [0.0]]}}, "do not fit"),
        ({**kept, "weights": {**kept["weights"], "last": [kept["weights"]["last"][0], nothing]}}, "not finite"),
        ({**kept, "familiar": {**kept["familiar"], "low": [-4.0] * 3}}, "limits and prices"),
        ({**kept, "prices": [], "tried": []}, "limits and prices"),
        ({**kept, "prices": 1.0}, "limits and prices"),
        ({**kept, "weights": {**kept["weights"], "first": [kept["weights"]["first"][0], 1.0]}}, "weights of shapes"),
        ([kept], "list is no agent"),
    ):
        with pytest.raises(AgentError, match=said):
            revive(broken)


def test_an_agent_of_the_old_spelling_is_read() -> None:
    old = describe(agent(1))
    old["heeds"] = [0.1, 0.3, 1e9]
    del old["margins"]
    assert revive(old).margins.tolist() == old["heeds"]


def test_a_policy_without_an_agent_says_what_is_missing() -> None:
    with pytest.raises(SettingsError, match="needs an agent"):
        Dqn.of("dqn", CONTRACT, None)


def test_numpy_and_torch_say_the_same() -> None:
    network = Values(len(FEATURES), len(MOVES), PARTS, 8, torch.Generator().manual_seed(1))
    layers = {n: getattr(network, n) for n in ("first", "second", "last")}
    weights = {n: (x.weight.detach().numpy(), x.bias.detach().numpy()) for n, x in layers.items()}
    x = np.random.default_rng(2).standard_normal((6, len(FEATURES))).astype(np.float32)
    with torch.no_grad():
        said = network(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(
        DqnModel(weights, WIDE, np.ones(1), np.zeros(1), np.ones((1, 2))).action_values(x), said, atol=1e-5
    )


SHORT = TrainingLength(
    LearnerSettings(hidden=16, batch=32, warm=200, updates=2), groups=2, runs=8, decisions=16, transitions=900,
    evaluate_every=30, trial=(4, 8), prices=2, lead_s=60.0,
)  # fmt: skip


def test_what_an_agent_is_late_in_is_a_share_of_the_seconds_of_production(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a promise counts: a tenth of all seconds is a fifth of those in which anything is produced, two of four."""
    load = Load(np.array([[0.0, 5.0, 5.0, 9.0, 9.0]]), np.zeros(2, np.int64))
    made = SimpleNamespace(load=load, needed=np.ones((2, 3)), jobs=SimpleNamespace(facts={"most": np.full(2, 4.0)}))
    monkeypatch.setattr(evaluation, "run_to_end", lambda *_: (np.array([[-0.25, -0.1], [0.0, -0.1]]), None))
    cost, late = evaluation.measure_cost(agent(1), [made])  # type: ignore[list-item]
    assert (cost, late) == (pytest.approx(1.5), pytest.approx(0.2))


@pytest.mark.study
def test_training_repeats_itself_and_a_fitted_job_is_gone_on_with() -> None:
    first, again = (train((), (), SHORT, seed=4) for _ in range(2))
    assert json.dumps(describe(first)) == json.dumps(describe(again))
    assert [row["updates"] for row in first.curve[:2]] == [0, SHORT.evaluate_every] and len(first.curve) > 2
    job = TwinJob(overhead_s=0.3, per_record_s=0.01, most=12, startup_s=(60.0,))
    short = replace(FINE, groups=1, runs=8, decisions=8, transitions=400, learner=SHORT.learner, trial=(4, 8), prices=2)
    fitted = train([job], (), short, seed=4, start=first)
    assert fitted.curve[0]["updates"] == 0
    assert np.isfinite(fitted.tried).all()


def test_the_best_network_is_kept_and_tried_on_rows_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    learned: list[np.ndarray] = []
    tried: list[np.ndarray] = []

    def noting(kept: list[np.ndarray], call: Any, at: int) -> Any:
        def noted(*args: Any, **more: Any) -> Any:
            kept.extend(load.playable for load in args[at])
            return call(*args, **more)

        return noted

    monkeypatch.setattr(training, "GroupedEnvironment", noting(learned, training.GroupedEnvironment, 1))
    monkeypatch.setattr(training, "draw_trials", noting(tried, training.draw_trials, 2))
    days = np.arange(3000.0) + 1
    made = train((), [RecordedLoad(days, 300.0)], SHORT, seed=4)
    assert len(learned) == 1 and len(tried) >= 1 + 1 + SHORT.prices
    assert all(not np.isin(rows, learned[0]).any() and rows.min() > learned[0].max() for rows in tried)
    # what is kept is the network that scored highest there, not the newest
    again = draw_trials(SHORT, (), [RecordedLoad(days, 300.0).parted(training.HELD)[1]], 5)
    plain = replace(made, prices=np.zeros(0), margins=np.zeros(0))
    assert score(plain, again) == max(row["score"] for row in made.curve)


def test_what_it_carries_survives_as_json() -> None:
    policy = build("dqn", CONTRACT, maker(agent(2)))
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
    made = draw_runs(3, 20, (), np.random.default_rng(3), lead_s=60.0)
    costs = np.array([-0.5, 1.0, 2.4])

    def targets(violation_cost: np.ndarray | float) -> np.ndarray:
        policy = build("dqn", CONTRACT, maker(trained), violation_cost)
        return simulate(made.jobs, made.load, policy, made.looks, np.arange(3)).targets

    together = targets(costs)
    for run, violation_cost in enumerate(costs):
        np.testing.assert_array_equal(together[:, run], targets(float(violation_cost))[:, run])


def test_an_agent_whose_own_moves_cost_more_does_what_it_is_advised():
    always_more = agent(MOVES.index(4))
    trial = draw_trials(TrainingLength(trial=(8, 24), lead_s=60.0, price=10.0), (), (), 3)
    assert choose_margin(always_more, 10.0, trial) == MARGINS[-1]


@pytest.mark.study
def test_where_departing_pays_at_no_low_price_it_is_tried_at_no_higher_one(monkeypatch):
    asked_at = []

    def margin(made, price, trial):
        asked_at.append(price)
        return 0.3 if len(asked_at) < 3 else MARGINS[-1]

    monkeypatch.setattr("models.dqn.training.choose_margin", margin)
    made = train((), (), replace(SHORT, prices=5), 1)
    assert made.margins.tolist() == [0.3, 0.3, *[MARGINS[-1]] * 3] and asked_at == made.prices[:3].tolist()
