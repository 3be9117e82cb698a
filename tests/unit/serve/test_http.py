"""The HTTP endpoint on a real store: what it shows, and to whom."""

import time
from types import SimpleNamespace

import pytest
from fastapi.testclient import TestClient

from models.forecast.baselines.naive import Naive
from pipelines.serve.fast.core import Core, IncomingSample
from pipelines.serve.fast.swapping import swap_model
from pipelines.serve.http import app as http_app
from pipelines.serve.http.app import build_app
from pipelines.serve.models.model_set import pack_model
from pipelines.serve.models.ready import prepare_model
from pipelines.serve.step.keys import forecast_key
from pipelines.serve.step.records import STATUS, ForecastValue, Status, encode_value
from pipelines.store import Store
from tests.fakes.forecasters import STEP, TASK
from tests.fakes.serving import BEGIN, NOW, raw

JOB = "orders"
BEARER = {"Authorization": "Bearer s3cret"}


@pytest.fixture(scope="module")
def core(tmp_path_factory):
    with Store.open(tmp_path_factory.mktemp("http") / "store") as store:
        core = Core(store, STEP, {JOB, "rides"}, epoch=7)
        for i in range(30):
            core.process([IncomingSample(raw(JOB, BEGIN + i, 100.0))], NOW)
        swap_model(core, prepare_model(core.windows, JOB, "orders-forecaster", "4", pack_model(Naive(TASK))))
        core.process([IncomingSample(raw(JOB, BEGIN + 30, 50.0))], NOW)
        yield core


@pytest.fixture(scope="module")
def web(core):
    return TestClient(build_app(core.store, STEP, {JOB, "rides"}, "s3cret"))


def say(core, now, ahead_s=0.0):
    """What a server says of itself."""
    core.store.set_meta(STATUS, encode_value(Status(now, 1, 7, dict(core.counts), len(core.outbox), ahead_s)))


def test_a_forecast_as_it_is_and_as_it_was(core, web):
    now = web.get(f"/jobs/{JOB}/forecast", headers=BEARER).json()
    assert now["version"] == BEGIN + 30 and now["forecast"]["job"] == JOB and now["model_version"] == "4"
    assert now["reason"] is None and set(now["digests"]) == {"weights", "scaler", "hyper"}
    before = web.get(f"/jobs/{JOB}/forecast", headers=BEARER, params={"as_of": now["ts"] - 1}).json()
    assert before["version"] == BEGIN + 29 and before["ts"] < now["ts"]
    assert core.store.get(forecast_key(JOB, STEP)).ts == now["ts"]


@pytest.mark.parametrize(
    ("path", "params", "status"),
    [
        ("/jobs/rides/forecast", {}, 404),
        ("/jobs/stranger/forecast", {}, 404),
        (f"/jobs/{JOB}/forecast", {"as_of": 2**62}, 409),
        (f"/jobs/{JOB}/forecast", {"as_of": 5}, 404),
        (f"/jobs/{JOB}/forecast", {"as_of": -1}, 422),
        (f"/jobs/{JOB}/forecast", {"as_of": "then"}, 422),
    ],
)
def test_what_is_not_there_is_said(web, path, params, status):
    assert web.get(path, headers=BEARER, params=params).status_code == status


@pytest.mark.parametrize("path", [f"/jobs/{JOB}/forecast", "/frontier", "/metrics"])
@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "s3cret"}])
def test_nothing_is_told_without_the_token(web, path, headers):
    answer = web.get(path, headers=headers)
    assert answer.status_code == 401 and "forecast" not in answer.text


def test_health_needs_no_token_and_says_whether_a_server_is_at_work(core, web, monkeypatch):
    monkeypatch.setattr(http_app, "time", SimpleNamespace(time=lambda: NOW))
    say(core, NOW - http_app.SILENT_S)
    assert web.get("/health").status_code == 503
    say(core, NOW - http_app.SILENT_S + 1)
    assert web.get("/health").json() == {"serving": True}


def test_health_where_no_server_ever_was(tmp_path):
    with Store.open(tmp_path / "store") as store:
        assert TestClient(build_app(store, STEP, {JOB}, "s3cret")).get("/health").status_code == 503


def test_prometheus_reads_counts_and_ages(core, web, monkeypatch):
    say(core, time.time())
    text = web.get("/metrics", headers=BEARER).text
    assert 'tidecast_fast_events_total{what="windows"} 31.0' in text
    assert 'tidecast_fast_forecast_age_seconds{job="orders"}' in text
    told = core.store.get(forecast_key(JOB, STEP)).ts / 1e9
    for ahead_s in (3600.0, -3600.0):  # the store's clock goes on where the wall's is set
        monkeypatch.setattr(http_app, "time", SimpleNamespace(time=lambda ahead_s=ahead_s: told - ahead_s + 2))
        say(core, told, ahead_s)
        text = web.get("/metrics", headers=BEARER).text
        (age,) = (line for line in text.splitlines() if line.startswith("tidecast_fast_forecast_age_seconds{"))
        assert float(age.split()[-1]) == pytest.approx(2.0, abs=1e-3)
    assert "tidecast_fast_outbox_messages 0.0" in text


def test_where_there_is_no_forecast_none_has_an_age(tmp_path):
    """The record after each window then says why; as young as that, the gauge hid that a job has none for days."""
    reasoned = ForecastValue(1, "4", ("a", "b", "c"), 0, 0, False, "model_error", b"")
    with Store.open(tmp_path / "store") as store:
        web = TestClient(build_app(store, STEP, {JOB, "rides"}, "s3cret"))
        for name, value in ((JOB, encode_value(reasoned)), ("rides", b"\xc1 of another age")):
            store.put(forecast_key(name, STEP), value, BEGIN)
        assert "tidecast_fast_forecast_age_seconds{" not in web.get("/metrics", headers=BEARER).text


def test_the_frontier_is_that_of_the_store(core, web):
    found = web.get("/frontier", headers=BEARER).json()
    assert (found["ts"], found["durable_ts"]) == core.store.frontier()
