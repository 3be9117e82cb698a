"""All registered models at a glance, from an embedded MLflow."""

import time

from configs.settings import load
from pipelines.registry.overview import read_overview
from pipelines.registry.tracking import open_store


def test_of_each_model_of_ours_the_versions_with_an_alias_and_the_newest_are_told(tmp_path):
    settings = load(var=tmp_path)
    client, _, _ = open_store(settings)
    for name, versions in (("orders-forecaster", 4), ("orders-agent", 1), ("of-another", 2), ("empty-performance", 0)):
        client.create_registered_model(name)
        for number in range(versions):
            client.create_model_version(name, "file:///nowhere", tags={"kind": "blend", "live.wape": f"0.{number}"})
    client.set_registered_model_alias("orders-forecaster", "champion", "2")
    client.set_registered_model_alias("orders-forecaster", "previous", "1")
    empty, agent, forecaster = read_overview(settings)
    assert [(one.job, one.what, one.many) for one in (empty, agent, forecaster)] == [
        ("empty", "performance", 0), ("orders", "agent", 1), ("orders", "forecaster", 4),
    ]  # fmt: skip
    told = [(one.version, one.aliases) for one in forecaster.versions]
    assert told == [("4", ()), ("2", ("champion",)), ("1", ("previous",))]
    assert forecaster.versions[1].tags == {"kind": "blend", "live.wape": "0.1"}
    assert abs(forecaster.versions[0].made_at - time.time()) < 600
    assert empty.versions == ()
