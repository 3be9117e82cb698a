import json
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from pydantic import ValidationError

from configs.contract import Contract
from configs.sections import AgentTraining
from configs.settings import load
from models.dqn.evaluation import comparison_level, judge_agent, select_rivals
from models.dqn.learner.settings import FINE, TrainingLength
from models.forecast.core.series import Series
from models.forecast.selection.gate import Rival
from models.twin.experiment.contenders import Setting
from models.twin.experiment.evaluation import SweepResults
from models.twin.experiment.results import TraceResult
from models.twin.experiment.scenario import split_trace
from models.twin.experiment.setup import Setup
from models.twin.sim.job import TwinError
from pipelines.backtest.on_lake import twin_from_contract
from pipelines.lake.load import LakeSeries
from pipelines.train.agent import training_set
from pipelines.train.agent.card import agent_card, describe_departures
from pipelines.train.agent.challenge import _judge, train_in_two_phases, with_chosen_margin
from pipelines.train.twin import fit_twin, twin_setup
from tests.unit.dqn.test_dqn_policy import agent


@pytest.mark.parametrize(
    ("chosen", "said"),
    [(0.0, "It departs where a second over the target costs 1 to 10 s"), (1e9, "It does what it is advised")],
)
def test_an_agent_is_registered_as_the_contest_had_it(chosen, said):
    learned = replace(agent(1), margins=np.array([0.1, 0.3, 1e9]))
    judged = with_chosen_margin(learned, SimpleNamespace(settings={"dqn": Setting(fields=(("margin", chosen),))}))
    assert judged.margins.tolist() == (learned.margins + chosen).tolist()
    assert describe_departures(judged).startswith(said)


@pytest.mark.parametrize(("stated", "batch_s"), [({}, 4.0), ({"batch_s": 1.5}, 1.5)])
def test_an_agent_is_fine_tuned_with_batches_as_its_contract_wants_them(stated, batch_s, monkeypatch):
    asked = []
    monkeypatch.setattr("models.dqn.training.train", lambda _, loads, how, *more: asked.append(how) or agent(1))
    contract = Contract(job="orders", latency_target_s=10.0, planning=stated)
    taught = SimpleNamespace(contract=contract, training_loads=lambda: [None], twin_variants=lambda seed: [])
    train_in_two_phases(taught, AgentTraining())
    assert [one.batch_s for one in asked] == [None, batch_s]


def held(hours, gain=0.0):
    costs = {name: np.array(cost, float) * np.ones(4) for name, cost in hours.items()}
    rivals = select_rivals(lambda name: costs[name], costs, gain)
    return judge_agent(float(costs["dqn"].mean()), rivals, 0.01)


@pytest.mark.parametrize(
    ("hours", "promoted", "word"),
    [
        ({"dqn": 10.0, "forecast": 12.0, "mpc": 10.0}, True, "mpc's 10"),
        ({"dqn": 10.1, "forecast": 12.0, "mpc": 10.0}, False, "mpc's 10 (at most 1.010 of it, 1 allowed)"),
        ({"dqn": 10.0, "forecast": 12.0, "mpc": 11.0, "champion": 9.0}, False, "champion's 9"),
        ({"dqn": 9.0, "forecast": 12.0, "champion": 9.0}, True, "champion's 9"),
        ({"dqn": 50.0, "hpa": 9.0, "forecast": math.nan}, True, "nobody to compare with"),
        ({"dqn": math.nan, "forecast": 12.0}, False, "at the price at which it would serve"),
        ({"dqn": [9.0, 9.0, 12.0, 9.5], "mpc": 10.0}, False, "not surely low enough"),  # cheaper in the mean, by luck
        ({"dqn": [9.9, 9.4, 9.8, 9.9], "mpc": 10.0}, False, "not surely low enough"),  # with each, but one by far
    ],
)
def test_an_agent_serves_if_it_is_surely_no_dearer_than_anybody_of_ours(hours, promoted, word):
    found = held(hours)
    assert found.promoted is promoted and word in found.reason and "0.01 of the seconds" in found.reason


def test_a_rival_keeps_its_cost_beside_an_agent_that_has_none():
    costs = {"dqn": np.full(4, math.nan), "mpc": np.full(4, 10.0)}
    assert select_rivals(costs.__getitem__, costs, 0.03)["mpc"] == Rival(10.0, math.inf, 0.97)


