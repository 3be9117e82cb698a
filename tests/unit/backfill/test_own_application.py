"""The application in which an order is read apart: started as its contract says, once, with what it needs to know."""

import itertools
import json
import os
import signal
import sys
import time
from dataclasses import replace

import pytest

from configs.errors import SettingsError
from configs.settings import load
from pipelines.backfill import application, follow
from pipelines.backfill.application import ApplicationEndedError
from pipelines.backfill.orders import OrderError
from pipelines.kafka.broker import Record
from tests.fakes.clock import clock_with
from tests.fakes.planned_job import NOW, order, progress
from tests.fakes.waiting import PATIENCE_S, wait_until
from tidecast.messages import encode

WRITE = "import json, os, sys; print(json.dumps([sys.argv[1:], os.environ['TIDECAST_KAFKA__BOOTSTRAP']]))"


class Words:
    """A follower of `replays` that gets a word a poll, as long as there are any; `polls` counts these."""

    def __init__(self, words=()):
        self.words, self.polls, self.closed = iter(words), 0, False

    def __call__(self, kafka, topics, start):
        assert (topics, start) == (["replays"], "latest"), "the hours before were read already"
        return self

    def poll(self, wait_s):
        self.polls += 1
        time.sleep(wait_s)
        return [Record("replays", 0, self.polls, one.job, encode(one), NOW) for one in itertools.islice(self.words, 1)]

    def close(self):
        self.closed = True


@pytest.fixture
def world(tmp_path, monkeypatch):
    """Settings, a contract whose application prints what it was told, and a broker of which nothing is asked."""
    found = load(var=tmp_path / "var", contracts=tmp_path, kafka={"bootstrap": "broker:9092", "prefix": "mine."})
    told = tmp_path / "told.py"
    told.write_text(WRITE)
    _state(tmp_path, f"{sys.executable} {told} --n {{executors}}")
    said, sent = {}, []
    monkeypatch.setattr(application, "newest_progress", lambda kafka, job: said)
    monkeypatch.setattr(application, "read_orders", lambda kafka, job: {})
    monkeypatch.setattr(application, "Follower", Words())
    monkeypatch.setattr(application, "send_order", lambda kafka, one: sent.append(one))
    yield found, said, sent
    ours = {application.ORDER: "orders:replay:fix"}  # one that was killed is still there for a moment
    wait_until(lambda: not [*application.environments_of(ours)], "the end of what was started", PATIENCE_S)


def _state(folder, command):
    (folder / "orders.yaml").write_text(
        f"job: orders\nbackpressure:\n  apart: {{executors: 4, command: {json.dumps(command)}}}\n"
    )


def test_it_is_started_by_the_contracts_command_and_told_where_the_broker_is(world):
    settings, _, sent = world
    log = application.give_order(settings, order(apart=3))
    assert [one.wanted for one in sent] == ["run"]
    wait_until(lambda: log.read_text().endswith("\n"), "its words", PATIENCE_S)
    assert json.loads(log.read_text()) == [["--n", "3"], "broker:9092"]
    assert application.give_order(settings, order()) is None and len(sent) == 2  # the live job's agent reads that


@pytest.mark.parametrize(("state", "age_s", "speaks", "starts"), [
    ("running", 1.0, True, False), ("waiting", 1.0, True, False), ("running", 1.0, False, True),
    ("running", 60.0, False, True), ("running", 60.0, True, False), ("running", -600.0, True, False),
    ("paused", 1.0, False, True), ("failed", 1.0, False, True), ("compared", 1.0, False, True),
])  # fmt: skip
def test_one_that_still_speaks_is_not_started_a_second_time(world, monkeypatch, state, age_s, speaks, starts):
    monkeypatch.setattr(application, "HEARD_S", 20.0 if speaks else 0.1)
    monkeypatch.setattr(application, "POLL_S", 0.01)
    settings, known, _ = world
    first = replace(progress(state=state, apart=2), wall_time=time.time() - age_s)
    others = [first, replace(first, id="other", done=5), replace(first, job="others", done=5)]
    heard = Words([*others, *([replace(first, wall_time=first.wall_time + 0.5)] if speaks else [])])
    known["fix"], whole = first, []
    monkeypatch.setattr(application, "newest_progress", lambda kafka, job: whole.append(job) or known)
    monkeypatch.setattr(application, "Follower", heard)
    assert (application.start_application(settings, order(apart=2)) is not None) == starts
    assert len(whole) <= 2, "all that was ever said is read at each look"
    assert heard.closed == (state not in application.ENDED)


