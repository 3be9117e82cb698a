"""Hadoop's client in a real JVM, without an HDFS: what happens once that JVM has ended."""

import signal

import pytest

from pipelines.lake import hadoop_client
from pipelines.lake.errors import LakeAwayError

pytestmark = pytest.mark.integration
NOWHERE = "hdfs://127.0.0.1:1"


def said(client):
    with pytest.raises(LakeAwayError) as told:
        client.exists("/lake")
    return str(told.value)


def test_another_jvm_is_started_once_the_last_one_has_ended(monkeypatch):
    clients = hadoop_client._Clients()
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
    clients._jvm.close()
    clients._jvm.process.wait(10)