def test_a_rival_that_keeps_the_promise_by_luck_of_one_seed_is_none():
    costs = {"dqn": np.full(4, 5.0), "forecast": np.array([9.0, *[math.nan] * 3]), "mpc": np.full(4, 10.0)}
    rivals = select_rivals(costs.__getitem__, costs, 0.03)
    assert math.isnan(rivals["forecast"].cost) and judge_agent(5.0, rivals, 0.01).promoted


def single(hours, late):
    """One price, four seeds that come to the same."""
    costs, shares = np.full((1, 4), hours), np.full((1, 4), late)
    return SweepResults(np.zeros(1), costs, shares, *[np.zeros((1, 4))] * 5)


class NotedRun:
    """A run that notes its metrics."""

    def __init__(self):
        self.told = {}

    def metrics(self, values):
        self.told |= values


@pytest.mark.parametrize(
    ("serves", "cost", "word"), [(0.0, None, "at the price at which it would serve"), (1.0, 9.0, "mpc's 10")]
)
def test_an_agent_is_judged_at_the_price_at_which_it_serves(serves, cost, word):
    """At price 1 it takes 5 hours and is late in 4 %, at 10 it takes 9 and is late in 0.5 %; 1 % is allowed.

    Read off between them, it would cost 7.7 at either.
    """

    def swept(knobs, hours, late):
        costs, shares = (np.repeat(np.array(one)[:, None], 4, axis=1) for one in (hours, late))
        return SweepResults(np.array(knobs), costs, shares, *[np.zeros(costs.shape)] * 5)

    results = {"dqn": swept([0.0, 1.0], [5.0, 9.0], [0.04, 0.005]), "mpc": swept([0.0], [10.0], [0.01])}
    run, found = NotedRun(), TraceResult(None, results)
    assert found.hours_at("dqn", 0.01) == pytest.approx(7.67, abs=0.01)
    said = _judge(run, found, 0.01, 0.03, {"dqn": serves})
    assert run.told.get("hours.dqn") == cost and word in said
    assert said.startswith("rejected") is (cost is None)


@pytest.mark.parametrize(("worst", "promoted"), [(0.021, True), (0.03, False)])
def test_an_agent_breaks_the_promise_by_what_all_seeds_come_to(worst, promoted):
    """Late in 1.7 % with three seeds of four: 1.8 % in the mean with 2.1 % besides, 2.03 % with 3 %; 2 % is allowed."""
    late, hours = np.array([[0.017, 0.017, 0.017, worst]]), np.array([[5.0, 5.1, 5.2, 5.1]])
    mine, theirs = (SweepResults(np.zeros(1), paid, late, *[np.zeros((1, 4))] * 5) for paid in (hours, 0 * hours + 10))
    mpc = theirs._replace(violation=np.full((1, 4), 0.02))
    said = _judge(NotedRun(), TraceResult(None, {"dqn": mine, "mpc": mpc}), 0.02, 0.03, {"dqn": 0.0})
    assert said.startswith("promoted: executor-hours at 0.02 of the seconds over the target, 5.1,") is promoted
    champion = _judge(
        NotedRun(), TraceResult(None, {"dqn": mpc, "champion": mine}), 0.02, 0.03, {"dqn": 0.0, "champion": 0.0}
    )
    assert champion.startswith("rejected") is promoted and ("nobody to compare with" in champion) is not promoted


