"""What an agent does where the cluster refuses a mode, or Spark does not answer in the midst of what came."""

import time
from collections import deque

import pytest
from py4j.protocol import Py4JError

from tests.fakes.clock import clock_with
from tests.unit.agent.test_commands import Part, Polled, Record, wish
from tidecast import modes
from tidecast.control import mode_key
from tidecast.messages import Control, encode
from tidecast.orders import ReplayOrder, order_key
from tidecast.spark.actuator import ActuatorError


@pytest.fixture
def commands(commands):
    commands._client = Polled({})
    return commands


@pytest.fixture
def now(monkeypatch):
    """The steady clock of the modes."""
    made = [1000.0]
    monkeypatch.setattr(modes, "time", clock_with(monotonic=lambda: made[0]))
    return made


def record(topic, key, message):
    return Record(topic, key.encode(), encode(message))


def word(mode):
    return record("control", mode_key("orders"), Control("orders", time.time(), mode=mode))


def faulty(actuator, *faults):
    """Let `take_over` raise these, one a call, before it does what it did."""
    before, left = actuator.take_over, list(faults)

    def take_over(least):
        if left:
            raise left.pop(0)
        before(least)

    actuator.take_over = take_over
    return left


def test_a_mode_that_the_cluster_refuses_is_tried_again_and_said_once(job, commands, now, caplog):
    """Spark's own allocation may be off by then: nobody would scale the job."""
    left = faulty(job.actuator, *[ActuatorError("no application master yet")] * 3)
    commands._handle(word("act"))
    for still in (2, 1, 0):
        for _ in range(3):
            commands.poll()
        assert (job.mode, len(left)) == ("observe", still)
        now[0] += modes.AGAIN_S + 1
    commands.poll()
    assert job.mode == "act" and job.pending is None
    assert caplog.text.count("no application master yet") == 1


@pytest.mark.parametrize(("failures", "warned"), [(7, True), (8, False), (None, False)])
def test_an_application_that_few_failed_executors_would_end_is_told_as_it_is_taken_over(job, failures, warned, caplog):
    job.actuator.failures = failures  # up to four executors
    modes.switch_mode(job, "act")
    assert ("spark.executor.maxNumFailures=8 and spark.executor.failuresValidityInterval=1h" in caplog.text) is warned
    assert job.mode == "act"


def test_a_mode_of_which_spark_did_not_answer_is_tried_again(job, commands, now):
    faulty(job.actuator, Py4JError("no answer"))
    with pytest.raises(Py4JError):
        commands._handle(word("act"))
    commands.poll()
    assert job.mode == "observe"
    now[0] += modes.AGAIN_S + 1
    commands.poll()
    assert job.mode == "act"


def test_a_mode_that_was_refused_is_not_tried_once_another_one_is_asked_for(job, commands, now):
    left = faulty(job.actuator, ActuatorError("no"))
    for mode in ("act", "observe"):
        commands._handle(word(mode))
    now[0] += modes.AGAIN_S + 1
    commands.poll()
    assert job.mode == "observe" and left == [] and job.actuator.calls == []


def test_what_came_behind_a_record_of_which_spark_did_not_answer_is_met_with_the_next_poll(job, commands, now):
    order = ReplayOrder("r1", "orders", 1.0, "run", {"events": {"0": 0}}, {"events": {"0": 9}})
    ordered = record("control", order_key("orders", "r1"), order)
    decided = record("decisions", "orders", wish(3))
    commands._client = Polled({Part("decisions"): [decided], Part("control"): [word("act"), ordered]})
    faulty(job.actuator, Py4JError("no answer"))
    with pytest.raises(Py4JError):
        commands.poll()
    commands.poll()
    assert job.orders == {"r1": order} and commands._waiting == deque()
