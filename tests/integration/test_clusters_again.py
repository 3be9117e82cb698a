"""A Spark cluster that a job has started here: what of it is killed comes back at its address."""

import json
import os
import signal

import pytest

from configs.settings import ROOT, load
from configs.topology import load_topology
from pipelines.placement.clusters import started_clusters
from pipelines.stack import state
from pipelines.stack.context import page_probe
from pipelines.stack.services.spark import MASTER, WORKER
from tests.fakes.waiting import wait_until

pytestmark = pytest.mark.integration

PATIENCE_S = 120


def test_a_master_and_a_worker_that_were_killed_run_again_and_know_each_other(tmp_path):
    adverts = load_topology("adverts", ROOT / "configs" / "topologies")
    west, said = adverts.clusters["west"].model_copy(update={"cores": 1, "memory_gb": 0.5, "master": None}), []
    with started_clusters(adverts.model_copy(update={"clusters": {"west": west}}), load(var=tmp_path), tmp_path) as own:
        before = state.read(tmp_path / "west")
        for name in (MASTER, WORKER):
            os.killpg(before.processes[name][0], signal.SIGKILL)
        anew = wait_until(lambda: own.look(said.append), "another master", PATIENCE_S)
        assert anew == ["west"]

        def knows_a_worker(text):
            told = json.loads(text)
            return told["url"] == own.masters["west"] and any(one["state"] == "ALIVE" for one in told["workers"])

        def registered():
            own.look(said.append)
            return page_probe(f"{before.addresses['spark']}/json/", knows_a_worker)()

        wait_until(registered, "a worker of it", PATIENCE_S, every_s=0.5)
        after = state.read(tmp_path / "west")
        # Seen to have ended before its master, the worker is started in vain at first.
        assert {line.split()[3] for line in said if "is started again" in line} == {MASTER, WORKER}
        assert not {pid for pid, _ in before.processes.values()} & {pid for pid, _ in after.processes.values()}
