"""What the agent does with decisions and control words, with a cluster and a broker that only take notes."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import NamedTuple

import pytest
from kafka import TopicPartition

from tests.fakes import driver
from tidecast import WALL, modes
from tidecast import commands as following
from tidecast.commands import Commands
from tidecast.control import clock_key, mode_key
from tidecast.messages import Control, Decision, Heartbeat, Outcome, Reject, encode
from tidecast.modes import hand_back_if_silent, note_contact


@dataclass
class Record:
    topic: str
    key: bytes | None
    value: bytes | None
    partition: int = 0
    offset: int = 5


class Part(NamedTuple):
    topic: str
    number: int = 0


class Polled:
    """A client that gives some records once."""

    def __init__(self, records):
        self._records = records

    def poll(self, timeout_ms):
        given, self._records = self._records, {}
        return given


class Kept(Polled):
    """A client of a control topic with one record, which is read."""

    def position(self, part):
        return 1

    def paused(self):
        return ()

    def resume(self, *parts):
        pass


class Topics:
    """A client of a broker that has these numbers of partitions, and the records that are put on them."""

    def __init__(self, **partitions):
        self.records, self.at, self.still = {}, {}, set()
        for topic, many in partitions.items():
            self.grow(topic, many)

    def grow(self, topic, many):
        for number in range(many):
            self.records.setdefault(TopicPartition(topic, number), [])

    def put(self, topic, number, key, message):
        records = self.records[TopicPartition(topic, number)]
        records.append(Record(topic, key.encode(), encode(message), number, len(records)))

    def partitions_for_topic(self, name):
        return {part.partition for part in self.records if part.topic == name}

    def assign(self, parts):
        self.at = {part: self.at.get(part, 0) for part in parts}

    def assignment(self):
        return {*self.at}

    def seek_to_beginning(self, *parts):
        self.at |= dict.fromkeys(parts, 0)

    def seek_to_end(self, *parts):
        self.at |= self.end_offsets(parts)

    def end_offsets(self, parts):
        return {part: len(self.records[part]) for part in parts}

    def position(self, part):
        return self.at[part]

    def pause(self, *parts):
        self.still |= {*parts}

    def paused(self):
        return self.still

    def resume(self, *parts):
        self.still -= {*parts}

    def poll(self, timeout_ms):
        came = {part: self.records[part][at:] for part, at in self.at.items() if part not in self.still}
        self.seek_to_end(*came)
        return came


def wish(executors=3, id="d1", **fields):
    now = time.time()
    return replace(Decision(id, "orders", now, now, 1.0, "act", "test", executors, "why", [], {}, {}), **fields)


def old(age_s, id, **fields):
    at = time.time() - age_s
    return wish(4, id, time=at, wall_time=at, **fields)


def take(commands, message, key="orders", topic="decisions"):
    raw = message if isinstance(message, bytes) else encode(message)
    commands._handle(Record(topic, key.encode(), raw))


def test_a_decision_by_metrics_from_before_the_take_over_is_followed_but_for_its_number(job, commands):
    job.actuator.ids = ["0", "1", "2"]
    before = time.time()
    modes.switch_mode(job, "act")
    take(commands, wish(1, "d1", inputs={"metric_wall_time": before - 0.5}, replay_rps=5.0))
    assert job.actuator.calls == ["take over"] and job.outbox == [] and job.replay_rps == 5.0
    take(commands, wish(1, "d2", inputs={"metric_wall_time": time.time()}))
    assert job.actuator.calls == ["take over", "target 1"]


def test_observing_touches_nothing(job, commands):
    modes.switch_mode(job, "observe")
    take(commands, wish(3))
    assert job.actuator.calls == []
    assert job.outbox == []


def test_acting_applies_and_confirms(job, commands):
    modes.switch_mode(job, "act")
    take(commands, wish(3))
    assert job.actuator.calls == ["take over", "target 3"]
    assert job.tracker.awaits_use()


def test_a_decision_in_observe_mode_is_only_a_recommendation(job, commands):
    modes.switch_mode(job, "act")
    take(commands, wish(3, mode="observe"))
    assert job.actuator.calls == ["take over"]


def test_a_hold_is_no_news(job, commands):
    modes.switch_mode(job, "act")
    take(commands, wish(1))
    assert job.actuator.calls == ["take over"]
    assert job.outbox == []


def test_refusals_are_answered_but_of_a_decision_that_comes_again(job, commands, caplog):
    modes.switch_mode(job, "act")
    take(commands, wish(9, "d1"))
    take(commands, wish(3, "d2"))
    take(commands, wish(4, "d2"))
    take(commands, wish(4, "d3", wall_time=time.time() - 60))
    refused = job.outbox.of(Outcome)
    assert [(o.decision_id, o.status) for o in refused] == [("d1", "refused"), ("d3", "refused")]
    assert [o.reason.split(":")[0] for o in refused] == ["out of bounds", "stale"]
    assert "d2 refused: duplicate" in caplog.text  # what it came to is what its first copy comes to
    assert job.actuator.calls == ["take over", "target 3"]


def test_decisions_that_are_read_again_after_the_broker_lost_newer_ones_are_not_answered(job, commands, caplog):
    """Where it has lost the newest records of a partition, the client begins at the oldest that is kept: a week's."""
    modes.switch_mode(job, "act")

    def read(offset, decision, partition=0):
        commands._handle(Record("decisions", b"orders", encode(decision), partition, offset))

    read(700, wish(3, "d700"))
    for offset in range(3):
        read(offset, old(60_000, f"d{offset}"))
    assert job.outbox.of(Outcome) == [] and "d1" not in caplog.text
    read(3, wish(9, "d3"))  # the topic may have been made anew, and what is on it be new
    read(0, old(60, "late"), partition=1)
    read(4, old(60, "held up"))  # behind a new one
    assert job.outbox.of(Reject) == []
    said = [(one.decision_id, one.reason.split(":")[0]) for one in job.outbox.of(Outcome)]
    assert said == [("d3", "out of bounds"), ("late", "stale"), ("held up", "stale")]
    read(5, wish(2, "d4"))
    assert job.actuator.calls == ["take over", "target 3", "target 2"]


