"""The autoscaler's forecasts out of a real store: what it decides, what it writes down, what it does without one."""

import subprocess
import sys
import time

import pytest

from configs.contract import Contract
from models.policy.live.memory import fresh
from models.policy.live.recomputed import recompute_decision
from pipelines.scale.as_of import StoreForecasts, _reader
from pipelines.scale.processor import Scaler
from pipelines.serve.step.keys import forecast_key
from pipelines.serve.step.records import STATUS, ForecastValue, Status, encode_value
from pipelines.store import Store
from tests.fakes.waiting import PATIENCE_S
from tests.unit.policy.test_processor import forecast, metric, row

CONTRACT = Contract(job="orders")
KEY = forecast_key("orders", 60.0)


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "store") as opened:
        yield opened


@pytest.fixture
def reads(store, tmp_path, monkeypatch):
    """Reads in the writer itself: a process may open a store once. The last test opens one from outside."""

    def opened(folder):
        return store

    opened.cache_clear = lambda: None
    monkeypatch.setattr("pipelines.scale.as_of._reader", opened)
    return StoreForecasts(tmp_path / "store", 60.0)


def value(message="", **changes):
    fields = {"deployment": 1, "model_version": "1", "digests": ("a", "b", "c"), "imputed": 0, "since_gap": 0}
    return encode_value(
        ForecastValue(**{**fields, "doubted": False, "reason": "", "message": message.encode(), **changes})
    )


def decisions(now, rounds, store=None, reads=None):
    """A second of metrics and its decision, a round each; forecasts come as rows, or are in the store by then."""
    scaler = Scaler("orders", CONTRACT, "forecast", "act", store=reads)
    memory, made = fresh(CONTRACT), []
    for i, said in enumerate(rounds):
        rows = [row("metrics", metric(time=float(i), wall_time=now + i))]
        if said is not None and store is not None:
            store.put(KEY, value(said), i)
        elif said is not None:
            rows.append(row("forecasts", said))
        memory, _, _ = scaler.update_memory(memory, rows, now + i)
        memory, decision = scaler.decide(scaler.read_store(memory, time.time() + 60), now + i + 0.2)
        made.append(decision)
    return made


def test_at_equal_visibility_store_and_topic_give_the_same_decisions(store, reads):
    now = time.time()
    rounds = [None, *(forecast(wall_time=now + i, quantiles=[[10.0 * i, 150.0 * i]]) for i in range(1, 5)), None]
    by_topic = decisions(now, rounds)
    by_store = decisions(now, rounds, store, reads)
    assert len({d.executors for d in by_topic}) > 1  # the forecasts matter
    for ours, theirs in zip(by_store, by_topic, strict=True):
        assert (ours.executors, ours.reason, ours.codes) == (theirs.executors, theirs.reason, theirs.codes)
        assert recompute_decision(vars(ours), {CONTRACT.hash: CONTRACT}) == (ours.executors, ours.reason, ours.codes)
        same = {name: v for name, v in ours.inputs.items() if name != "forecast_read"}
        assert same == theirs.inputs
    assert [d.inputs["forecast_read"].get("version") for d in by_store] == [None, 1, 2, 3, 4, 4]
    assert all(d.inputs["forecast_read"]["ts"] <= d.inputs["forecast_read"]["as_of"] for d in by_store[1:])


def test_a_batch_that_is_tried_again_sees_what_it_saw(tmp_path, monkeypatch):
    now = [time.time_ns()]

    def a_second_later():
        now[0] += 10**9
        return now[0] / 1e9

    with Store.open(tmp_path / "by hand", clock=lambda: now[0]) as store:
        monkeypatch.setattr("pipelines.scale.as_of._reader", lambda folder: store)
        reads = StoreForecasts(tmp_path / "by hand", 60.0)
        store.put(KEY, value(forecast(quantiles=[[1.0, 2.0]])), 1)
        batch_s = a_second_later()
        before = reads.read("orders", batch_s)
        a_second_later()
        store.put(KEY, value(forecast(quantiles=[[5.0, 9.0]])), 2)
        again, later = reads.read("orders", batch_s), reads.read("orders", a_second_later())
    assert again.used["version"] == before.used["version"] == 1
    assert again.forecast["quantiles"] == before.forecast["quantiles"] == [[1.0, 2.0]]
    assert later.used["version"] == 2


def test_a_forecast_is_read_also_where_the_stores_clock_is_behind_the_walls(tmp_path, monkeypatch):
    now = time.time()
    with Store.open(tmp_path / "late", clock=lambda: time.time_ns() - 3600 * 10**9) as late:
        late.put(KEY, value(forecast(wall_time=now)), 1)
        monkeypatch.setattr("pipelines.scale.as_of._reader", lambda folder: late)
        assert StoreForecasts(tmp_path / "late", 60.0).read("orders", now + 1).forecast["wall_time"] == now


