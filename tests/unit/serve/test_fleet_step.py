"""The streaming form's step without Spark: what no sample is, is rejected, and the job goes on."""

import json

import msgspec
import pytest

from models.forecast.baselines.naive import Naive
from models.forecast.core.forecaster import Task
from pipelines.serve.models.model_set import ModelSetError, pack_model
from pipelines.serve.step.deployments import Deployment
from pipelines.serve.step.refusals import Refusals
from pipelines.serve.step.windower import OpenWindow
from pipelines.serve.stream.fleet_step import FleetState, FleetStep, model_files, read_deployment, write_model_file
from tests.fakes.forecasters import STEP, TASK
from tests.fakes.serving import BEGIN, NOW, raw

JOB = "orders"


def test_a_record_without_a_value_or_with_a_long_wrong_one_is_rejected_and_the_next_is_taken(tmp_path):
    step = FleetStep(JOB, STEP, tmp_path, {JOB}, 7)
    long = raw(JOB, BEGIN, 5.0)[:-1] + b',"cores":"many","more":"' + b"x" * 900_000 + b'"}'
    values = [None, long, raw(JOB, BEGIN, 5.0)]
    rows = [{"key": JOB, "value": v, "partition": 0, "offset": i} for i, v in enumerate(values)]
    state, out = step.process(None, rows, NOW)
    assert [topic for topic, _, _ in out] == ["rejects", "rejects", "heartbeats"]
    assert [json.loads(value)["offset"] for topic, _, value in out if topic == "rejects"] == [0, 1]
    assert max(len(value) for _, _, value in out) < 10_000
    assert FleetStep(JOB, STEP, tmp_path, {JOB}, 7).process(state, [], NOW)[0] == state


@pytest.mark.parametrize("key", [JOB, "stranger"])
def test_of_what_one_sender_has_refused_all_the_time_one_a_minute_is_told(tmp_path, key):
    told, state, refusals = [], None, Refusals()
    for second in range(150):
        row = {"key": key, "value": b'{"schema":9}', "partition": 0, "offset": second}
        step = FleetStep(key, STEP, tmp_path, {JOB}, 7, refusals=refusals)
        state, out = step.process(state, [row, {**row, "value": b"{"}], NOW + second)
        told += [(second, json.loads(value)["reason"][:6]) for _, _, value in out]
    assert told == [(at, kind) for at in (0, 60, 120) for kind in ("schema", "not JS")]


@pytest.mark.parametrize("key", ["", "x" * 300, "../orders", "/tmp", "a\x00b", "stranger"])
def test_records_under_a_key_that_is_no_jobs_name_are_rejected_and_nothing_is_kept_of_it(tmp_path, key):
    """One that failed the task would fail it again after each restart, and no job had forecasts any more."""
    row, earlier = {"key": key, "value": raw(JOB, BEGIN, 5.0)}, msgspec.msgpack.encode(FleetState(OpenWindow()))
    for before in (None, earlier):  # an earlier release kept this of any key, for good
        step = FleetStep(key, STEP, tmp_path, {JOB}, 7)
        state, out = step.process(before, [{**row, "partition": 0, "offset": 4}], NOW)
        assert [(topic, json.loads(value)["offset"]) for topic, _, value in out] == [("rejects", 4)]
        assert state is None


def test_a_job_whose_contract_is_away_keeps_its_state(tmp_path):
    row = {"key": JOB, "value": raw(JOB, BEGIN, 5.0), "partition": 0, "offset": 0}
    state, _ = FleetStep(JOB, STEP, tmp_path, {JOB}, 7).process(None, [row], NOW)
    assert state is not None and FleetStep(JOB, STEP, tmp_path, set(), 7).process(state, [row], NOW)[0] == state


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


