"""One event: every verdict of the seed's 6.1, by hand."""

import dataclasses
import json
import math
import shutil
import time
from contextlib import contextmanager

import msgspec
import numpy as np
import pytest

from models.forecast.baselines.naive import Naive
from models.forecast.blend.blend import Blend
from models.forecast.core.forecaster import Task
from models.forecast.core.series import Series
from models.forecast.online import Online
from models.forecast.selection.catalogue import CATALOGUE
from pipelines.serve.fast.core import CURSOR, Core, IncomingSample
from pipelines.serve.fast.reading import answer_request
from pipelines.serve.fast.restoring import ModelCache
from pipelines.serve.fast.swapping import finish_swaps, swap_model
from pipelines.serve.models.model_set import MEMBERS, ModelSetError, pack_model
from pipelines.serve.models.ready import prepare_model
from pipelines.serve.net.wire import (
    ROOM,
    Absent,
    AsOf,
    Found,
    Frontier,
    FrontierTimes,
    Get,
    Refused,
    VersionList,
    Versions,
    WhatIf,
    WireForecast,
    encode_frame,
    read_answer,
)
from pipelines.serve.step.job import ServedJob
from pipelines.serve.step.keys import (
    active_key,
    checkpoint_key,
    forecast_key,
    intent_key,
    open_window_name,
    quarantine_key,
    sample_key,
    set_prefix,
    state_key,
)
from pipelines.serve.step.records import ForecastValue, SampleValue, StateValue, decode_value, encode_value
from pipelines.serve.step.windows import warmed_steps
from pipelines.store import Store, StoreFull
from pipelines.store.writing import puts
from tests.fakes.forecasters import STEP, TASK, series
from tests.fakes.serving import BEGIN, NOW, Wire, contents, raw, sample
from tidecast.messages import Forecast, decode, encode

JOB = "orders"
KEY = forecast_key(JOB, STEP)


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "store") as opened:
        yield opened


@pytest.fixture
def core(store):
    return Core(store, STEP, {JOB, "rides"}, epoch=7)


def put(core, *samples):
    return core.process([IncomingSample(one) for one in samples], NOW)


def feed(core, first, last, rate=100.0, job=JOB):
    return [put(core, raw(job, w, rate + w % 24))[0] for w in range(first, last)]


def feed_log(core, samples):
    at = 0 if (kept := core.store.get_meta(CURSOR)) is None else int(kept)
    core.process(
        [IncomingSample(one, ("metrics", 0, at + i), b"%d" % (at + i + 1)) for i, one in enumerate(samples)], NOW
    )


def crown(core, forecaster=None, version="1", job=JOB):
    made = pack_model(forecaster or Naive(TASK))
    return swap_model(core, prepare_model(core.windows, job, f"{job}-forecaster", version, made))


def value_of(found):
    return decode_value(ForecastValue, found.value)


@contextmanager
def full_store(monkeypatch, takes_persistent=False):
    """Within, each commit finds the map full, or only those without a persistent event."""
    whole = puts.commit_events

    def full(memory, persistent, *rest):
        if not (takes_persistent and persistent):
            raise StoreFull("the map is full")
        whole(memory, persistent, *rest)

    with monkeypatch.context() as patch:
        patch.setattr("pipelines.store.writing.puts.commit_events", full)
        yield


def taken_by_a_full_store(core, arrival, monkeypatch):
    with full_store(monkeypatch), pytest.raises(StoreFull):
        core.process([arrival], NOW)


def test_without_a_model_windows_are_kept_and_nothing_is_said(core, store):
    (took,) = put(core, raw(JOB, BEGIN, 100.0))
    assert (took.verdict, took.forecasts) == ("applied", [])
    assert decode_value(SampleValue, store.get(sample_key(JOB, STEP)).value) == SampleValue(100.0, 3, 0.0, 720.0)
    assert store.get(sample_key(JOB, STEP)).version == BEGIN and store.get(KEY) is None


def test_a_part_of_a_window_waits_for_the_rest(core):
    assert put(core, raw(JOB, BEGIN, 50.0, 0, 2))[0].verdict == "pending"
    assert put(core, raw(JOB, BEGIN, 70.0, 1, 2))[0].verdict == "applied"
    assert decode_value(SampleValue, core.store.get(sample_key(JOB, STEP)).value).rate == 60.0


