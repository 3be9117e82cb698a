"""What an agent does with the topics of a real broker: kept control words, heartbeats, silence."""

from __future__ import annotations

import threading
import time

import pytest
from kafka import KafkaAdminClient

from pipelines.kafka.broker import Follower
from pipelines.kafka.mode_word import RefusedModeError, await_answer
from pipelines.kafka.publisher import Publisher
from pipelines.kafka.topics import create_topics
from tests.fakes import driver
from tests.fakes.clock import clock_with
from tests.fakes.waiting import wait_until
from tidecast import commands, control, modes
from tidecast import job as job_module
from tidecast.agent import _repeat
from tidecast.connection.signing import HEADER, SigningKeys
from tidecast.messages import Decision, Heartbeat, Reject

pytestmark = pytest.mark.integration

LOST_S = 3_600.0
"""On the agent's clock, which a test puts ahead where silence is looked at: none comes by waiting, however slow."""


@pytest.fixture
def ahead(monkeypatch):
    """By how many seconds the steady clock of those agents is ahead that a test starts, as a list of one."""
    ahead = [0.0]
    for module in (commands, modes, job_module):
        monkeypatch.setattr(module, "time", clock_with(monotonic=lambda: time.monotonic() + ahead[0]))
    return ahead


@pytest.fixture
def attached(empty_topics):
    """Starts the thread that obeys for a job with a cluster that takes notes; it ends with the test."""
    jobs, threads = [], []

    def start(granted="act", **fields):
        job = driver.job(widest_mode=granted, lost_contact_s=LOST_S, prefix=empty_topics.prefix, **fields)
        following = commands.Commands(job, empty_topics.bootstrap, {}, waits_for_clock=False)
        run = threading.Thread(target=_repeat, args=(job, "following", following.poll, 0.0, following.close))
        jobs.append(job), threads.append(run)
        run.start()
        job.following = following
        return job

    yield start
    for job in jobs:
        job.stop.set()
    for thread in threads:
        thread.join()


@pytest.fixture
def publisher(empty_topics):
    made = Publisher(empty_topics)
    yield made
    made.close()


def settled(job):
    wait_until(lambda: job.following._control_read, "the control topic read to its end")


def decide(publisher, executors, id):
    now = time.time()
    publisher.send(
        "decisions", "orders", Decision(id, "orders", now, now, 1.0, "act", "test", executors, "", [], {}, {})
    )
    publisher.flush()


def beat(publisher):
    now = time.time()
    publisher.send("heartbeats", "orders", Heartbeat("orders", "autoscaler", now, now, 1.0, "d1", now, 3, 0))
    publisher.flush()


def test_a_kept_word_never_widens_what_the_code_allows(attached, empty_topics, publisher):
    control.set_mode(empty_topics.bootstrap, "orders", "act", prefix=empty_topics.prefix)
    job = attached("observe")
    settled(job)
    control.set_mode(
        empty_topics.bootstrap, "orders", "act", prefix=empty_topics.prefix
    )  # neither does one that a person sends now
    decide(publisher, 3, "d1")
    decide(publisher, 3, "the end")
    wait_until(lambda: job.following._client.position(_part(empty_topics.topic("decisions"))) == 2, "both decisions")
    assert (job.mode, job.actuator.calls) == ("observe", [])


def test_of_several_kept_words_the_last_alone_counts(attached, empty_topics):
    for word in ("act", "freeze", "act", "observe"):
        control.set_mode(empty_topics.bootstrap, "orders", word, prefix=empty_topics.prefix)
    job = attached("act")
    settled(job)
    assert (job.mode, job.actuator.calls) == ("observe", [])
    for word in ("act", "freeze", "act"):  # what was attached to act can be switched
        control.set_mode(empty_topics.bootstrap, "orders", word, prefix=empty_topics.prefix)
        wait_until(lambda word=word: job.mode == word, f"mode {word}")
    assert job.actuator.calls == ["take over"]


def test_heartbeats_alone_keep_an_agent_acting_through_quiet_hours(attached, publisher, ahead):
    job = attached("act")
    wait_until(lambda: job.mode == "act", "an acting agent")
    decide(publisher, 3, "d1")
    wait_until(lambda: job.actuator.target == 3, "3 executors")
    for _ in range(3):
        heard_at = job.heard_at
        ahead[0] += 0.8 * LOST_S
        beat(publisher)
        wait_until(lambda before=heard_at: job.heard_at > before + LOST_S / 2, "a heartbeat")
    assert not job.handed_back and job.actuator.calls == ["take over", "target 3"]