def test_a_state_that_cannot_be_read_is_told_and_that_job_begins_anew(tmp_path, caplog):
    row = {"key": JOB, "value": raw(JOB, BEGIN, 5.0), "partition": 0, "offset": 0}
    anew = FleetStep(JOB, STEP, tmp_path, {JOB}, 7).process(None, [row], NOW)
    whole = anew[0]
    for damaged in (whole[: len(whole) // 2], b"\xc1", msgspec.msgpack.encode(["of", "another", "release"])):
        caplog.clear()
        assert FleetStep(JOB, STEP, tmp_path, {JOB}, 7).process(damaged, [row], NOW) == anew
        assert "orders" in caplog.text and "begins anew" in caplog.text


def put(folder, number, version):
    made = pack_model(Naive(TASK, seasonal=False))
    write_model_file(folder, JOB, Deployment(number, "m", version, made.digests, 0, 0, -1, STEP), dict(made.members))


def at(window, wall_s):
    record = raw(JOB, window, 5.0, 0, 2, wall_time=wall_s)  # the first half of the window
    return {"key": JOB, "value": record, "partition": 0, "offset": window}


def told(out, topic):
    return [json.loads(value) for one, _, value in out if one == topic]


def test_a_model_or_a_server_that_begins_forecasts_at_once_and_heartbeats_name_what_stands(tmp_path):
    history = [at(BEGIN + i, NOW) for i in range(40)]
    state, out = FleetStep(JOB, STEP, tmp_path, {JOB}, 7).process(None, history, NOW)
    assert told(out, "forecasts") == [] and "standing" not in told(out, "heartbeats")[0]
    put(tmp_path, 1, "1")
    versions, epochs, standing = [], [], []
    for i, epoch in ((0, 7), (1, 7), (2, 7), (3, 8), (4, 8)):  # half a window is not closed: nothing new is known
        if i == 2:
            put(tmp_path, 2, "2")
        now = NOW + 10 * i
        again = {**at(BEGIN + 39, now), "offset": 100 + i}
        state, out = FleetStep(JOB, STEP, tmp_path, {JOB}, epoch).process(state, [again], now)
        versions.append([one["version"] for one in told(out, "forecasts")])
        epochs.append([one["epoch"] for one in told(out, "forecasts")])
        standing += [one.get("standing") for one in told(out, "heartbeats")]
    assert versions == [["1"], [], ["2"], ["2"], []] and epochs == [[7], [], [7], [8], []]
    assert standing == ["7", "7", "8", "8"]  # the first of these comes within 8 s of the last one


def test_after_a_long_gap_no_forecast_is_sent_or_vouched_for_until_enough_windows_came(tmp_path):
    put(tmp_path, 1, "1")
    state, out = FleetStep(JOB, STEP, tmp_path, {JOB}, 7).process(None, [at(BEGIN + i, NOW) for i in range(40)], NOW)
    assert told(out, "forecasts")
    sent, standing = [], []
    for i in range(45, 51):  # each closes the window of the record before: 39, then 45 and on; 5 are missing
        now = NOW + 10 * (i - 44)
        state, out = FleetStep(JOB, STEP, tmp_path, {JOB}, 7).process(state, [at(BEGIN + i, now)], now)
        sent.append(len(told(out, "forecasts")))
        standing += [one.get("standing") for one in told(out, "heartbeats")]
    assert sent == [1, 0, 0, 0, 1, 1] and standing == ["7", None, None, None, "7", "7"]


def test_what_waited_at_the_start_makes_windows_and_the_first_record_of_now_a_forecast(tmp_path):
    put(tmp_path, 1, "1")
    step = FleetStep(JOB, STEP, tmp_path, {JOB}, 7, oldest_s=60.0)
    rows = [at(BEGIN + i, NOW - 100) for i in range(40)]
    state, out = step.process(None, rows, NOW)
    assert out == []
    state, out = FleetStep(JOB, STEP, tmp_path, {JOB}, 7, 60.0).process(state, [at(BEGIN + 40, NOW)], NOW)
    assert [one["time"] for one in told(out, "forecasts")] == [(BEGIN + 40) * STEP]
    assert len(msgspec.msgpack.decode(state, type=FleetState).windows) == 40


def test_after_a_stall_across_a_windows_end_the_first_record_of_now_brings_its_forecast(tmp_path):
    put(tmp_path, 1, "1")
    step = FleetStep(JOB, STEP, tmp_path, {JOB}, 7, oldest_s=60.0)
    state, out = step.process(None, [at(BEGIN + i, NOW) for i in range(40)], NOW)
    assert told(out, "forecasts")
    now = NOW + 100  # the record that closes a window has waited, the next one closes none
    later = raw(JOB, BEGIN + 40, 5.0, 1, 2, span_s=1.0, wall_time=now)
    rows = [at(BEGIN + 40, NOW + 10), {"key": JOB, "value": later, "partition": 0, "offset": BEGIN + 41}]
    waited, out = step.process(state, rows[:1], now)
    assert out == []
    for began, records in ((waited, rows[1:]), (state, rows)):
        _, out = step.process(began, records, now)
        assert [one["time"] for one in told(out, "forecasts")] == [(BEGIN + 40) * STEP]
        assert [one["standing"] for one in told(out, "heartbeats")] == ["7"]


def test_a_model_that_fails_is_not_begun_with_every_record(tmp_path, monkeypatch, caplog):
    put(tmp_path, 1, "1")
    monkeypatch.setattr("pipelines.serve.stream.fleet_step._models", {})  # none is loaded yet
    monkeypatch.setattr("pipelines.serve.stream.fleet_step.load_members", lambda members: 1 / 0)
    state = None
    for i, row in enumerate([*(at(BEGIN + i, NOW) for i in range(30)), *[at(BEGIN + 29, NOW)] * 5]):
        state, out = FleetStep(JOB, STEP, tmp_path, {JOB}, 7).process(state, [{**row, "offset": i}], NOW)
        assert told(out, "forecasts") == []
    assert len(caplog.records) == 29, "once for each window"


def test_a_damaged_file_and_a_model_that_is_no_longer_one_leave_the_query_running(tmp_path, monkeypatch, caplog):
    put(tmp_path, 1, "1")
    state, out = FleetStep(JOB, STEP, tmp_path, {JOB}, 7).process(None, [at(BEGIN + i, NOW) for i in range(40)], NOW)
    assert told(out, "forecasts")
    (tmp_path / JOB / "00000002.set").write_bytes(b"\xc1")
    state, out = FleetStep(JOB, STEP, tmp_path, {JOB}, 7).process(state, [at(BEGIN + 40, NOW)], NOW)
    assert [one["version"] for one in told(out, "forecasts")] == ["1"]
    monkeypatch.setattr("pipelines.serve.stream.fleet_step._models", {})
    monkeypatch.setattr("pipelines.serve.stream.fleet_step._load_model", lambda path, digests: 1 / 0)
    out = FleetStep(JOB, STEP, tmp_path, {JOB}, 7).process(state, [at(BEGIN + 41, NOW)], NOW)[1]
    assert told(out, "forecasts") == [] and "cannot be gone on with" in caplog.text


def found(folder, job):
    """The model of a job as a process has it, loaded where it has to be."""
    (path,) = model_files(folder, job)
    return FleetStep(job, STEP, folder, {job}, 7)._find_model(job, read_deployment(path))


def write(folder, job, made):
    write_model_file(folder, job, Deployment(1, "m", "1", made.digests, 0, 0, -1, STEP), dict(made.members))


def test_the_models_of_a_large_fleet_stay_loaded_and_equal_ones_are_one(tmp_path):
    jobs = [f"job-{i}" for i in range(300)]
    for i, job in enumerate(jobs):
        write(tmp_path, job, pack_model(Naive(Task(STEP, 3, (0.1, 0.5, 0.6 + i // 2 * 1e-3)))))
    first = [found(tmp_path, job) for job in jobs]
    assert all(found(tmp_path, job) is model for job, model in zip(jobs, first, strict=True))
    assert first[0] is first[1] and first[1] is not first[2]


def test_a_process_keeps_no_state_of_the_jobs_that_share_a_model(tmp_path):
    made = pack_model(Naive(TASK, seasonal=False))
    for job in (JOB, "rides"):
        write(tmp_path, job, made)
        rows = [{"key": job, "value": raw(job, BEGIN + i, 5.0), "partition": 0, "offset": i} for i in range(40)]
        state, out = FleetStep(job, STEP, tmp_path, {job}, 7).process(None, rows, NOW)
        assert told(out, "forecasts") and msgspec.msgpack.decode(state, type=FleetState).model_state
    assert len(found(tmp_path, JOB)) == 0


def test_a_file_with_another_model_than_it_names_is_not_served(tmp_path):
    made, other = pack_model(Naive(TASK)), pack_model(Naive(Task(STEP, 3, (0.1, 0.5, 0.55))))
    write_model_file(tmp_path, JOB, Deployment(1, "m", "1", other.digests, 0, 0, -1, STEP), dict(made.members))
    with pytest.raises(ModelSetError, match="digests"):
        found(tmp_path, JOB)


def test_a_file_that_went_after_it_was_found_is_named_with_what_brings_it_back(tmp_path):
    write(tmp_path, JOB, pack_model(Naive(Task(STEP, 3, (0.1, 0.5, 0.58)))))
    (path,) = model_files(tmp_path, JOB)
    deployment = read_deployment(path)
    path.unlink()
    with pytest.raises(ModelSetError, match=rf"^there is no model at {path}\. Write it again\.$"):
        FleetStep(JOB, STEP, tmp_path, {JOB}, 7)._find_model(JOB, deployment)