def test_one_that_still_starts_is_not_started_a_second_time(world, monkeypatch):
    monkeypatch.setattr(application, "EARLY_S", 0.1)
    settings, *_ = world
    (settings.contracts_dir / "told.py").write_text("import os, time; print(os.getpid(), flush=True); time.sleep(600)")
    log = application.start_application(settings, order(apart=2))
    pid = int(wait_until(log.read_text, "its process id"))
    try:
        assert application.start_application(settings, order(apart=2)) is None
        other = replace(order(apart=2), id="other")
        beside = application.start_application(settings, other)
        second = int(wait_until(lambda: beside.read_text().splitlines()[1:], "the other order's process id")[0])
        os.kill(second, signal.SIGKILL)
    finally:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not [*application.environments_of({application.ORDER: "orders:replay:fix"})], "its end")
    assert application.start_application(settings, order(apart=2)) is not None
    os.kill(int(wait_until(lambda: log.read_text().splitlines()[2:], "the third one's")[0]), signal.SIGKILL)


def test_one_elsewhere_whose_next_word_is_its_last_is_not_waited_for(world, monkeypatch):
    monkeypatch.setattr(application, "POLL_S", 0.01)
    settings, known, _ = world
    now = time.time()
    first, last = (
        replace(progress(state=state, apart=2), wall_time=now + n) for n, state in enumerate(("running", "paused"))
    )
    known["fix"] = first
    monkeypatch.setattr(application, "Follower", Words([first, last]))
    assert application.start_application(settings, order(apart=2)) is not None


@pytest.mark.parametrize(("state", "ahead_s"), [
    ("compared", 0.0), ("failed", 0.0), ("paused", 0.0), ("done", 0.0), ("cancelled", 0.0), ("compared", 3600.0),
    ("compared", -3600.0),
])  # fmt: skip
def test_one_that_has_said_its_last_word_and_ends_is_not_waited_for(world, monkeypatch, state, ahead_s):
    monkeypatch.setattr(application, "EARLY_S", 0.1)
    settings, said, _ = world
    (settings.contracts_dir / "told.py").write_text("import os, time; print(os.getpid(), flush=True); time.sleep(600)")
    pids = []

    def started(ordered):
        log = application.start_application(settings, order(apart=2, wall_time=ordered))
        if log is not None:
            lines = wait_until(lambda: log.read_text().splitlines()[len(pids) :], "its process id")
            pids.append(int(lines[0]))
        return log is not None

    def spoken(state, ordered):
        """Words whose time tells nothing: the clock was set back by an hour, or forward."""
        said["fix"] = replace(progress(state=state, apart=2), wall_time=time.time() + ahead_s, ordered_at=ordered)

    try:
        assert started(NOW)
        spoken("running", NOW - 90)
        assert not started(NOW)  # a word of one before it, and this one has said none yet
        spoken(state, NOW - 10)
        assert not started(NOW)  # likewise: it was begun after that had ended
        spoken(state, NOW)
        assert started(NOW + 10)  # its own last word
        assert not started(NOW + 20)  # that one has said none yet
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)


def test_an_order_whose_application_cannot_be_started_is_over_and_says_why(world, monkeypatch):
    monkeypatch.setattr(application, "EARLY_S", PATIENCE_S)  # as long as a slow computer needs for a Python that ends
    settings, _, sent = world
    _state(settings.contracts_dir, "no-such-command {executors}")
    with pytest.raises(OrderError, match=r"does not start: .*no-such-command.*orders.yaml, backpressure.apart.command"):
        application.give_order(settings, order(apart=2))
    assert [one.wanted for one in sent] == ["run", "done"] and sent[1].wall_time > sent[0].wall_time
    _state(settings.contracts_dir, f"{sys.executable} -c 'raise SystemExit(3)'")
    with pytest.raises(OrderError, match="ended at once with status 3"):
        application.give_order(settings, order(apart=2))
    assert [one.wanted for one in sent][2:] == ["run", "done"]
    (settings.contracts_dir / "orders.yaml").write_text("job: orders\n")
    with pytest.raises(OrderError, match=r"has no backpressure.apart any more"):
        application.start_application(settings, order(apart=2))
    (settings.contracts_dir / "orders.yaml").write_text("job: others\n")
    with pytest.raises(SettingsError):
        application.give_order(settings, order(apart=2))
    assert sent[-1].wanted == "done"


