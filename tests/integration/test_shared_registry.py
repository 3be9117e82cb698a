"""One MLflow for several deployments, or with models of others: nobody writes to what is somebody else's."""

import pytest

from configs.settings import load
from pipelines.deployment import deployment_name
from pipelines.registry import Registry
from pipelines.registry.artifacts import ForeignModelError
from pipelines.registry.owned import TRAINED_BY, TRAINED_IN, deployment
from tests.fakes.forecasters import put_naive

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("elsewhere")]


@pytest.fixture
def client(registry):
    import mlflow  # it takes seconds to load, and few workers need it

    return mlflow.MlflowClient(mlflow.get_tracking_uri())


def refused(registry, job, words):
    """Whether each way to write to a job's model is refused."""
    writes = (
        lambda: put_naive(registry, job, alias="challenger"), lambda: registry.set_champion(job, "1"),
        lambda: registry.succeed(job, "1", None), lambda: registry.promote(job, "1"), lambda: registry.roll_back(job),
        lambda: registry.training(job, "a training").__enter__(),
    )  # fmt: skip
    for write in writes:
        with pytest.raises(ForeignModelError, match=words):
            write()


def test_what_another_deployment_trains_is_read_and_not_written_to_until_it_is_handed_over(registry, settings, client):
    registry.set_champion("orders", put_naive(registry, "orders"))
    other = load(var=settings.var_dir, kafka={"prefix": "staging."})
    staging, before = Registry(other), client.get_registered_model("orders-forecaster")
    refused(
        staging, "orders",
        r"orders-forecaster at .* is trained by another deployment \(topic metrics, experiment tidecast; this is topic "
        r"staging\.metrics, experiment tidecast\).*different names.*set the model's tag trained_by",
    )  # fmt: skip
    after = client.get_registered_model("orders-forecaster")
    assert (after.aliases, after.tags, len(staging.versions("orders"))) == (before.aliases, before.tags, 1)
    assert staging.load("orders").kind == "seasonal_naive"
    client.set_registered_model_tag("orders-forecaster", TRAINED_BY, deployment(other))
    assert put_naive(staging, "orders") == "2"
    with pytest.raises(ForeignModelError):
        put_naive(registry, "orders")


def test_of_two_deployments_alike_but_for_their_folders_one_trains_a_job(registry, settings, tmp_path_factory, client):
    """As development and production may have no prefix, and the same experiment."""
    registry.set_champion("alike", put_naive(registry, "alike"))
    var = tmp_path_factory.mktemp("second")
    second = Registry(load(var=str(var), mlflow={"tracking_uri": registry._uri}))
    trains = (lambda: put_naive(second, "alike"), lambda: second.training("alike", "a training").__enter__())
    for write in trains:
        with pytest.raises(ForeignModelError, match=r"same kafka\.prefix and mlflow\.experiment.*write its name into"):
            write()
    assert len(registry.versions("alike")) == 1
    second.promote("alike", "1")  # a person's word, from another computer
    (var / "deployment").write_text(deployment_name(settings.var_dir))
    assert put_naive(second, "alike") == "2"
    client.delete_registered_model_tag("alike-forecaster", TRAINED_IN)  # as of an earlier release
    assert put_naive(registry, "alike") == "3"
    assert registry.model_tags("alike")[TRAINED_IN] == deployment_name(settings.var_dir)


def test_a_model_of_somebody_elses_keeps_its_aliases(registry, client):
    client.create_registered_model("rides-forecaster")
    client.create_model_version("rides-forecaster", "s3://theirs/model", tags={"team": "pricing"})
    for alias in ("champion", "challenger"):
        client.set_registered_model_alias("rides-forecaster", alias, "1")
    refused(registry, "rides", r"rides-forecaster at .* is no model of Tidecast: none of its 1 versions.*another name")
    after = client.get_registered_model("rides-forecaster")
    assert ({name: str(of) for name, of in after.aliases.items()}, after.tags, len(registry.versions("rides"))) == (
        {"champion": "1", "challenger": "1"}, {}, 1,
    )  # fmt: skip


def test_a_model_of_an_earlier_release_goes_on_without_a_step(registry, settings, client):
    first = put_naive(registry, "old")
    client.delete_registered_model_tag("old-forecaster", TRAINED_BY)
    registry.set_champion("old", first)
    assert put_naive(registry, "old") == "2"
    assert registry.model_tags("old")[TRAINED_BY] == deployment(settings)
