"""A network that is stepped says what it says of the whole history at once; older releases' states are gone on with."""

from dataclasses import replace

import numpy as np
import pytest
from online_cases import NETWORKS, forecaster, load, series, spoilt

from models.forecast.online import Online


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("seed", [1, 2])
def test_carried_from_step_to_step_it_is_the_pass_over_the_history(name, seed):
    values = spoilt(load(700, seed), seed)
    made, online = forecaster(name), Online(forecaster(name))
    online.admit("a", series(values[:300]))
    said = [online.step("a", value) for value in values[300:]]
    for end in (301, 420, 700):
        whole = made.quantiles_of(made.state_after(series(values[:end])))
        np.testing.assert_allclose(said[end - 301], whole, rtol=1e-9, atol=1e-9 * np.nanmax(values))
    hidden = online._jobs["a"].kept.carried.hidden
    np.testing.assert_allclose(hidden, made.state_after(series(values)).carried.hidden, atol=1e-9)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_hidden_state_kept_in_single_precision_is_gone_on_with(name):
    made, values = forecaster(name), load(260, 4)
    state = made.state_after(series(values))
    single = replace(state, carried=state.carried._replace(hidden=state.carried.hidden.astype(np.float32)))
    after, said = made.step(single, 90.0)
    assert after.carried.hidden.dtype == np.float64
    np.testing.assert_allclose(said, made.step(state, 90.0)[1], rtol=1e-5)
