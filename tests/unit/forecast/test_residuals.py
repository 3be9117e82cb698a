import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from models.forecast.core.residuals import replace_sorted

VALUES = st.lists(st.one_of(st.just(math.nan), st.floats(-1e6, 1e6), st.sampled_from([0.0, 1.0, 2.0])), max_size=60)


@settings(deadline=None)  # the first call compiles
@given(VALUES, st.integers(1, 12))
def test_a_window_stays_in_order(values, width):
    ordered, count = np.empty(width + 1), 0
    for i, value in enumerate(values):
        count = replace_sorted(ordered, count, values[i - width] if i >= width else math.nan, value)
        window = np.array(values[max(i + 1 - width, 0) : i + 1])
        known = window[np.isfinite(window)]
        np.testing.assert_array_equal(ordered[:count], np.sort(known))


def test_by_hand():
    ordered = np.array([1.0, 2.0, 4.0, 8.0, 0.0])
    assert replace_sorted(ordered, 4, 2.0, 9.0) == 4 and ordered[:4].tolist() == [1.0, 4.0, 8.0, 9.0]
    assert replace_sorted(ordered, 4, math.nan, 0.5) == 5 and ordered.tolist() == [0.5, 1.0, 4.0, 8.0, 9.0]
    assert replace_sorted(ordered, 5, 9.0, math.nan) == 4 and ordered[:4].tolist() == [0.5, 1.0, 4.0, 8.0]