@pytest.mark.parametrize("ahead_s", [-3600.0, 3600.0])
def test_where_the_wall_clock_was_set_the_newest_forecast_is_read_and_is_fresh(tmp_path, monkeypatch, ahead_s):
    now = [time.time()]
    with Store.open(tmp_path / "set", clock=lambda: round((now[0] + ahead_s) * 1e9)) as store:
        monkeypatch.setattr("pipelines.scale.as_of._reader", lambda folder: store)
        store.set_meta(STATUS, encode_value(Status(now[0], 1, 7, {}, 0, ahead_s)))
        store.put(KEY, value(forecast(wall_time=now[0])), 1)
        began = now[0]
        now[0] += 100
        store.set_meta("anything", b"")  # a server commits at least its status
        reads = StoreForecasts(tmp_path / "set", 60.0)
        before = reads.read("orders", began + 100)
        now[0] += 1
        store.put(KEY, value(forecast(wall_time=now[0])), 2)
        again = reads.read("orders", began + 100)
    assert (before.used["version"], again.used["version"]) == (1, 1)
    assert before.forecast["wall_time"] == pytest.approx(began + 100, abs=0.01)


@pytest.mark.parametrize(("passed_s", "shown_s"), [(100, 100), (8 * 60 / 2, 4 * 60 / 2), (3 * 3600, 4 * 60 / 2)])
def test_of_a_job_that_the_server_does_not_hear_of_the_forecast_grows_old(tmp_path, monkeypatch, passed_s, shown_s):
    """A window is half a minute on the wall: after four that did not come no forecast is issued either."""
    began = float(round(time.time()))
    now = [began]
    with Store.open(tmp_path / "alone", clock=lambda: round(now[0] * 1e9)) as store:
        monkeypatch.setattr("pipelines.scale.as_of._reader", lambda folder: store)
        store.put(KEY, value(forecast(wall_time=began, time_scale=2.0)), 1)
        now[0] += passed_s
        store.set_meta("anything", b"")  # the server commits its status on
        found = StoreForecasts(tmp_path / "alone", 60.0).read("orders", began + passed_s)
    assert found.forecast["wall_time"] == pytest.approx(began + shown_s, abs=0.01)


def test_a_doubted_forecast_as_an_earlier_release_stored_it_is_not_planned_with(store, reads):
    store.put(KEY, value(forecast(), doubted=True, imputed=5), 1)
    found = reads.read("orders", time.time() + 1)
    assert found.forecast is None and "5 windows" in found.used["problem"]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"doubted": True, "imputed": 5, "reason": "doubted"}, "5 windows"),
        ({"reason": "warming"}, "warming"),
        ({}, "not JSON"),
    ],
)
def test_where_there_is_no_forecast_or_none_that_can_be_read_none_is_planned_with(store, reads, changes, problem):
    store.put(KEY, value("" if changes else "{", **changes), 1)
    found = reads.read("orders", time.time() + 1)
    assert found.forecast is None and problem in found.used["problem"]
    now = time.time()
    scaler = Scaler("orders", CONTRACT, "forecast", "act", store=reads)
    memory, _, _ = scaler.update_memory(fresh(CONTRACT), [row("forecasts", forecast(wall_time=now))], now)
    memory, _, _ = scaler.update_memory(memory, [row("metrics", metric(wall_time=now))], now)
    _, decision = scaler.decide(scaler.read_store(memory, now + 1), now)
    assert "no_forecast" in decision.codes and problem in decision.inputs["forecast_read"]["problem"]


def test_a_value_of_another_release_is_a_problem_of_its_job_and_stops_nobody(store, reads):
    store.put(KEY, b"\xc1 of another age", 1)
    found = reads.read("orders", time.time() + 1)
    assert found.forecast is None and "another release" in found.used["problem"] and found.used["version"] == 1


def test_without_a_store_what_is_held_grows_old_and_the_log_says_why(tmp_path):
    _reader.cache_clear()
    scaler = Scaler("orders", CONTRACT, "forecast", "act", store=StoreForecasts(tmp_path / "none", 60.0))
    now = time.time()
    memory, _, _ = scaler.update_memory(fresh(CONTRACT), [row("forecasts", forecast(wall_time=now))], now)
    memory, _, _ = scaler.update_memory(memory, [row("metrics", metric(wall_time=now))], now)
    _, decision = scaler.decide(scaler.read_store(memory, now), now)
    assert decision.inputs["forecast_version"] == "1" and decision.inputs["forecast_read"]["problem"]


def test_another_process_reads_it_through_a_reader(tmp_path):
    with Store.open(tmp_path / "store") as store:
        store.put(KEY, value(forecast()), 7)
        code = (
            "import sys, time; from pathlib import Path; from pipelines.scale.as_of import StoreForecasts\n"
            "found = StoreForecasts(Path(sys.argv[1]), 60.0).read('orders', time.time() + 1)\n"
            "print(found.used['version'], found.forecast['model'])"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "store")],
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE_S,
        )
    assert done.stdout.split() == ["7", "m"]