@pytest.fixture
def silent(world, monkeypatch):
    """The world of one of which nothing is heard any more, and what a follower of its order gets to hear."""
    monkeypatch.setattr(application, "EARLY_S", 0.1)
    monkeypatch.setattr(application, "HEARD_S", 0.1)
    monkeypatch.setattr(application, "POLL_S", 0.01)
    monkeypatch.setattr(follow, "follow_progress", lambda kafka, one: iter([progress(apart=2), None, None]))
    return world


def test_one_that_was_killed_is_not_waited_for_without_end(silent):
    settings, said, _ = silent
    (settings.contracts_dir / "told.py").write_text("import os, time; print(os.getpid(), flush=True); time.sleep(600)")
    log = application.start_application(settings, order(apart=2))
    pid = int(wait_until(log.read_text, "its process id"))
    said["fix"] = progress(done=10, apart=2)
    try:
        news = follow.follow_order(settings, order(apart=2))
        assert next(news).said and next(news).silent
    finally:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not [*application.environments_of({application.ORDER: "orders:replay:fix"})], "its end")
    said["fix"] = progress(done=20, apart=2)
    with pytest.raises(ApplicationEndedError, match=r"fix of job orders has ended.*`tidecast backfill orders --resume"):
        next(news)


@pytest.mark.parametrize("patient", [True, False])
def test_one_that_was_never_seen_here_has_time_to_start_elsewhere(silent, monkeypatch, patient):
    if not patient:
        monkeypatch.setattr(follow, "GONE_S", 0.0)
    news = follow.follow_order(silent[0], order(apart=2))
    assert next(news).said
    if patient:
        assert next(news).silent and next(news).silent
    else:
        with pytest.raises(ApplicationEndedError):
            next(news)


def test_nothing_is_said_of_the_silence_of_one_that_is_paused(silent, monkeypatch):
    settings, known, _ = silent

    def heard(kafka, one):
        for said in (progress(apart=2), None, progress(state="paused", apart=2), None, None, progress(apart=2), None):
            known["fix"] = said or known["fix"]
            yield said

    monkeypatch.setattr(follow, "follow_progress", heard)
    told = [(new.said and new.said.state, new.silent) for new in follow.follow_order(settings, order(apart=2))]
    assert told == [("running", False), (None, True), ("paused", False), ("running", False), (None, True)]


@pytest.mark.parametrize("last", ["paused", "running"])
def test_one_that_is_resumed_elsewhere_has_time_to_start_however_long_it_rested(silent, monkeypatch, last):
    settings, known, _ = silent
    known["fix"], orders, clock = progress(state=last, apart=2), {"fix": order(apart=2, wanted="pause")}, [0.0]
    monkeypatch.setattr(follow, "time", clock_with(monotonic=lambda: clock[0]))
    monkeypatch.setattr(follow, "runs_here", lambda settings, order: clock[0] == 0.0)  # it ends, or is killed
    monkeypatch.setattr(application, "read_orders", lambda kafka, job: orders)

    def heard(kafka, one):
        yield known["fix"]
        for clock[0] in (30.0, 9 * 3600.0):
            yield None
        orders["fix"] = order(apart=2, wall_time=NOW + 9 * 3600)
        for after_s in (30.0, 60.0, follow.GONE_S + 30.0):
            clock[0] = 9 * 3600.0 + after_s
            yield None

    monkeypatch.setattr(follow, "follow_progress", heard)
    news = follow.follow_order(settings, order(apart=2))
    assert next(news).said and next(news).silent and next(news).silent
    assert clock[0] == 9 * 3600.0 + 60.0
    with pytest.raises(ApplicationEndedError, match=r"nothing was heard of it for 630 s"):
        next(news)


@pytest.mark.parametrize(("wanted", "last", "ended"), [
    ("run", None, True), ("run", "running", True), ("cancel", "running", True), ("run", "paused", False),
    ("run", "compared", False), ("pause", "running", False), ("done", None, False),
])  # fmt: skip
def test_one_that_rests_is_not_taken_for_ended(silent, monkeypatch, wanted, last, ended):
    settings, said, _ = silent
    said |= {} if last is None else {"fix": progress(state=last, apart=2)}
    monkeypatch.setattr(application, "read_orders", lambda kafka, job: {"fix": order(apart=2, wanted=wanted)})
    if not ended:
        assert application.refuse_ended(settings, order(apart=2), 30.0, starts=False)
        return
    with pytest.raises(ApplicationEndedError, match=r"heard of it for 30 s.*--cancel fix` removes") as told:
        application.refuse_ended(settings, order(apart=2), 30.0, starts=False)
    assert ("--resume fix` goes on" in str(told.value)) == (wanted == "run")