def test_nothing_of_a_decision_that_is_read_again_is_followed(job, commands):
    modes.switch_mode(job, "act")
    commands._handle(Record("decisions", b"orders", encode(wish(3, "d700", replay_rps=5.0)), 0, 700))
    heard_at, seen = job.heard_at, job.seen
    commands._handle(Record("decisions", b"orders", encode(old(60_000, "d0", mode="observe")), 0, 0))
    assert job.replay_rps == 5.0, "what was only recommended a week ago withdraws nothing"
    assert (job.heard_at, job.seen) == (heard_at, seen)


def test_what_the_cluster_refuses_has_failed(job, commands):
    modes.switch_mode(job, "act")
    job.actuator.refuses = True
    take(commands, wish(3))
    (failed,) = job.outbox.of(Outcome)
    assert (failed.status, failed.reason) == ("failed", "the cluster manager said no")


@pytest.mark.parametrize("raw", [b"{", b'{"schema":9}', b'{"schema":1,"id":"d1"}'])
def test_malformed_decisions_go_to_rejects(job, commands, raw):
    modes.switch_mode(job, "act")
    take(commands, raw)
    (reject,) = job.outbox.of(Reject)
    assert (reject.topic, reject.offset, reject.value) == ("decisions", 5, raw.decode())
    assert job.actuator.calls == ["take over"]


def test_anothers_decision_under_our_key_goes_to_rejects(job, commands):
    modes.switch_mode(job, "act")
    take(commands, wish(3, job="payments"))
    assert "payments" in job.outbox.of(Reject)[0].reason


def test_others_keys_are_not_ours_to_judge(job, commands):
    take(commands, b"{", key="payments")
    take(commands, Control("payments", time.time(), mode="act"), mode_key("payments"), "control")
    assert job.outbox == []
    assert job.mode == "observe"


def test_the_mode_is_switched_while_the_job_runs(job, commands):
    def say(mode):
        take(commands, Control("orders", time.time(), mode=mode), mode_key("orders"), "control")

    say("act")
    take(commands, wish(3, "d1"))
    say("freeze")
    take(commands, wish(1, "d2"))
    assert job.actuator.calls == ["take over", "target 3"]
    say("act")
    take(commands, wish(2, "d3"))
    assert job.actuator.calls == ["take over", "target 3", "target 2"]  # taken over once


