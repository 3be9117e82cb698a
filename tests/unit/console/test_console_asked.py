"""Neighbours are asked in the background: a look never waits, and what goes wrong is said beside what is known."""

import re
import threading

from pipelines.console import asked
from pipelines.console.asked import Polled, problems
from tests.fakes.waiting import wait_until


def test_a_look_never_waits_and_finds_what_was_said_last():
    may, asks = threading.Event(), []

    def read():
        asks.append(1)
        may.wait(20)
        return len(asks)

    one = Polled("MLflow", read, 0.01)
    assert not asks, "nobody has looked"
    assert (one.look().value, one.look().problem) == (None, "MLflow: being asked for.")
    may.set()
    wait_until(lambda: (one.look().value or 0) > 2, "answers", 20)
    assert one.look().problem == "" and problems(one.look()) == ""


def test_a_neighbour_that_goes_away_leaves_what_was_known_and_is_asked_again():
    fails = threading.Event()

    def read():
        if fails.is_set():
            raise OSError("it is away")
        return "known"

    one = Polled("MLflow", read, 0.01)
    wait_until(lambda: one.look().value == "known", "an answer", 20)
    fails.set()
    wait_until(lambda: one.look().problem == "MLflow: it is away", "a problem", 20)
    assert one.look().value == "known"
    said = problems(one.look())
    assert re.fullmatch(r"MLflow: it is away What is shown of it is of \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\.", said)
    fails.clear()
    wait_until(lambda: not one.look().problem, "it to be back", 20)


def test_nobody_is_asked_once_nobody_looks_and_the_next_look_says_how_old_what_it_finds_is(monkeypatch):
    monkeypatch.setattr(asked, "IDLE_S", 0.0)
    may = threading.Event()
    may.set()

    def read():
        may.wait(20)
        return 1

    one = Polled("nobody else", read, 0.01)
    one.look()
    wait_until(
        lambda: all(thread.name != "console nobody else" for thread in threading.enumerate()), "the thread's end", 20
    )
    monkeypatch.setattr(asked, "IDLE_S", 120.0)
    may.clear()
    found = one.look()
    assert found.value == 1
    assert problems(found).startswith("nobody else: being asked for. What is shown of it is of ")
    may.set()
    wait_until(lambda: not one.look().problem, "an answer", 20)
