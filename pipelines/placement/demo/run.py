"""`tidecast plan --demo`: a job on two real clusters, planned, measured, and planned anew when its load rises."""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from configs.errors import CorrectableError
from configs.settings import ROOT, Settings
from configs.topology import load_topology
from models.placement.plan.choose import choose_placement
from models.placement.plan.measured import Placement
from models.placement.plan.observed import ObservedBlock
from pipelines.jobs.chains.adverts import true_counts
from pipelines.kafka.committed import read_committed
from pipelines.kafka.topics import create_topics
from pipelines.placement.clusters import started_clusters
from pipelines.placement.demo.feed import AdvertFeed
from pipelines.placement.job_folder import JobFolder
from pipelines.placement.observed import observe_job
from pipelines.placement.replan import compare
from pipelines.placement.running import begin_job, job_folder
from pipelines.placement.supervisor import Supervisor
from pipelines.stack.isolation import isolated_settings
from pipelines.stack.stack import Stack

NAME, RESULTS = "served_adverts", "served_adverts.count"
SURGE = 2.5
"""Of the stated rate, to which the load rises."""
WARM_S, MEASURED_S, NOTICED_S, CAUGHT_UP_S = 20.0, 40.0, 10.0, 90.0
"""Seconds: before anything is measured, that are measured, of the higher load before it is planned for, and for the
last records to be counted."""


class DemoPlanError(CorrectableError, RuntimeError):
    """The demonstration did not come to its end; the message says where."""


class Phase(NamedTuple):
    """The job at one load.

    Attributes:
        factor: of the stated rate.
        placement: of its queries.
        observed: each query, as planned and as measured.
        path_s: latency along the slowest path, as measured.
    """

    factor: float
    placement: Placement
    observed: list[ObservedBlock]
    path_s: float | None


class DemoResult(NamedTuple):
    """What came of it.

    Attributes:
        before, after: at the stated rate, and at the higher one.
        change: what the second plan changed, in words.
        moved_s: from the second plan until its queries worked where it put them.
        events: that were sent.
        wrong: windows whose counts are not what the events come to; 0 of `windows`.
        windows: in all.
        said: what a person was told.
    """

    before: Phase
    after: Phase
    change: str
    moved_s: float
    events: int
    wrong: int
    windows: int
    said: tuple[str, ...]


def run_demo(settings: Settings, say: Callable[[str], None] = print) -> tuple[JobFolder, DemoResult]:
    """Run the demonstration on services of its own, in `var/plan_demo`; some five minutes, all is stopped at the end.

    Raises:
        SettingsError: a broker is set: what is there must not be filled.
        BrokerError: an event was not taken.
        PlanError: the clusters have no room.
        StackError, ProcessError, PortError, JavaError: a service, a cluster or a query does not start.
        DemoPlanError: the second plan is none that a running job can take, or its queries do not work in time.
    """
    told, own = list[str](), isolated_settings(settings, "plan_demo")

    def tell(line: str) -> None:
        told.append(line)
        say(line)

    own = own.model_copy(update={"spark": own.spark.model_copy(update={"master": None})})
    folder, file = job_folder(own, NAME), ROOT / "configs" / "topologies" / f"{NAME}.yaml"
    topology = load_topology(NAME, file.parent)
    with Stack(own, {"broker"}) as stack:
        shutil.rmtree(folder.path, ignore_errors=True)  # of a demonstration before this one
        partitions = {"event_partitions": topology.partitions}
        live = stack.settings.model_copy(update={"kafka": stack.settings.kafka.model_copy(update=partitions)})
        create_topics(live.kafka)
        begin_job(live, file, tell)
        home = live.model_copy(update={"var": folder.path / "stack"})
        with started_clusters(topology, live, folder.path / "clusters") as masters, Stack(home, ()) as drivers:
            supervisor = Supervisor(folder, drivers, masters, tell)
            tell(f"{NAME}: planned for {topology.sources['events'].rps:g} events/s; its queries start, upstream first")
            supervisor.start()
            if not supervisor.settled():
                raise DemoPlanError("a query does not begin: " + " ".join(told[-2:]))
            with AdvertFeed(live.kafka, topology.sources["events"].rps) as feed:
                return folder, _run(live, folder, supervisor, feed, tell, told)


def _run(
    settings: Settings, folder: JobFolder, supervisor: Supervisor, feed: AdvertFeed, tell: Callable[[str], None],
    told: list[str],
) -> DemoResult:  # fmt: skip
    topology, rps = folder.topology(), feed.rps
    _watch(supervisor, feed, WARM_S + MEASURED_S)
    before = _measured(settings, folder, 1.0)
    tell(f"the load rises to {SURGE:g} times as much")
    feed.rps = SURGE * rps
    _watch(supervisor, feed, NOTICED_S)
    planned = choose_placement(topology, SURGE).placement
    change, can = compare(topology, folder.wanted(), planned, SURGE)
    if not can:
        raise DemoPlanError(f"nothing was to be moved: {change}. State other work in {NAME}.yaml and in its code.")
    tell(f"planned anew. {change}")
    folder.want(planned)
    since = time.monotonic()
    while not supervisor.settled() and time.monotonic() - since < 2 * CAUGHT_UP_S:
        _watch(supervisor, feed, 1.0)
    moved_s = time.monotonic() - since
    if not supervisor.settled() or folder.wanted() != planned:
        raise DemoPlanError("the queries do not work where they were moved: " + " ".join(told[-2:]))
    until = time.monotonic() + CAUGHT_UP_S
    _watch(supervisor, feed, WARM_S)
    while time.monotonic() < until and not (observe_job(settings, folder, WARM_S)[1] or math.inf) <= topology.target_s:
        _watch(supervisor, feed, 2.0)  # what came while they moved is worked off
    _watch(supervisor, feed, MEASURED_S)
    after = _measured(settings, folder, SURGE)
    truth = true_counts(feed.end())
    wrong, until = _wrong(settings, truth), time.monotonic() + CAUGHT_UP_S
    while wrong and time.monotonic() < until:
        _watch(supervisor, feed, 2.0)
        wrong = _wrong(settings, truth)
    return DemoResult(before, after, change, moved_s, len(feed.events), wrong, len(truth), tuple(told))


def _watch(supervisor: Supervisor, feed: AdvertFeed, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        supervisor.look()
        feed.check()
        time.sleep(0.5)


def _measured(settings: Settings, folder: JobFolder, factor: float) -> Phase:
    observed, path_s = observe_job(settings, folder, MEASURED_S, factor)
    return Phase(factor, folder.wanted(), observed, path_s)


def _wrong(settings: Settings, truth: dict[str, tuple[int, int]]) -> int:
    """Windows whose newest counts are not what the events come to: counts of a window only grow."""
    found: dict[str, tuple[int, int]] = {}
    for key, value in read_committed(settings.kafka, RESULTS):
        said = json.loads(value or b"{}")
        name = (key or b"").decode()
        found[name] = max(found.get(name, (0, 0)), (said["n"], said["seq_sum"]))
    return sum(found.get(key) != true for key, true in truth.items()) + len(found.keys() - truth.keys())


def page_of(settings: Settings) -> Path:
    """Return the path of the demonstration's page."""
    return settings.var_dir / "plan_demo" / "page.html"
