import signal
from pathlib import Path
from types import SimpleNamespace

import pyspark.sql
import pytest

from pipelines.spark import java, session


class Builder:
    """Builds a session that takes ctrl-C for itself, as a SparkContext does."""

    def appName(self, name):
        return self

    master = appName

    def getOrCreate(self):
        signal.signal(signal.SIGINT, signal.default_int_handler)
        return "session"


@pytest.fixture
def stop():
    """A process's own answer to ctrl-C."""

    def handler(*_): ...

    before = signal.signal(signal.SIGINT, handler)
    yield handler
    signal.signal(signal.SIGINT, before)


def test_a_process_that_stops_cleanly_on_ctrl_c_still_does_with_a_session(monkeypatch, stop):
    monkeypatch.setattr(pyspark.sql, "SparkSession", SimpleNamespace(builder=Builder()))
    monkeypatch.setattr(java, "find_java", lambda: java.Java(Path("/java"), 17))
    monkeypatch.setenv("JAVA_HOME", "")
    assert session._build("quick", "local[1]", {}) == "session"
    assert signal.getsignal(signal.SIGINT) is stop
