"""`python -m models.precompile`: run on little what numba compiles, so that its machine code is on disk beforehand.

A minute of CPU, once per installation. Without it everything works: a process compiles what it calls first, and
several that start together compile the same. After a change of the sources (`models`) it is so, too, until `make test`
or `make run` compiles them again.
"""

from __future__ import annotations

import os
import sys

import numpy as np
import torch

from models.adapt.dtw import dtw_distance
from models.forecast.blend.networked import NetworkedBlend
from models.forecast.core.forecaster import Task
from models.forecast.core.series import Series
from models.forecast.neural.network import as_forecaster
from models.forecast.neural.recurrent import Recurrent
from models.forecast.neural.windows import PastWindow
from models.placement.allocation.nodes import Nodes
from models.placement.graph import Dag
from models.placement.instances.job import ParallelJob, StreamEdge
from models.placement.partition.coarsen import join_pairs
from models.placement.partition.kfm import partition
from models.placement.partition.large import partition_large
from models.placement.twin.equilibrium import SharedLatency
from models.placement.twin.follow import empty_state, follow_job
from models.placement.twin.queries import QueryGraph, follow_queries
from models.twin.calibration.replayed import replay_recording
from models.twin.experiment.benchmark import BenchmarkCase, Effort, forecast_trace, run_benchmark
from models.twin.experiment.contenders import select_contenders
from models.twin.experiment.setup import Setup

LOAD = Series(0.0, 10.0, 100 + 60 * np.sin(np.arange(360) / 30))
"""An hour."""


def precompile() -> None:
    """Call every compiled function, as those call it that use it."""
    _run_twin()
    _step_network()
    _cut_graph()
    _follow_placements()
    dtw_distance(np.arange(8.0), np.arange(8.0))


def _run_twin() -> None:
    """A policy that our forecaster serves, beside the clairvoyant plan and the bound; and a recording."""
    setup = Setup(lead_s=20.0)
    case = BenchmarkCase("an hour", LOAD, forecast_trace("an hour", LOAD, setup))
    run_benchmark([case], setup, select_contenders(("forecast",), setup.contract)[0], Effort(2, 1))
    replay_recording(setup.twin_job, np.arange(3.0), np.empty(0), [], 1, np.arange(1))


def _step_network() -> None:
    task, hours = Task(3600.0, 2, (0.1, 0.5, 0.9)), Series(0.0, 3600.0, LOAD.values)
    view = PastWindow(task, 24)
    network = as_forecaster(Recurrent(view, "gru", 8, torch.Generator().manual_seed(1)), view, until=300 * 3600.0)
    NetworkedBlend(task, network.frozen).begin(hours).step(100.0)


def _cut_graph() -> None:
    near, far = [(v, v + 1, 1.0) for v in range(39)], [(v, v + 7, 2.0) for v in range(0, 33, 3)]
    graph = Dag.build([1.0] * 40, [*near, *far])
    partition(graph, 3)
    partition_large(graph, 3)
    join_pairs(graph, 4.0, odd=False, seed=1)


def _follow_placements() -> None:
    job = ParallelJob(
        np.array([10.0, 0.0]), np.array([1e-3, 1e-3]), np.array([1, 1]), np.ones((2, 2)), (StreamEdge(0, 1),)
    )
    nodes = Nodes(
        np.full((2, 2), 4.0), np.zeros((2, 2)), np.zeros(2, int), np.zeros((1, 1)), slots=np.full(2, 4),
        bandwidth_mbps=np.full(2, 1e3),
    )  # fmt: skip
    counts = np.eye(2, dtype=int)
    follow_job(job, nodes, counts, empty_state(job, nodes), np.ones(20))
    SharedLatency.of(job, nodes).ms(counts)
    one = np.ones(1)
    queries = QueryGraph(one, one, one, np.array([0, 1]), np.array([-1]), one, one / 2, one > 0)
    follow_queries(queries, np.ones(9), np.ones((1, 1)))


def main() -> int:
    """Compile, where the machine code can be kept."""
    if "NUMBA_CACHE_DIR" in os.environ:
        precompile()
    return 0


if __name__ == "__main__":
    sys.exit(main())
