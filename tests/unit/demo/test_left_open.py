"""The live part of a run leaves no follower of the topics open where it fails."""

from types import SimpleNamespace

import pytest

from configs.settings import load
from pipelines.demo import live
from pipelines.demo.champion import DemoError
from pipelines.demo.live import LiveReplay, wait_for_forecast
from pipelines.kafka.connection import BrokerError


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