def test_a_part_that_an_agent_miscounted_is_refused_and_its_window_made_of_the_others(core):
    took = [put(core, raw(JOB, BEGIN, rate, part, 4))[0] for part, rate in enumerate([90.0, 1e12, 100.0, 110.0])]
    assert took[1].code == "message" and "arrival_rps=1000000000000.0: at most 1000000000.0" in took[1].message
    assert decode_value(SampleValue, core.store.get(sample_key(JOB, STEP)).value).rate == 100.0


def test_window_state_and_forecast_have_one_time_and_the_forecast_is_the_models(core, store):
    feed(core, BEGIN, BEGIN + 30)
    crown(core)
    (took,) = put(core, raw(JOB, BEGIN + 30, 77.0))
    (found,) = took.forecasts
    keys = (sample_key(JOB, STEP), state_key(JOB, STEP), KEY)
    assert {store.get(key).ts for key in keys} == {found.ts} and found.version == BEGIN + 30
    value = value_of(found)
    message = decode(Forecast, value.message, NOW + 60)
    assert message.time == (BEGIN + 31) * STEP and message.epoch == 7 and message.version == "1"
    assert message.wall_time == pytest.approx(NOW + 30) and message.history_steps == 31
    loads = [100.0 + w % 24 for w in range(BEGIN, BEGIN + 30)] + [77.0]
    expected = Naive(TASK).quantiles_of(Naive(TASK).state_after(Series(BEGIN * STEP, STEP, np.array(loads))))
    np.testing.assert_allclose(message.quantiles, expected)
    assert decode_value(StateValue, store.get(keys[1]).value).deployment == value.deployment == 1
    assert value.digests == core.job(JOB).deployments[0].digests and value.model_version == "1"


def test_the_first_model_speaks_for_the_newest_window_at_once(core, store):
    feed(core, BEGIN, BEGIN + 30)
    made = crown(core)
    assert made.first_origin == BEGIN + 29 and store.get(KEY).version == BEGIN + 29
    again = crown(core, Naive(TASK, seasonal=False), "2")
    assert again.first_origin == BEGIN + 30 and store.get(KEY).version == BEGIN + 29


def test_models_that_no_job_needs_any_more_are_let_go(core):
    shared = Naive(TASK)
    for job in (JOB, "rides"):
        feed(core, BEGIN, BEGIN + 30, job=job)
        crown(core, shared, job=job)
    first = core.job(JOB).model
    assert first is core.job("rides").model and len(core.cache) == 1
    for version in range(2, 6):
        crown(core, CATALOGUE["ridge"](TASK, series(300 + 10 * version)), str(version))
    assert len(core.cache) == 2 and list(first) == ["rides"]
    assert all(feed(core, BEGIN + 30, BEGIN + 31, job=job)[0].forecasts for job in (JOB, "rides"))


def test_a_model_is_read_from_the_store_only_as_it_was_recorded(core, store):
    crown(core)
    (deployment,) = core.job(JOB).deployments
    cache = ModelCache(store)
    found = cache.find(JOB, deployment)
    assert pack_model(found.forecaster).digests == deployment.digests and cache.find(JOB, deployment) is found
    other = pack_model(Naive(TASK, seasonal=False))
    prefix = set_prefix(JOB)
    store.put_set(prefix, {f"{prefix}/{name}": other.members[name] for name in MEMBERS}, 2, "persistent")
    with pytest.raises(ModelSetError, match=r"^/model/orders of deployment 2 has digests .*, not \("):
        ModelCache(store).find(JOB, msgspec.structs.replace(deployment, number=2))
    assert len(cache) == 1


@pytest.mark.parametrize("lost", MEMBERS)
def test_a_model_of_which_a_part_is_no_longer_kept_is_named_with_that_part(core, store, lost):
    crown(core)
    (deployment,) = core.job(JOB).deployments
    made = pack_model(Naive(TASK))
    for name in {*MEMBERS} - {lost}:
        store.put(f"{set_prefix('rides')}/{name}", made.members[name], 1)
    with pytest.raises(ModelSetError, match=f"^/model/rides of deployment 1 lacks {lost}: no longer kept$"):
        ModelCache(store).find("rides", deployment)


def test_the_same_again_is_a_duplicate_with_the_forecast_of_then(core, store):
    feed(core, BEGIN, BEGIN + 30)
    crown(core)
    (first,) = put(core, raw(JOB, BEGIN + 30, 90.0))
    before = contents(store)
    (second,) = put(core, raw(JOB, BEGIN + 30, 90.0))
    assert (second.verdict, second.forecasts) == ("duplicate", first.forecasts)
    both = put(core, raw(JOB, BEGIN + 31, 91.0), raw(JOB, BEGIN + 31, 91.0))
    assert [t.verdict for t in both] == ["applied", "duplicate"] and both[0].forecasts == both[1].forecasts
    assert {k: v[-1] for k, v in before.items()}[KEY][0] == BEGIN + 30


