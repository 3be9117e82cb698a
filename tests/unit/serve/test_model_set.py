"""What is said while an adapted network is packed."""

import warnings

import pytest
import torch

from pipelines.serve.models.model_set import pack_model
from tests.fakes.forecasters import KINDS


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