@pytest.mark.parametrize("granted", modes.NARROWEST_FIRST)
@pytest.mark.parametrize("word", modes.NARROWEST_FIRST)
def test_a_word_may_narrow_what_the_code_allows_and_no_more(granted, word, caplog):
    job = driver.job(widest_mode=granted)
    modes.apply_control_mode(job, word)
    refused = modes.NARROWEST_FIRST.index(word) > modes.NARROWEST_FIRST.index(granted)
    assert job.mode == (granted if refused else word)
    assert (job.actuator.calls == []) == (job.mode == "observe")
    assert (f'attach(..., mode="{word}")' in caplog.text) == refused
    narrows = not refused and word != granted
    assert (f'the word "{word}" on topic control holds' in caplog.text) == narrows
    assert (f"`tidecast job mode orders {granted}` ends that" in caplog.text) == narrows


def test_silence_hands_back_what_was_found_and_life_takes_over_again(commands, caplog):
    job = commands._job
    job.actuator.ids = ["0", "1", "2"]
    modes.switch_mode(job, "act")
    take(commands, wish(1))
    assert len(job.actuator.ids) == 1
    begun = job.heard_at
    hand_back_if_silent(job, begun + job.lost_contact_s - 1)
    assert job.actuator.calls[-1] == "target 1"
    hand_back_if_silent(job, begun + job.lost_contact_s + 1)
    hand_back_if_silent(job, begun + job.lost_contact_s + 2)
    assert job.actuator.calls[-2:] == ["target 1", "target 3"]  # once
    assert "handed back with 3 executors" in caplog.text and "only with a restart" in caplog.text
    job.heard_at -= 100.0
    note_contact(job, 100.0)  # an old record is no sign of life
    assert job.handed_back
    take(commands, wish(2, "d2"))
    assert job.actuator.calls[-1] == "target 2" and not job.handed_back
    assert "is heard again after" in caplog.text


def test_handing_back_takes_nothing_away(commands):
    job = commands._job
    modes.switch_mode(job, "act")
    take(commands, wish(4))
    job.actuator.ids = ["0", "1"]  # the others are yet to come
    hand_back_if_silent(job, job.heard_at + 61)
    assert job.actuator.target == 4


@pytest.mark.parametrize("mode", ["observe", "freeze"])
def test_who_does_not_act_hands_nothing_back(commands, mode):
    modes.switch_mode(commands._job, "act")
    modes.switch_mode(commands._job, mode)
    hand_back_if_silent(commands._job, commands._job.heard_at + 1000)
    assert commands._job.actuator.calls == ["take over"]


def test_where_acting_is_impossible_it_observes(job):
    job.actuator.refuses = True
    modes.switch_mode(job, "act")
    assert job.mode == "observe"
    assert not job.owns_executors


def test_a_clock_is_obeyed_only_by_those_who_wait_for_one(job):
    word = Control("orders", time.time(), wall_start=100.0, trace_start=0.0, time_scale=720.0)
    take(Commands(job, "nowhere:1", {}, waits_for_clock=False), word, clock_key("orders"), "control")
    assert job.clock is WALL
    waiting = Commands(job, "nowhere:1", {}, waits_for_clock=True)
    take(waiting, word, clock_key("orders"), "control")
    assert job.clock.at(101.0) == 720.0
    take(waiting, Control("orders", time.time()), clock_key("orders"), "control")
    assert job.clock is None  # withdrawn


def test_a_malformed_control_word_changes_nothing(job, commands):
    take(
        commands,
        json.dumps({"schema": 1, "job": "orders", "wall_time": 0, "mode": "go"}).encode(),
        "orders:mode",
        "control",
    )
    assert job.mode == "observe"
    assert len(job.outbox.of(Reject)) == 1


def test_live_records_are_held_back_as_decided_and_no_longer_once_nothing_is_said_of_it(job, commands):
    modes.switch_mode(job, "act")
    take(commands, wish(1, "d1", admission_rps=120.0, inputs={"contract_hash": "abc"}))
    assert (job.admission_rps, job.admitted_by) == (120.0, "d1, contract abc")
    take(commands, wish(9, "d2", admission_rps=5.0))  # refused: out of bounds
    assert job.admission_rps == 120.0
    take(commands, wish(1, "d3"))
    assert job.admission_rps is None


