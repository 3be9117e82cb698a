"""A policy whose knob follows the promise: what a late second moves, where it ends, and what the long run comes to."""

import json
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from configs.contract import Contract, Executors
from models.policy.catalogue import build, build_steered
from models.policy.core import carried
from models.policy.core.choice import Choice, Why, make_choice
from models.policy.core.policy import Rule, decide
from models.policy.core.steered import FASTEST, FLOOR_RUNGS, RUNGS_PER_LEAD, Steered
from tests.fakes.views import a_view

LADDER = np.array([0.0, 1.0, 2.0, 4.0])
CONTRACT = Contract(job="j", error_budget=0.05)


@dataclass(frozen=True, eq=False)
class Asks(Rule):
    """Asks for as many executors as its knob says."""

    wanted: object
    knob: ClassVar[str] = "wanted"

    def fresh(self, runs):
        return {"seen": np.zeros(runs)}

    def decide(self, memory, view) -> tuple[dict, Choice]:
        return {"seen": memory["seen"] + 1}, make_choice(np.broadcast_to(self.wanted, view.runs).astype(float))


def steered(budget=0.1, lead_s=10.0, first=1.0):
    return Steered.of(Asks("asks", first), LADDER, budget, lead_s)


def moved(policy, looks, runs=1, **seen):
    """The place on the ladder, and the choice, after looks of (late, counted) seconds."""
    memory, choice = policy.fresh(runs), None
    for late, counted in looks:
        memory, choice = decide(policy, memory, a_view(runs, late_s=late, counted_s=counted, **seen))
    return memory["rung"], choice


def test_late_seconds_raise_the_strictness_and_production_lowers_it_by_the_budgets_share():
    place, _ = moved(steered(), [(2.0, 5.0)])
    assert place[0] == pytest.approx(1 + RUNGS_PER_LEAD * (2.0 - 0.1 * 5.0) / 10)
    assert moved(steered(), [(2.0, 5.0), (0.0, 15.0)])[0][0] == pytest.approx(1.0)  # paid back exactly


def test_the_knob_lies_between_the_values_of_the_ladder():
    policy = steered()
    assert policy.knob_at(np.array([0.0, 1.0, 2.5, 3.0, 9.0])).tolist() == [0.0, 1.0, 3.0, 4.0, 4.0]
    place, choice = moved(steered(first=2.0), [(np.nan, np.nan)])
    assert place[0] == 2.0 and choice.target[0] == 2


def test_a_ladder_may_fall_and_what_lies_beyond_it_begins_at_its_end():
    falling = Steered.of(Asks("asks", 0.5), np.array([1.4, 0.9, 0.3]), 0.1, 10.0)
    assert falling.start == pytest.approx(1 + 0.4 / 0.6) and falling.knob_at(np.array([falling.start]))[0] == 0.5
    beyond = Steered.of(Asks("asks", 7.0), LADDER, 0.1, 10.0)
    assert beyond.start == 3.0 and beyond.knob_at(np.array([3.0]))[0] == LADDER[-1]
    with pytest.raises(ValueError, match="rise, or fall"):
        Steered.of(Asks("asks", 1.0), np.array([1.0, 3.0, 2.0]), 0.1, 10.0)


def test_above_the_strictest_knob_the_fewest_executors_rise_to_the_most_and_it_says_so():
    place, choice = moved(steered(), [(1e9, 1e9)] * 10)
    assert place[0] == len(LADDER) - 1 + FLOOR_RUNGS + FASTEST
    assert choice.target[0] == 20 and Why.PROMISE in Why(int(choice.why[0]))
    _, halfway = moved(steered(), [(1e9, 0.0)] * 4)  # FASTEST rungs at once, from rung 1 to two above the knob's last
    assert halfway.target[0] == np.ceil(1 + 19 * 2 / FLOOR_RUNGS)


def test_a_floor_begins_executors_that_slow_each_other_down_in_turns():
    """Sixteen at once would all be of use after 16 leads, where one after the other each leaves one missing less."""
    planning = CONTRACT.planning.model_copy(update={"start_growth": 1.0, "lead_s": 10.0})
    contract = CONTRACT.model_copy(update={"planning": planning, "executors": Executors(max=20)})
    strictest = {"rung": np.array([7 + FLOOR_RUNGS])}
    seen = {"arrival_rps": 100.0, "lag_records": 0.0, "executors": 4.0, "target": 4.0}

    def asked(contract, **more):
        policy = build_steered("mpc", contract)
        _, choice = decide(policy, policy.fresh(1) | strictest, a_view(**seen | more))
        assert Why.PROMISE in Why(int(choice.why[0]))
        return choice.target[0]

    assert asked(contract) == 5
    assert asked(contract, target=5.0, starting=1.0, since_raise_s=5.0) == 5  # not before that one should work
    assert asked(contract, executors=5.0, target=5.0) == 6
    alone = contract.planned_for(10.0, 0.0)
    assert asked(alone) == 20 and asked(contract.planned_for(10.0, 0.3)) == 20
    assert asked(alone.model_copy(update={"planning": alone.planning.model_copy(update={"max_step_up": 3})})) == 7
    assert asked(contract, target=20.0, executors=20.0) == 20  # and what is there is kept