@pytest.mark.parametrize(
    ("allowed", "said"),
    [
        (0.01, "at 0.01 of them over the target (the contract's error budget, 0.02 of those of production), the agent"),
        (0.05, "keeps the contract's error budget, 0.02 of those of production, which is 0.01 of all), the agent"),
    ],
)
def test_a_card_tells_what_an_agent_comes_to_at_the_price_at_which_it_serves(allowed, said):
    """On a load that rests half of the time. At its best knob the agent would take 8 hours for 5 %."""
    mine = single(9.0, 0.004)._replace(knobs=np.array([1.0])).plus(single(8.0, 0.05))
    scenario = SimpleNamespace(produced_share=0.5, seconds=3600)
    found = TraceResult(scenario, {"dqn": mine, "mpc": single(10.0, 0.01)})
    taught = training_set.TrainingSet(
        Contract(job="orders", error_budget=0.02), LakeSeries(Series(0.0, 300.0, np.ones(12)), 1), Setup(), "A twin"
    )
    card = agent_card(agent(1), taught, found, {"dqn": 1.0}, allowed, "promoted", "r1", "c")
    assert "at a price of 10 s of all executors for a second over the target: there it took 9 executor-hours" in card
    assert "late in 0.4 % of the seconds, 0.8 % of those of production" in card and said in card
    assert "| executor-hours at | 0.1 % | 1 % | 5 % |" in card
    assert "| dqn |  | 9 | 9 |" in card and "| mpc |  | 10 | 10 |" in card
    assert "is raised to what the observed rate needs, in turns where the contract asks for them" in card


def test_agents_run_at_the_price_at_which_they_serve():
    """Of those tried, 10 is the lowest price that kept 2 %, and 100 the highest, where none kept 0.01 %."""
    budgets = {budget: Contract(job="orders", error_budget=budget) for budget in (0.02, 0.0001)}
    assert training_set.serving_knobs(budgets[0.02], agent(1), None) == {"dqn": 1.0}
    assert training_set.serving_knobs(budgets[0.0001], agent(1), agent(2)) == {"dqn": 2.0, "champion": 2.0}


def test_an_agent_must_gain_on_ours_and_be_no_dearer_than_the_champion():
    hours = {"dqn": 9.6, "mpc": 10.0, "champion": 9.6}
    assert held(hours, 0.03).promoted and not held(hours, 0.05).promoted
    assert not held({"dqn": 10.0, "mpc": 10.0}, 0.03).promoted  # doing what it is advised is no reason to serve
    assert "champion's 9.5" in held({**hours, "champion": 9.5}, 0.03).reason


@pytest.mark.parametrize(("kept", "where"), [(0.001, 0.02), (0.02, 0.02), (0.04, 0.05), (0.3, 0.5), (0.9, 0.02)])
def test_where_nobody_keeps_the_promise_policies_are_compared_at_an_easier_one(kept, where):
    costs = {"forecast": kept, "mpc": 1.0, "dqn": 0.0}
    assert comparison_level(lambda name, allowed: 5.0 if allowed >= costs[name] else math.nan, 0.02, 1.0) == where


@pytest.mark.parametrize(
    ("late", "where", "word"),
    [
        (0.019, 0.02, "promoted: executor-hours at 0.02 of the seconds over the target, 10, and nobody"),
        (0.03, 0.03, "rejected: executor-hours at 0.03 of the seconds over the target, 10 is not surely low enough"),
        (0.06, 0.05, "rejected: at the price at which it would serve, more than 0.05 of the seconds"),
    ],
)
def test_where_nobody_else_keeps_the_promise_an_agent_is_compared_at_its_own_lateness(late, where, word):
    """For 2 %. `mpc` is late in 2.4 % at best, for 11 hours, and in 5 % for 6: in 3 %, it takes 9.5."""
    mpc = single(11.0, 0.024)._replace(knobs=np.array([1.0])).plus(single(6.0, 0.05))
    found = TraceResult(None, {"dqn": single(10.0, late), "mpc": mpc, "forecast": mpc})
    allowed = comparison_level(found.hours_at, 0.02, found.violation_with("dqn", 0.0))
    assert allowed == pytest.approx(where) and _judge(NotedRun(), found, allowed, 0.03, {"dqn": 0.0}).startswith(word)


CONTRACT = Contract(job="orders")


NOTHING = LakeSeries(Series(0.0, 300.0, np.empty(0)), 1)


def test_without_batches_the_twin_is_the_stored_fit_else_the_contracts_guess(tmp_path):
    settings = load(var=tmp_path)
    twin, measured, said = fit_twin(settings, CONTRACT, NOTHING)
    assert twin.overhead_s == CONTRACT.planning.overhead_s and "the contract's guess" in said and not measured
    (tmp_path / "twins").mkdir()
    stored = tmp_path / "twins" / "orders.json"
    stored.write_text(json.dumps({"overhead_s": 0.7, "per_record_s": 0.02, "most": 4, "startup_s": [2.0]}))
    twin, measured, said = fit_twin(settings, CONTRACT, NOTHING)
    assert twin.overhead_s == 0.7 and "stored" in said and measured
    stored.write_text(json.dumps({"overhead_s": 0.7, "most": 4}))
    with pytest.raises(TwinError, match=r"per_record_s, startup_s missing: the fit is unfinished"):
        fit_twin(settings, CONTRACT, NOTHING)


