"""The state that an autoscaler's query of another release left."""

import dataclasses
import json

import pytest

from models.policy.live.memory import fresh
from pipelines.scale.stateful import read_memory
from tests.unit.policy.test_processor import CONTRACT

KEPT = dataclasses.asdict(fresh(CONTRACT))


def test_a_state_with_fields_of_a_newer_release_is_read():
    assert read_memory("orders", json.dumps({**KEPT, "budget": [1.0]})) == fresh(CONTRACT)


@pytest.mark.parametrize(
    "kept",
    [
        *(json.dumps({**KEPT, **changed}) for changed in ({"model": {"slope": 1.0}}, {"past": []}, {"arrivals": None})),
        json.dumps({**KEPT, "standing": {"x": 1}}),
        json.dumps([KEPT]),
        "{",
    ],
)
def test_a_state_that_cannot_be_read_is_told_and_begun_anew(capsys, kept):
    assert read_memory("orders", kept) is None
    assert "orders: its state is begun anew: " in capsys.readouterr().err
