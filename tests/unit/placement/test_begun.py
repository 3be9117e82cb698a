"""How a query begins, as its driver notes it: executors at a batch, the first batch done, the agent attached."""

import os
from types import SimpleNamespace

import pytest

from models.placement.plan.applications import BlockApplication
from pipelines.placement import begun
from pipelines.placement.begun import follow_query, has_tasks, last_tasks_ns
from pipelines.placement.watched_block import BlockEpoch
from tests.fakes.clock import clock_with

DONE = {"durationMs": {"addBatch": 40_000}}
AT_BATCH = {"message": "Processing new data", "isDataAvailable": True}
IDLE = {"message": "Waiting for data to arrive", "isDataAvailable": False}


class FakeQuery:
    """A query on executors that run tasks: what a driver asks of session and query."""

    def __init__(self):
        self.isActive, self.recentProgress, self.status = True, [], AT_BATCH
        self.executors, self.tasks = 0, []
        self.sparkContext = self._jsc = self
        self.now_s = 0.0

    def statusTracker(self):
        return self

    def getActiveStageIds(self):
        return range(len(self.tasks))

    def getStageInfo(self, stage):
        return None if self.tasks[stage] is None else SimpleNamespace(numActiveTasks=self.tasks[stage])

    def sc(self):
        return self

    def getExecutorMemoryStatus(self):
        return self

    def size(self):
        return self.executors + 1


class Steps:
    """The event that ends a driver: each look first does what is next, a second later; after the last it is set."""

    def __init__(self, query, *steps):
        self._query, self._steps = query, list(steps)

    def wait(self, seconds):
        self._query.now_s += 1
        if self._steps:
            self._steps.pop(0)()
            return False
        return True


@pytest.fixture
def followed(tmp_path, monkeypatch):
    query, epoch = FakeQuery(), BlockEpoch(1, BlockApplication("job.a", "east", 2, ("a",), {}, {}), tmp_path)
    monkeypatch.setattr(begun, "time", clock_with(monotonic=lambda: query.now_s))

    def follow(*steps):
        return follow_query(Steps(query, *steps), query, query, epoch, lambda: "agent")

    return query, epoch, follow


def test_executors_at_a_batch_are_noted_again_and_again_and_work_once_it_is_done(followed):
    query, epoch, follow = followed
    noted = []

    def note():
        noted.append(last_tasks_ns(epoch))

    def executor():
        query.executors, query.tasks = 1, [None, 0, 3]
        note()

    def done():
        query.recentProgress = [DONE]
        note()

    assert follow(note, note, executor, note, note, done, note) is None
    none, still, before, first, second, third, last = noted
    assert none is still is before is None and first < second < third == last
    assert epoch.worked_by() == os.getpid()


def test_a_batch_without_executors_is_no_work(followed):
    query, epoch, follow = followed
    query.tasks = [0]
    assert follow(*[lambda: None] * 5) is None
    assert last_tasks_ns(epoch) is None and epoch.worked_by() is None and not has_tasks(query)


def test_executors_that_have_all_gone_are_noted_since_then_until_there_are_some(followed):
    query, epoch, follow = followed
    note, noted = epoch.folder / "without", []
    note.touch()  # of the driver before

    def executors(many):
        def step():
            noted.append(note.exists())
            query.recentProgress, query.executors = [DONE], many

        return step

    follow(executors(0), executors(1), executors(0), executors(0), executors(1), executors(1))
    assert noted == [False, False, False, True, True, False]


def test_one_with_nothing_to_do_works_and_its_agent_is_attached_when_all_executors_are_there(followed):
    query, epoch, follow = followed
    query.status, query.executors = IDLE, 1
    assert follow(lambda: None) is None and epoch.worked_by() == os.getpid()
    query.executors = 2
    assert follow(lambda: None) == "agent"


def test_the_agent_of_one_whose_executors_do_not_all_come_is_attached_after_a_while(followed):
    query, _, follow = followed
    query.status, query.executors = IDLE, 1
    assert follow(*[lambda: None] * 16) is None
    query.now_s = 0.0
    assert follow(*[lambda: None] * 17) == "agent"