def test_other_bytes_for_a_closed_window_are_a_conflict_and_the_first_stay(core, store):
    feed(core, BEGIN, BEGIN + 3)
    before = contents(store)
    (refused,) = put(core, raw(JOB, BEGIN + 1, 9.0))
    assert isinstance(refused, Refused) and refused.code == "conflict" and contents(store) == before
    (kept,) = core.process([IncomingSample(raw(JOB, BEGIN + 1, 9.0), ("metrics", 0, 5), b"6")], NOW)
    assert kept.code == "conflict" and store.get_meta(CURSOR) == b"6"
    assert json.loads(store.get(quarantine_key("metrics")).value)["reason"].startswith(f"window {BEGIN + 1} of orders")


def test_a_wall_clock_that_is_set_forward_does_not_keep_samples_out(tmp_path):
    with Store.open(tmp_path / "store", clock=lambda: time.time_ns() - 3600 * 10**9) as store:
        core, now = Core(store, STEP, {JOB}, epoch=7), time.time()
        said = core.process([IncomingSample(raw(JOB, BEGIN + i, 5.0, wall_time=now)) for i in range(3)], now)
        assert [took.verdict for took in said] == ["applied"] * 3


def test_an_older_window_that_was_never_seen_is_stale(core, store):
    feed(core, BEGIN, BEGIN + 2)
    feed(core, BEGIN + 4, BEGIN + 6)
    before = contents(store)
    assert put(core, raw(JOB, BEGIN + 2, 9.0))[0].verdict == "stale"
    assert put(core, raw(JOB, BEGIN + 5, 9.0, 0, 2))[0].verdict == "stale"
    assert contents(store) == before


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (b"hello", "message"),
        (raw(JOB, BEGIN, 5.0).replace(b":5.0,", b":NaN,"), "message"),
        (raw(JOB, BEGIN, 5.0).replace(b":5.0,", b":-5.0,"), "message"),
        (raw(JOB, BEGIN, 5.0, wall_time=NOW + 1e6), "message"),
        (raw(JOB, BEGIN, 5.0, time=NOW + 1e6, time_scale=1.0), "message"),
        (raw(JOB, BEGIN, 5.0, time=NOW - 10, time_scale=1.0, wall_time=NOW, span_s=86_400.0), "message"),
        (raw(JOB, BEGIN, 5.0, time=1e300), "message"),
        (raw(JOB, BEGIN, 5.0, lag_records=10**30), "message"),
        (raw(JOB, BEGIN + 2, 1e308), "message"),
        (raw(JOB, BEGIN + 2, 1e308, 0, 2), "message"),
        (raw("stranger", BEGIN, 5.0), "unknown_job"),
    ],
)
def test_bad_input_leaves_the_store_as_it_was_and_the_log_keeps_it_aside(core, store, bad, code):
    feed(core, BEGIN, BEGIN + 2)
    before = contents(store)
    (refused,) = put(core, bad)
    assert refused.code == code and contents(store) == before
    core.process([IncomingSample(bad, ("metrics", 0, 8), b"9")], NOW)
    assert contents(store) == {**before, quarantine_key("metrics"): contents(store)[quarantine_key("metrics")]}
    assert store.get_meta(CURSOR) == b"9" and len(core.outbox) == 1
    assert put(core, raw(JOB, BEGIN + 2, 5.0))[0].verdict == "applied"


@pytest.mark.parametrize("step_s", [STEP * 12, STEP / 24])
def test_windows_of_another_length_are_begun_anew_after_a_restart(core, store, step_s):
    feed(core, BEGIN, BEGIN + 30)
    crown(core)
    put(core, raw(JOB, BEGIN + 30, 77.0, 0, 2))
    task = Task(step_s, 3, (0.5,))
    first = math.ceil((BEGIN + 31) * STEP / step_s)

    def window(w):
        return raw(JOB, BEGIN, 5.0, time=w * step_s, span_s=step_s, wall_time=NOW)

    again = Core(store, step_s, {JOB}, epoch=8)
    said = put(again, *(window(w) for w in range(first, first + 30)))
    assert {took.verdict for took in said} == {"applied"} and not any(took.forecasts for took in said)
    made = swap_model(again, prepare_model(again.windows, JOB, f"{JOB}-forecaster", "2", pack_model(Naive(task))))
    assert (made.number, made.first_origin) == (2, first + 29)
    (took,) = put(again, window(first + 30))
    assert value_of(took.forecasts[0]).deployment == 2 and value_of(took.forecasts[0]).message