def test_what_an_autoscaler_decided_of_records_ends_when_it_or_the_agent_only_observes(job, commands):
    modes.switch_mode(job, "act")
    limited = {"admission_rps": 120.0, "replay_rps": 7.0}
    take(commands, wish(1, "d1", **limited))
    take(commands, wish(1, "d2", mode="observe", **limited))
    assert (job.admission_rps, job.replay_rps) == (None, None)
    for mode in ("observe", "freeze"):
        take(commands, wish(1, f"before {mode}", **limited))
        assert (job.admission_rps, job.replay_rps) == (120.0, 7.0)
        modes.switch_mode(job, mode)
        assert (job.admission_rps, job.replay_rps) == (None, None)
        take(commands, wish(1, f"in {mode}", **limited))
        modes.switch_mode(job, "act")
        assert (job.admission_rps, job.replay_rps) == (None, None), "until it is decided anew"


def test_what_is_reckoned_from_the_executors_that_run_is_followed_where_more_of_them_are_refused(job, commands):
    modes.switch_mode(job, "act")
    take(commands, wish(1, "d1", replay_rps=500.0, admission_rps=120.0))
    take(commands, wish(9, "d2", replay_rps=0.0, admission_rps=5.0))
    assert (job.replay_rps, job.admission_rps) == (0.0, 120.0), "live records are held back no further"
    take(commands, wish(9, "d3", replay_rps=40.0, admission_rps=150.0, inputs={"contract_hash": "abc"}))
    assert (job.replay_rps, job.admission_rps, job.admitted_by) == (40.0, 150.0, "d3, contract abc")
    job.ends, job.batches = {("events", 0): 9, ("events", 1): 9}, 4  # of which Spark has shown no stage
    take(commands, wish(4, "d4", replay_rps=7.0))  # beyond the useful ceiling
    assert (job.replay_rps, job.admission_rps) == (7.0, None)
    assert [one.status for one in job.outbox.of(Outcome)] == ["refused"] * 3 and job.actuator.calls == ["take over"]


def test_live_records_are_held_back_on_more_executors_than_the_query_has_use_for(job, commands):
    modes.switch_mode(job, "act")
    take(commands, wish(2, "d1"))
    job.ends, job.batches = {("events", 0): 9}, 4  # one task at once
    take(commands, wish(2, "d2", admission_rps=5.0))
    assert job.admission_rps == 5.0 and not [one for one in job.outbox.of(Outcome) if one.status == "refused"]


@pytest.mark.parametrize(("told", "may"), [
    ({"may_begin": ["fix", "other"]}, {"fix", "other"}), ({"may_begin": []}, set()),
    ({"may_begin": None}, None), ({}, None), (None, None), ("strange", None), ({"may_begin": 5}, None),
])  # fmt: skip
def test_which_replays_may_begin_is_followed_with_their_rate_and_an_older_autoscaler_says_none(
    job, commands, told, may
):  # fmt: skip
    modes.switch_mode(job, "act")
    for executors in (1, 9):  # the second is refused
        job.may_begin = frozenset({"before"})
        take(commands, wish(executors, f"d{executors}", replay_rps=5.0, inputs={"replay": told}))
        assert (job.replay_rps, job.may_begin) == (5.0, None if may is None else frozenset(may))


def test_of_a_decision_that_is_old_or_seen_nothing_is_followed(job, commands):
    modes.switch_mode(job, "act")
    take(commands, wish(1, "d1", replay_rps=5.0, admission_rps=120.0))
    old = time.time() - 60
    for late in (wish(9, "d2", wall_time=old, replay_rps=500.0), wish(9, "d1", replay_rps=500.0)):
        take(commands, late)
        assert (job.replay_rps, job.admission_rps) == (5.0, 120.0)


def test_a_mode_holds_for_a_decision_that_came_with_it(job):
    polled = {
        Part("decisions"): [Record("decisions", b"orders", encode(wish(3)))],
        Part("control"): [
            Record("control", mode_key("orders").encode(), encode(Control("orders", 1.0, mode="observe")))
        ],
    }
    commands = Commands(job, "nowhere:1", {}, waits_for_clock=False)
    commands._client, commands._control_read = Polled(polled), True
    modes.switch_mode(job, "act")
    commands.poll()
    assert job.mode == "observe" and job.actuator.calls == ["take over"]


@pytest.mark.parametrize("kept", [True, False])
def test_an_old_word_that_keeps_a_new_agent_from_acting_is_told_once_control_is_read(job, kept, caplog):
    word = Record("control", mode_key("orders").encode(), encode(Control("orders", 1.0, mode="observe")))
    commands = Commands(job, "nowhere:1", {}, waits_for_clock=False)
    commands._client, commands._unread = Kept({Part("control"): [word] if kept else []}), {Part("control"): 1}
    commands.poll()
    assert job.mode == ("observe" if kept else "act")
    assert ('"observe" on topic control holds' in caplog.text) == kept


