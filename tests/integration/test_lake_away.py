"""A lake on an HDFS that is not there: named at once by Hadoop's own client, with nothing read or written."""

import time

import pytest

from pipelines.ingest import run
from pipelines.lake.errors import LakeAwayError
from pipelines.lake.upkeep import maintain

pytestmark = pytest.mark.integration


def test_a_namenode_that_is_away_is_named_before_a_broker_is_asked_or_spark_started(tmp_path, monkeypatch):
    def never(*_, **__):
        raise AssertionError("was begun")

    monkeypatch.setenv("TIDECAST_VAR", str(tmp_path))
    monkeypatch.setenv("TIDECAST_LAKE__ADDRESS", "hdfs://127.0.0.1:1/tidecast/lake")
    monkeypatch.setattr("pipelines.spark.session.local_session", never)
    monkeypatch.setattr("pipelines.spark.query_session.local_session", never)
    monkeypatch.setattr(run, "plan_topic", never)
    began = time.monotonic()
    for act in (lambda: run.ingest("2014-10-22T04"), maintain):
        with pytest.raises(LakeAwayError, match=r"hdfs://127\.0\.0\.1:1/tidecast/lake.*TIDECAST_LAKE__ADDRESS"):
            act()
    assert time.monotonic() - began < 30
    assert not list(tmp_path.iterdir())
