"""The very `docker/compose.yaml` on stand-ins of the official images: a loop that closes, down and up again."""

from pipelines.bench.site.deployment import deploy


def test_the_loop_closes_and_nothing_is_lost_between_down_and_up(tmp_path):
    found = deploy(tmp_path)
    assert found["champion"] is not None
    assert any(before != after for before, after in found["moved"])
    assert found["lost"] == [] and found["waited"] > 0
    assert found["produced"] > 0
    assert found["sick"] == found["mlflow_sick"] == 1
    assert found["leaked"] == [] and found["searched"] > 100
    assert found["outside"] == []