def test_a_long_record_that_is_refused_leaves_a_reject_that_the_broker_takes(core, store):
    bad = raw(JOB, BEGIN, 5.0)[:-1] + b',"cores":"many","more":"' + "\u00e9".encode() * 300_000 + b'"}'
    core.process([IncomingSample(bad, ("metrics", 0, 0), b"1")], NOW)
    ((_, entry),) = store.outbox()
    assert len(bad) < 1_000_000 and len(entry) < 50_000


def test_a_job_that_begins_is_silent_until_there_are_24_windows_in_a_row(core):
    crown(core)
    said = feed(core, BEGIN, BEGIN + 26)
    reasons = [value_of(took.forecasts[0]).reason for took in said]
    assert reasons == ["warming"] * 23 + [""] * 3
    assert all(value_of(t.forecasts[0]).message == b"" for t in said[:23])
    assert all(value_of(t.forecasts[0]).message for t in said[23:])


@pytest.mark.parametrize("follows", [True, False])
def test_forecasts_wait_to_be_sent_only_where_somebody_sends_them(store, follows):
    core = Core(store, STEP, {JOB}, epoch=7, follows_log=follows)
    logged = [IncomingSample(raw(JOB, BEGIN + i, 100.0), ("metrics", 0, i), b"") for i in range(32)]
    core.process(logged[:30], NOW)
    crown(core)
    core.process(logged[30:], NOW)
    assert len(core.outbox) == len(store.outbox()) == (3 if follows else 0)


def test_a_model_that_serves_before_the_first_window_knows_the_time_of_day(core):
    made, first = CATALOGUE["ets"](TASK, series(400)), BEGIN + 7
    crown(core, made)
    (*_, last) = feed(core, first, first + 30)
    loads = np.array([100.0 + w % 24 for w in range(first, first + 30)])
    expected = made.begin(Series(first * STEP, STEP, loads)).quantiles
    np.testing.assert_allclose(json.loads(value_of(last.forecasts[0]).message)["quantiles"], expected, rtol=1e-6)


@pytest.mark.parametrize(("later", "warmed"), [(0, 0), (warmed_steps(STEP) + 50, 30)])
def test_a_model_warmed_on_nothing_or_long_ago_begins_on_the_newest_history(core, store, monkeypatch, later, warmed):
    for w in range(BEGIN, BEGIN + warmed):
        put(core, raw(JOB, w, 100.0 + w % 24, wall_time=NOW - 1e8))  # then it was off
    ready = prepare_model(core.windows, JOB, f"{JOB}-forecaster", "1", pack_model(Naive(TASK)))
    first = 480_000 if not later else BEGIN + later
    for w in range(first, first + 30):
        put(core, raw(JOB, w, 100.0 + w % 24, wall_time=NOW))
    lengths, history = [], ServedJob.history

    def measured(self, first, last):
        lengths.append(last - first + 1)
        return history(self, first, last)

    monkeypatch.setattr(ServedJob, "history", measured)
    swap_model(core, ready)
    assert lengths and max(lengths) <= warmed_steps(STEP)
    loads = np.array([100.0 + w % 24 for w in range(first, first + 30)])
    expected = Naive(TASK).quantiles_of(Naive(TASK).state_after(Series(first * STEP, STEP, loads)))
    np.testing.assert_allclose(json.loads(value_of(answer_request(core, Get(KEY))).message)["quantiles"], expected)


def test_a_short_gap_is_stepped_over_and_said(core):
    feed(core, BEGIN, BEGIN + 30)
    crown(core)
    feed(core, BEGIN + 30, BEGIN + 32)
    values = [value_of(t.forecasts[0]) for t in feed(core, BEGIN + 37, BEGIN + 42)]
    assert [(v.imputed, v.since_gap, v.doubted, v.reason) for v in values] == [
        (5, 0, True, "doubted"), (5, 1, True, "doubted"), (5, 2, True, "doubted"), (5, 3, False, ""), (5, 4, False, "")
    ]  # fmt: skip
    assert [bool(value.message) for value in values] == [False] * 3 + [True] * 2
    online = Online(Naive(TASK))
    loads = np.array([100.0 + w % 24 for w in range(BEGIN, BEGIN + 42)])
    loads[32:37] = math.nan
    online.admit("x", Series(BEGIN * STEP, STEP, loads))
    assert json.loads(values[-1].message)["quantiles"] == online.current("x").tolist()


