import math
import random
from itertools import pairwise

import pytest

from models.contract.slow.configurations import Configurations, advance_configurations, score


def run(rewards, intervals, feasible=None, known=None, seed=1, recovering=lambda n: False):
    chance = random.Random(seed)
    known, ran = known or Configurations.untried(list(rewards)), []
    for n in range(intervals):
        ran.append(known.running)
        reward = rewards[known.running] + 0.1 * chance.gauss(0, 1)
        known = advance_configurations(known, reward, set(rewards) if feasible is None else feasible, recovering(n))
    return ran, known


def test_score_by_hand():
    known = Configurations(("a", "b", "c"), (30, 10, 0), (0.5, 0.6, 0.0))
    assert score(known, 0) == pytest.approx(0.5 + 0.5 * math.sqrt(2 * math.log(40) / 30))
    assert (
        score(known, 1) == pytest.approx(0.6 + 0.5 * math.sqrt(2 * math.log(40) / 10)) and score(known, 2) == math.inf
    )


def test_each_is_tried_once_and_the_best_runs_most():
    ran, known = run({"a": 0.2, "b": 1.0, "c": 0.5}, 3000)
    assert ran[:30] == ["a"] * 30 and {ran[30], ran[60]} == {"b", "c"}
    assert ran.count("b") > 2000 and known.means[1] == pytest.approx(1.0, abs=0.02) and sum(known.counts) == 3000


def test_a_configuration_is_kept_for_thirty_intervals():
    ran, _ = run({"a": 0.5, "b": 0.5, "c": 0.5}, 2000)
    changes = [at for at, (before, after) in enumerate(pairwise(ran), start=1) if before != after]
    assert len(changes) > 2 and all(after - before >= 30 for before, after in pairwise([0, *changes]))


def test_only_what_keeps_the_limits_is_chosen():
    ran, _ = run({"a": 0.1, "b": 1.0, "c": 0.5}, 300, feasible={"a", "c"})
    assert set(ran) == {"a", "c"}
    assert set(run({"a": 0.1, "b": 1.0}, 300, feasible=set())[0]) == {"a"}  # nothing to change to
    left, _ = run({"a": 0.1, "b": 1.0}, 100, feasible={"b"})
    assert left[30:] == ["b"] * 70


def test_nothing_is_changed_during_a_recovery():
    ran, known = run({"a": 0.1, "b": 1.0}, 100, recovering=lambda n: True)
    assert set(ran) == {"a"} and known.dwelt == 100


def test_a_reward_that_is_not_a_number_is_not_counted():
    known = advance_configurations(Configurations.untried(["a", "b"]), math.nan, {"a", "b"})
    assert known.counts == (0, 0) and known.dwelt == 1


@pytest.mark.parametrize("names", [[], ["a", "a"], [str(n) for n in range(9)]])
def test_names_that_cannot_be_told_apart_or_are_too_many(names):
    with pytest.raises(ValueError, match="1 to 8 that differ"):
        Configurations.untried(names)
