"""What is said while an adapted network is packed, and which forecaster cannot serve."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from pipelines.serve.models.model_set import ModelSet, ModelSetError, check_can_serve, pack_model
from tests.fakes.forecasters import KINDS, STEP, series


def test_of_what_torch_warns_of_only_the_cells_weights_are_passed_over(monkeypatch):
    save = torch.export.save

    def speak(*exported):
        warnings.warn("of another kind", stacklevel=1)
        save(*exported)

    monkeypatch.setattr(torch.export, "save", speak)
    with pytest.warns(UserWarning) as said:
        pack_model(KINDS["adapted"]())
    told = [str(one.message) for one in said if one.category is UserWarning]  # others may be of what earlier tests left
    assert told == ["of another kind"]


def check(quantiles=((1.0,), (2.0,), (3.0,)), basis="model", step_s=STEP):
    track = SimpleNamespace(quantiles=np.array(quantiles), basis=lambda: basis)
    made = SimpleNamespace(step_s=step_s, horizon=3, levels=(0.5,), begin=lambda recent: track)
    check_can_serve(ModelSet({}, made), "orders 1", STEP, series(30))


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"step_s": 2 * STEP}, r"^orders 1 has 7200 s steps, training\.step_s is 3600\. Retrain it\.$"),
        ({"quantiles": [[1.0], [2.0]]}, r"^orders 1 says \(2, 1\), not \(3, 1\)$"),
        ({"quantiles": [[1.0], [np.nan], [3.0]]}, "^orders 1 says nan on the newest windows$"),
        ({"quantiles": [[1.0], [2.0], [np.inf]]}, "^orders 1 says inf on the newest windows$"),
    ],
)
def test_a_forecaster_that_cannot_serve_is_refused_in_words(wrong, told):
    check()
    with pytest.raises(ModelSetError, match=told):
        check(**wrong)


def test_where_a_forecast_rests_on_no_value_it_may_hold_none():
    check([[np.nan]] * 3, basis="none")


def test_a_forecaster_that_fails_on_the_newest_windows_is_refused_with_its_error():
    def begin(recent):
        raise RuntimeError("no such weight")

    made = SimpleNamespace(step_s=STEP, horizon=3, levels=(0.5,), begin=begin)
    with pytest.raises(ModelSetError, match=r"^orders 1 fails on the newest 30 windows: RuntimeError\('no such weight"):
        check_can_serve(ModelSet({}, made), "orders 1", STEP, series(30))
