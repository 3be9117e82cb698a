"""`tidecast plan --demo`: a job on two real clusters, planned, measured, and planned anew when its load rises."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from configs.settings import ROOT, Settings
from configs.topology import load_topology
from models.placement.plan.choose import choose_placement
from models.placement.plan.measured import Placement
from models.placement.plan.observed import ObservedBlock
from pipelines.jobs.chains import adverts
from pipelines.jobs.chains.feed import ChainFeed
from pipelines.jobs.chains.truth import Counts, newest_counts, read_count, true_counts, wrong_keys
from pipelines.kafka.committed import read_committed
from pipelines.placement.job_folder import JobFolder
from pipelines.placement.observed import observe_job
from pipelines.placement.page.plan_page import compare
from pipelines.placement.tried import TrialError, TriedJob, tried_job
from pipelines.stack.isolation import isolated_settings
from pipelines.stack.stack import Stack

NAME, RESULTS = "served_adverts", "served_adverts.count"
SURGE = 2.5
"""Of the stated rate, to which the load rises."""
WARM_S, MEASURED_S, NOTICED_S, CAUGHT_UP_S = 20.0, 40.0, 10.0, 90.0
"""Seconds: before anything is measured, that are measured, of the higher load before it is planned for, and for the
last records to be counted."""


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


def run_demo(settings: Settings) -> tuple[JobFolder, DemoResult]:
    """Run the demonstration on services of its own, in `var/plan_demo`; some five minutes, all is stopped at the end.

    Raises:
        SettingsError: a broker is set: what is there must not be filled.
        BrokerError: an event was not taken.
        PlanError: the clusters have no room.
        StackError, ProcessError, PortError, JavaError: a service, a cluster or a query does not start.
        TrialError: the second plan is none that a running job can take, or its queries do not work in time.
    """
    told, own = list[str](), isolated_settings(settings, "plan_demo")

    def tell(line: str) -> None:
        told.append(line)
        print(line)

    file = ROOT / "configs" / "topologies" / f"{NAME}.yaml"
    rps = load_topology(NAME, file.parent).sources["events"].rps
    with Stack(own, {"broker"}) as stack:
        tell(f"{NAME}: planned for {rps:g} events/s; its queries start, upstream first")
        with (
            tried_job(stack.settings, file, None, tell) as job,
            ChainFeed(job.settings.kafka, "events", adverts.draw, rps) as feed,
        ):
            return job.folder, _run(job, feed, tell, told)


def _run(
    job: TriedJob, feed: ChainFeed[adverts.AdvertEvent], tell: Callable[[str], None], told: list[str]
) -> DemoResult:
    settings, folder, rps = job.settings, job.folder, feed.rps
    topology = folder.topology()
    job.watch(feed, WARM_S + MEASURED_S)
    before = _measured(settings, folder, 1.0)
    tell(f"the load rises to {SURGE:g} times as much")
    feed.rps = SURGE * rps
    job.watch(feed, NOTICED_S)
    was = folder.wanted()
    planned = choose_placement(topology, SURGE, tuple(one.operators for one in was.blocks)).placement
    change, can = compare(topology, was, planned, SURGE)
    if not can:
        raise TrialError(f"nothing was to be moved: {change}. State other work in {NAME}.yaml.")
    tell(f"planned anew. {change}")
    folder.want(planned)
    since = time.monotonic()
    while not job.supervisor.settled() and time.monotonic() - since < 2 * CAUGHT_UP_S:
        job.watch(feed, 1.0)
    moved_s = time.monotonic() - since
    if not job.supervisor.settled() or folder.wanted() != planned:
        raise TrialError("the queries do not work where they were moved: " + " ".join(told[-2:]))
    until = time.monotonic() + CAUGHT_UP_S
    job.watch(feed, WARM_S)
    while time.monotonic() < until and not (observe_job(settings, folder, WARM_S)[1] or math.inf) <= topology.target_s:
        job.watch(feed, 2.0)  # what came while they moved is worked off
    job.watch(feed, MEASURED_S)
    after = _measured(settings, folder, SURGE)
    truth = true_counts(feed.end(), adverts.result_keys)
    wrong, until = _wrong(settings, truth), time.monotonic() + CAUGHT_UP_S
    while wrong and time.monotonic() < until:
        job.watch(feed, 2.0)
        wrong = _wrong(settings, truth)
    return DemoResult(before, after, change, moved_s, len(feed.events), wrong, len(truth), tuple(told))


def _measured(settings: Settings, folder: JobFolder, factor: float) -> Phase:
    observed, path_s = observe_job(settings, folder, MEASURED_S, factor)
    return Phase(factor, folder.wanted(), observed, path_s)


def _wrong(settings: Settings, truth: Counts) -> int:
    """Windows whose newest counts are not what the events come to."""
    found = newest_counts(read_count(one.key, one.value) for one in read_committed(settings.kafka, RESULTS))
    return len(wrong_keys(found, truth))


def page_of(settings: Settings) -> Path:
    """Return the path of the demonstration's page."""
    return settings.var_dir / "plan_demo" / "page.html"
