"""The clusters of a topology: those that are stated, and those that are started on this computer for a job."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from configs.settings import Settings
from configs.topology import SparkCluster, Topology
from pipelines.stack.stack import Stack


@contextmanager
def started_clusters(topology: Topology, settings: Settings, folder: Path) -> Iterator[dict[str, str]]:
    """Yield the address of each cluster's master; one that states none is started, and ends with this.

    Args:
        topology: with the clusters.
        settings: of which the clusters differ by their folders and sizes alone.
        folder: for what started clusters write, a folder each.

    Raises:
        StackError, PortError, JavaError, OSError: a cluster does not start.
    """
    with ExitStack() as started:
        masters = {}
        for name, one in topology.clusters.items():
            if one.master is None:
                stack = started.enter_context(Stack(_sized(settings, one, folder / name), {"spark"}))
                masters[name] = str(stack.settings.spark.master)
            else:
                masters[name] = one.master
        yield masters


def _sized(settings: Settings, cluster: SparkCluster, folder: Path) -> Settings:
    memory = f"{max(round(1024 * cluster.memory_gb), 1)}m"
    spark = {"master": None, "worker_cores": cluster.cores, "worker_memory": memory}
    free = dict.fromkeys(("spark_master", "spark_master_ui", "spark_worker", "spark_worker_ui"), 0)
    return settings.model_copy(update={
        "var": folder, "spark": settings.spark.model_copy(update=spark),
        "ports": settings.ports.model_copy(update=free),  # those that are named are for one cluster
    })  # fmt: skip
