"""Our Adam changes weights as torch's own optimizers do, and needs no compiler for it as they do."""

import sys

import numpy as np
import pytest
import torch

from models.forecast.core.forecaster import Task
from models.forecast.core.series import Series
from models.forecast.neural.adam import Adam
from models.forecast.neural.training import Epoch, TrainingPlan, fit_network


def weights():
    generator = torch.Generator().manual_seed(1)
    return [torch.nn.Parameter(torch.randn(shape, generator=generator)) for shape in ((3, 2), (4,), (1,))]


@pytest.mark.parametrize(("decay", "fused"), [(0.0, False), (0.0, True), (0.01, False)])
def test_it_steps_as_torch_s_own_bit_for_bit(decay, fused):
    mine, theirs, generator = weights(), weights(), torch.Generator().manual_seed(2)
    ours = Adam(mine, 0.1, decay, fused)
    own = (torch.optim.AdamW if decay else torch.optim.Adam)(theirs, lr=0.1, weight_decay=decay, fused=fused)
    for step in range(5):
        ours.rate = own.param_groups[0]["lr"] = 0.1 / (1 + step)
        for at, (one, other) in enumerate(zip(mine, theirs, strict=True)):
            gradient = torch.randn(one.shape, generator=generator)
            one.grad, other.grad = (None, None) if at == step == 1 else (gradient.clone(), gradient.clone())
        ours.step()
        own.step()
        assert all(torch.equal(one, other) for one, other in zip(mine, theirs, strict=True))
    assert not any(torch.equal(one, first) for one, first in zip(mine, weights(), strict=True))


def test_a_training_does_without_torch_s_compiler(monkeypatch):
    """It takes seconds of CPU to import, in each process that trains."""
    monkeypatch.setitem(sys.modules, "torch._dynamo", None)  # whoever imports it now fails
    load, epochs = Series(0.0, 3600.0, 100 + 50 * np.sin(np.arange(400.0) / 4)), list[Epoch]()
    plan = TrainingPlan(epochs=1)
    fit_network("gru", Task(3600.0, 3, (0.1, 0.5, 0.9)), load, plan, hidden=4, on_epoch=epochs.append)
    assert epochs[1].updates > 0
