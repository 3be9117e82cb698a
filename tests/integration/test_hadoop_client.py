"""Hadoop's client in a real JVM, without an HDFS: what happens once that JVM has ended, and where a lake is away."""

import signal
import time

import pytest

from pipelines.ingest import run
from pipelines.lake import hadoop_client
from pipelines.lake.errors import LakeAwayError
from pipelines.lake.upkeep import maintain

pytestmark = pytest.mark.integration
NOWHERE = "hdfs://127.0.0.1:1"


@pytest.fixture(scope="module")
def clients():
    """Those of this process, in the JVM that the first test leaves."""
    found = hadoop_client.client_of.__self__
    yield found
    found._jvm.close()
    found._jvm.process.wait(10)


def said(client):
    with pytest.raises(LakeAwayError) as told:
        client.exists("/lake")
    return str(told.value)


def test_another_jvm_is_started_once_the_last_one_has_ended(clients, monkeypatch):
    client = clients.of(NOWHERE)
    assert "ConnectException" in said(client) and clients.of(NOWHERE) is client
    first = clients._jvm.process
    first.send_signal(signal.SIGKILL)
    first.wait(10)
    assert "has ended, another one is next" in said(client)  # who had it in hand
    again = clients.of(NOWHERE)
    assert again is not client and "ConnectException" in said(again)

    def breaks(authority, gateway):
        raise LakeAwayError("half made")

    with monkeypatch.context() as patch:
        patch.setattr(hadoop_client, "HadoopClient", breaks)
        with pytest.raises(LakeAwayError, match="half made"):
            clients.of("hdfs://127.0.0.1:2")
    assert "ConnectException" in said(clients.of("hdfs://127.0.0.1:2"))


@pytest.mark.usefixtures("clients")
def test_a_namenode_that_is_away_is_named_before_a_broker_is_asked_or_spark_started(tmp_path, monkeypatch):
    """With nothing read or written."""

    def never(*_, **__):
        raise AssertionError("was begun")

    monkeypatch.setenv("TIDECAST_VAR", str(tmp_path))
    monkeypatch.setenv("TIDECAST_LAKE__ADDRESS", f"{NOWHERE}/tidecast/lake")
    monkeypatch.setattr("pipelines.spark.session.local_session", never)
    monkeypatch.setattr("pipelines.spark.query_session.local_session", never)
    monkeypatch.setattr(run, "plan_topic", never)
    began = time.monotonic()
    for act in (lambda: run.ingest("2014-10-22T04"), maintain):
        with pytest.raises(LakeAwayError, match=r"hdfs://127\.0\.0\.1:1/tidecast/lake.*TIDECAST_LAKE__ADDRESS"):
            act()
    assert time.monotonic() - began < 30
    assert not list(tmp_path.iterdir())