def test_after_a_long_gap_the_job_begins_anew(core):
    feed(core, BEGIN, BEGIN + 30)
    crown(core)
    values = [value_of(t.forecasts[0]) for t in feed(core, BEGIN + 56, BEGIN + 81)]
    assert [v.reason for v in values] == ["warming"] * 23 + ["", ""]
    assert {v.imputed for v in values} == {0}


def test_a_model_that_fails_says_so_and_the_next_window_is_served(core, monkeypatch):
    feed(core, BEGIN, BEGIN + 30)
    crown(core)

    def broken(self, job, value):
        raise RuntimeError("no such weight")

    with monkeypatch.context() as patch:
        patch.setattr(Online, "step", broken)
        (took,) = put(core, raw(JOB, BEGIN + 30, 80.0))
    assert value_of(took.forecasts[0]).reason == "model_error" and took.verdict == "applied"
    (beat,) = core.job(JOB).due_heartbeats(sample(JOB, BEGIN + 30, 80.0), NOW + 100)
    assert beat.standing is None, "nobody vouches for the forecast before"
    (took,) = put(core, raw(JOB, BEGIN + 31, 80.0))
    assert value_of(took.forecasts[0]).reason == ""
    (beat,) = core.job(JOB).due_heartbeats(sample(JOB, BEGIN + 31, 80.0), NOW + 200)
    assert beat.standing == str(core.server.epoch)


def test_a_full_store_acknowledges_nothing_and_loses_nothing(core, store, monkeypatch):
    feed(core, BEGIN, BEGIN + 30)
    crown(core)
    before = contents(store)
    sample = IncomingSample(raw(JOB, BEGIN + 30, 80.0), ("metrics", 0, 30), b"31")

    taken_by_a_full_store(core, sample, monkeypatch)
    assert contents(store) == before and store.get_meta(CURSOR) is None
    (took,) = core.process([sample], NOW)
    undisturbed = Online(Naive(TASK))
    undisturbed.admit("x", Series(BEGIN * STEP, STEP, np.array([100.0 + w % 24 for w in range(BEGIN, BEGIN + 30)])))
    assert json.loads(value_of(took.forecasts[0]).message)["quantiles"] == undisturbed.step("x", 80.0).tolist()


def test_a_swap_that_is_tried_again_is_the_same_deployment(core, store, monkeypatch):
    feed(core, BEGIN, BEGIN + 30)
    crown(core)
    ready = prepare_model(core.windows, JOB, f"{JOB}-forecaster", "2", pack_model(Naive(TASK, seasonal=False)))
    with full_store(monkeypatch, takes_persistent=True):
        for _ in range(3):
            with pytest.raises(StoreFull):
                swap_model(core, ready)
    assert store.get(active_key(JOB)).version == 1 and store.get(intent_key(JOB)).version == 2
    (took,) = put(core, raw(JOB, BEGIN + 30, 77.0))  # there is room again, and a sample came before the next try
    before = contents(store)
    assert (
        swap_model(core, ready).number == store.get(active_key(JOB)).version == store.get(intent_key(JOB)).version == 2
    )
    after = contents(store)
    assert {key for key in after if after[key] != before.get(key)} == {active_key(JOB)}
    assert value_of(took.forecasts[0]).deployment == 2


def test_a_model_whose_state_a_host_crash_took_begins_on_what_it_was_warmed_on(core, store, monkeypatch):
    first = 480_000
    samples = [raw(JOB, w, 100.0 + w % 24, wall_time=NOW) for w in range(first, first + 35)]
    put(core, *samples[:30])
    crown(core, Blend(TASK))
    put(core, *samples[30:])
    other = msgspec.structs.replace(decode_value(StateValue, store.get(state_key(JOB, STEP)).value), deployment=2)
    store.put(checkpoint_key(JOB, STEP), encode_value(other), first + 35)
    lengths, history = [], ServedJob.history

    def measured(self, first, last):
        lengths.append(last - first + 1)
        return history(self, first, last)

    monkeypatch.setattr(ServedJob, "history", measured)
    again = Core(store, STEP, {JOB}, epoch=8).job(JOB)
    assert max(lengths) <= 35, "not every window since 1970"
    np.testing.assert_array_equal(again.model.current(JOB), core.job(JOB).model.current(JOB))


