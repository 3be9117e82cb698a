"""The wait for an executor that holds a task's state: raised while it is held, and then what it was."""

from types import SimpleNamespace

import pytest

from tidecast.spark import locality
from tidecast.spark.locality import GENERAL, OPTION, StateWait


class Options(dict):
    """Spark's options, as a `SparkConf` answers; times are in ms or s."""

    def contains(self, name):
        return name in self

    def set(self, name, value):
        self[name] = value

    def remove(self, name):
        self.pop(name, None)

    def getTimeAsMs(self, name, default):
        text = self.get(name, default)
        return int(text[:-2]) if text.endswith("ms") else 1000 * int(text[:-1])


def application_with(own):
    conf = Options(own)
    return conf, SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: SimpleNamespace(conf=lambda: conf)))


@pytest.mark.parametrize(("own", "held"), [
    ({GENERAL: "0s"}, "3000ms"),
    ({GENERAL: "0s", OPTION: "200ms"}, "3000ms"),
    ({GENERAL: "0s", OPTION: "6s"}, "6s"),
    ({GENERAL: "7s"}, None),
    ({}, None),  # Spark waits for three seconds by itself
])  # fmt: skip
def test_it_is_raised_to_three_seconds_at_least_and_given_back(monkeypatch, own, held):
    conf, application = application_with(own)
    monkeypatch.setattr(locality, "_context", lambda: application)
    wait = StateWait()
    wait.hold(False)
    assert conf == own
    for _ in range(2):
        wait.hold(True)
        assert conf.get(OPTION) == held
    for _ in range(2):
        wait.hold(False)
        assert conf == own


@pytest.mark.parametrize("own", [{GENERAL: "0s"}, {GENERAL: "0s", OPTION: "200ms"}])
@pytest.mark.parametrize("first", [0, 1])
def test_agents_of_two_queries_of_an_application_hold_it_together_and_the_last_gives_it_back(monkeypatch, own, first):
    conf, application = application_with(own)
    monkeypatch.setattr(locality, "_context", lambda: application)
    waits = [StateWait(), StateWait()]
    for wait in waits:
        wait.hold(True)
    waits[first].hold(False)
    assert conf[OPTION] == "3000ms"
    waits[1 - first].hold(False)
    assert conf == own


def test_without_spark_there_is_nothing_to_hold(monkeypatch):
    monkeypatch.setattr(locality, "_context", lambda: None)
    wait = StateWait()
    wait.hold(True)
    wait.hold(False)


def test_who_held_it_in_an_application_that_has_ended_keeps_nobody_from_it(monkeypatch):
    (ended, application), (conf, later) = application_with({GENERAL: "0s"}), application_with({GENERAL: "0s"})
    monkeypatch.setattr(locality, "_context", lambda: application)
    of_before, wait = StateWait(), StateWait()
    of_before.hold(True)
    monkeypatch.setattr(locality, "_context", lambda: later)
    wait.hold(True)
    assert conf[OPTION] == "3000ms"
    of_before.hold(False)
    assert ended[OPTION] == conf[OPTION] == "3000ms"
    wait.hold(False)
    assert conf == {GENERAL: "0s"}
