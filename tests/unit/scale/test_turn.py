"""Of two autoscalers at one checkpoint one decides: whose turn it is, and when it comes to the next one."""

import multiprocessing
import signal
import threading
from types import SimpleNamespace

import pytest

from configs.sections import Kafka
from pipelines.kafka.connection import TopicError
from pipelines.scale import turn
from pipelines.scale.autoscaler import leave_if_lost
from pipelines.scale.other_autoscaler import AnotherAutoscalerError
from pipelines.scale.turn import Turn
from tests.fakes.clock import clock_with
from tests.fakes.waiting import PATIENCE_S

KAFKA = Kafka(bootstrap="broker:9092")


@pytest.fixture
def heard(monkeypatch):
    """What is said on the topics in each look from now on, each of which takes a second; nothing once all was."""
    said, now = [], SimpleNamespace(s=1000.0)

    def first_job_heard(kafka, follower, within_s):
        now.s += 1.0
        return said.pop(0) if said else None

    def refuse(kafka):
        if said:
            raise AnotherAutoscalerError(said[0])

    monkeypatch.setattr(turn, "Follower", lambda *_, **__: SimpleNamespace(close=lambda: None))
    monkeypatch.setattr(turn, "first_job_heard", first_job_heard)
    monkeypatch.setattr(turn, "refuse_another", refuse)
    monkeypatch.setattr(turn, "time", clock_with(monotonic=lambda: now.s))
    monkeypatch.setattr(turn, "Publisher", lambda kafka: SimpleNamespace(close=lambda: None))
    claims = []
    monkeypatch.setattr(turn, "Claim", lambda *_: claims.append(TopicClaim(claims)) or claims[-1])
    return SimpleNamespace(said=said, now=now, claims=claims)


class TopicClaim:
    """A claim among those of one topic: a later one supersedes it."""

    def __init__(self, claims):
        self.later, self.closed = claims, False

    def superseded(self):
        return self.later[-1] is not self

    def close(self):
        self.closed = True


def test_the_first_one_decides_at_once_and_the_next_when_it_is_handed_over(tmp_path, heard):
    first = Turn(tmp_path / "autoscaler", KAFKA)
    assert first.has_come()
    second = Turn(tmp_path / "autoscaler", KAFKA)
    assert not second.has_come()
    heard.said += ["orders"] * 9
    looks = iter(range(5))
    assert not second.wait(SimpleNamespace(is_set=lambda: next(looks, None) is None))  # it was heard, and goes on
    first.hand_over()
    before = heard.now.s
    assert second.wait(threading.Event()) and heard.now.s == before  # believed, though it was heard a moment ago
    assert not Turn(tmp_path / "autoscaler", KAFKA).has_come()


def test_of_one_that_was_killed_nothing_must_be_heard_for_a_while(tmp_path, heard):
    checkpoint = tmp_path / "autoscaler"
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()

    def hold():
        held = Turn(checkpoint, KAFKA)
        there.send("held")
        signal.pause()
        held.hand_over()

    first = context.Process(target=hold, daemon=True)
    first.start()
    try:
        assert here.poll(PATIENCE_S)
        second = Turn(checkpoint, KAFKA)
        assert not second.has_come()
    finally:
        first.kill()
        first.join()
    heard.said += [None, "orders", "orders"]
    assert second.wait(threading.Event())
    assert not heard.said and heard.now.s == 1003.0 + turn.LISTEN_S + 1.0


def test_an_earlier_release_has_no_lock_and_is_known_by_what_it_writes(tmp_path, heard):
    checkpoint = tmp_path / "autoscaler"
    heard.said += ["orders"]
    alone = Turn(checkpoint, KAFKA)
    with pytest.raises(AnotherAutoscalerError, match="orders"):
        alone.has_come()  # from another checkpoint
    alone.hand_over()
    (checkpoint / "commits").mkdir(parents=True)
    beside = Turn(checkpoint, KAFKA)
    assert not beside.has_come()
    assert beside.wait(threading.Event()) and heard.now.s == 1001.0 + turn.LISTEN_S + 1.0


def test_who_stands_by_rehearses_meanwhile_and_ends_that_before_it_decides(tmp_path, heard, capsys):
    first, events = Turn(tmp_path / "autoscaler", KAFKA), []
    query = SimpleNamespace(isActive=True, lastProgress=None, stop=lambda: events.append("ended"))

    def rehearse(folder):
        assert folder.is_dir() and tmp_path not in folder.parents
        query.lastProgress = {}
        events.append("rehearsed")
        first.hand_over()
        return query

    assert turn.stand_by(Turn(tmp_path / "autoscaler", KAFKA), threading.Event(), rehearse)
    assert events == ["rehearsed", "ended"] and "ready to take over" in capsys.readouterr().out
    over = threading.Event()
    over.set()
    assert not turn.stand_by(Turn(tmp_path / "autoscaler", KAFKA), over, lambda folder: query)


def test_who_fails_to_rehearse_says_so_and_takes_over_all_the_same(tmp_path, heard, capsys):
    first = Turn(tmp_path / "autoscaler", KAFKA)
    query = SimpleNamespace(isActive=False, lastProgress=None, stop=lambda: None, exception=lambda: "no such class")

    def rehearse(folder):
        first.hand_over()
        return query

    assert turn.stand_by(Turn(tmp_path / "autoscaler", KAFKA), threading.Event(), rehearse)
    said = capsys.readouterr().out
    assert "not ready: leave the other one running until this is mended: no such class" in said
    assert "ready to take over" not in said


