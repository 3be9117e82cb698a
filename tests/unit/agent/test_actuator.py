"""Executors are asked for, again where the cluster manager has forgotten it; of several queries their sum is."""

import time
from itertools import count
from types import SimpleNamespace

import pytest

from tests.fakes import driver
from tests.fakes.clock import clock_with
from tidecast.commands import Commands
from tidecast.messages import Decision, Outcome
from tidecast.modes import switch_mode
from tidecast.observer import Observer
from tidecast.spark import actuator
from tidecast.spark.actuator import AGAIN_S, ActuatorError, ExecutorActuator


class Application:
    """Spark's side: executors, and every total that was asked for."""

    _numbers = count()

    def __init__(self, instances=0):
        self.instances = instances
        self.name = f"app-{next(self._numbers)}"
        self.ids, self.asked, self.killed = ["0", "1"], [], []

    def isLocal(self):
        return False

    def master(self):
        return "spark://here:7077"

    def executorAllocationManager(self):
        return SimpleNamespace(isDefined=lambda: False)

    def schedulerBackend(self):
        return SimpleNamespace(killExecutors=self._kill)

    def conf(self):
        stated = {"spark.executor.instances": self.instances}
        return SimpleNamespace(getBoolean=lambda name, default: default, getInt=lambda name, default: stated[name])

    def getExecutorIds(self):
        return SimpleNamespace(size=lambda: len(self.ids), apply=self.ids.__getitem__)

    def requestTotalExecutors(self, total, *_):
        self.asked.append(total)
        return True

    def start(self, executors):
        """As a cluster manager does once they are asked for."""
        self.ids += [str(len(self.ids) + len(self.killed) + n) for n in range(executors)]

    def _kill(self, ids, *_):
        self.killed += ids
        self.ids = [one for one in self.ids if one not in ids]
        return SimpleNamespace(size=lambda: len(ids), apply=ids.__getitem__)


@pytest.fixture
def now(monkeypatch):
    made = SimpleNamespace(s=100.0)
    monkeypatch.setattr(actuator, "time", clock_with(monotonic=lambda: made.s))
    return made


def acting(application, job="orders"):
    jvm = SimpleNamespace(PythonUtils=SimpleNamespace(toScalaMap=lambda m: m, toSeq=list))
    return ExecutorActuator(SimpleNamespace(jsc=application, jvm=jvm, application=application.name), job)


def test_a_target_that_is_not_reached_is_asked_for_again_now_and_then(now):
    application = Application()
    asking = acting(application)
    assert asking.reconcile() is None and not application.asked  # before the first target
    asking.take_over(3)
    for seconds, asked in ((1.0, 1), (AGAIN_S, 2), (1.0, 2), (AGAIN_S, 3)):
        now.s += seconds
        assert asking.reconcile() is None and application.asked == [3] * asked
    application.ids.append("2")
    now.s += 2 * AGAIN_S
    assert asking.reconcile() is None and application.asked == [3] * 3  # it is reached
    application.ids.append("3")  # a manager that was started anew has its own first number
    assert "executors 3 came too late" in asking.reconcile()
    assert application.killed == ["3"] and application.asked == [3] * 4


@pytest.mark.parametrize("mode", ["act", "freeze", "observe"])
def test_executors_that_the_cluster_manager_has_forgotten_are_asked_for_in_every_mode(now, mode):
    """As YARN's application master that was started anew: Spark's own allocation is off, and asks for none."""
    application = Application()
    job = driver.job(actuator=acting(application))
    switch_mode(job, "act")
    switch_mode(job, mode)
    cluster = SimpleNamespace(
        jquery=SimpleNamespace(lastProgress=lambda: None, isActive=lambda: True),
        executors=lambda: dict.fromkeys(application.ids, 1), jsc=SimpleNamespace(master=lambda: "yarn"),
    )  # fmt: skip
    application.ids, application.asked = ["2"], []
    now.s += AGAIN_S + 1.0
    Observer(job, cluster).poll()
    assert application.asked == [2]
    application.ids = ["2", "3", "4"]  # it began with a number of its own
    Observer(job, cluster).poll()
    assert application.killed == (["4"] if mode == "act" else [])


def test_of_several_queries_each_has_executors_of_its_own_and_the_application_their_sum():
    application = Application()
    orders, payments, watched = (acting(application, job) for job in ("orders", "payments", "views"))
    orders.take_over(1)
    assert (orders.target, orders.live(), application.asked) == (2, ["0", "1"], [2])
    payments.take_over(1)
    assert (payments.target, payments.live(), application.asked[-1]) == (1, [], 3)
    application.start(1)
    assert (orders.live(), payments.live(), watched.live()) == (["0", "1"], ["2"], ["0", "1", "2"])
    payments.set_target(3)
    orders.set_target(1)
    assert application.asked[-2:] == [5, 4] and application.killed == ["1"]
    application.start(2)
    assert (orders.live(), payments.live()) == (["0"], ["2", "3", "4"])
    assert orders.reconcile() is payments.reconcile() is None and application.killed == ["1"]
    payments.set_target(1)
    assert application.asked[-1] == 2 and application.killed == ["1", "3", "4"]


