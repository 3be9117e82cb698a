"""Changing the number of executors of a running application, through Spark's private allocation client.

It is public in bytecode on standalone, YARN and Kubernetes alike; tests/integration holds it to what is said here.
"""

from __future__ import annotations

import time
from collections.abc import Collection

from tidecast.spark.allotment import allotment_of
from tidecast.spark.cluster import Cluster

AGAIN_S = 10.0
"""Seconds after which a target that is not reached is asked for again."""


class ActuatorError(RuntimeError):
    """The cluster manager did not take the request; the message says what it was."""


class ExecutorActuator:
    """Sets the executors that a standalone, YARN or Kubernetes application has for one of its queries.

    Where agents of several queries scale them, each one's are its own (`Allotment`): it asks for its number, and the
    application is asked for the sum.
    """

    def __init__(self, cluster: Cluster, job: str) -> None:
        self._cluster, self._job = cluster, job
        self._allotment = allotment_of(cluster.application)
        self._asked_s = 0.0
        self._backend = cluster.jsc.schedulerBackend()
        self._graceful = cluster.jsc.conf().getBoolean("spark.decommission.enabled", False)

    @property
    def target(self) -> int | None:
        """Executors asked for; None before the first request."""
        with self._allotment.lock:
            return self._allotment.target(self)

    def take_over(self, least: int) -> None:
        """End Spark's dynamic allocation for this application; request the executors there are, and at least `least`.

        Of an application that nobody has scaled yet, and that has a number of its own (`--num-executors`), those that
        have not registered yet are requested, too: Spark would start none of them any more. An agent that begins anew
        asks for what the one before it asked for, in its place.

        Raises:
            ActuatorError: local mode, or the cluster manager refused (dynamic allocation is stopped all the same).
            py4j.protocol.Py4JError: the JVM does not answer.
        """
        if self._cluster.jsc.isLocal():
            raise ActuatorError(f"master {self._cluster.jsc.master()!r} has no executors to add; use a cluster to act")
        manager = self._cluster.jsc.executorAllocationManager()
        if manager.isDefined():
            manager.get().stop()
        with self._allotment.lock:
            own_number = not manager.isDefined() and not self._allotment.scaled
            stated = self._cluster.jsc.conf().getInt("spark.executor.instances", 0) if own_number else 0
            asked = self._allotment.begin(self, self._job)
            found = len(self.live())
            try:
                self._ask(max(least, found, stated, asked))
            except BaseException:
                self._allotment.leave(self)
                raise

    def failures_allowed(self) -> int | None:
        """Return after how many failed executors Spark ends the application; None: it does not, as on standalone.

        Raises:
            py4j.protocol.Py4JError: the JVM does not answer.
        """
        if not str(self._cluster.jsc.master()).startswith(("yarn", "k8s")):
            return None
        tracker = self._cluster.jvm.org.apache.spark.deploy.ExecutorFailureTracker
        return int(tracker.maxNumExecutorFailures(self._cluster.jsc.conf()))

    def release(self) -> None:
        """Scale no more: where other queries are scaled, one of them has the executors now; else they stay."""
        with self._allotment.lock:
            self._allotment.leave(self)

    def rest(self, rests: bool) -> None:
        """Note whether decisions about the query are not applied, as in mode "freeze" or "observe"."""
        with self._allotment.lock:
            self._allotment.rest(self, rests)

    def live(self) -> list[str]:
        """List the executors that count for the query, without those asked to leave, oldest first; by their ids."""
        return self.own(self._registered())

    def own(self, registered: Collection[str]) -> list[str]:
        """Return those of some registered executors that count for the query, without those asked to leave."""
        with self._allotment.lock:
            return self._allotment.own(self, registered)

    def leaving(self, registered: Collection[str]) -> list[str]:
        """Return those of some registered executors that counted for the query, and were asked to leave."""
        with self._allotment.lock:
            return self._allotment.leaving(self, registered)

    def set_target(self, executors: int) -> None:
        """Request this many executors, and ask the newest of any surplus to leave; returns before that has happened.

        With `spark.decommission.enabled` they are decommissioned; otherwise they are killed and their tasks run again.
        The total is always requested outright: lowering it cancels what is pending and removes nobody, and an executor
        that dies on its own is replaced by the cluster manager.

        Raises:
            ActuatorError: it has not taken over, or the query's next agent has since; or the cluster manager refused
                the total, or (`target` is changed then) a live executor could not be asked to leave.
            py4j.protocol.Py4JError: the JVM does not answer.
        """
        with self._allotment.lock:
            if self.target is None:  # what it asked for would be added to what the next agent asks for
                raise ActuatorError(f"an agent of job {self._job!r} that is ending asks for none: the next one does")
            self._ask(executors)
            self._dismiss(self.live()[executors:])

    def reconcile(self) -> str | None:
        """Ask executors beyond the target to leave, which came although the target was lowered before they registered.

        Of a query that rests none is asked to leave. While there are others than the target says, it is requested again
        every AGAIN_S (10 s): a cluster manager that was started anew, as YARN's application master is, has forgotten
        it.

        Returns:
            What was done, as a sentence for the log; None if there was nothing to do.

        Raises:
            ActuatorError: a live executor could not be asked to leave, or the cluster manager refused the total.
            py4j.protocol.Py4JError: the JVM does not answer.
        """
        with self._allotment.lock:
            target, live = self.target, self.live()
            surplus = [] if target is None or self._allotment.rests(self) else live[target:]
            self._dismiss(surplus)
            if target is not None and target != len(live) and time.monotonic() - self._asked_s > AGAIN_S:
                self._request(target)
        late = f"executors {', '.join(surplus)} came too late and were asked to leave; the target is {target}"
        return late if surplus else None

    def _registered(self) -> list[str]:
        ids = self._cluster.jsc.getExecutorIds()
        return sorted((ids.apply(i) for i in range(ids.size())), key=int)

    def _ask(self, executors: int) -> None:
        self._request(executors)
        self._allotment.ask(self, executors)

    def _request(self, executors: int) -> None:
        total = self._allotment.total(self, executors)
        nowhere = self._cluster.jvm.PythonUtils.toScalaMap({})
        # The middle argument stays 0: the public method builds its locality map the wrong way round.
        if not self._cluster.jsc.requestTotalExecutors(total, 0, nowhere):
            raise ActuatorError(
                f"the cluster manager did not take the request for {total} executors: is it there, and on YARN the "
                "application master? What is asked for next is tried anew"
            )
        self._asked_s = time.monotonic()

    def _dismiss(self, ids: list[str]) -> None:
        if not ids:
            return
        if self._graceful:
            none = self._cluster.jvm.scala.Option.empty()
            why = self._cluster.jvm.org.apache.spark.scheduler.ExecutorDecommissionInfo("scale-in by tidecast", none)
            gone = [i for i in ids if self._backend.decommissionExecutor(i, why, False, False)]
        else:  # without decommissioning Spark would ignore the request: the tasks in flight are run again elsewhere
            sequence = self._cluster.jvm.PythonUtils.toSeq(ids)
            taken = self._backend.killExecutors(sequence, False, False, True)
            gone = [taken.apply(i) for i in range(taken.size())]
        self._allotment.dismiss(gone)
        if len(gone) < len(ids) and (kept := ({*ids} - {*gone}) & {*self._registered()}):
            raise ActuatorError(f"executors {', '.join(sorted(kept))} could not be asked to leave; it is tried again")
