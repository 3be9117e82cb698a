"""What the demonstration and the benchmarks may touch: folders of their own, and services that they started."""

from dataclasses import replace

import pytest

from configs.errors import SettingsError
from configs.settings import load
from pipelines.bench.fastpath.load import bench_settings as fastpath_settings
from pipelines.demo.progress import Screen
from pipelines.demo.run import running_stack
from pipelines.stack.isolation import isolated_settings
from pipelines.stack.parts import PARTS


@pytest.mark.parametrize(
    ("section", "own", "variable"),
    [
        ("kafka", {"bootstrap": "prod:9092"}, "TIDECAST_KAFKA__BOOTSTRAP=prod:9092"),
        ("mlflow", {"tracking_uri": "http://prod"}, "TIDECAST_MLFLOW__TRACKING_URI=http://prod"),
        ("airflow", {"url": "http://prod"}, "TIDECAST_AIRFLOW__URL=http://prod"),
        ("lake", {"address": "hdfs://prod/lake"}, "TIDECAST_LAKE__ADDRESS=hdfs://prod/lake"),
        ("lake", {"address": "/prod/lake"}, "TIDECAST_LAKE__ADDRESS=/prod/lake"),
    ],
)
def test_a_service_of_a_persons_own_is_refused(tmp_path, section, own, variable):
    with pytest.raises(SettingsError, match=variable):
        isolated_settings(load(var=tmp_path, **{section: own}), "demo")
    assert not list(tmp_path.iterdir())


def test_a_bench_refuses_a_configured_broker(tmp_path, monkeypatch):
    monkeypatch.setenv("TIDECAST_KAFKA__BOOTSTRAP", "prod:9092")
    with pytest.raises(SettingsError, match="Unset TIDECAST_KAFKA__BOOTSTRAP"):
        fastpath_settings(tmp_path)


def test_a_broker_that_a_file_of_settings_names_is_refused_with_the_file(tmp_path, monkeypatch):
    (tmp_path / "settings.yaml").write_text("kafka: {bootstrap: 'prod:9092'}\n")
    monkeypatch.setenv("TIDECAST_FILE", str(tmp_path / "settings.yaml"))
    with pytest.raises(SettingsError, match=r"TIDECAST_KAFKA__BOOTSTRAP=prod:9092: .*Unset TIDECAST_FILE for"):
        isolated_settings(load(), "demo")


def test_a_spark_master_of_a_persons_own_is_used(tmp_path):
    settings = isolated_settings(load(var=tmp_path, spark={"master": "yarn"}, kafka={"prefix": "acme."}), "demo")
    assert (settings.spark.master, settings.kafka.prefix, settings.var_dir) == ("yarn", "", tmp_path / "demo")


def test_the_demonstration_leaves_the_lake_models_and_topics_of_the_folder(tmp_path, monkeypatch):
    """Started for real but for the services, which take half a minute; what it empties is emptied before they start."""
    kept = [tmp_path / name / "kept" for name in ("lake", "fast", "mlflow", "kafka", "airflow")]
    again = tmp_path / "demo" / "lake" / "of the last run"
    for path in (*kept, again):
        path.parent.mkdir(parents=True)
        path.write_text("mine")
    monkeypatch.setitem(PARTS, "broker", replace(PARTS["broker"], start=lambda place: None))
    monkeypatch.setattr("pipelines.demo.run.create_topics", lambda kafka: None)
    with running_stack(load(var=tmp_path), {"broker"}, Screen(), of=2) as stack:
        assert stack.settings.lake_address == str(tmp_path / "demo" / "lake")
        assert not again.exists()
    assert [path.read_text() for path in kept] == ["mine"] * len(kept)
