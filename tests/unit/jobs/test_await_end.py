"""What ends the wait of a managed job's process for its query."""

import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

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
