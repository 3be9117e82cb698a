"""What a job's agent makes of a mode: it is in it, in another one, refuses it, or is not heard."""

from types import SimpleNamespace

import pytest

from configs.sections import Kafka
from pipelines.kafka import mode_word
from pipelines.kafka.broker import Record
from pipelines.kafka.connection import TopicError
from pipelines.kafka.mode_word import ANSWER_S, RefusedModeError, await_answer
from tests.fakes.clock import clock_with
from tidecast.messages import Control, MetricSample, Reject, encode

NOW = 1.7e9
WORD = Control("orders", NOW + 3600, mode="freeze")
WHY = "wall_time=1700003600.0 is 3600 s ahead of the reader; set the sender's clock"


@pytest.fixture
def answers(monkeypatch):
    """What comes of `metrics` and `rejects`, a poll each; each takes a second."""
    told, passed = [], [0.0]

    def poll(wait_s):
        passed[0] += 1.0
        return told.pop(0) if told else []

    follower = SimpleNamespace(poll=poll, close=lambda: None, seek_to_newest=lambda newest: {})
    monkeypatch.setattr(mode_word, "Follower", lambda kafka, topics: follower)
    monkeypatch.setattr(mode_word, "time", clock_with(monotonic=lambda: passed[0]))
    return SimpleNamespace(told=told, passed=passed)


def sample(mode, job="orders"):
    said = encode(MetricSample(job, "interval", NOW, NOW, arrival_rps=1.0, executors=2, mode=mode))
    return Record("metrics", 0, 0, job, said, NOW)


def refusal(word):
    return Record(
        "rejects", 0, 0, "control", encode(Reject.of("control", 0, 1, "agent of orders", WHY, encode(word), NOW)), NOW
    )


def test_an_agent_that_is_in_the_mode_ends_the_wait(answers):
    answers.told += [[sample("freeze", "rides"), sample("act")], [sample(None)], [sample("freeze")], [sample("act")]]
    assert await_answer(Kafka(), WORD) == "" and answers.passed == [3.0]


def test_a_word_that_the_agent_refuses_is_told_with_its_reason(answers):
    other = Control("orders", NOW, mode="freeze")
    answers.told += [[Record("rejects", 0, 0, "control", b"{", NOW), refusal(other), sample("act")], [refusal(WORD)]]
    with pytest.raises(RefusedModeError, match=r"the agent of orders refuses the mode, .*: wall_time=.* 3600 s ahead"):
        await_answer(Kafka(), WORD)


def test_an_agent_that_stays_in_its_mode_and_none_at_all_are_told_within_seconds(answers):
    answers.told += [[sample("observe")]]
    assert "its agent is in mode observe still after 5 s" in await_answer(Kafka(), WORD)
    assert answers.passed == [ANSWER_S]
    assert await_answer(Kafka(), WORD).startswith("no sign of its agent for 5 s")


def test_who_may_not_read_what_agents_say_is_told_that_it_is_not_known(monkeypatch):
    def forbidden(kafka, topics):
        raise TopicError(f"no rights on {topics[0]}")

    monkeypatch.setattr(mode_word, "Follower", forbidden)
    assert await_answer(Kafka(), WORD) == "whether its agent obeys is not known: no rights on rejects"
