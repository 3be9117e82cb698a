"""Clusters that a job has started: what of one ends is started again."""

import os
import signal
import sys

import pytest

from configs.settings import load
from pipelines.placement import clusters
from pipelines.placement.clusters import AGAIN_S, JobClusters
from pipelines.stack.processes import ProcessError
from pipelines.stack.services.spark import MASTER, WORKER
from pipelines.stack.stack import Stack
from tests.fakes.clock import clock_with

LIVES = [sys.executable, "-c", "import time; time.sleep(600)"]


@pytest.fixture
def west(tmp_path):
    """A cluster of two processes that do nothing."""
    with Stack(load(var=tmp_path), ()) as stack:
        for name in (MASTER, WORKER):
            stack.spawn(name, LIVES)
        yield stack


def killed(stack, *names):
    for name in names:
        os.killpg(stack.processes[name].pid, signal.SIGKILL)
        stack.processes[name].wait(10)


def test_a_worker_or_a_master_that_was_killed_runs_again_and_a_master_is_another_one(west):
    said, there = [], JobClusters({"west": "spark://west:1", "east": "spark://east:1"}, {"west": west})
    assert there.look(said.append) == [] and not said
    killed(west, WORKER)
    assert there.look(said.append) == [] and west.processes[WORKER].running()
    assert said[0].startswith("cluster west: its spark-worker has ended with status -9, and is started again.")
    killed(west, MASTER, WORKER)
    assert there.look(said.append) == ["west"] and all(one.running() for one in west.processes.values())
    assert [line.split()[3] for line in said] == [WORKER, MASTER, WORKER] and there.look(said.append) == []


def test_what_does_not_run_again_is_said_and_tried_again_later(west, monkeypatch):
    now, said, there, respawn = [100.0], [], JobClusters({}, {"west": west}), west.respawn
    monkeypatch.setattr(clusters, "time", clock_with(monotonic=lambda: now[0]))

    def full(name, timeout_s):
        raise ProcessError("no process more")

    killed(west, WORKER)
    with monkeypatch.context() as patch:
        patch.setattr(west, "respawn", full)
        there.look(said.append)
    there.look(said.append)  # too soon
    assert not west.processes[WORKER].running() and len(said) == 2
    assert said[1] == f"cluster west: is looked at again in {AGAIN_S:.0f} s. no process more"
    now[0] += AGAIN_S
    there.look(said.append)
    assert west.processes[WORKER].running() and west.respawn == respawn
