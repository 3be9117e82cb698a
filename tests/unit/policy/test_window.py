import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.policy.core import window

WINDOW_S = 120.0


def pushed(values, now, columns=0):
    memory = window.fresh(1, "w", columns=columns)
    for value, at in zip(values, now, strict=True):
        memory = window.push_values(memory, "w", np.array([value]), at, WINDOW_S)
    return memory


@given(
    st.lists(st.tuples(st.floats(0, 200), st.floats(-1e6, 1e6)), min_size=1, max_size=40),
)
def test_what_is_found_covers_the_window_and_up_to_an_eleventh_more(steps):
    now = np.cumsum([gap for gap, _ in steps])
    values = np.array([value for _, value in steps])
    memory = pushed(values, now)
    sure, may = now > now[-1] - WINDOW_S, now > now[-1] - WINDOW_S * 12 / 11 - 1e-6
    found = window.highest(memory, "w")[0]
    assert values[sure].max() <= found <= values[may].max()
    assert values[may].min() - 1e-6 <= window.mean(memory, "w")[0] <= values[may].max() + 1e-6


def test_an_empty_window_holds_nothing():
    memory = window.fresh(2, "w")
    assert np.isneginf(window.highest(memory, "w")).all()
    assert np.isnan(window.mean(memory, "w")).all()


def test_what_is_no_number_is_not_held_and_runs_are_apart():
    memory = window.fresh(2, "w")
    for at, values in enumerate([(1.0, np.nan), (3.0, np.nan)]):
        memory = window.push_values(memory, "w", np.array(values), float(at), WINDOW_S)
    assert window.highest(memory, "w").tolist() == [3.0, -np.inf]
    assert window.mean(memory, "w")[0] == 2.0 and np.isnan(window.mean(memory, "w")[1])


def test_several_quantities_side_by_side_each_with_its_own_least_count():
    memory = pushed([(1.0, 10.0), (3.0, np.nan)], [0.0, 1.0], columns=2)
    average = window.mean(memory, "w", np.array([2, 2]))
    assert average[0, 0] == 2.0 and np.isnan(average[0, 1])


def test_a_push_leaves_the_window_before_it_as_it_was():
    before = pushed([5.0], [0.0])
    window.push_values(before, "w", np.array([9.0]), 1.0, WINDOW_S)
    assert window.highest(before, "w")[0] == 5.0


def test_a_time_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="a time that is NaN"):
        window.push_values(window.fresh(1, "w"), "w", np.array([1.0]), np.nan, WINDOW_S)


@pytest.mark.parametrize("length", [60.0, 121.0, 1000.0])
def test_a_window_of_another_length_holds_the_highest_of_what_it_held(length):
    held = pushed([5.0, 3.0], [1e9, 1e9 + 60.0])
    begun = window.begin_anew(held, "w", 1e9 + 100.0, length)
    for at, highest in ((99.0 + length, 5.0), (101.0 + length * 12 / 11, 1.0)):
        memory = window.push_values(begun, "w", np.array([1.0]), 1e9 + at, length)
        assert window.highest(memory, "w")[0] == highest
    assert np.isneginf(window.highest(window.begin_anew(window.fresh(1, "w"), "w", 0.0, length), "w")).all()


@pytest.mark.parametrize("gone", [131.0, 1e9])
def test_after_a_long_pause_all_is_forgotten(gone):
    memory = window.push_values(pushed([5.0], [0.0]), "w", np.array([1.0]), gone, WINDOW_S)
    assert window.highest(memory, "w")[0] == window.mean(memory, "w")[0] == 1.0


def test_runs_may_have_windows_of_their_own_lengths():
    lengths, rng = np.array([30.0, 120.0, 300.0]), np.random.default_rng(0)
    together, alone = window.fresh(3, "w"), [window.fresh(1, "w") for _ in lengths]
    for at in np.cumsum(rng.choice([0.0, 1.0, 15.0, 40.0, 500.0], 60)):
        values = rng.normal(size=3)
        together = window.push_values(together, "w", values, at, lengths)
        alone = [window.push_values(one, "w", values[[i]], at, lengths[i]) for i, one in enumerate(alone)]
        for i, one in enumerate(alone):
            assert window.highest(together, "w")[i] == window.highest(one, "w")[0]
            assert window.mean(together, "w")[i] == pytest.approx(window.mean(one, "w")[0], rel=1e-12)
