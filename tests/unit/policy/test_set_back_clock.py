"""A job's autoscaler once the clock was set back: it does not wait until the clock has come there again."""

import pytest

from configs.contract import Contract
from models.policy.live.evaluation import SET_BACK_S, with_clock_set_back
from pipelines.scale.processor import Scaler
from tidecast.messages import Forecast, Heartbeat, MetricSample, encode

NOW, HOUR = 1_000_000.0, 3600.0
CONTRACT = Contract(job="orders")


class SteppedJob:
    """A job that sends metrics each second, and the autoscaler's steps on them."""

    def __init__(self, policy):
        self._scaler, self.memory, self.executors = Scaler("orders", CONTRACT, policy, "act"), None, 1

    def step(self, at, *messages):
        rows = [{"topic": topic, "partition": 0, "offset": 0, "value": encode(message)} for topic, message in messages]
        self.memory, sent = self._scaler.step(self.memory, rows, at, at)
        return [message for kind, _, message in sent if kind == "decisions"]

    def live(self, begin, seconds, rps, follows=True):
        """Decisions of so many seconds; unless it `follows` them its executors stay. Beyond 1 record/s some wait."""
        told = []
        for at in (begin + second for second in range(seconds)):
            sample = MetricSample(
                "orders", "interval", at, at, arrival_rps=rps, lag_records=int(100 * rps - 100),
                executors=self.executors, task_ceiling=8, mode="act",
            )  # fmt: skip
            told += self.step(at, ("metrics", sample))
            self.executors = self.memory.target if follows else self.executors
        return told


def forecast_of(rps):
    rows = [[rps, 2 * rps]] * 99
    return Forecast("orders", NOW, NOW, 1.0, 60.0, [0.5, 0.9], rows, "m", "1", "champion", "network", 9, epoch=1)


@pytest.mark.parametrize("policy", ["reactive", "forecast", "keda"])
def test_executors_are_given_up_and_asked_for_by_the_new_time(policy):
    job = SteppedJob(policy)
    job.live(NOW, 60, 10_000.0)
    assert job.executors == CONTRACT.executors.max
    job.live(NOW + 60 - HOUR, 400, 1.0)
    assert job.executors == CONTRACT.executors.min
    job.live(NOW + 460 - 2 * HOUR, 60, 10_000.0)
    assert job.executors == CONTRACT.executors.max


def test_an_agent_that_has_not_followed_a_decision_is_reminded_by_the_new_time():
    job = SteppedJob("reactive")
    assert job.live(NOW, 8, 10_000.0, follows=False)
    assert job.live(NOW + 8 - HOUR, 8, 10_000.0, follows=False)


def test_a_forecast_that_nobody_confirms_grows_old_by_the_new_time():
    job = SteppedJob("forecast")
    job.step(NOW, ("forecasts", forecast_of(1.0)))
    job.live(NOW, 3, 50.0)
    job.live(NOW + 3 - HOUR, 3, 50.0)
    assert job.memory.forecast["wall_time"] == NOW + 3 - HOUR


def test_a_forecast_of_a_time_that_has_not_come_yet_counts_for_nothing_by_the_new_time():
    job = SteppedJob("forecast")
    job.step(NOW, ("forecasts", forecast_of(10_000.0)))
    job.live(NOW, 3, 1.0)
    assert job.executors == CONTRACT.executors.max
    for at in (NOW + 3 - HOUR + second for second in range(60)):
        job.step(at, ("heartbeats", Heartbeat("orders", "serving", at, at, 1.0, "1", at)))
        told = job.live(at, 1, 1.0)
    assert job.executors == CONTRACT.executors.min, told


def test_a_clock_that_wavers_changes_nothing():
    job = SteppedJob("reactive")
    job.live(NOW, 30, 50.0)
    assert with_clock_set_back(job.memory, NOW + 30 - SET_BACK_S) is job.memory