def test_a_champion_after_the_file_of_models_was_removed_has_a_number_of_its_own(tmp_path):
    folder = tmp_path / "store"
    for versions in (("1", "2"), ("3",)):
        with Store.open(folder) as store:
            numbers = [crown(Core(store, STEP, {JOB}, epoch=7), version=one).number for one in versions]
        shutil.rmtree(folder / "durable")
    assert numbers == [3]


def test_a_model_that_cannot_be_begun_stops_neither_the_server_nor_the_next_start(core, store, monkeypatch):
    feed(core, BEGIN, BEGIN + 30)

    def broken(*arguments):
        raise RuntimeError("a shape that nobody expected")

    ready = prepare_model(core.windows, JOB, f"{JOB}-forecaster", "1", pack_model(Naive(TASK)))
    with monkeypatch.context() as patch:
        patch.setattr(Online, "restore", broken)
        swap_model(core, ready)
        assert decode_value(ForecastValue, store.get(KEY).value).reason == "model_error"
        (took,) = put(core, raw(JOB, BEGIN + 30, 77.0))
        assert value_of(took.forecasts[0]).reason == "model_error"
        again = Core(store, STEP, {JOB}, epoch=8)
        finish_swaps(again)
        assert again.job(JOB).model is None
    (took,) = put(again, raw(JOB, BEGIN + 31, 77.0))  # begun anew at the next window
    assert value_of(took.forecasts[0]).message and value_of(took.forecasts[0]).deployment == 1


def test_a_swap_that_finds_the_store_full_leaves_the_outbox_in_step_with_the_store(store, monkeypatch):
    core = Core(store, STEP, {JOB}, epoch=7, follows_log=True)
    logged = [IncomingSample(raw(JOB, BEGIN + i, 100.0), ("metrics", 0, i), b"") for i in range(33)]
    core.process(logged[:30], NOW)
    with full_store(monkeypatch, takes_persistent=True), pytest.raises(StoreFull):
        crown(core)
    core.process(logged[30:], NOW)
    wire = Wire()
    core.outbox.send(wire)
    assert [(topic, int(version)) for topic, _, version, _ in wire.sent] == [
        ("forecasts", BEGIN + 30), ("forecasts", BEGIN + 31), ("forecasts", BEGIN + 32)
    ]  # fmt: skip
    assert store.outbox() == []


def test_what_was_adopted_is_kept_until_it_is_in_the_store(store, monkeypatch):
    core = Core(store, STEP, {JOB}, epoch=7, follows_log=True)
    crown(core)
    sent = encode(Forecast(JOB, 0.0, NOW, 1.0, STEP, [0.5], [[1.0]], "m", "1", "champion", "model", 1, 7))
    said = ForecastValue(1, "1", ("a", "b", "c"), 0, 0, False, "", sent)
    core.closer.adopted[JOB, BEGIN] = said
    arrival = IncomingSample(raw(JOB, BEGIN, 80.0), ("metrics", 0, 0), b"1")

    taken_by_a_full_store(core, arrival, monkeypatch)
    (took,) = core.process([arrival], NOW)
    assert value_of(took.forecasts[0]) == said and not core.closer.adopted and not len(core.outbox)


def test_beside_a_log_a_socket_may_not_decide_what_is_missing(store):
    core = Core(store, STEP, {JOB}, epoch=7, follows_log=True)
    (first,) = put(core, raw(JOB, BEGIN, 80.0))
    assert first.code == "gap" and "nothing of the job was taken yet" in first.message and "inf" not in first.message
    core.process([IncomingSample(raw(JOB, BEGIN, 80.0), ("metrics", 0, 0), b"1")], NOW)
    assert put(core, raw(JOB, BEGIN + 1, 81.0))[0].verdict == "applied"
    assert put(core, raw(JOB, BEGIN + 3, 83.0))[0].code == "gap"
    (same,) = core.process([IncomingSample(raw(JOB, BEGIN + 1, 81.0), ("metrics", 0, 1), b"2")], NOW)
    assert same.verdict == "duplicate" and store.get_meta(CURSOR) == b"2"


def beats(core):
    """Heartbeats since the last look: (wall time, standing, since)."""
    found = [(beat.wall_time, beat.standing, beat.since) for beat in core.heartbeats]
    assert {(beat.job, beat.by) for beat in core.heartbeats} <= {(JOB, "serving")}
    core.heartbeats.clear()
    return found


