import math

import numpy as np
import pytest

from models.forecast.core.bootstrap import ratio_bound
from models.forecast.selection.gate import Rival, decide_promotion

LOAD = 1 + np.random.default_rng(1).random(200)
LUCK = np.random.default_rng(2).normal(size=200)


@pytest.mark.parametrize(
    ("cost", "rivals", "promoted", "word"),
    [
        (1.0, {"champion": Rival(2.0, 0.6)}, True, "the champion's 2"),
        (1.9, {"champion": Rival(2.0, 1.02)}, False, "at most 1.020 of it, 1 allowed"),
        (1.95, {"champion": Rival(2.0, 0.98, 0.95)}, False, "0.95 allowed"),
        (1.0, {"champion": Rival(2.0, 0.6), "naive": Rival(0.9, 1.2)}, False, "the naive's 0.9"),
        (1.0, {}, True, "nobody to compare with"),
        (1.0, {"champion": Rival(math.nan, math.nan)}, True, "nobody to compare with"),
        (1.0, {"champion": Rival(2.0, math.nan)}, False, "nan"),
        (math.nan, {"champion": Rival(2.0, 0.5)}, False, "no cost (nan)"),
        (math.inf, {}, False, "no cost (inf)"),
    ],
)
def test_a_challenger_keeps_to_every_rival_or_does_not_serve(cost, rivals, promoted, word):
    found = decide_promotion(cost, rivals)
    assert found.promoted is promoted and word in found.reason


def test_better_by_luck_is_not_surely_better():
    lucky = LOAD * (1 + 0.3 * LUCK - 0.3 * LUCK.mean() - 0.005)
    assert lucky.mean() < 1.01 * LOAD.mean() and ratio_bound(lucky, LOAD) > 1
    assert not decide_promotion(lucky.mean(), {"champion": Rival.compare(lucky, LOAD, 1.0)}).promoted
    assert decide_promotion(1.0, {"champion": Rival.compare(0.9 * LOAD, LOAD, 1.0)}).promoted


def test_among_many_rivals_more_is_asked_of_one():
    close = LOAD * (1 + 0.1 * LUCK - 0.1 * LUCK.mean() - 0.02)
    assert ratio_bound(close, LOAD, rivals=20) > ratio_bound(close, LOAD) > (close.mean() / LOAD.mean())


def test_neighbouring_errors_are_no_independent_witnesses():
    slow = np.repeat(LUCK[:10], 20)
    together, apart = (LOAD * (1 + 0.2 * (noise - noise.mean()) - 0.03) for noise in (slow, LUCK))
    assert ratio_bound(together, LOAD) > ratio_bound(apart, LOAD)


@pytest.mark.parametrize("mine", [9.0, math.nan])
def test_of_one_pair_nothing_is_sure(mine):
    found = Rival.compare(np.array([mine]), np.array([10.0]), 1.0)
    assert math.isnan(found.ratio_bound) and found.max_ratio == 1.0


def test_on_a_load_of_zeros_nobody_is_better():
    nothing = np.zeros(48)
    assert not decide_promotion(0.0, {"champion": Rival.compare(nothing, nothing, 1 - 1e-9)}).promoted
    assert decide_promotion(0.0, {"seasonal naive forecast": Rival.compare(nothing, nothing, 1.0)}).promoted
