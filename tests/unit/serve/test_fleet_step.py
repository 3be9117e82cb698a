"""The streaming form's step without Spark: what no sample is, is rejected, and the job goes on."""

import json

from pipelines.serve.stream.fleet_step import FleetStep
from tests.fakes.forecasters import STEP
from tests.fakes.serving import BEGIN, NOW, raw

JOB = "orders"


def test_a_record_without_a_value_or_with_a_long_wrong_one_is_rejected_and_the_next_is_taken(tmp_path):
    step = FleetStep(JOB, STEP, tmp_path, {JOB}, 7)
    long = raw(JOB, BEGIN, 5.0)[:-1] + b',"cores":"many","more":"' + b"x" * 900_000 + b'"}'
    values = [None, long, raw(JOB, BEGIN, 5.0)]
    rows = [{"key": JOB, "value": v, "partition": 0, "offset": i} for i, v in enumerate(values)]
    state, out = step.take(None, rows, NOW)
    assert [(topic, json.loads(value)["offset"]) for topic, _, value in out] == [("rejects", 0), ("rejects", 1)]
    assert max(len(value) for _, _, value in out) < 10_000
    assert FleetStep(JOB, STEP, tmp_path, {JOB}, 7).take(state, [], NOW)[0] == state


def test_a_record_a_year_ahead_is_rejected_and_the_next_is_taken_also_after_a_restart(tmp_path):
    values = [raw(JOB, BEGIN, 5.0), raw(JOB, BEGIN + round(366 * 86_400 / STEP), 5.0)]
    state = None
    for i, value in enumerate([*values, raw(JOB, BEGIN + 1, 5.0)]):
        step = FleetStep(JOB, STEP, tmp_path, {JOB}, 7)
        state, out = step.take(state, [{"key": JOB, "value": value, "partition": 0, "offset": i}], NOW)
        assert [json.loads(value)["offset"] for topic, _, value in out if topic == "rejects"] == ([1] if i == 1 else [])