def live(i, wall):
    """The second `i` of the window that goes on after `BEGIN + 30`."""
    return raw(JOB, BEGIN + 31, 80.0, i, 100, wall_time=wall)


def test_while_a_long_window_goes_on_heartbeats_say_which_forecast_stands(store):
    core = Core(store, STEP, {JOB}, epoch=7, follows_log=True)
    feed_log(core, [raw(JOB, BEGIN + i, 100.0, wall_time=NOW - 60) for i in range(30)])
    assert beats(core) == []  # a replay of what was long ago
    feed_log(core, [raw(JOB, BEGIN + 30, 80.0, wall_time=NOW - 9)])
    assert beats(core) == [(NOW - 9, None, None)]
    crown(core)
    feed_log(core, [live(i, NOW - 8 + i) for i in range(60)])
    found = beats(core)
    assert [wall for wall, *_ in found] == [NOW - 1 + 8 * i for i in range(7)]
    assert {(standing, since) for _, standing, since in found} == {("7", NOW - 9)}
    assert len(store.list_versions(KEY)) == 1  # the store knows nothing of it, and the forecast is not said again


def test_after_a_clock_was_set_back_forecasts_go_on_and_begin_by_the_clock(store):
    def each_second(begin, last, fell):
        for i in range(begin, last):
            taken = raw(JOB, BEGIN + i - fell, 100.0 + i % 24, wall_time=NOW + i - fell, time_scale=STEP)
            feed_log(core, NOW + i - fell, taken)

    def feed_log(core, now, taken):
        at = int(core.store.get_meta(CURSOR) or b"0")
        core.process([IncomingSample(taken, ("metrics", 0, at), b"%d" % (at + 1))], now)

    core = Core(store, STEP, {JOB}, epoch=7, follows_log=True)
    each_second(0, 30, fell=0)
    crown(core)
    each_second(30, 32, fell=20)
    core = Core(store, STEP, {JOB}, epoch=8, follows_log=True)  # it is known after a restart, too
    each_second(32, 36, fell=20)
    issued = [decode(Forecast, decode_value(ForecastValue, kept.value).message) for kept in store.history(KEY)]
    assert [one.time for one in issued] == [(BEGIN + i) * STEP for i in (30, 11, 12, 13, 14, 15, 16)]
    assert [version for version, _ in store.list_versions(KEY)] == list(range(BEGIN + 29, BEGIN + 36))


def test_after_a_clock_was_set_back_heartbeats_go_on(core):
    served, newest = core.job(JOB), sample(JOB, BEGIN, 80.0)
    at = [0, 7, 8, -3600, -3593, -3592]
    assert [wall for wall in at if served.due_heartbeats(newest, NOW + wall)] == [0, 8, -3600, -3592]


def test_a_server_that_is_started_again_sends_what_stands_by_its_epoch_and_vouches_for_it(store):
    """Of a server that served in between, readers hold a forecast by a higher epoch than the one stored."""
    core = Core(store, STEP, {JOB}, epoch=7, follows_log=True)
    feed_log(core, [raw(JOB, BEGIN + i, 100.0, wall_time=NOW) for i in range(30)])
    crown(core)
    core.outbox.send(Wire())
    issued = decode(Forecast, decode_value(ForecastValue, store.get(KEY).value).message)
    again, wire = Core(store, STEP, {JOB}, epoch=9, follows_log=True), Wire()
    feed_log(again, [raw(JOB, BEGIN + 30, 80.0, i, 100, wall_time=NOW - 60 + 30 * i) for i in range(4)])
    again.outbox.send(wire)
    ((_, _, version, value),) = wire.sent
    assert decode(Forecast, value) == dataclasses.replace(issued, epoch=9, wall_time=NOW)
    assert int(version) == BEGIN + 29 and {one[1] for one in beats(again)} == {"9"}
    assert decode(Forecast, decode_value(ForecastValue, store.get(KEY).value).message) == issued


def test_after_a_restart_a_forecast_whose_step_is_over_is_not_sent_again(store):
    core = Core(store, STEP, {JOB}, epoch=7, follows_log=True)
    feed_log(core, [raw(JOB, BEGIN + i, 100.0, wall_time=NOW) for i in range(30)])
    crown(core)
    core.outbox.send(Wire())
    again = Core(store, STEP, {JOB}, epoch=9, follows_log=True)
    feed_log(again, [raw(JOB, BEGIN + 31, 80.0, i, 100, wall_time=NOW + i) for i in range(4)])
    assert not len(again.outbox)


