"""A job on clusters of this computer for some minutes: for the demonstration and the bench."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

from configs.errors import CorrectableError
from configs.settings import Settings
from configs.topology import load_topology
from models.placement.plan.measured import Placement
from pipelines.kafka.topics import create_topic, create_topics
from pipelines.placement.clusters import started_clusters
from pipelines.placement.job_folder import JobFolder
from pipelines.placement.running import begin_job, job_folder
from pipelines.placement.supervisor import Supervisor
from pipelines.stack.stack import Stack

LOOK_S = 0.5


class TrialError(CorrectableError, RuntimeError):
    """A job that was tried did not come to its end; the message says where."""


class CheckedFeed(Protocol):
    """Sends a job's records."""

    def check(self) -> None:
        """Raise what has ended it, if anything has."""


class TriedJob(NamedTuple):
    """A job whose queries run for a while.

    Attributes:
        settings: with its broker, and topics of its partitions.
        folder: of the job.
        supervisor: of its queries.
    """

    settings: Settings
    folder: JobFolder
    supervisor: Supervisor

    def watch(self, feed: CheckedFeed, seconds: float) -> None:
        """Keep its queries running for a while, with a look at who feeds them.

        Raises:
            BrokerError: a record was not taken.
        """
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.supervisor.look()
            feed.check()
            time.sleep(LOOK_S)


@contextmanager
def tried_job(
    settings: Settings, file: Path, placement: Placement | None, tell: Callable[[str], None]
) -> Iterator[TriedJob]:
    """Yield a job whose queries have all begun; all is stopped in the end. What a job of its name left is deleted.

    Args:
        settings: of a namespace of its own, with a broker.
        file: its topology.
        placement: of its queries; None: as planned.
        tell: called with what a person is told.

    Raises:
        PlanError: the clusters have no room.
        SettingsError, BrokerError: as `begin_job`.
        StackError, ProcessError, PortError, JavaError: a cluster or a query does not start.
        TrialError: a query does not begin.
    """
    told = list[str]()

    def say(line: str) -> None:
        told.append(line)
        tell(line)

    live, folder = begin_trial(settings, file, placement, say)
    topology, home = load_topology(file.stem, file.parent), live.model_copy(update={"var": folder.path / "stack"})
    with started_clusters(topology, live, folder.path / "clusters") as there, Stack(home, ()) as drivers:
        supervisor = Supervisor(folder, drivers, there.masters, say)
        supervisor.start()
        while supervisor.starting():  # at their first batches
            time.sleep(LOOK_S)
            supervisor.look()
        if not supervisor.settled():
            raise TrialError(f"{topology.name}: a query does not begin: " + " ".join(told[-2:]))
        yield TriedJob(live, folder, supervisor)


def begin_trial(
    settings: Settings, file: Path, placement: Placement | None, say: Callable[[str], None]
) -> tuple[Settings, JobFolder]:
    """Begin a job with topics of its own, and return its settings and its folder; what one of its name left is deleted.

    Args:
        settings: of a namespace of its own, with a broker.
        file: its topology.
        placement: of its queries; None: as planned.
        say: called with what a person is told.

    Raises:
        PlanError: the clusters have no room.
        SettingsError, BrokerError: as `begin_job`.
    """
    topology = load_topology(file.stem, file.parent)
    live = settings.model_copy(update={
        "kafka": settings.kafka.model_copy(update={"event_partitions": topology.partitions}),
        "spark": settings.spark.model_copy(update={"master": None}),
        "contracts": settings.var_dir / "contracts",  # none: nobody scales it
    })  # fmt: skip
    folder = job_folder(live, topology.name)
    shutil.rmtree(folder.path, ignore_errors=True)
    create_topics(live.kafka)
    for source in topology.sources:
        create_topic(live.kafka, source)
    begin_job(live, file, say, placement)
    return live, folder