def test_silence_hands_back_and_a_heartbeat_takes_over_again(attached, publisher, ahead):
    job = attached("act", actuator=driver.NotedActuator(["0", "1"]))
    wait_until(lambda: job.mode == "act", "an acting agent")
    decide(publisher, 1, "d1")
    wait_until(lambda: job.actuator.target == 1, "one executor")
    assert not job.handed_back
    ahead[0] += LOST_S
    wait_until(lambda: job.handed_back, "the hand-back")
    assert job.actuator.calls == ["take over", "target 1", "target 2"]
    beat(publisher)
    wait_until(lambda: not job.handed_back, "contact")
    decide(publisher, 3, "d2")
    wait_until(lambda: job.actuator.target == 3, "3 executors")


def test_an_older_pipeline_has_no_heartbeats_and_a_newer_one_is_found(
    attached, empty_topics, publisher, ahead, monkeypatch
):
    monkeypatch.setattr(commands, "REDISCOVER_S", 0.5)
    admin = KafkaAdminClient(bootstrap_servers=empty_topics.bootstrap)
    admin.delete_topics([empty_topics.topic("heartbeats")])
    wait_until(lambda: empty_topics.topic("heartbeats") not in admin.list_topics(), "the topic gone", every_s=0.05)
    admin.close()
    job = attached("act")
    wait_until(lambda: job.mode == "act", "an acting agent")
    decide(publisher, 2, "d1")
    wait_until(lambda: job.actuator.target == 2, "two executors")
    create_topics(empty_topics)
    ahead[0] += LOST_S
    wait_until(lambda: job.handed_back, "silence")
    wait_until(lambda: beat(publisher) or not job.handed_back, "a heartbeat", every_s=0.2)


def test_an_agent_with_a_key_obeys_those_alone_who_sign(attached, empty_topics, publisher, tmp_path):
    secret, file = "0123456789abcdef0123456789abcdef", tmp_path / "keys.yaml"
    file.write_text(f"orders: {secret}")
    follower = Follower(empty_topics, ["decisions", "control"])
    signed = Publisher(empty_topics.model_copy(update={"signing_keys": file}))
    job = attached("act", signing=SigningKeys.read(secret))
    wait_until(lambda: job.mode == "act", "an acting agent")
    decide(publisher, 4, "d1")
    decide(signed, 3, "d2")
    wait_until(lambda: job.actuator.target is not None and job.actuator.target > 1, "executors")
    where = empty_topics.bootstrap, "orders", "freeze"
    control.set_mode(*where, prefix=empty_topics.prefix)
    control.set_mode(*where, prefix=empty_topics.prefix, signing_key=secret)
    wait_until(lambda: job.mode == "freeze", "a frozen agent")
    assert "target 4" not in job.actuator.calls and job.actuator.target == 3
    assert [reject.topic for reject in job.outbox.of(Reject)] == ["decisions", "control"]
    found = []
    wait_until(lambda: found.extend(follower.poll(0.1)) or len(found) == 4, "all four")
    assert sum(HEADER in record.headers for record in found) == 2
    signed.close()
    follower.close()


def test_a_mode_by_a_clock_that_is_ahead_is_told_as_refused(attached, empty_topics, publisher, monkeypatch):
    job = attached("act")
    wait_until(lambda: job.mode == "act", "an acting agent")
    monkeypatch.setattr(control, "time", clock_with(time=lambda: time.time() + 3600))
    word = control.set_mode(empty_topics.bootstrap, "orders", "freeze", prefix=empty_topics.prefix)
    wait_until(lambda: job.outbox.of(Reject), "the refusal")
    (reject,) = job.outbox.of(Reject)
    publisher.send("rejects", reject.topic, reject)
    publisher.flush()
    with pytest.raises(RefusedModeError, match=r"agent of orders refuses the mode.* s ahead of the reader; set the"):
        await_answer(empty_topics, word)
    assert job.mode == "act"


def _part(topic):
    from kafka import TopicPartition

    return TopicPartition(topic, 0)
