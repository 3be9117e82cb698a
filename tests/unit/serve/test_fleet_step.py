"""The streaming form's step without Spark: what no sample is, is rejected, and the job goes on."""

import json

import msgspec

from models.forecast.baselines.naive import Naive
from pipelines.serve.models.model_set import pack_model
from pipelines.serve.step.deployments import Deployment
from pipelines.serve.stream.fleet_step import FleetState, FleetStep, write_model_file
from tests.fakes.forecasters import STEP, TASK
from tests.fakes.serving import BEGIN, NOW, raw

JOB = "orders"


def test_a_record_without_a_value_or_with_a_long_wrong_one_is_rejected_and_the_next_is_taken(tmp_path):
    step = FleetStep(JOB, STEP, tmp_path, {JOB}, 7)
    long = raw(JOB, BEGIN, 5.0)[:-1] + b',"cores":"many","more":"' + b"x" * 900_000 + b'"}'
    values = [None, long, raw(JOB, BEGIN, 5.0)]
    rows = [{"key": JOB, "value": v, "partition": 0, "offset": i} for i, v in enumerate(values)]
    state, out = step.process(None, rows, NOW)
    assert [(topic, json.loads(value)["offset"]) for topic, _, value in out] == [("rejects", 0), ("rejects", 1)]
    assert max(len(value) for _, _, value in out) < 10_000
    assert FleetStep(JOB, STEP, tmp_path, {JOB}, 7).process(state, [], NOW)[0] == state


def test_a_record_a_year_ahead_is_rejected_and_the_next_is_taken_also_after_a_restart(tmp_path):
    values = [raw(JOB, BEGIN, 5.0), raw(JOB, BEGIN + round(366 * 86_400 / STEP), 5.0)]
    state = None
    for i, value in enumerate([*values, raw(JOB, BEGIN + 1, 5.0)]):
        step = FleetStep(JOB, STEP, tmp_path, {JOB}, 7)
        state, out = step.process(state, [{"key": JOB, "value": value, "partition": 0, "offset": i}], NOW)
        assert [json.loads(value)["offset"] for topic, _, value in out if topic == "rejects"] == ([1] if i == 1 else [])


def test_a_state_that_another_release_wrote_is_begun_anew_and_the_job_goes_on(tmp_path):
    made = pack_model(Naive(TASK, seasonal=False))
    write_model_file(tmp_path, JOB, Deployment(1, "m", "1", made.digests, 0, 0, -1, STEP), dict(made.members))
    rows = [{"key": JOB, "value": raw(JOB, BEGIN + i, 5.0 + i), "partition": 0, "offset": i} for i in range(60)]
    state, said = FleetStep(JOB, STEP, tmp_path, {JOB}, 7).process(None, rows[:59], NOW)
    kept = msgspec.msgpack.decode(state, type=FleetState)
    assert kept.model_state and said
    outs = []
    for model_state in (kept.model_state, b"of another release"):
        changed = msgspec.msgpack.encode(msgspec.structs.replace(kept, model_state=model_state))
        outs.append(FleetStep(JOB, STEP, tmp_path, {JOB}, 7).process(changed, rows[59:], NOW)[1])
    assert outs[0] == outs[1] and [topic for topic, _, _ in outs[0]] == ["forecasts"]
