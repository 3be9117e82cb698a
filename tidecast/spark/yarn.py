"""Whether YARN has room for the executors that an application asks for, as its ResourceManager knows it."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

from tidecast.spark.cluster import Cluster

log = logging.getLogger("tidecast")

EVERY_S = 5.0
"""Seconds from one question to the next."""
_IMPATIENT = {
    "yarn.resourcemanager.connect.max-wait.ms": "3000", "yarn.resourcemanager.connect.retry-interval.ms": "1000",
    "ipc.client.connect.timeout": "3000", "ipc.client.connect.max.retries": "1",
    "ipc.client.connect.max.retries.on.timeouts": "0", "ipc.client.rpc-timeout.ms": "3000",
}  # fmt: skip
"""By default Hadoop's client waits a quarter of an hour for a ResourceManager that is away."""


class YarnQueue:
    """Asks YARN, in a thread of its own, whether containers of an application are starting, or wait for room."""

    def __init__(self, cluster: Cluster) -> None:
        """Nothing is asked yet; on other cluster managers nothing ever is."""
        self._cluster = cluster
        self._asking: threading.Thread | None = None
        self._asked_s, self._answer = float("-inf"), ("", 0)

    def full(self, registered: int) -> str:
        """Return the queue's name if YARN said lately that it has given the application just what is registered.

        Asks at most every EVERY_S (5 s), and waits for no answer. "" until there is one, where containers are starting,
        on another cluster manager, and where YARN does not answer, which is logged for programs alone. Fewer than are
        registered is no answer either: it has -1 of an attempt that it does not know, and counts up from 0 after a
        restart.

        Args:
            registered: executors of the application, of all its queries.
        """
        now = time.monotonic()
        free = self._asking is None or not self._asking.is_alive()
        if self._cluster.jsc.master() == "yarn" and free and now - self._asked_s >= EVERY_S:
            self._asked_s, self._answer = now, ("", 0)
            self._asking = threading.Thread(target=self._ask, name="tidecast-yarn", daemon=True)
            self._asking.start()
        queue, given = self._answer
        return queue if given == registered else ""

    def _ask(self) -> None:
        try:
            report = self._report()
            # One is the application master's.
            given = report.getApplicationResourceUsageReport().getNumUsedContainers() - 1
            self._answer = str(report.getQueue()), given
        except Exception as error:
            log.debug("YARN does not say what it has given: %r", error)

    def _report(self) -> Any:
        """Ask with a client of its own, and stop it: nobody else would, and questions are rare."""
        yarn = self._cluster.jvm.org.apache.hadoop.yarn
        conf = yarn.conf.YarnConfiguration(self._cluster.jsc.hadoopConfiguration())
        for name, value in _IMPATIENT.items():
            conf.set(name, value)
        client = yarn.client.api.YarnClient.createYarnClient()
        try:
            client.init(conf)
            client.start()
            return client.getApplicationReport(yarn.api.records.ApplicationId.fromString(self._cluster.application))
        finally:
            client.stop()
