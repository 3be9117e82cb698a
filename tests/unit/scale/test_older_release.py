"""What an older release left on the topics and in the autoscaler's state is read, and gone on with.

`older_release.json.gz` is of a stack of the release it names, whose job was scaled: records of every topic as they lay
there (no key signed them), the memory of the job that the autoscaler of that release made of the first ones, as JSON as
its state holds it, the wall time of that, and records that came after it.
"""

import gzip
import json
from pathlib import Path

import pytest
import yaml

from configs.contract import Contract
from models.policy.live.memory import Memory
from pipelines.scale.processor import Scaler
from pipelines.scale.stateful import step_from
from tidecast.messages import ContractText, Decision, Forecast, Heartbeat, MetricSample, Outcome, decode

LEFT = json.loads(gzip.decompress((Path(__file__).parents[1] / "data" / "older_release.json.gz").read_bytes()))
KINDS = {
    "metrics": MetricSample, "forecasts": Forecast, "decisions": Decision, "outcomes": Outcome,
    "heartbeats": Heartbeat, "contracts": ContractText,
}  # fmt: skip
CONTRACT = Contract(**yaml.safe_load(LEFT["contract"]))
SCALER = Scaler(CONTRACT.job, CONTRACT, "mpc", "act")


@pytest.mark.parametrize("topic", KINDS)
def test_records_of_an_older_release_are_read_with_all_that_they_say(topic):
    for value in LEFT["messages"][topic]:
        read, told = decode(KINDS[topic], value.encode()), json.loads(value)
        assert {name: getattr(read, name) for name in told if hasattr(read, name)} == told


def test_the_state_of_an_older_release_is_gone_on_with(capsys):
    before, steps = json.loads(LEFT["memory"]), []
    kept, now = LEFT["memory"], LEFT["now"]
    for number, (topic, value) in enumerate(LEFT["after"]):
        now = max(now, json.loads(value)["wall_time"] + 0.3)
        row = {"topic": topic, "partition": 0, "offset": number, "value": value.encode()}
        done = step_from(SCALER, kept, [row], now, now)
        steps, kept = [*steps, *done.sent], done.kept
    assert "begun anew" not in capsys.readouterr().err
    assert {topic for topic, _, _ in steps} <= {"decisions", "heartbeats"}  # nothing is rejected
    decided = [decode(Decision, value.encode()) for topic, _, value in steps if topic == "decisions"]
    beats = [value for topic, _, value in steps if topic == "heartbeats"]
    assert decided or beats
    after = json.loads(kept)
    assert after["lead"]["settled"][: len(before["lead"]["settled"])] == before["lead"]["settled"]
    assert after["lead"]["lead"]["starts"] >= before["lead"]["lead"]["starts"] > 0  # raises that it has learned from
    assert isinstance(Memory.from_json(kept), Memory)
    for part in ("replay", "model", "batches", "lead", "account", "past"):  # of which a release refuses unknown fields
        assert {*after[part]} <= {*before[part]}, f"the way back begins the job's state anew for {part}"


def test_what_was_learned_is_not_begun_anew_at_the_first_step():
    topic, value = next((t, v) for t, v in LEFT["after"] if t == "metrics")
    row = {"topic": topic, "partition": 0, "offset": 0, "value": value.encode()}
    now = json.loads(value)["wall_time"] + 0.3
    went_on, anew = (json.loads(step_from(SCALER, kept, [row], now, now).kept) for kept in (LEFT["memory"], None))
    before = json.loads(LEFT["memory"])
    for learned in ("lead", "account"):
        assert anew[learned] != before[learned]
    assert went_on["lead"] == before["lead"] and went_on["target"] is not None
