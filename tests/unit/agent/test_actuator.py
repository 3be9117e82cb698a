"""How many executors are asked for, and again where the cluster manager has forgotten it."""

from types import SimpleNamespace

import pytest

from tidecast.spark import actuator
from tidecast.spark.actuator import AGAIN_S, ExecutorActuator


class Application:
    """Spark's side: executors, and every total that was asked for."""

    def __init__(self):
        self.ids, self.asked, self.killed = ["0", "1"], [], []

    def schedulerBackend(self):
        return SimpleNamespace(killExecutors=self._kill)

    def conf(self):
        return SimpleNamespace(getBoolean=lambda name, default: default)

    def getExecutorIds(self):
        return SimpleNamespace(size=lambda: len(self.ids), apply=self.ids.__getitem__)

    def requestTotalExecutors(self, total, *_):
        self.asked.append(total)
        return True

    def _kill(self, ids, *_):
        self.killed += ids
        return SimpleNamespace(size=lambda: len(ids), apply=ids.__getitem__)


@pytest.fixture
def now(monkeypatch):
    made = SimpleNamespace(s=100.0)
    monkeypatch.setattr(actuator.time, "monotonic", lambda: made.s)
    return made


def test_a_target_that_is_not_reached_is_asked_for_again_now_and_then(now):
    application = Application()
    jvm = SimpleNamespace(PythonUtils=SimpleNamespace(toScalaMap=lambda m: m, toSeq=list))
    asking = ExecutorActuator(SimpleNamespace(jsc=application, jvm=jvm))
    assert asking.reconcile() is None and not application.asked  # before the first target
    asking.set_target(3)
    for seconds, asked in ((1.0, 1), (AGAIN_S, 2), (1.0, 2), (AGAIN_S, 3)):
        now.s += seconds
        assert asking.reconcile() is None and application.asked == [3] * asked
    application.ids.append("2")
    now.s += 2 * AGAIN_S
    assert asking.reconcile() is None and application.asked == [3] * 3  # it is reached
    application.ids.append("3")  # a manager that was started anew has its own first number
    assert "executors 3 came too late" in asking.reconcile()
    assert application.killed == ["3"] and application.asked == [3] * 4
