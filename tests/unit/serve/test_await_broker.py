"""A server that Airflow starts again and again waits for a broker that is away."""

from types import SimpleNamespace

import pytest

from configs.sections import Kafka
from pipelines.kafka.connection import BrokerError, TopicError
from pipelines.serve import path
from tests.fakes.clock import clock_with

KAFKA = Kafka(bootstrap="broker:9092")


@pytest.fixture
def paused(monkeypatch):
    """Seconds of each pause."""
    pauses = []
    monkeypatch.setattr(path, "time", clock_with(sleep=pauses.append))
    return pauses


def answers(monkeypatch, *failures):
    """A broker that fails so, one try after the other, and answers then."""
    left = list(failures)

    def follow(*_):
        if left and (failure := left.pop(0)) is not None:
            raise failure
        return SimpleNamespace(close=lambda: None)

    monkeypatch.setattr(path, "Follower", follow)


def test_a_broker_that_answers_is_not_waited_for_and_nothing_is_said(monkeypatch, paused, capsys):
    answers(monkeypatch)
    path.await_broker(KAFKA)
    assert paused == [] and capsys.readouterr().out == ""


def test_one_that_is_away_is_tried_ever_more_seldom_and_told_twice(monkeypatch, paused, capsys):
    answers(monkeypatch, *[BrokerError("no broker answers")] * 9)
    path.await_broker(KAFKA)
    assert paused == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]
    assert capsys.readouterr().out == (
        "serving: waiting for the broker: no broker answers\nserving: the broker answers\n"
    )


def test_one_that_lacks_the_topic_answers(monkeypatch, paused):
    answers(monkeypatch, TopicError("no topic"))
    path.await_broker(KAFKA)
    assert paused == []


def test_a_wrong_setting_is_not_waited_out(monkeypatch, paused):
    answers(monkeypatch, ValueError("security: unknown option"))
    with pytest.raises(ValueError, match="unknown option"):
        path.await_broker(KAFKA)


@pytest.mark.parametrize("error", [BrokerError("no right to write control"), SystemExit("its query failed")])
def test_a_run_that_fails_at_its_start_lasts_a_while_and_says_at_once_why(monkeypatch, capsys, error):
    pauses = []
    monkeypatch.setattr(path, "time", clock_with(monotonic=lambda: 100.0, sleep=pauses.append))
    with pytest.raises(type(error), match=str(error)), path.failing_slowly():
        raise error
    assert pauses == [path.LEAST_RUN_S] and f"{error}" in capsys.readouterr().out


def test_one_that_fails_later_ends_at_once(monkeypatch):
    moments, pauses = iter([0.0, path.LEAST_RUN_S]), []
    monkeypatch.setattr(path, "time", clock_with(monotonic=lambda: next(moments), sleep=pauses.append))
    with pytest.raises(BrokerError), path.failing_slowly():
        raise BrokerError("it stopped answering")
    assert pauses == []
