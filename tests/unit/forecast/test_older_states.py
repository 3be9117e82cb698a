"""What an older version of this code kept: its models are read and say the same, its states are refused by name."""

import base64
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from models.forecast.core.series import Series
from models.forecast.neural.cells import CELLS
from models.forecast.neural.recurrent import Recurrent
from models.forecast.neural.windows import PastWindow
from models.forecast.online import Online, OnlineError
from models.kinds import describe, revive

OLDER = json.loads(Path(__file__).with_name("older_states.json").read_text())
HISTORY = Series(0.0, OLDER["step_s"], np.array(OLDER["values"]))
NAMES = [kept["described"]["kind"] for kept in OLDER["kinds"]]


def revived(described):
    if described["kind"] not in CELLS:
        return revive(described)
    task = revive({**described, "kind": "blend"}).task
    return revive(described, Recurrent(PastWindow(task, described["season"]), "gru", 4, torch.Generator()).eval())


@pytest.mark.parametrize("kept", OLDER["kinds"], ids=NAMES)
def test_an_older_model_is_read_and_says_what_it_said(kept):
    forecaster = revived(kept["described"])
    described = json.loads(json.dumps(describe(forecaster)))
    assert described == kept["described"] or described["kind"] in CELLS  # whose weights were kept apart then
    online = Online(forecaster)
    online.admit("a", HISTORY)
    assert np.isfinite(online.current("a")).all()
    if kept["said"] is not None:
        np.testing.assert_allclose(online.current("a"), kept["said"], rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize(
    "kept", [kept for kept in OLDER["kinds"] if kept["state"]], ids=lambda k: k["described"]["kind"]
)
def test_an_older_state_is_refused_and_says_what_to_do(kept):
    online = Online(revived(kept["described"]))
    with pytest.raises(OnlineError, match=r"the state has form 1, this code reads 2\. Admit the job on its history"):
        online.restore("a", base64.b64decode(kept["state"]), HISTORY)
    assert "a" not in online
