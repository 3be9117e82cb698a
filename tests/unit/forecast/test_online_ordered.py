import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from models.forecast.core.ordered import exchange, median, quantile

VALUES = st.lists(st.one_of(st.just(math.nan), st.floats(-1e6, 1e6), st.sampled_from([0.0, 1.0, 2.0])), max_size=60)


@settings(deadline=None)  # the first call compiles
@given(VALUES, st.integers(1, 12), st.floats(0.0, 1.0))
def test_a_window_in_order_has_the_quantiles_of_the_window(values, width, level):
    ordered, count = np.empty(width + 1), 0
    for i, value in enumerate(values):
        count = exchange(ordered, count, values[i - width] if i >= width else math.nan, value)
        window = np.array(values[max(i + 1 - width, 0) : i + 1])
        known = window[np.isfinite(window)]
        np.testing.assert_array_equal(ordered[:count], np.sort(known))
        if count:
            assert quantile(ordered, count, level) == np.quantile(known, level)
            assert median(ordered, count) == np.median(known)
        else:
            assert math.isnan(quantile(ordered, count, level)) and math.isnan(median(ordered, count))


def test_by_hand():
    ordered = np.array([1.0, 2.0, 4.0, 8.0, 0.0])
    # of 1 2 4 8 the place of 0.5 is 1.5: halfway from 2 to 4; that of 0.9 is 2.7: 4 + 0.7 · 4
    assert (quantile(ordered, 4, 0.5), median(ordered, 4), quantile(ordered, 4, 0.9)) == (
        3.0,
        3.0,
        8 - 4 * (1 - 2.7 % 1),
    )
    assert exchange(ordered, 4, 2.0, 9.0) == 4 and ordered[:4].tolist() == [1.0, 4.0, 8.0, 9.0]
    assert exchange(ordered, 4, math.nan, 0.5) == 5 and ordered.tolist() == [0.5, 1.0, 4.0, 8.0, 9.0]
    assert exchange(ordered, 5, 9.0, math.nan) == 4 and ordered[:4].tolist() == [0.5, 1.0, 4.0, 8.0]