def following_commands(job, topics, monkeypatch):
    monkeypatch.setattr(following, "consumer", lambda *where, **options: topics)
    monkeypatch.setattr(following, "REDISCOVER_S", 0.0)
    return Commands(job, "nowhere:1", {}, waits_for_clock=False)


def test_partitions_that_topics_get_later_are_followed_and_nothing_on_them_is_missed(job, monkeypatch):
    topics = Topics(decisions=1, control=1)
    topics.put("decisions", 0, "orders", wish(2, "before it was attached"))
    commands = following_commands(job, topics, monkeypatch)
    commands.poll()
    assert job.mode == "act"
    for topic in ("decisions", "control", "heartbeats"):
        topics.grow(topic, 3)
    topics.put("decisions", 2, "orders", wish(3, "d1"))
    topics.put("heartbeats", 1, "orders", Heartbeat("orders", "autoscaler", 0.0, time.time(), 1.0))
    for _ in range(2):
        commands.poll()
    assert job.actuator.calls == ["take over", "target 3"] and topics.at[TopicPartition("heartbeats", 1)] == 1
    topics.put("control", 1, mode_key("orders"), Control("orders", time.time(), mode="freeze"))
    topics.put("decisions", 0, "orders", wish(4, "d2"))  # those that there were are read on
    commands.poll()
    assert job.mode == "freeze" and job.actuator.calls == ["take over", "target 3"]
    assert topics.at[TopicPartition("decisions", 0)] == 2


@pytest.mark.parametrize("newest", [0, 1])
def test_of_kept_words_on_several_partitions_the_newest_holds(job, monkeypatch, newest):
    topics = Topics(decisions=1, control=2, heartbeats=1)
    topics.put("control", 1 - newest, mode_key("orders"), Control("orders", 100.0, mode="act"))
    topics.put("control", newest, mode_key("orders"), Control("orders", 300.0, mode="act"))
    topics.put("control", newest, mode_key("orders"), Control("orders", 200.0, mode="freeze"))  # a clock is behind
    following_commands(job, topics, monkeypatch).poll()
    assert job.mode == "freeze" and job.outbox == []


def test_orders_are_known_to_be_the_newest_once_control_is_read_to_its_end(job):
    commands = Commands(job, "nowhere:1", {}, waits_for_clock=False)
    commands._client, commands._unread = Kept({}), {Part("control"): 2}
    commands.poll()
    assert not job.orders_read
    commands._unread = {Part("control"): 1}
    commands.poll()
    assert job.orders_read and job.mode == "act"


def test_a_decision_that_waited_for_spark_is_judged_by_the_time_at_which_it_is_applied(job, commands):
    modes.switch_mode(job, "act")
    job.limits = replace(job.limits, fresh_s=0.2)
    with ThreadPoolExecutor() as threads:
        with job.lock:  # as an agent has it that asks a cluster manager for executors
            taken = threads.submit(take, commands, wish(3))
            time.sleep(0.4)
        taken.result()
    (said,) = job.outbox.of(Outcome)
    assert said.status == "refused" and "stale" in said.reason and job.actuator.calls == ["take over"]


def test_a_clock_that_is_set_makes_no_silent_autoscaler_heard_and_no_heard_one_silent(commands):
    job = commands._job
    modes.switch_mode(job, "act")
    now = job.heard_at
    note_contact(job, -3600.0)  # sent by a clock that is an hour ahead of this one
    assert now <= job.heard_at <= now + 60
    note_contact(job, 3600.0)
    hand_back_if_silent(job, now + job.lost_contact_s)
    assert not job.handed_back
    hand_back_if_silent(job, job.heard_at + job.lost_contact_s + 1)
    assert job.handed_back


@pytest.mark.parametrize(("relief", "weights"), [
    ({"weights": {"events": 3, "notes": 0.5}}, {"events": 3.0, "notes": 0.5}),
    ({"weights": {"events": "3", "notes": -1, "a": True, "b": 2}}, {"b": 2.0}),
    ({"weights": [1]}, {}), ("no relief", {}), (None, {}),
])  # fmt: skip
def test_weights_of_topics_come_with_the_decision_and_what_is_none_is_left_out(job, commands, relief, weights):
    modes.switch_mode(job, "act")
    take(commands, wish(1, "d1", admission_rps=5.0, inputs={"relief": relief}))
    assert job.weights == weights
