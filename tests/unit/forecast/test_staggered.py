import math
from collections import Counter

import numpy as np
import pytest

from models.forecast.blend.lags import Lags
from models.forecast.blend.ridge import AT_ONCE, BATCH, Ridge
from models.forecast.core.forecaster import Task
from tests.fakes.plain_blend.learning import Trail, follow, turns, unseen, untaught
from tests.fakes.plain_blend.reading import gather

PARTS = [3, 3, 2, 3]
LAGS = Lags(Task(3600.0, 6, (0.5,)))
RIDGE = Ridge(LAGS, "none", "level", "identity")


def taken(seen, count, parts=PARTS):
    """(step, regression, part), in order."""
    by_step = turns(seen, count, parts)
    return sorted((step, i, part) for i, each in enumerate(by_step) for step, due in each.items() for part in due)


@pytest.mark.parametrize(("seen", "cycle"), [(1, 2), (127, 4), (2047, BATCH), (2047 + 64 * 1000, BATCH)])
def test_every_part_learns_once_in_a_cycle_and_no_step_has_more_than_its_share(seen, cycle):
    found = taken(seen, cycle)
    assert sorted(each[1:] for each in found) == [(i, part) for i, many in enumerate(PARTS) for part in range(many)]
    assert max(Counter(step for step, *_ in found).values()) <= math.ceil(sum(PARTS) / cycle)


def test_no_part_waits_longer_than_a_batch():
    last: dict[tuple[int, int], int] = {}
    for step, *part in taken(0, 5000):
        assert step - last.get(tuple(part), 0) <= BATCH
        last[tuple(part)] = step
    assert len(last) == sum(PARTS) and min(last.values()) >= 5000 - BATCH


def test_turns_do_not_depend_on_how_steps_are_grouped():
    one_by_one = [(at, *rest) for at in range(300) for _, *rest in taken(at, 1)]
    assert one_by_one == taken(0, 300)


def test_a_part_learns_from_every_moment_whose_outcomes_are_known_and_no_other_part_changes():
    values = 100 + np.random.default_rng(0).normal(0, 1, 60).cumsum()
    gathered = gather(LAGS, values, np.arange(60))
    trail = unseen(6, LAGS.count).extended(gathered, np.full(60, 100.0), values)
    first = untaught(RIDGE)
    assert [len(part.count) for part in first.parts] == [AT_ONCE, 6 - AT_ONCE]
    after, said = follow(RIDGE, first, trail, 0, 60, {49: [1]})
    assert [part.rows for part in after.parts] == [0, 50 - 6]
    assert np.isnan(said[:, :AT_ONCE]).all() and np.isnan(said[:49]).all()
    assert np.isfinite(said[49:, AT_ONCE:]).all()
    again, _ = follow(RIDGE, after, trail, 0, 60, {59: [0, 1]})
    assert [part.rows for part in again.parts] == [60 - 6, 60 - 6]


def test_a_trail_keeps_its_newest_moments():
    trail = Trail(np.arange(6.0).reshape(3, 2), np.arange(3.0), np.arange(3.0))
    kept = trail.extended(np.full((9, 2), 7.0), np.full(9, 8.0), np.full(9, 9.0)).newest(10)
    assert kept.gathered.shape == (10, 2) and kept.levels.tolist() == [2.0] + [8.0] * 9
    assert kept.measured[0] == 2.0 and kept.gathered[0].tolist() == [4.0, 5.0]
