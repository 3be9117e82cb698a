"""All registered models at a glance, from an embedded MLflow."""

import shutil
import time

import pytest

from configs.settings import load
from pipelines.registry import overview as module
from pipelines.registry.forecasters import Registry
from pipelines.registry.overview import Overview
from pipelines.registry.tracking import open_store
from tests.fakes.clock import clock_with


@pytest.fixture
def settings(tmp_path, schema):
    """Whose store has models of ours and of another."""
    settings = load(var=tmp_path)
    (tmp_path / "mlflow").mkdir()
    shutil.copy(schema, tmp_path / "mlflow")
    client, _, _ = open_store(settings)
    for name, versions in (("orders-forecaster", 4), ("orders-agent", 1), ("of-another", 2), ("empty-performance", 0)):
        client.create_registered_model(name)
        for number in range(versions):
            client.create_model_version(name, "file:///nowhere", tags={"kind": "blend", "live.wape": f"0.{number}"})
    client.set_registered_model_alias("orders-forecaster", "champion", "2")
    client.set_registered_model_alias("orders-forecaster", "previous", "1")
    return settings


@pytest.fixture
def requests(monkeypatch):
    """What was searched for since the last time this was emptied."""
    import mlflow

    made = []

    def counted(search):
        def wrapped(self, condition, **more):
            made.append(condition)
            return search(self, condition, **more)

        return wrapped

    for name in ("search_registered_models", "search_model_versions"):
        monkeypatch.setattr(mlflow.MlflowClient, name, counted(getattr(mlflow.MlflowClient, name)))
    return made


def newest(overview, name="orders-forecaster"):
    """The newest version of a model, as a look shows it."""
    (found,) = (one for one in overview.read() if one.name == name)
    return found.versions[0]


def test_of_each_model_of_ours_the_versions_with_an_alias_and_the_newest_are_told(settings):
    empty, agent, forecaster = Overview(settings).read()
    assert [(one.job, one.what, one.many) for one in (empty, agent, forecaster)] == [
        ("empty", "performance", 0), ("orders", "agent", 1), ("orders", "forecaster", 4),
    ]  # fmt: skip
    told = [(one.version, one.aliases) for one in forecaster.versions]
    assert told == [("4", ()), ("2", ("champion",)), ("1", ("previous",))]
    assert forecaster.versions[1].tags == {"kind": "blend", "live.wape": "0.1"}
    assert abs(forecaster.versions[0].made_at - time.time()) < 600
    assert empty.versions == ()


def test_versions_are_read_again_only_of_a_model_that_has_changed(settings, requests):
    client, _, experiment = open_store(settings)
    run = client.create_run(experiment).info.run_id
    overview = Overview(settings)
    first = overview.read()
    assert sorted(requests) == ["", *(f"name = '{one.name}'" for one in first)]
    requests.clear()
    assert overview.read() == first and requests == [""]

    def by_hand():
        client.create_model_version("orders-agent", "file:///nowhere")

    changes = {
        "a version": by_hand,
        "a deleted version": lambda: client.delete_model_version("orders-agent", "2"),
        "an alias": lambda: client.set_registered_model_alias("orders-agent", "challenger", "1"),
        "an alias that is gone": lambda: client.delete_registered_model_alias("orders-agent", "challenger"),
    }
    for what, change in changes.items():
        before = overview.read()
        requests.clear()
        change()
        after = overview.read()
        assert requests == ["", "name = 'orders-agent'"], what
        assert (before[0], before[2]) == (after[0], after[2]) and before[1] != after[1], what

    requests.clear()
    verdict = {"job": "orders", "version": "4", "promoted": False, "reason": "rejected by ann"}
    Registry(settings).write_verdict("orders", run, verdict)
    assert newest(overview).tags["verdict"] == "rejected by ann"
    assert requests == ["", "name = 'orders-forecaster'"]
    client.delete_registered_model("orders-agent")
    assert [one.name for one in overview.read()] == ["empty-performance", "orders-forecaster"]


def test_a_tag_of_a_version_alone_shows_when_all_is_read_anew(settings, monkeypatch):
    client, _, _ = open_store(settings)
    now = [0.0]
    monkeypatch.setattr(module, "time", clock_with(monotonic=lambda: now[0]))
    overview = Overview(settings)
    assert newest(overview).tags["live.wape"] == "0.3"
    client.set_model_version_tag("orders-forecaster", "4", "live.wape", "0.9")
    now[0] = module.WHOLE_S - 1
    assert newest(overview).tags["live.wape"] == "0.3", "MLflow tells it of no model"
    now[0] = module.WHOLE_S
    assert newest(overview).tags["live.wape"] == "0.9"


def test_of_many_changed_models_the_versions_of_all_are_read_at_once(settings, requests, monkeypatch):
    monkeypatch.setattr(module, "FEW", 3)
    client, _, _ = open_store(settings)
    for number in range(module.FEW + 1):
        client.create_registered_model(f"job-{number}-forecaster")
        client.create_model_version(f"job-{number}-forecaster", "file:///nowhere")
    overview = Overview(settings)
    assert len(overview.read()) == module.FEW + 4
    assert sorted(requests) == ["", *sorted(f"name LIKE '%-{what}'" for what in module.KINDS)]
    assert newest(overview, "job-2-forecaster").version == "1"
    assert newest(overview).version == "4"
