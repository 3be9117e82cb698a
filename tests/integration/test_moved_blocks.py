"""A job in two blocks on two real clusters: moved under load, a driver killed, and what it counts; a killed cluster."""

import json
import os
import re
import signal
import threading

import pytest

from configs.settings import ROOT, load
from configs.topology import load_topology
from models.placement.plan.moved import move_block
from pipelines.jobs.chains.adverts import VIEW
from pipelines.kafka.publisher import Publisher
from pipelines.placement.clusters import started_clusters
from pipelines.placement.observed import observe_record_bytes, observe_trips
from pipelines.placement.running import begin_job
from pipelines.placement.supervisor import Supervisor
from pipelines.stack import state
from pipelines.stack.context import page_probe
from pipelines.stack.services.spark import MASTER, WORKER
from pipelines.stack.stack import Stack
from tests.fakes.adverts import advert_events, counted_adverts, encode_event, true_adverts
from tests.fakes.committed import committed_records
from tests.fakes.waiting import wait_until

pytestmark = pytest.mark.integration

PATIENCE_S, RATE, PARTITIONS, TRIGGER_S, TARGET_S = 240, 60, 2, 5, 20
STEP_S = 0.004
"""Seconds between events: what waits for a block that moves is of less time than its windows stay open."""


class Feed:
    """Sends events for as long as it is let, from a thread."""

    def __init__(self, kafka):
        self.events, self._kafka, self._stop = [], kafka, threading.Event()
        self._thread = threading.Thread(target=self._send)
        self._thread.start()

    def _send(self):
        publisher = Publisher(self._kafka)
        while not self._stop.wait(0.5):
            more = advert_events(RATE // 2, first=len(self.events), step_s=STEP_S)
            for event in more:
                publisher.send_bytes("events", str(event.ad).encode(), encode_event(event))
            self.events += more
        publisher.close()

    def end(self):
        self._stop.set()
        self._thread.join()
        return self.events


@pytest.fixture(scope="module")
def clusters(tmp_path_factory):
    """The job's file, its clusters on this computer, and the folder of these."""
    folder = tmp_path_factory.mktemp("job")
    file, settings = two_queries(folder), load(var=folder / "var")
    with started_clusters(load_topology("adverts", folder), settings, folder / "clusters") as own:
        yield file, own, folder / "clusters"


def two_queries(folder):
    """The file of the adverts job, of which the counts are a recovery unit of their own; a tenth of its load."""
    text = (ROOT / "configs" / "topologies" / "adverts.yaml").read_text()
    for name in ("join", "count"):
        text = re.sub(rf"({name}: +{{)", r"\1unit: counts, ", text)
    file = folder / "adverts.yaml"
    text = text.replace("target_s: 8", f"target_s: {TARGET_S}")
    text = text.replace("trigger_s: 1", f"trigger_s: {TRIGGER_S}\npartitions: {PARTITIONS}")
    file.write_text(text.replace("{rps: 600", f"{{rps: {RATE}").replace("cores: 4", "cores: 2"))
    return file


def looked_until(supervisor, said, *starts):
    """Look until a line was said that begins so, for each; what was said before does not count."""
    before = len(said)

    def all_said():
        supervisor.look()
        return all(any(line.startswith(start) for line in said[before:]) for start in starts)

    wait_until(all_said, f"{starts}", PATIENCE_S, every_s=0.5)


def test_a_job_on_two_clusters_counts_every_event_once_whatever_is_moved_and_killed(
    clusters, empty_topics, tmp_path_factory
):
    var = tmp_path_factory.mktemp("own")  # short: a fork server's socket under it has at most 107 bytes
    settings, said = load(var=var, kafka=empty_topics.model_dump()), []
    file, own, _ = clusters
    folder = begin_job(settings, file, said.append)
    topology, feed = folder.topology(), Feed(empty_topics)
    home_of = settings.model_copy(update={"var": folder.path / "stack"})
    try:
        with Stack(home_of, ()) as home:
            supervisor = Supervisor(folder, home, own.masters, said.append, begin_s=PATIENCE_S)  # two, on two cores
            supervisor.start()
            folder.want(move_block(topology, folder.wanted(), "count", "east"))
            looked_until(supervisor, said, "adverts.join: goes from west to east")
            os.killpg(home.processes["adverts.parse"].pid, signal.SIGKILL)  # one that moves is killed by the bench
            home.processes["adverts.parse"].wait(10)
            looked_until(supervisor, said, "adverts.join: runs on east, epoch 2", "adverts.parse: runs")
            events = feed.end()
            truth = true_adverts(events)
            wait_until(lambda: counted_adverts(empty_topics) == truth, "all counts", PATIENCE_S, every_s=1.0)
            between = [json.loads(value)["seq"] for _, value in committed_records(empty_topics, "adverts.project")]
            assert sorted(between) == [one.seq for one in events if one.kind == VIEW]
            wait_until(lambda: len(observe_trips(folder)), "a probed way to the broker", 60)
            assert all(0 < trip_ms < 1_000 for trip_ms in observe_trips(folder).values())
            sizes = observe_record_bytes(settings, folder)
            assert {*sizes} == {"events", "project", "count"} and all(20 < size < 1_000 for size in sizes.values())
    finally:
        feed.end()


def test_a_master_and_a_worker_that_were_killed_run_again_and_know_each_other(clusters):
    _, own, folder = clusters
    before, said = state.read(folder / "west"), []
    pids = [before.processes[name][0] for name in (MASTER, WORKER)]
    for pid in pids:
        os.killpg(pid, signal.SIGKILL)
    for pid in pids:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # a worker that is started before its master is in vain
    anew = wait_until(lambda: own.look(said.append), "another master", PATIENCE_S)
    assert anew == ["west"]

    def knows_a_worker(text):
        told = json.loads(text)
        return told["url"] == own.masters["west"] and any(one["state"] == "ALIVE" for one in told["workers"])

    def registered():
        own.look(said.append)
        return page_probe(f"{before.addresses['spark']}/json/", knows_a_worker)()

    wait_until(registered, "a worker of it", PATIENCE_S, every_s=0.5)
    after = state.read(folder / "west")
    assert [line.split()[3] for line in said if "is started again" in line] == [MASTER, WORKER]
    assert not {pid for pid, _ in before.processes.values()} & {pid for pid, _ in after.processes.values()}
