import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.policy.core import carried
from models.policy.core.choice import make_choice


class Keeper:
    """A policy that carries what it is told to."""

    name = "keeper"

    def __init__(self, shapes):
        self.shapes = shapes

    def fresh(self, runs):
        return {name: np.zeros((runs, *shape)) for name, shape in self.shapes.items()}

    def decide(self, memory, view):
        return memory, make_choice(view.target)


def through_json(memory):
    return json.loads(json.dumps(carried.dump(memory), allow_nan=False))


@given(st.lists(st.floats(), min_size=6, max_size=6))
def test_every_number_comes_back_bit_for_bit(values):
    memory = {
        "at": np.array(values[:1]), "window_0": np.array(values[1:2]), "window_1": np.array(values[2:3]),
        "table": np.array([[values[3:5], values[4:6]]]), "odd_7": np.array(values[5:6]),
    }  # fmt: skip
    back = carried.restore(through_json(memory), Keeper({name: a.shape[1:] for name, a in memory.items()}))
    assert list(back) == list(memory)
    for name, array in memory.items():
        same = (back[name] == array) & (np.signbit(back[name]) == np.signbit(array))
        assert (same | (np.isnan(back[name]) & np.isnan(array))).all()


def test_whole_numbers_are_written_short_and_the_older_form_of_a_window_is_read():
    memory = {"need_max": np.array([[-math.inf, *[3.0] * 10]])}
    assert carried.dump(memory) == {"need_max": ["-inf", *[3] * 10]}
    old = carried.restore({"need_max_*": ["-inf", *[3] * 10]}, Keeper({"need_max": (11,)}))
    assert old["need_max"].tolist() == memory["need_max"].tolist()


@pytest.mark.parametrize("now", [{"other": ()}, {"at": (2,)}, {}])
def test_another_shape_begins_afresh(now):
    back = carried.restore(through_json({"at": np.array([5.0])}), Keeper(now))
    assert set(back) == set(now) and all((array == 0).all() for array in back.values())
