import json

import numpy as np
import pytest

from configs.errors import SettingsError
from models.forecast.core.forecaster import Task
from models.forecast.core.series import Series
from models.forecast.selection.backtest import roll
from models.forecast.selection.catalogue import CATALOGUE, NAIVE, default_kind, select_kinds
from models.forecast.selection.champion import choose_champion
from models.kinds import describe, revive

TASK = Task(3600.0, 3, (0.1, 0.5, 0.9))
DAYS = 7


def load():
    times = np.arange(24 * DAYS)
    noise = np.random.default_rng(3).normal(0, 3, len(times))
    return Series(0.0, 3600.0, 100 + 50 * np.sin(2 * np.pi * times / 24) + noise)


@pytest.fixture(scope="module")
def fitted():
    older, _ = load().split(24)
    return {name: fit(TASK, older) for name, fit in CATALOGUE.items()}


def test_every_name_makes_a_forecaster_that_can_be_kept_as_data(fitted):
    for name, forecaster in fitted.items():
        described = json.loads(json.dumps(describe(forecaster)))
        again = revive(described)
        assert again.kind == forecaster.kind, name
        older, _ = load().split(24)
        np.testing.assert_allclose(again.begin(older).quantiles, forecaster.begin(older).quantiles)


def test_everything_fitted_beats_the_last_value_on_a_clean_day(fitted):
    older, held = load().split(24)
    errors = {name: roll(forecaster, older, held).scores()["rmse_h1"] for name, forecaster in fitted.items()}
    for name in set(CATALOGUE) - set(NAIVE):
        assert errors[name] < errors["last_value"], name


def test_names():
    assert select_kinds(["theta", "ets", "theta"]) == ["ets", "theta"]
    assert select_kinds(["all"]) == list(CATALOGUE)
    with pytest.raises(SettingsError, match=r"'oracle' is unknown.*last_value, yesterday"):
        select_kinds(["oracle"])


def test_all_kinds_on_a_history_too_short_for_some_leave_the_default():
    """Nothing can be compared on 30 steps; a kind that cannot be fitted to them must not stop the others."""
    short, _ = load().split(len(load()) - 30)
    chosen = choose_champion(TASK, short, CATALOGUE, default_kind(["all"]))
    assert (chosen.name, chosen.forecaster.kind) == ("networked_blend", "blend")
    assert default_kind(["gru", "ridge"]) == "gru" and default_kind(["ridge", "blend"]) == "blend"