@pytest.mark.parametrize(("failing", "ready"), [(turn.TRIES - 1, True), (turn.TRIES, False)])
def test_a_python_worker_that_is_slow_on_a_busy_computer_is_started_again(tmp_path, heard, capsys, failing, ready):
    first, began = Turn(tmp_path / "autoscaler", KAFKA), []

    def rehearse(folder):
        began.append(folder)
        failed = len(began) <= failing
        if not failed or len(began) == turn.TRIES:
            first.hand_over()
        return SimpleNamespace(
            isActive=not failed, lastProgress=None if failed else {}, stop=lambda: None,
            exception=lambda: "Python worker failed to connect back",
        )  # fmt: skip

    assert turn.stand_by(Turn(tmp_path / "autoscaler", KAFKA), threading.Event(), rehearse)
    assert len(began) == turn.TRIES and len({*began}) == 1
    assert ("ready to take over" in capsys.readouterr().out) == ready


class Patient:
    """A stop that nobody sets; what waits for it sees the fake clock go on."""

    def __init__(self, now):
        self.now = now

    def is_set(self):
        return False

    def wait(self, seconds):
        self.now.s += seconds
        return False


@pytest.mark.parametrize("gets_cores", [True, False])
def test_where_the_cluster_lacks_cores_for_both_that_is_said_and_the_turn_comes_all_the_same(
    tmp_path, heard, monkeypatch, capsys, gets_cores
):
    first, seen = Turn(tmp_path / "autoscaler", KAFKA), []
    query = SimpleNamespace(isActive=True, lastProgress=None, stop=lambda: seen.append("stopped"))

    def look(_kafka, _follower, _within_s):
        seen.append(capsys.readouterr().out)
        if len(seen) == 2 and gets_cores:
            query.lastProgress = {}
        if len(seen) == 4:
            first.hand_over()
        return "orders"

    monkeypatch.setattr(turn, "first_job_heard", look)
    began = heard.now.s
    assert turn.stand_by(Turn(tmp_path / "autoscaler", KAFKA), Patient(heard.now), lambda folder: query)
    assert turn.SLOW_S < heard.now.s - began < turn.SLOW_S + 2 * turn.LOOK_S
    slow, *later, stopped = seen
    assert "no micro-batch yet, after 60 s" in slow and "end the other one" in slow and stopped == "stopped"
    assert later == ["", "autoscaler: ready to take over, once the other one is ended\n" if gets_cores else "", ""]


def test_a_worker_that_is_slow_once_there_are_cores_is_started_again_too(tmp_path, heard, monkeypatch, capsys):
    first, began = Turn(tmp_path / "autoscaler", KAFKA), []

    def rehearse(folder):
        began.append(SimpleNamespace(isActive=True, lastProgress=None, stop=lambda: None))
        return began[-1]

    def look(_kafka, _follower, _within_s):
        if len(began) == 1:
            began[0].isActive, began[0].exception = False, lambda: "Python worker failed to connect back"
        else:
            began[1].lastProgress = {}
            first.hand_over()
        return "orders"

    monkeypatch.setattr(turn, "first_job_heard", look)
    assert turn.stand_by(Turn(tmp_path / "autoscaler", KAFKA), Patient(heard.now), rehearse)
    said = capsys.readouterr().out
    assert len(began) == 2 and "not ready" not in said and said.count("no micro-batch yet") == 1


def test_of_two_that_hear_nothing_of_each_other_the_earlier_one_leaves(tmp_path, heard):
    first, second = (Turn(tmp_path / name, KAFKA) for name in ("one", "two"))
    stop = threading.Event()
    assert first.has_come() and leave_if_lost(first, stop) == [] and not stop.is_set()
    assert second.has_come()
    assert leave_if_lost(first, stop) == ["another autoscaler has begun on the topics * at broker:9092"]
    assert first.lost and stop.is_set() and not second.lost and leave_if_lost(second, threading.Event()) == []
    assert leave_if_lost(first, stop) == []  # said once
    first.hand_over()
    assert [one.closed for one in heard.claims] == [True, False]


def test_who_stands_by_or_is_refused_takes_the_topics_from_nobody(tmp_path, heard):
    first, beside = Turn(tmp_path / "one", KAFKA), Turn(tmp_path / "one", KAFKA)
    assert first.has_come() and not beside.has_come()
    heard.said += ["orders"]
    with pytest.raises(AnotherAutoscalerError, match="orders"):
        Turn(tmp_path / "two", KAFKA).has_come()
    assert len(heard.claims) == 1 and first.look() == []
    first.hand_over()
    assert beside.wait(threading.Event()) and len(heard.claims) == 2


def test_where_control_is_forbidden_it_decides_and_says_what_may_go_unseen(tmp_path, heard, monkeypatch, capsys):
    def forbidden(*_):
        raise TopicError("forbidden: control")

    monkeypatch.setattr(turn, "Claim", forbidden)
    alone = Turn(tmp_path / "one", KAFKA)
    assert alone.has_come() and alone.look() == []
    assert "may go unseen, as `control` is not allowed" in capsys.readouterr().out
    alone.hand_over()
