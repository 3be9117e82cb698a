"""The state that an autoscaler's query of another release left."""

import dataclasses
import json

import pytest

from models.policy.live.memory import Memory, fresh
from pipelines.scale.pool.grants import JobGrant
from pipelines.scale.processor import Scaler
from pipelines.scale.stateful import step_from
from tests.unit.policy.test_processor import CONTRACT, NOW, forecast, metric, row
from tidecast.messages import Reject, decode

KEPT = dataclasses.asdict(fresh(CONTRACT))
STANDING = {"id": "1", "since": NOW, "executors": 2, "alike": "", "repeats": 1, "vouched": 1}
ROWS = [row("metrics", metric())]


def step(kept, policy="mpc"):
    return step_from(Scaler("orders", CONTRACT, policy, "act"), kept, ROWS, NOW + 0.2, NOW + 0.1)


def test_a_state_with_fields_of_a_newer_release_is_gone_on_with(capsys):
    done = step(json.dumps({**KEPT, "budget": [1.0]}))
    assert done == step(json.dumps(KEPT)) and capsys.readouterr().err == ""
    assert [topic for topic, _, _ in done.sent] == ["decisions", "heartbeats"]


@pytest.mark.parametrize(
    "kept",
    [
        *(json.dumps({**KEPT, **changed}) for changed in ({"model": {"slope": 1.0}}, {"past": []}, {"arrivals": None})),
        json.dumps({**KEPT, "standing": {"x": 1}}),
        *(
            json.dumps({**KEPT, "standing": {**STANDING, name: count}})
            for name in ("executors", "repeats", "vouched")
            for count in (-1, 1.5, True)
        ),
        json.dumps([KEPT]),
        "{",
        # What is read, and cannot be decided with, or not be sent.
        json.dumps({**KEPT, "carried": 5, "policy": "mpc"}),
        json.dumps({**KEPT, "forecast": ["x"]}),
        json.dumps({**KEPT, "executors": "three"}),
        json.dumps({**KEPT, "looked_at": "noon"}),
        json.dumps({**KEPT, "beat_at": "noon"}),
        # Spark would refuse to delete these timers, and end the query.
        *(json.dumps({**KEPT, "timer_ms": timer}) for timer in ("noon", 1.5, -1, 1 << 63)),
    ],
)
def test_a_state_that_cannot_be_gone_on_with_is_told_and_begun_anew(capsys, kept):
    done = step(kept)
    assert done == step(None)
    assert "orders: its state is begun anew: " in capsys.readouterr().err


def test_a_batch_that_nobody_can_have_measured_stops_no_step(capsys):
    batch = metric(kind="batch", arrival_rps=None, lag_records=None, batch_rows=(1 << 63) - 1, batch_s=1e-300)
    scaler = Scaler("orders", CONTRACT, "mpc", "act")
    done = step_from(scaler, None, [row("metrics", batch), *ROWS], NOW + 0.2, NOW + 0.1)
    assert [topic for topic, _, _ in done.sent] == ["decisions", "heartbeats"] and capsys.readouterr().err == ""


THIN = [row("forecasts", forecast(time=at, step_s=1e-320, last_rps=5.0)) for at in (0.0, 60.0)]
SLOW = [row("metrics", metric(time_scale=1e-320)), row("forecasts", forecast(time=1.0))]
"""Time scales and steps as nobody has them, from which follow numbers that no message holds."""


@pytest.mark.parametrize("target", [None, 3])
@pytest.mark.parametrize(("rows", "why"), [(THIN, "OverflowError: "), (SLOW, "MessageError: ")])
def test_records_that_no_step_can_be_made_with_are_rejected_and_end_no_query(capsys, target, rows, why):
    """The memory goes on without them."""
    kept = None if target is None else json.dumps({**KEPT, "target": target})
    scaler = Scaler("orders", CONTRACT, "mpc", "act", granted=JobGrant("shared", 3))
    done = step_from(scaler, kept, rows, NOW + 0.2, NOW + 0.1)
    assert [topic for topic, _, _ in done.sent] == ["rejects", "rejects", "heartbeats"]
    reject = decode(Reject, done.sent[0][2])
    assert reject.by == "autoscaler" and reject.reason.startswith(why)
    assert Memory.from_json(done.kept).target == target
    assert f"orders: 2 records are rejected: {why}" in capsys.readouterr().err


def test_records_are_rejected_for_what_is_wrong_with_them_where_the_state_is_damaged_too(capsys):
    scaler = Scaler("orders", CONTRACT, "mpc", "act", granted=JobGrant("shared", 3))
    done = step_from(scaler, "{", THIN, NOW + 0.2, NOW + 0.1)
    assert decode(Reject, done.sent[0][2]).reason.startswith("OverflowError: ")
    told = capsys.readouterr().err
    assert "orders: its state is begun anew: 2 records are rejected: OverflowError: " in told


def test_a_fault_that_is_not_the_states_is_not_hidden():
    class Broken(Scaler):
        def step(self, memory, rows, now, batch_s):
            raise KeyError("files")

    with pytest.raises(KeyError, match="files"):
        step_from(Broken("orders", CONTRACT, "mpc", "act"), json.dumps(KEPT), ROWS, NOW, NOW)


def test_a_memory_is_kept_whole():
    kept = step(None).kept
    for _ in range(3):
        kept = step(kept).kept
    memory = Memory.from_json(kept)
    assert memory.to_json() == kept
    whole = dataclasses.asdict(memory)
    # What no replay has set is left out, for the release before this one.
    whole["replay"] = {name: one for name, one in whole["replay"].items() if one is not None}
    assert json.loads(kept) == json.loads(json.dumps(whole))
    assert memory.standing is not None and memory.past.at  # nested values are among them
