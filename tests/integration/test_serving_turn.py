"""A server of another deployment on the topics of a first one waits while that one is heard, and says what helps."""

import threading
import time
from contextlib import closing
from types import SimpleNamespace

import pytest

from configs.settings import load
from pipelines.deployment import deployment_name
from pipelines.kafka.broker import Follower
from pipelines.kafka.claim import SERVING, Claim, last_claim
from pipelines.kafka.publisher import Publisher
from pipelines.serve import turn
from pipelines.serve.turn import await_turn
from tests.fakes.clock import clock_with
from tests.fakes.waiting import PATIENCE_S, wait_until
from tidecast.messages import Heartbeat, MetricSample

pytestmark = pytest.mark.integration
LISTEN_S, LONGER_S = 8.0, 10.0
"""Seconds of the listener's own clock, and more than those."""


@pytest.fixture
def site(empty_topics, tmp_path):
    """Settings of two deployments with one prefix, and the publisher of their jobs' agents."""
    both = [load(var=str(tmp_path / name), kafka=empty_topics.model_dump()) for name in ("first", "second")]
    with closing(Publisher(empty_topics)) as publisher:
        yield *both, publisher


def claim(settings, publisher):
    Claim(settings.kafka, publisher, SERVING, deployment_name(settings.var_dir)).close()


@pytest.fixture
def clock(monkeypatch):
    """The listener's: `now` goes on by a second with what comes, not while a busy machine brings nothing."""
    clock = SimpleNamespace(now=0.0, polls=0)

    class Heard(Follower):
        def poll(self, wait_s):
            found = super().poll(wait_s)
            clock.now += bool(found)
            clock.polls += 1
            return found

    monkeypatch.setattr(turn, "time", clock_with(monotonic=lambda: clock.now))
    monkeypatch.setattr(turn, "Follower", Heard)
    return clock


def test_a_server_waits_while_another_deployments_is_heard_and_for_none_of_its_own(site, clock, capsys):
    first, second, publisher = site
    await_turn(first, LISTEN_S)  # nobody has served
    claim(first, publisher)
    await_turn(first, LISTEN_S)
    assert capsys.readouterr().out == ""
    over, silent = threading.Event(), threading.Event()

    def speak():
        while not over.wait(0.2):
            now = time.time()
            if not silent.is_set():
                publisher.send("heartbeats", "orders", Heartbeat("orders", "serving", now, now, 1.0))
            publisher.send("metrics", "orders", MetricSample("orders", "interval", now - 1, now, arrival_rps=1.0))

    waits = threading.Thread(target=await_turn, args=(second, LISTEN_S), daemon=True)
    jobs = threading.Thread(target=speak, daemon=True)
    waits.start()
    said, has_served = [], f"the deployment {deployment_name(first.var_dir)} has served on the topics"
    try:
        wait_until(lambda: said.append(capsys.readouterr().out) or "TIDECAST_KAFKA__PREFIX" in said[-1], "the remedy")
        assert f"{has_served} {first.kafka.prefix}*" in said[-1]
        wait_until(lambda: clock.polls, "a listener")
        clock.now, listened = clock.now + LONGER_S, clock.polls + 2
        wait_until(lambda: clock.polls >= listened or not waits.is_alive(), "a look at the clock")
        assert waits.is_alive()  # no job runs: nothing is to be served, and nobody could be heard
        jobs.start()
        later = clock.now + LONGER_S
        wait_until(lambda: clock.now >= later or not waits.is_alive(), "heartbeats for longer than it listens")
        assert waits.is_alive() and last_claim(second.kafka, SERVING) == deployment_name(first.var_dir)
        silent.set()
        waits.join(PATIENCE_S)
    finally:
        over.set()
        if jobs.is_alive():
            jobs.join()
    assert not waits.is_alive() and "taking over" in capsys.readouterr().out
