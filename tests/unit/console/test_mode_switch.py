"""A change of a job's mode: held against what stands on the topic, written down first, and told if it fails."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from configs.sections import Kafka
from pipelines.bench.team.console.records import NOW, record, word
from pipelines.console import change
from pipelines.console.access import Access, ModeChange
from pipelines.console.change import ModeSwitch, StaleError
from pipelines.console.read.fold import ReadModel, fold
from pipelines.kafka.connection import BrokerError


class World:
    """The topic `control`, the audit trail and the agents' ears, in the order in which they were used."""

    def __init__(self):
        self.control = [word("rides", NOW, "act"), word("orders", NOW, "observe", "bob")]
        self.done, self.fails = [], None

    def read(self, kafka, topic):
        assert topic == "control"
        return iter(self.control)

    def set_mode(self, bootstrap, job, mode, security, prefix, keys, by):
        if self.fails:
            raise self.fails
        self.done.append(("told", bootstrap, job, mode, keys, by))
        self.control.append(word(job, NOW + 9, mode, by))

    def record(self, made):
        self.done.append(made)


@pytest.fixture
def world(monkeypatch):
    made = World()
    monkeypatch.setattr(change, "read_records", made.read)
    monkeypatch.setattr(change, "set_mode", made.set_mode)
    return made


def switch(world, **kafka):
    return ModeSwitch(Kafka(bootstrap="broker:9092", **kafka), Access(print, print, world.record))


def test_a_change_is_written_down_before_it_is_said(world):
    switch(world).change("orders", "act", NOW, "ann")
    told = ("told", "broker:9092", "orders", "act", None, "ann")
    assert world.done == [ModeChange("orders", "observe", "act", "ann"), told]


def test_of_two_tabs_that_saw_the_same_the_second_one_is_refused(world):
    ours = switch(world)
    ours.change("orders", "act", NOW, "ann")
    with pytest.raises(StaleError, match=r"orders was told to act by ann since .* Nothing was changed"):
        ours.change("orders", "freeze", NOW, "bob")
    assert len(world.done) == 2


@pytest.mark.parametrize("seen", [None, NOW - 1])
def test_who_saw_another_word_or_none_is_refused(world, seen):
    with pytest.raises(StaleError, match="by bob"):
        switch(world).change("orders", "act", seen, "ann")
    assert world.done == []


def test_a_job_without_a_word_takes_a_first_one_and_no_stale_one(world):
    with pytest.raises(StaleError, match="showed for clicks is set no longer"):
        switch(world).change("clicks", "act", NOW, "ann")
    switch(world).change("clicks", "act", None, "ann")
    assert world.done[0] == ModeChange("clicks", None, "act", "ann")


def test_a_change_that_fails_is_in_the_trail_as_failed(world):
    world.fails = ConnectionError("no broker")
    with pytest.raises(ConnectionError):
        switch(world).change("orders", "act", NOW, "ann")
    assert world.done == [
        ModeChange("orders", "observe", "act", "ann"), ModeChange("orders", "observe", "act", "ann", "no broker"),
    ]  # fmt: skip


def test_nothing_is_said_that_cannot_be_written_down(world):
    def full(made):
        raise OSError("the database is full")

    with pytest.raises(OSError, match="full"):
        ModeSwitch(Kafka(bootstrap="b:1"), Access(print, print, full)).change("orders", "act", NOW, "ann")
    assert world.done == []


def test_a_change_that_waited_too_long_and_one_behind_it_are_sent_no_more(world, monkeypatch):
    reads, goes_on = threading.Event(), threading.Event()

    def read(kafka, topic):
        reads.set()
        goes_on.wait(60)
        return world.read(kafka, topic)

    monkeypatch.setattr(change, "read_records", read)
    monkeypatch.setattr(change, "BEFORE_S", 0.05)
    ours = switch(world)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(ours.change, "orders", "act", NOW, "ann")
        assert reads.wait(60)
        behind = pool.submit(ours.change, "orders", "freeze", NOW, "bob")
        try:
            with pytest.raises(BrokerError, match=r"orders was not told to freeze: another change.*broker:9092"):
                behind.result(10)
        finally:
            goes_on.set()
        with pytest.raises(BrokerError, match=r"orders was not told to act: .*broker:9092"):
            first.result()
    asked, failed = world.done
    assert asked == ModeChange("orders", "observe", "act", "ann") and "was not told to act" in failed.failed


def test_with_a_key_the_word_is_signed_and_an_unsigned_one_is_none(world, tmp_path):
    keys = tmp_path / "keys.yaml"
    keys.write_text(f"orders: {'k' * 40}\n")
    switch(world, signing_keys=keys).change("orders", "freeze", None, "ann")
    assert world.done[-1] == ("told", "broker:9092", "orders", "freeze", "k" * 40, "ann")


def test_a_damaged_word_is_passed_over(world):
    world.control.append(record("control", "orders:mode", b"{"))
    switch(world).change("orders", "act", NOW, "ann")
    assert len(world.done) == 2


def test_who_saw_a_word_from_a_clock_that_is_ahead_may_give_another_one(world):
    world.control.append(word("orders", NOW + 86_400, "freeze", "bob"))
    shown = fold(ReadModel(), world.control, NOW).jobs["orders"].word
    switch(world).change("orders", "act", shown.wall_time, "ann")
    assert world.done[0] == ModeChange("orders", "freeze", "act", "ann")