def test_the_twin_starts_executors_as_slowly_as_its_contract_says_and_runs_on_the_replays_clock():
    settings = load(replay={"speed": 720})
    contract = Contract(job="word_count", planning={"lead_s": 14.0})
    setup = twin_setup(settings, contract, twin_from_contract(contract))
    assert (setup.lead_s, setup.speed) == (14.0, 720)
    assert (setup.looks.every_s, setup.looks.smooth_s) == (1, 10)  # as often as an agent decides: 14 s / 15
    assert twin_setup(settings, CONTRACT, twin_from_contract(CONTRACT)).speed == 1.0


def test_the_trace_that_is_replayed_is_not_learned_from_in_advance():
    settings = load(replay={"trace": "nyc_taxi"})
    known, without = (
        {one.name for one in training_set.loads_of_others(settings, job)} for job in ("orders", "word_count")
    )
    assert known - without == {"nyc_taxi"} and len(without) > 5


@pytest.mark.parametrize("trace", ["elb_request_count", "elb", "elb_request_count.csv"])
def test_a_trace_is_left_out_by_each_of_its_names(trace):
    settings = load(replay={"trace": trace})
    assert "elb" not in {one.name for one in training_set.loads_of_others(settings, "word_count")}


def test_a_newcomer_does_not_learn_from_the_series_of_which_it_has_the_first_days():
    settings = load(replay={"newcomer": {"job": "ride_count", "trace": "taxi 15min"}})
    known, without = (
        {one.name for one in training_set.loads_of_others(settings, job)} for job in ("orders", "ride_count")
    )
    assert known - without == {"taxi"} and {"iot", "wiki_en"} <= without  # at no step


def test_nothing_is_learned_from_the_parts_on_which_policies_are_tuned_and_judged():
    series = Series(0.0, 300.0, np.arange(4000.0) + 1)
    setup = twin_setup(load(), CONTRACT, twin_from_contract(CONTRACT))
    tune, _ = split_trace("orders", series, setup)
    learned = training_set.TrainingSet(CONTRACT, SimpleNamespace(series=series), setup, "").training_loads()[0]
    assert 0 < learned.values.max() == series.values[tune.start - 1]


def test_champion_and_challenger_are_tuned_alike(monkeypatch):
    seen = []
    monkeypatch.setattr(training_set, "forecast_trace", lambda *case: {})
    monkeypatch.setattr(training_set, "run_benchmark", lambda cases, setup, found, effort: [seen.extend(found)])
    taught = SimpleNamespace(contract=Contract(job="orders"), source=SimpleNamespace(series=None), setup=Setup())
    training_set.compare_policies(taught, agent(2), agent(3), SimpleNamespace(knobs=2, seeds=1))
    new, present = (next(one for one in seen if one.name == name) for name in ("dqn", "champion"))
    assert (present.axes, present.setting, present.forecaster) == (new.axes, new.setting, new.forecaster) and new.axes
    assert present.policy == "dqn" and present.learned is not new.learned
    assert present.beside == new.beside == (2.0,)
    assert {one.beside for one in seen if one.policy != "dqn"} == {()}


def test_the_fewest_transitions_that_settings_allow_teach_something():
    """Before the first update so many decisions of all runs are made as a return has steps."""
    for name, length in (("transitions", TrainingLength()), ("fine_transitions", FINE)):
        (least,) = (bound.ge for bound in AgentTraining.model_fields[name].metadata)
        assert (length.learner.steps - 1) * length.groups * length.runs < least
        with pytest.raises(ValidationError):
            AgentTraining(**{name: least - 1})


def test_fewer_than_three_seeds_are_refused():
    with pytest.raises(ValidationError, match="greater than or equal to 3"):
        AgentTraining(seeds=2)