def test_a_what_if_says_what_would_be_and_moves_nothing(core, store):
    feed(core, BEGIN, BEGIN + 30)
    crown(core)
    before = contents(store)
    foretold = answer_request(core, WhatIf(JOB, 500.0))
    assert isinstance(foretold, WireForecast) and contents(store) == before
    (took,) = put(core, raw(JOB, BEGIN + 30, 500.0))
    assert json.loads(value_of(took.forecasts[0]).message)["quantiles"] == foretold.quantiles
    assert (
        answer_request(core, WhatIf(JOB, math.nan)).code == "message"
        and answer_request(core, WhatIf("x", 1.0)).code == "unknown_job"
    )
    assert answer_request(core, WhatIf("rides", 1.0)) == WireForecast([], [])


def test_a_sample_over_more_windows_than_an_answer_has_room_for_says_how_many_it_leaves_out(core, store):
    feed(core, BEGIN, BEGIN + 30)
    crown(core, Naive(Task(STEP, 72, TASK.levels)))  # each forecast has two kilobytes or so of the MiB
    windows = 700
    (took,) = put(core, raw(JOB, BEGIN + 30, 80.0, span_s=windows * STEP, wall_time=NOW))
    assert read_answer(encode_frame(took)[4:]) == took and took.verdict == "applied"
    assert took.left_out > 0 and len(took.forecasts) > windows / 2
    first = BEGIN + 30 + took.left_out
    assert [found.version for found in took.forecasts] == list(range(first, BEGIN + 30 + windows))
    assert store.get(KEY, first - 1) is not None


def test_what_no_answer_has_room_for_is_refused_with_a_way_to_read_it(core, store):
    store.put("/model/orders/weights", bytes(ROOM), 1)
    store.put("/model/orders/weights", bytes(ROOM + 1), 2)
    whole, refused = (answer_request(core, Get("/model/orders/weights", version)) for version in (1, 2))
    assert read_answer(encode_frame(whole)[4:]) == whole
    assert refused.code == "oversized" and f"version 2 has {ROOM + 1} bytes" in refused.message
    assert "Reader.open" in refused.message
    assert answer_request(core, AsOf("/model/orders/weights", store.frontier()[0])).message == refused.message


def test_reads_answer_as_of_a_time_and_refuse_what_is_not_stable(core, store):
    feed(core, BEGIN, BEGIN + 30)
    crown(core)
    took = [put(core, raw(JOB, BEGIN + 30 + i, 80.0))[0].forecasts[0] for i in range(3)]
    assert answer_request(core, Get(KEY)) == took[-1] and answer_request(core, Get(KEY, BEGIN + 31)) == took[1]
    assert (
        answer_request(core, AsOf(KEY, took[1].ts)) == took[1]
        and answer_request(core, AsOf(KEY, took[1].ts - 1)) == took[0]
    )
    assert isinstance(answer_request(core, Get("/nothing/here")), Absent)
    assert (
        answer_request(core, AsOf(KEY, 2**62)).code == "not_stable"
        and answer_request(core, Get("no path")).code == "input"
    )
    edge = answer_request(core, Frontier())
    assert isinstance(edge, FrontierTimes) and edge.ts == took[-1].ts
    versions = answer_request(core, Versions(KEY, BEGIN + 30))
    assert versions == VersionList([(f.version, f.ts) for f in took])
    assert isinstance(answer_request(core, Get(active_key(JOB))), Found)


def test_a_window_in_progress_that_is_older_than_the_newest_window_closes_nothing_again(store):
    """As a host crash may leave it, where some pages are older than others."""
    core = Core(store, STEP, {JOB}, epoch=7)
    feed(core, BEGIN, BEGIN + 10)
    stale = store.get_meta(open_window_name(JOB))
    feed(core, BEGIN + 10, BEGIN + 20)
    store.set_meta(open_window_name(JOB), stale)
    again = Core(store, STEP, {JOB}, epoch=7)
    assert put(again, raw(JOB, BEGIN + 12, 1.0))[0].code == "conflict"
    assert put(again, raw(JOB, BEGIN + 20, 5.0))[0].verdict == "applied"
    assert [version for version, _ in store.list_versions(sample_key(JOB, STEP))] == list(range(BEGIN, BEGIN + 21))
