"""Old versions are removed where a number is set, and nothing that has a name, is needed or is somebody else's."""

import sqlite3
from contextlib import closing
from types import SimpleNamespace

import pytest

from models.forecast.baselines.naive import Naive
from pipelines.registry import RegistryError, kept
from pipelines.registry.kept import model_id_of, surplus, trim_models
from pipelines.registry.owned import TRAINED_IN
from tests.fakes.forecasters import TASK, put

KEEP = 2
"""Fewer than the settings allow, so that fewer have to be registered."""


def version(number, made_ms=0, **tags):
    return SimpleNamespace(version=number, tags={"kind": "naive", **tags}, creation_timestamp=made_ms)


def numbers(versions, aliases=None, keep=2, since_ms=1.0):
    return [one.version for one in surplus(versions, aliases or {}, keep, since_ms)]


def keeping_few(settings):
    return settings.model_copy(update={"mlflow": settings.mlflow.model_copy(update={"kept_versions": KEEP})})


def test_the_newest_without_an_alias_are_kept_and_the_others_returned_oldest_first():
    assert numbers([version(n) for n in (3, 10, 1, 2)]) == [1, 2]
    assert numbers([version(n) for n in (1, 2)]) == []
    assert numbers([version(n) for n in range(1, 6)], {"champion": 5, "theirs": "1"}) == [2]


def test_what_a_rollback_names_what_is_young_and_what_is_of_others_stays():
    assert numbers([version(1), version(2, rolled_back="1"), *map(version, (3, 4, 5))]) == [3]
    assert numbers([version(1), version(2, made_ms=5), version(3), version(4)], keep=1) == [1, 3]
    foreign = SimpleNamespace(version=1, tags={"team": "pricing"}, creation_timestamp=0)
    assert numbers([foreign, *map(version, (2, 3, 4))]) == [2]


@pytest.mark.integration
@pytest.mark.usefixtures("elsewhere")
def test_a_removed_version_takes_its_files_and_run_with_it_and_is_removed_once(registry, settings, monkeypatch):
    import mlflow

    monkeypatch.setattr(kept, "YOUNG_S", -60.0)
    client, few = mlflow.MlflowClient(mlflow.get_tracking_uri()), keeping_few(settings)
    for job in ("kept", "theirs"):
        for _ in range(KEEP + 4 if job == "kept" else KEEP + 1):
            put(registry, job, Naive(TASK))
    client.set_registered_model_tag("theirs-forecaster", TRAINED_IN, "there-1")
    registry.set_champion("kept", "1")
    before = {str(one.version): one for one in registry.versions("kept")}
    assert client.get_logged_model(model_id_of(before["2"])).name == "seasonal_naive"
    registry.set_version_tags("kept", "1", {"peaks": before["2"].run_id})  # as of a later training's run
    assert trim_models(settings) == {} and trim_models(few) == {"kept-forecaster": 3}
    assert [int(one.version) for one in registry.versions("kept")] == [1, *range(5, KEEP + 5)]
    stages = [client.get_run(before[n].run_id).info.lifecycle_stage for n in ("1", "2", "3", "4", "5")]
    assert stages == ["active", "active", "deleted", "deleted", "active"]
    for n in ("2", "3"):
        with pytest.raises(mlflow.MlflowException):
            client.get_logged_model(model_id_of(before[n]))
    assert registry.load("kept").kind == "seasonal_naive" and len(registry.versions("theirs")) == KEEP + 1
    put(registry, "kept", Naive(TASK))
    (oldest,) = [one for one in registry.versions("kept") if int(one.version) == 5]
    client.delete_run(oldest.run_id)  # what a task that was broken off has done
    client.delete_logged_model(model_id_of(oldest))
    assert trim_models(few) == {"kept-forecaster": 1} and trim_models(few) == {}


@pytest.mark.integration
@pytest.mark.usefixtures("elsewhere")
def test_a_version_whose_deletion_is_refused_keeps_no_other_and_is_named(registry, settings, monkeypatch):
    monkeypatch.setattr(kept, "YOUNG_S", -60.0)
    few = keeping_few(settings)
    for job, beyond in (("held", 3), ("later", 1)):
        for _ in range(KEEP + beyond):
            put(registry, job, Naive(TASK))
    with closing(sqlite3.connect(settings.var_dir / "mlflow" / "mlflow.db")) as store:
        store.executescript(
            "CREATE TRIGGER refuse BEFORE UPDATE ON model_versions WHEN old.name = 'held-forecaster' AND "
            "old.version = 2 AND new.current_stage LIKE 'Deleted%' BEGIN SELECT RAISE(ABORT, 'kept by its owner'); END"
        )
        with pytest.raises(RegistryError, match=r"refused to remove 1 versions") as refused:
            trim_models(few)
        assert "\nheld-forecaster version 2: " in str(refused.value) and "kept by its owner" in str(refused.value)
        assert [int(one.version) for one in registry.versions("held")] == [2, *range(4, KEEP + 4)]
        assert [int(one.version) for one in registry.versions("later")] == [*range(2, KEEP + 2)]
        store.executescript("DROP TRIGGER refuse")
    assert trim_models(few) == {"held-forecaster": 1}