def test_executors_that_are_still_on_their_way_when_it_begins_are_not_called_off(now):
    application = Application(instances=5)  # two of them have registered
    first = acting(application)
    first.take_over(1)
    assert (first.target, application.asked) == (5, [5])
    application.start(3)
    first.set_target(2)
    first.release()
    del first  # nor is it known by the agent alone
    again = acting(application)
    again.take_over(1)
    assert (again.target, application.asked) == (2, [5, 2, 2]), "what it began with is over once it was scaled"


def test_those_that_the_only_querys_agent_asked_for_before_it_began_anew_are_not_called_off(now):
    application = Application()
    first = acting(application)
    first.take_over(1)
    first.set_target(6)
    first.release()
    other = acting(application, "payments")
    again = acting(application)
    again.take_over(1)
    assert (again.target, application.asked) == (6, [2, 6, 6])
    again.release()
    other.take_over(1)
    assert other.target == 2, "they are another query's only if they are there"


def test_a_query_that_ends_leaves_its_executors_to_another_and_the_last_one_to_nobody():
    application = Application()
    orders, payments = acting(application), acting(application, "payments")
    orders.take_over(1)
    payments.take_over(2)
    application.start(2)
    orders.release()
    assert (payments.target, payments.live()) == (4, ["0", "1", "2", "3"])
    payments.release()
    assert payments.target is None and application.asked == [2, 4] and not application.killed
    later = acting(application)
    later.take_over(1)
    assert later.live() == ["0", "1", "2", "3"]


@pytest.mark.parametrize("released", [True, False])
def test_one_that_begins_anew_asks_for_its_own_again_and_not_for_more(released):
    """As after a restart of its query in the driver; the agent before may still be about to end."""
    application = Application()
    orders, payments = acting(application), acting(application, "payments")
    orders.take_over(1)
    payments.take_over(1)
    payments.set_target(3)
    application.start(2)
    assert payments.live() == ["2", "3"] and application.asked[-1] == 5
    if released:
        payments.release()
        assert orders.reconcile() is None and orders.target == 5
    again = acting(application, "payments")
    again.take_over(1)
    assert (orders.target, again.target, payments.target) == (2, 3, None)
    assert max(application.asked) == application.asked[-1] == 5 and not application.killed
    payments.release()
    application.start(1)
    assert (orders.live(), again.live()) == (["0", "1"], ["2", "3", "4"])
    again.release()
    orders.set_target(2)  # what it inherited is let go
    assert application.killed == ["2", "3", "4"] and application.asked[-1] == 2
    again = acting(application, "payments")
    again.take_over(1)
    assert (application.asked[-1], orders.target, again.target) == (3, 2, 1)


def test_an_agent_that_is_about_to_end_asks_for_none_once_the_next_one_has_taken_over():
    """As where its thread is in the midst of a decision while its query is started again in the driver."""
    application = Application()
    before, again = acting(application), acting(application)
    job = driver.job(actuator=before)
    switch_mode(job, "act")
    before.set_target(3)
    again.take_over(1)
    with pytest.raises(ActuatorError, match="job 'orders' that is ending asks for none"):
        before.set_target(4)
    now = time.time()
    asked = Decision("d1", "orders", now, now, 1.0, "act", "test", 4, "why", [], {}, {})
    Commands(job, "broker:9092", {}, False)._follow_decision(asked)
    assert job.outbox.of(Outcome) == []  # the next one hears it, too, and answers
    before.release()
    assert (again.target, before.target, max(application.asked)) == (3, None, 3)
    late = driver.job(actuator=acting(application))
    late.stop.set()
    switch_mode(late, "act")
    assert (again.target, late.mode) == (3, "observe")


def test_one_whose_request_is_refused_shares_nothing():
    application = Application()
    orders, payments = acting(application), acting(application, "payments")
    orders.take_over(1)
    application.requestTotalExecutors = lambda *_: False
    with pytest.raises(ActuatorError, match="request for 3 executors: is it there, and on YARN the application master"):
        payments.take_over(1)
    assert payments.target is None and payments.live() == orders.live() == ["0", "1"]
    with pytest.raises(ActuatorError):
        orders.set_target(4)
    assert orders.target == 2


def test_applications_share_nothing():
    one, other = Application(), Application()
    first, second = acting(one), acting(other)
    first.take_over(1)
    second.take_over(1)
    assert (one.asked, other.asked) == ([2], [2])
