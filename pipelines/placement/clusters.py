"""The clusters of a topology: those that are stated, and those that are started on this computer for a job."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from configs.settings import Settings
from configs.topology import SparkCluster, Topology
from pipelines.stack.context import StackError
from pipelines.stack.processes import ProcessError
from pipelines.stack.services.spark import MASTER
from pipelines.stack.stack import Stack

READY_S, AGAIN_S = 30.0, 60.0
"""Seconds that a master or a worker has to be ready, while nobody looks after the queries; and until the next try."""


class JobClusters:
    """The clusters of a job that runs.

    Attributes:
        masters: address of each one's master.
    """

    def __init__(self, masters: Mapping[str, str], started: Mapping[str, Stack]) -> None:
        """Those that were started here are there.

        Args:
            masters: address of each cluster's master.
            started: the clusters that were started here.
        """
        self.masters, self._started = masters, started
        self._again_s = dict[str, float]()

    def look(self, say: Callable[[str], None]) -> list[str]:
        """Start again what has ended of the clusters that were started here; call it every second or so.

        Args:
            say: called with what a person is told.

        Returns:
            The clusters with another master than before, which knows of no application that runs there.
        """
        anew = []
        for name, stack in self._started.items():
            ended = [one for one in stack.processes if not stack.processes[one].running()]
            if ended and time.monotonic() >= self._again_s.get(name, 0.0):
                anew += [name] * (MASTER in ended)
                self._start_again(name, stack, ended, say)
        return anew

    def _start_again(self, name: str, stack: Stack, ended: list[str], say: Callable[[str], None]) -> None:
        for one in ended:
            process = stack.processes[one]
            try:
                say(
                    f"cluster {name}: its {one} has ended with status {process.wait()}, and is started again.\n"
                    f"{process.last_lines()}"
                )
                stack.respawn(one, READY_S)
            except (StackError, ProcessError, OSError) as error:
                self._again_s[name] = time.monotonic() + AGAIN_S
                say(f"cluster {name}: is looked at again in {AGAIN_S:.0f} s. {error}")
                return


@contextmanager
def started_clusters(topology: Topology, settings: Settings, folder: Path) -> Iterator[JobClusters]:
    """Yield the clusters of a topology; one that states no master is started, and ends with this.

    Args:
        topology: with the clusters.
        settings: of which the clusters differ by their folders and sizes alone.
        folder: for what started clusters write, a folder each.

    Raises:
        StackError, PortError, JavaError, OSError: a cluster does not start.
    """
    with ExitStack() as opened:
        masters, started = {}, {}
        for name, one in topology.clusters.items():
            if one.master is None:
                started[name] = stack = opened.enter_context(Stack(_sized(settings, one, folder / name), {"spark"}))
                masters[name] = str(stack.settings.spark.master)
            else:
                masters[name] = one.master
        yield JobClusters(masters, started)


def _sized(settings: Settings, cluster: SparkCluster, folder: Path) -> Settings:
    memory = f"{max(round(1024 * cluster.memory_gb), 1)}m"
    spark = {"master": None, "worker_cores": cluster.cores, "worker_memory": memory}
    free = dict.fromkeys(("spark_master", "spark_master_ui", "spark_worker", "spark_worker_ui"), 0)
    return settings.model_copy(update={
        "var": folder, "spark": settings.spark.model_copy(update=spark),
        "ports": settings.ports.model_copy(update=free),  # those that are named are for one cluster
    })  # fmt: skip
