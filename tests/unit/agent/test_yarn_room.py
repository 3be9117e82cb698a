"""Executors for which YARN has no room: what the agent says of them, from what YARN tells."""

from types import SimpleNamespace

from tests.unit.agent.test_outcomes import T, batch, decision
from tidecast.control import WALL
from tidecast.outcomes import ROOM_S, Tracker
from tidecast.spark.yarn import YarnQueue


def test_no_room_is_said_at_once_and_teaches_no_patience():
    tracker = Tracker()
    tracker.track(decision(4), ["0"], None, T, WALL)
    assert not tracker.awaits_room(1, T + ROOM_S)
    assert tracker.awaits_room(1, T + ROOM_S + 1) and not tracker.awaits_room(4, T + ROOM_S + 1)
    tracker.note_full("orders", T + ROOM_S + 1)
    (said,) = tracker.observe_executors(["0"], [], T + ROOM_S + 1, WALL)
    assert (said.status, said.observed["no_room"], said.observed["censored"]) == ("ineffective", "orders", True)
    assert "1 executor 11 s after 4 were asked for; YARN's queue orders has no room for the others" in said.reason
    assert not tracker.awaits_room(1, T + 60)
    assert tracker.observe_executors(["0"], [], T + 300, WALL) == []  # said once
    assert tracker.observe_executors(["0", "1", "2", "3"], [], T + 900, WALL) == []
    tracker.observe_batch(batch(T + 905), {"3"}, 0)
    (done,) = tracker.observe_executors(["0", "1", "2", "3"], [], T + 906, WALL)
    assert (done.status, done.observed["no_room"], done.observed["patience_s"]) == ("confirmed", "orders", 60.0)


def test_a_raise_that_is_not_waited_for_long_enough_is_not_called_one_without_room():
    tracker = Tracker()
    tracker.track(decision(4), ["0"], None, T, WALL)
    tracker.note_full("orders", T + ROOM_S)
    assert tracker.observe_executors(["0"], [], T + ROOM_S, WALL) == []


class Yarn:
    """YARN's client as the JVM has it: of one application in a queue."""

    def __init__(self, containers, master="yarn"):
        self.containers, self.running, options = containers, 0, {}
        self.jsc = SimpleNamespace(master=lambda: master, hadoopConfiguration=lambda: None)
        api = SimpleNamespace(
            client=SimpleNamespace(api=SimpleNamespace(YarnClient=SimpleNamespace(createYarnClient=lambda: self))),
            conf=SimpleNamespace(YarnConfiguration=lambda conf: SimpleNamespace(set=options.__setitem__)),
            api=SimpleNamespace(records=SimpleNamespace(ApplicationId=SimpleNamespace(fromString=str))),
        )
        self.jvm = SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(hadoop=SimpleNamespace(yarn=api))))
        self.application = "application_1_0001"

    def init(self, conf):
        pass

    def start(self):
        self.running += 1

    def stop(self):
        self.running -= 1

    def getApplicationReport(self, application):
        assert self.running == 1
        assert application == self.application
        if self.containers is None:
            raise OSError("no ResourceManager")
        usage = SimpleNamespace(getNumUsedContainers=lambda: self.containers)
        return SimpleNamespace(getApplicationResourceUsageReport=lambda: usage, getQueue=lambda: "orders")


def asked(yarn, registered):
    queue = YarnQueue(yarn)
    assert queue.full(registered) in ("", "orders")
    if queue._asking is not None:
        queue._asking.join(10)
    assert yarn.running == 0, "nobody else would stop it"
    return queue.full(registered)


def test_a_queue_is_full_where_no_container_beyond_the_registered_was_given():
    assert asked(Yarn(3), registered=2) == "orders"  # two executors, and the application master
    assert asked(Yarn(4), registered=2) == "", "one is starting"
    assert asked(Yarn(None), registered=2) == "", "YARN does not answer"
    assert asked(Yarn(3, master="spark://m:7077"), registered=2) == ""


def test_a_resource_manager_that_knows_of_fewer_than_are_registered_says_nothing_about_room():
    assert asked(Yarn(-1), registered=2) == "", "it does not know the application's attempt"
    assert asked(Yarn(-1), registered=0) == ""
    assert asked(Yarn(1), registered=2) == "", "it has started again, and counts up from 0 as nodes come back"
    assert asked(Yarn(1), registered=0) == "orders"
