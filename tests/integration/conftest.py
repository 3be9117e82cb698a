"""An MLflow store of a module's own."""

import shutil

import pytest

from configs.settings import Settings, load
from pipelines.registry import Registry


@pytest.fixture(scope="module")
def settings(tmp_path_factory, schema) -> Settings:
    settings = load(var=tmp_path_factory.mktemp("mlflow"))
    (settings.var_dir / "mlflow").mkdir()
    shutil.copy(schema, settings.var_dir / "mlflow")
    return settings


@pytest.fixture(scope="module")
def registry(settings) -> Registry:
    return Registry(settings)


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """MLflow falls back to the working folder where it is not told otherwise; nothing may land there."""
    monkeypatch.chdir(tmp_path)
    yield
    assert not list(tmp_path.iterdir())
