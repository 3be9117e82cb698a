"""What ends the wait of a managed job's process for its query, and what comes then."""

import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from pipelines.jobs import running
from pipelines.jobs.running import _await_end


class Falling:
    """A clock that is set back at the third look, and the query that is looked at beside it."""

    def __init__(self):
        self.told, self.looks = [0.0, 0.0, 3600.0, 0.0], 0

    def set_back_s(self):
        self.looks += 1
        return self.told[self.looks - 1]


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    monkeypatch.setattr(threading.Event, "wait", lambda event, timeout=None: event.is_set())


def test_a_clock_that_is_set_back_ends_it_and_is_told(tmp_path):
    clock = Falling()
    assert _await_end(SimpleNamespace(isActive=True), threading.Event(), tmp_path, clock.set_back_s) == 3600.0
    assert clock.looks == 3


def test_a_query_that_has_ended_or_a_signal_ends_it_with_nothing_to_tell():
    clock, stopped = Falling(), threading.Event()
    stopped.set()
    assert _await_end(SimpleNamespace(isActive=False), threading.Event(), Path("logs"), clock.set_back_s) == 0.0
    assert _await_end(SimpleNamespace(isActive=True), stopped, Path("logs"), clock.set_back_s) == 0.0
    assert clock.looks == 0


@pytest.mark.parametrize(("stopped", "queries"), [(False, 2), (True, 1)])
def test_where_the_clock_is_set_back_query_and_agent_are_begun_anew_once_it_is_right(monkeypatch, stopped, queries):
    did, stop, fell = [], threading.Event(), [3600.0, 0.0]

    def started(launch, contract, start_query):
        number = 1 + sum(done.startswith("query") for done in did)
        did.append(f"query {number}")
        return SimpleNamespace(stop=lambda: did.append(f"end of {number}"))

    def waited(kafka, now_s, stop, *topic):
        did.append("waited")
        if stopped:
            stop.set()

    agent = SimpleNamespace(stop=lambda: did.append("agent leaves"))
    monkeypatch.setattr(running, "_started", started)
    monkeypatch.setattr(running, "attach_agent", lambda *_, **how: did.append(f"agent, {how['replay']}") or agent)
    monkeypatch.setattr(running, "_await_end", lambda *_: fell.pop(0))
    monkeypatch.setattr(running, "wait_while_behind", waited)
    monkeypatch.setattr(running, "jvm_clock", lambda spark: SimpleNamespace(set_back_s=None, now_s=None))
    launch = SimpleNamespace(job="orders", spark=None, settings=SimpleNamespace(kafka=None), run_dir=Path("run"))
    running._run(launch, None, None, lambda launch, query: "ranges", stop, acts=True)
    first = ["query 1", "agent, ranges", "agent leaves", "end of 1", "waited"]
    assert did == first + (["query 2", "agent, ranges"] if queries == 2 else [])
