"""The live part of a run: where it fails it leaves no follower of the topics open; one missed look is no failure."""

import json
from types import SimpleNamespace

import pytest

from configs.settings import load
from pipelines.demo import live
from pipelines.demo.champion import DemoError
from pipelines.demo.live import LiveReplay, wait_for_forecast
from pipelines.jobs.truth import Counted
from pipelines.kafka.connection import BrokerError
from tests.fakes.clock import clock_with


class Broken:
    """A follower whose broker has gone, and how often it was closed."""

    closed = 0

    def poll(self, wait_s):
        raise BrokerError("the broker went away")

    def close(self):
        self.closed += 1


def test_a_load_that_fails_leaves_nothing_open(monkeypatch, tmp_path):
    follower = Broken()
    failed = SimpleNamespace(running=lambda: False, wait=lambda _: 1, last_lines=lambda: "no such trace")
    monkeypatch.setattr(live, "Follower", lambda kafka, topics, start: follower)
    monkeypatch.setattr(live, "begin_correction", lambda settings, began: None)
    stack = SimpleNamespace(spawn=lambda *_: failed)
    with pytest.raises(DemoError, match="no such trace"):
        LiveReplay(stack, load(var=tmp_path), tmp_path, screen=None).replay()
    assert follower.closed == 1


def test_a_look_at_the_counts_that_the_broker_does_not_answer_is_one_of_many(monkeypatch, tmp_path):
    looks, one, now = [], {"n": 3, "seq_sum": 3}, SimpleNamespace(s=0.0)
    (tmp_path / "truth.json").write_text(json.dumps({"produced": 3, "windows": {"live": {"a": one}, "corrected": {}}}))

    def read_counts(kafka):
        looks.append(1)
        if len(looks) == 1:
            raise BrokerError("the broker does not answer")
        return Counted({"a": one} if len(looks) == 3 else {})

    def poll(wait_s):
        now.s += wait_s
        return []

    monkeypatch.setattr(live, "time", clock_with(monotonic=lambda: now.s))
    silent = SimpleNamespace(poll=poll, close=lambda: None)
    ended = SimpleNamespace(running=lambda: False, wait=lambda _: 0)
    monkeypatch.setattr(live, "Follower", lambda kafka, topics, start: silent)
    monkeypatch.setattr(live, "read_counts", read_counts)
    stack, screen = SimpleNamespace(spawn=lambda *_: ended), SimpleNamespace(live=lambda share, view: None)
    LiveReplay(stack, load(var=tmp_path, replay={"withheld_share": 0.0}), tmp_path, screen).replay()
    assert len(looks) == 3


def test_a_wait_for_a_forecast_that_fails_leaves_nothing_open(tmp_path):
    follower = Broken()
    with pytest.raises(BrokerError):
        wait_for_forecast(follower, tmp_path)
    assert follower.closed == 1


def test_a_forecast_that_does_not_come_names_the_log_of_what_serves(monkeypatch, tmp_path):
    silent = SimpleNamespace(poll=lambda wait_s: [], close=lambda: None)
    monkeypatch.setattr(live, "PATIENCE_S", -1.0)
    with pytest.raises(DemoError, match=f"Serving says why in {tmp_path / 'serving.log'}"):
        wait_for_forecast(silent, tmp_path / "serving.log")


def test_an_autoscaler_that_was_started_beforehand_is_the_one_that_is_started(tmp_path):
    spawned = []

    def spawn(name, argv, env):
        spawned.append(name)
        return SimpleNamespace(name=name)

    replay = LiveReplay(SimpleNamespace(spawn=spawn), load(var=tmp_path), tmp_path, screen=None)
    assert replay.start_autoscaler() is replay.start_autoscaler()
    assert spawned == ["autoscaler"]
