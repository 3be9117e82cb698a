"""When a server of forecasts on Spark claims, and when it begins at the checkpoint of the server before."""

import os
import subprocess
import sys
import time
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from configs.settings import load
from pipelines.serve.stream import spark_server
from pipelines.spark.checkpoint.lock import CheckpointLock
from pipelines.spark.java import JavaError
from pipelines.spark.query_session import SpreadError
from tests.fakes.clock import clock_with


class Site:
    """One server without Spark and broker, and what it does in order."""

    def __init__(self, tmp_path, monkeypatch):
        self.did, self.superseded, self.later = [], False, None
        monkeypatch.setattr(os, "register_at_fork", lambda **functions: None)
        monkeypatch.setattr(spark_server, "create_topics", lambda kafka: None)
        monkeypatch.setattr(spark_server, "read_records", lambda *_: [])
        monkeypatch.setattr(spark_server, "Publisher", lambda kafka: SimpleNamespace(close=lambda: None))
        loader = SimpleNamespace(serving={}, ready=[], start=lambda: None, close=lambda: self.did.append("no loader"))
        monkeypatch.setattr(spark_server, "Loader", lambda *_: loader)
        monkeypatch.setattr(spark_server, "Claim", self._claim)
        monkeypatch.setattr(spark_server, "query_session", self._session)
        monkeypatch.setattr(spark_server, "spread_state", lambda *_: self.did.append("spread") or [])
        monkeypatch.setattr(spark_server, "start_query", self._query)
        monkeypatch.setattr(spark_server, "stop_on_signals", self._signals)
        monkeypatch.setattr(spark_server, "LOOK_S", 0.001)
        self.fallen = []
        clock = SimpleNamespace(set_back_s=lambda: self.fallen.pop() if self.fallen else 0.0, now_s=float)
        monkeypatch.setattr(spark_server, "jvm_clock", lambda spark: clock)
        monkeypatch.setattr(spark_server, "wait_while_behind", lambda *_: self.did.append("waited"))
        self.settings = load(var=str(tmp_path), serving={"poll_s": 0.001})
        self.checkpoint = tmp_path / "serving" / f"{self.settings.training.step_s:g}" / "query"
        self.during_session, self.looks = lambda: None, iter(range(1000))

    def serve(self):
        spark_server.serve_on_spark(self.settings)
        return self.did

    def _signals(self, stop):
        self.stop = stop
        return nullcontext()

    def _session(self, *_, python_state):
        assert python_state
        self.during_session()
        self.did.append("session")
        return SimpleNamespace(stop=lambda: self.did.append("no session"))

    def _claim(self, *_):
        self.did.append("claim")
        return SimpleNamespace(epoch=7, superseded=self._superseded, close=lambda: None)

    def _superseded(self):
        number = next(self.looks)
        if self.later is not None and number == 3:
            self.later()
        return self.superseded or number == 9

    def _query(self, *_):
        self.did.append("query")
        return SimpleNamespace(isActive=True, stop=lambda: self.did.append("no query"))


@pytest.fixture
def site(tmp_path, monkeypatch):
    return Site(tmp_path, monkeypatch)


def test_it_claims_once_it_has_spark_and_hands_the_checkpoint_over_at_its_end(site):
    assert site.serve() == ["session", "claim", "spread", "query", "no query", "no loader", "no session"]
    assert site.checkpoint.with_name("query.lock").read_text() == "" and CheckpointLock(site.checkpoint).take()


def test_where_spark_cannot_start_or_it_is_ended_meanwhile_the_server_before_hears_nothing(site):
    def fails():
        raise JavaError("no Java")

    site.during_session = fails
    with pytest.raises(JavaError):
        site.serve()
    site.during_session = lambda: site.stop.set()
    assert "claim" not in site.serve()


def test_of_cores_that_spark_surely_refuses_the_server_before_hears_nothing(site):
    planned = site.checkpoint / "offsets" / "0"
    planned.parent.mkdir(parents=True)
    planned.write_text('v1\n{"conf": {"spark.sql.shuffle.partitions": "3"}}\n{}')
    with pytest.raises(SpreadError, match=r"3 partitions.*serving\.cores is 1.*Set serving\.cores=3"):
        site.serve()
    assert "claim" not in site.did
    (site.checkpoint / "commits").mkdir()
    (site.checkpoint / "commits" / "0").touch()
    os.utime(site.checkpoint / "commits", (0, 0))
    assert site.serve()[:3] == ["session", "claim", "spread"]


def test_it_begins_when_the_server_before_has_left_and_at_once_where_that_handed_over(site, capsys):
    first = CheckpointLock(site.checkpoint)
    (site.checkpoint / "commits").mkdir(parents=True)  # a moment ago

    def leaves():
        site.did.append("left")
        first.hand_over()

    site.later = leaves
    assert site.serve()[:5] == ["session", "claim", "left", "spread", "query"]
    assert capsys.readouterr().out.count("waiting until the server before has left") == 1


def test_one_that_waits_leaves_for_a_later_one_and_the_checkpoint_as_it_was(site, capsys):
    first = CheckpointLock(site.checkpoint)
    site.superseded = True
    assert site.serve() == ["session", "claim", "no loader", "no session"]
    assert "a later epoch has taken over; leaving" in capsys.readouterr().out
    assert site.checkpoint.with_name("query.lock").read_text() == f"{os.getpid()}\n"
    first.hand_over()


def test_of_one_that_was_killed_no_micro_batch_must_have_ended_for_a_while(site, monkeypatch):
    script = (
        "import sys, time; from pathlib import Path; from pipelines.spark.checkpoint.lock import CheckpointLock\n"
        "held = CheckpointLock(Path(sys.argv[1])); print('held', flush=True); time.sleep(600)"
    )
    (site.checkpoint / "commits").mkdir(parents=True)
    with subprocess.Popen([sys.executable, "-c", script, str(site.checkpoint)], stdout=-1, text=True) as first:
        assert first.stdout.readline() == "held\n"
        lock = CheckpointLock(site.checkpoint)
        assert not lock.take()
        first.kill()
    stop = SimpleNamespace(wait=lambda seconds: next(looks, None) is None)
    claim, looks = SimpleNamespace(superseded=lambda: False), iter(range(20))
    assert not spark_server.has_come(lock, claim, stop) and not lock.handed_over
    monkeypatch.setattr(
        "pipelines.spark.checkpoint.lock.time", clock_with(time=lambda: time.time() + spark_server.QUIET_S)
    )
    assert spark_server.has_come(lock, claim, stop)


def test_a_clock_that_is_set_back_has_the_query_started_again(site, capsys):
    site.fallen.append(3600.0)
    did = site.serve()
    assert did[3:8] == ["query", "no query", "waited", "query", "no query"]
    assert "serving: the clock was set back by 3600 s; the query is started again" in capsys.readouterr().out