@pytest.mark.parametrize("late, counted", [(1e12, 1e12), (np.inf, np.inf), (0.0, 1e12), (np.nan, np.nan), (-5.0, -5.0)])
def test_nothing_makes_the_strictness_run_away(late, counted):
    """A clock that jumped, a week without load, a latency from the future: one look moves it by one rung at most."""
    place, _ = moved(steered(), [(late, counted)])
    assert 1 - FASTEST <= place[0] <= 1 + FASTEST
    assert 0 <= moved(steered(), [(late, counted)] * 50)[0][0] <= len(LADDER) - 1 + FLOOR_RUNGS + FASTEST


@given(st.lists(st.tuples(st.floats(0, 1), st.sampled_from([0.5, 5.0, 15.0])), min_size=1, max_size=60))
def test_what_it_has_risen_is_what_was_late_beyond_the_budget(looks):
    """While no end stops it; with ends it is at most that much below."""
    policy = replace(steered(lead_s=1e5), start=1.0)
    place, _ = moved(policy, [(share * counted, counted) for share, counted in looks])
    debt = sum(share * counted - 0.1 * counted for share, counted in looks)
    assert place[0] - 1.0 == pytest.approx(RUNGS_PER_LEAD * debt / 1e5, abs=1e-9)


def test_in_the_long_run_the_share_of_late_seconds_is_the_budget_whatever_the_load_does():
    """An adversary knows the number asked for and comes with more, whenever it can; the most executors carry it."""
    budgets = np.repeat([0.01, 0.05, 0.2], 3)
    rng, policy, runs, looks = np.random.default_rng(0), steered(budget=budgets, first=2.0), len(budgets), 6_000
    memory, late, total = policy.fresh(runs), np.zeros(runs), np.zeros(runs)
    seen = a_view(runs, counted_s=5.0)
    for _ in range(looks):
        memory, choice = decide(policy, memory, replace(seen, late_s=late))
        can = choice.target < 20  # what all of them carry is all that may come
        late = 5.0 * (can & (rng.random(runs) < 0.5))
        total += late
    share = total / (5.0 * looks)
    assert (share <= budgets + 200 / (5.0 * looks)).all()  # from its start to its strictest once
    assert (share >= budgets * 0.8).all()  # and what may be late is used


def test_what_the_promise_steers_and_what_a_contract_states():
    for name in ("reactive", "forecast", "mpc"):
        found = build_steered(name, CONTRACT)
        assert isinstance(found, Steered) and found.name == name
        assert found.first == getattr(build(name, CONTRACT), found.policy.knob)
        assert (found.knob_at(np.arange(8.0))[-1] > found.first) == (name == "mpc")
    stated = CONTRACT.model_copy(update={"planning": CONTRACT.planning.model_copy(update={"target_utilisation": 0.7})})
    assert not isinstance(build_steered("forecast", stated), Steered)
    assert isinstance(build_steered("mpc", stated), Steered)
    for name in ("static", "hpa", "flink", "keda"):
        assert not isinstance(build_steered(name, CONTRACT), Steered)


def test_without_anything_late_it_decides_as_the_policy_alone():
    for name in ("reactive", "forecast", "mpc"):
        alone, both = build(name, CONTRACT), build_steered(name, CONTRACT)
        view = a_view(3, arrival_rps=[100.0, 900.0, 3000.0])
        plain, same = (decide(one, one.fresh(3), view)[1] for one in (alone, both))
        assert plain.target.tolist() == same.target.tolist() and plain.why.tolist() == same.why.tolist()


def test_its_memory_survives_as_json():
    policy = build_steered("mpc", CONTRACT)
    memory, _ = decide(policy, policy.fresh(1), a_view(late_s=3.0, counted_s=5.0))
    again = carried.restore(json.loads(json.dumps(carried.dump(memory))), policy)
    assert {name: value.tolist() for name, value in again.items()} == {n: v.tolist() for n, v in memory.items()}


def test_it_begins_where_the_past_says_and_a_replay_that_does_not_know_of_it_follows_all_the_same():
    begun = build_steered("mpc", CONTRACT, start=1.35)
    assert begun.fresh(1)["rung"][0] == pytest.approx(4.5)  # between 1.0 and 1.7
    assert begun.knob_at(begun.fresh(1)["rung"])[0] == pytest.approx(1.35)
    assert build_steered("reactive", CONTRACT, start=9.0).fresh(1)["rung"][0] == 0  # the lenient end
    kept = json.loads(json.dumps(carried.dump(begun.fresh(1))))
    unknowing = build_steered("mpc", CONTRACT)
    place = carried.restore(kept, unknowing)["rung"]
    assert unknowing.knob_at(place) == begun.knob_at(begun.fresh(1)["rung"])
