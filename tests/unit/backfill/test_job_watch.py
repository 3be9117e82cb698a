"""What a watch of a job takes of its topics: what is valid, signed where that is asked, and of this job."""

import time
from dataclasses import replace

import pytest

from configs.settings import load
from pipelines.backfill import watch
from pipelines.backfill.watch import JobWatch
from pipelines.kafka.broker import Record
from pipelines.kafka.connection import BrokerError
from pipelines.kafka.signing import Signer
from tests.fakes.planned_job import CONTRACT, NOW, forecast, order, progress
from tidecast.connection.signing import HEADER
from tidecast.control import clock_key
from tidecast.messages import Control, Decision, MetricSample, Outcome, encode
from tidecast.orders import order_key

JOB = "orders"


class Topics:
    """Topics of a broker, and how many of their followers are closed."""

    def __init__(self):
        self.there, self.comes, self.closed = [], [], 0

    def follow(self, kafka, topics):
        assert "control" in topics
        self.followed = topics
        return self

    def seek_to_newest(self, newest):
        assert newest["control"] is None
        return {("control", 0): len(self.there)}

    def read_until(self, ends):
        if None in self.there:
            raise BrokerError("nothing more came for 30 s")
        yield from (one for one in self.there if one.topic in self.followed)

    def poll(self, wait_s):
        return self.comes

    def close(self):
        self.closed += 1


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Settings of a job with a key, its topics, and a way to write a record that is signed or not."""
    (tmp_path / "keys.yaml").write_text(f"{JOB}: {'k' * 32}")
    (tmp_path / f"{JOB}.yaml").write_text(CONTRACT.model_dump_json())
    settings = load(contracts=tmp_path, kafka={"bootstrap": "127.0.0.1:9", "signing_keys": tmp_path / "keys.yaml"})
    topics, signer = Topics(), Signer.of(settings.kafka)
    monkeypatch.setattr(watch, "Follower", topics.follow)

    def record(topic, key, value, signed=False):
        headers = {HEADER: signer.sign(topic, key, value, JOB)} if signed else {}
        return Record(topic, 0, 0, key, value, time.time(), headers)

    return settings, topics, record


def test_valid_records_of_the_job_count_and_no_others(site):
    settings, topics, record = site
    key, clock = order_key(JOB, "fix"), encode(Control(JOB, time.time(), None, time.time(), 0.0, 360.0))
    forged = encode(order(ends={"events": {"0": 10**6}}, wall_time=time.time()))
    topics.there = [
        record("control", key, encode(order()), signed=True),
        record("control", key, forged),
        record("control", key, b"", signed=True),
        record("control", order_key(JOB, "other"), encode(order()), signed=True),
        record("control", clock_key(JOB), clock, signed=True),
        record("control", clock_key(JOB), encode(Control(JOB, time.time(), None, time.time(), 0.0, 1.0))),
        record("forecasts", JOB, b"{"),
        record("forecasts", JOB, encode(forecast(time.time()))),
        record("forecasts", JOB, encode(forecast(time.time() + 3600))),
        record("replays", JOB, encode(progress(done=10))),
        record("replays", "sales", encode(progress(done=20))),
        record("replays", JOB, b""),
    ]
    with JobWatch(settings, JOB) as found:
        assert found.orders == {"fix": order()} and found.clock.scale == 360
        assert found.progress == {"fix": progress(done=10)} and len(found._forecasts) == 1
        topics.comes = [record("replays", JOB, encode(progress(done=30)))]
        assert found.poll(0.0) == [progress(done=30)]
        topics.comes = [record("replays", JOB, encode(progress(state="waiting")))]  # of a driver that has just started
        assert found.poll(0.0) == [progress(done=30, state="waiting")] == list(found.progress.values())
        topics.comes = [record("control", key, encode(order(wanted="pause", wall_time=time.time())), signed=True)]
        assert found.poll(0.0) == []
        assert found.orders["fix"] == replace(order(), wanted="pause", wall_time=found.orders["fix"].wall_time)
    assert topics.closed == 1


@pytest.mark.parametrize("after", [
    "job: orders\nexecutors: {min: 9, max: 1}\n",
    "job: orders\nbackpressure: {paths: [{ops: [orders, join], quantile: 0.9, max_ms: 9000}]}\n",
    None,
])  # fmt: skip
def test_a_contract_that_changes_holds_from_the_next_moment_on_and_a_wrong_one_never(site, after):
    settings, _, _ = site
    file = settings.contracts_dir / f"{JOB}.yaml"
    with JobWatch(settings, JOB) as found:
        assert found.now().known.contract.executors.max == 8
        file.write_text(
            "job: orders\nlatency_target_s: 10\nexecutors: {min: 1, max: 12}\nplanning: {per_record_s: 0.02}\n"
        )
        known = found.now().known
        assert known.contract.executors.max == 12 and known.memory.model.per_record_s == 0.02
        if after is None:
            file.unlink()
        else:
            file.write_text(after)
        assert found.now().known.contract == known.contract


def test_with_another_scaling_the_executors_that_run_are_known_to_sustain_what_they_did(site):
    settings, topics, record = site
    now = time.time()
    shown = MetricSample(JOB, "interval", now, now, arrival_rps=100.0, lag_records=0, executors=4, task_ceiling=64)
    topics.there = [record("metrics", JOB, encode(shown))]
    planning = CONTRACT.planning.model_copy(update={"scaling": 0.5})
    edited = CONTRACT.model_copy(update={"planning": planning}).model_dump_json()
    with JobWatch(settings, JOB) as found:
        before = found.now().known.memory.model.per_record_s
        (settings.contracts_dir / f"{JOB}.yaml").write_text(edited)
        for _ in range(2):  # the edit is found once
            assert found.now().known.memory.model.per_record_s / 4**0.5 == pytest.approx(before / 4)


def decision(at, executors, *codes):
    """What the autoscaler wrote `at` seconds from NOW."""
    said = ("act", "mpc", executors, "", [*codes], {}, {})
    return Decision(f"{JOB}-{at}", JOB, NOW + at, NOW + at, 1.0, *said)


def measured(at, batch_s=None):
    """An interval with two executors, or a batch on them."""
    kind = {"executors": 2, "task_ceiling": 64, "mode": "act"}
    if batch_s is None:
        return MetricSample(JOB, "interval", NOW + at, NOW + at, arrival_rps=100.0, lag_records=0, **kind)
    return MetricSample(JOB, "batch", NOW + at, NOW + at, batch_rows=700, batch_s=batch_s, **kind)


def full(at):
    """That the cluster has no room for an executor."""
    said = ("ineffective", "", 2, 2, 3)
    return Outcome(f"{JOB}-5", JOB, NOW + at, NOW + at, 1.0, *said, observed={"no_room": True})


@pytest.mark.parametrize(("growth", "signed", "more", "teaches"), [
    (1.0, True, [], False),
    (0.0, True, [], True),  # it starts on a computer of its own
    (1.0, False, [], True),  # nobody obeys it
    (1.0, True, [("decisions", decision(6, 2, "down"))], True),
    (1.0, True, [("outcomes", full(6))], True),  # nothing starts where there is no room
    (1.0, True, [("outcomes", full(6)), ("decisions", decision(7, 3, "hold"))], False),  # but there was some after all
    (1.0, True, [("outcomes", full(6)), ("decisions", decision(7, 3, "hold", "no_room"))], True),
])  # fmt: skip
def test_a_batch_beside_a_start_teaches_a_plan_nothing_as_the_autoscaler(site, growth, signed, more, teaches):
    settings, topics, record = site
    contract = CONTRACT.model_copy(update={"planning": CONTRACT.planning.model_copy(update={"start_growth": growth})})
    (settings.contracts_dir / f"{JOB}.yaml").write_text(contract.model_dump_json())
    before = [record("metrics", JOB, encode(measured(at))) for at in (0, 4)]
    before.append(record("decisions", JOB, encode(decision(1, 2, "hold")), signed=True))
    raised = record("decisions", JOB, encode(decision(5, 3, "up")), signed=signed)
    heard = [record(topic, JOB, encode(one), signed=topic == "decisions") for topic, one in more]
    topics.there = [record("metrics", JOB, encode(measured(9, 8.0))), *heard, raised, *before]  # as topics are read
    with JobWatch(settings, JOB) as found:
        learned = found.now().known.memory
    topics.there = before
    with JobWatch(settings, JOB) as found:
        known = found.now().known.memory
    assert (learned.model != known.model) == (learned.scatter != known.scatter) == teaches


def test_a_watch_that_cannot_read_what_there_is_leaves_nothing_open(site):
    settings, topics, _ = site
    topics.there = [None]
    with pytest.raises(BrokerError, match="nothing more came"):
        JobWatch(settings, JOB)
    assert topics.closed == 1
