"""MLflow's own server with logins: a user who is no administrator may do all that Tidecast does there."""

import json
import math

import httpx
import pytest

from configs.settings import load
from models.forecast.baselines.naive import Naive
from pipelines.bench.site.servers import MLFLOW_PASSWORD, mlflow_with_logins
from pipelines.registry import Registry, RegistryError
from pipelines.registry.overview import Overview
from pipelines.registry.tracking import open_store
from tests.fakes.forecasters import KINDS, TASK, put, series


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logins")
    with mlflow_with_logins(folder, f"sqlite:///{folder}") as address:
        yield load(var=folder / "var", mlflow={"tracking_uri": address})


def test_it_makes_the_experiment_trains_promotes_rolls_back_and_removes_what_is_over(settings):
    registry = Registry(settings)
    first, second = put(registry, "orders", Naive(TASK)), put(registry, "orders", KINDS["gru"](), alias="challenger")
    registry.set_champion("orders", first)
    registry.promote("orders", second)
    assert registry.champion_version("orders") == second
    registry.load("orders").begin(series(100)).step(math.nan)
    assert registry.roll_back("orders") == (second, first)
    with registry.training("orders", "again") as run:
        registry.write_verdict("orders", run.id, {"version": second, "reason": "worse"})
    assert registry.read_verdict("orders") == {"version": second, "reason": "worse"}
    assert [one.name for one in Overview(settings).read()] == ["orders-forecaster"]
    client, _, _ = open_store(settings)  # as `trim_models` does with what is older than a day
    surplus = client.get_model_version("orders-forecaster", put(registry, "orders", Naive(TASK)))
    client.delete_model_version("orders-forecaster", surplus.version)
    client.delete_run(surplus.run_id)
    assert [str(one.version) for one in registry.versions("orders")] == [first, second]


def test_a_model_of_somebody_else_is_refused_with_what_to_set(settings):
    """Nothing is written to it: the user may not even see it."""
    made = httpx.post(
        f"{settings.mlflow.tracking_uri}/api/2.0/mlflow/registered-models/create",
        json={"name": "payments-forecaster"}, auth=("admin", MLFLOW_PASSWORD), timeout=30,
    )  # fmt: skip
    assert made.status_code == 200, json.dumps(made.json())
    with pytest.raises(RegistryError, match=r"MLFLOW_TRACKING_USERNAME.*MLFLOW_TRACKING_TOKEN"):
        put(Registry(settings), "payments", Naive(TASK))
