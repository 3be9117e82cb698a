"""A job's blocks, run until ctrl-C: what is begun, where it is checked, and who keeps it running."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from configs.errors import CorrectableError, SettingsError
from configs.settings import Settings
from configs.topology import Topology, load_topology
from models.placement.plan.applications import applications_of
from models.placement.plan.choose import PlanError, choose_placement
from models.placement.plan.measured import Placement
from models.placement.plan.missing import summary
from pipelines.file_lock import alone
from pipelines.html.numbers import number_of
from pipelines.jobs.launch import first_offsets_file, fix_first_offsets
from pipelines.kafka.broker import topic_offsets
from pipelines.kafka.connection import RIGHTS, TopicError
from pipelines.kafka.topics import create_topic, topic_id
from pipelines.placement.clusters import started_clusters
from pipelines.placement.code import load_code
from pipelines.placement.job_folder import LOCK, JobFolder
from pipelines.placement.reached import refuse_away
from pipelines.placement.scaled.forecast_relay import ForecastRelay
from pipelines.placement.scaled.offloading import Offloading
from pipelines.placement.scaled.reopened import ReopenedHelper
from pipelines.placement.scaled.target_shares import TargetShares
from pipelines.placement.supervisor import Supervisor
from pipelines.stack.context import StackRunsError
from pipelines.stack.kept_log import bound_log
from pipelines.stack.stack import Stack

LOOK_S = 1.0


class JobRunsError(CorrectableError, RuntimeError):
    """A job is run by another command, or what one started that was killed has not ended; the message says which."""


def job_folder(settings: Settings, name: str) -> JobFolder:
    """Return the folder of a job that runs in blocks."""
    return JobFolder(settings.var_dir / "jobs" / name)


def begun_jobs(settings: Settings) -> list[str]:
    """Return the topologies in the settings' folder whose jobs were begun, by name."""
    names = sorted(file.stem for file in settings.topologies_dir.glob("*.yaml"))
    return [name for name in names if job_folder(settings, name).began()]


def begin_job(
    settings: Settings, topology_file: Path, say: Callable[[str], None] = print, placement: Placement | None = None,
    factor: float = 1.0, planned: Topology | None = None,
) -> JobFolder:  # fmt: skip
    """Return the folder of a job; one that was never begun is planned and begun, and its topics are created.

    What it reads begins at the present end of its sources' topics. Of two commands that begin it at once the second
    goes on with what the first one has begun.

    Args:
        settings: with a broker.
        topology_file: of the job.
        say: called with what a person is told.
        placement: of the queries of one that was never begun; None: as planned.
        factor: of the sources' rates, for which that was planned.
        planned: topology for which that was planned.

    Raises:
        SettingsError: the topology is wrong, names no code, or was edited meanwhile; a topic has fewer partitions than
            it states, or one to which its queries would write has records of another.
        PlanError: the clusters have no room, or one is away on which queries of a job are to run that was never begun.
        BrokerError: the broker does not answer, or a source's topic is not there.
    """
    folder = job_folder(settings, topology_file.stem)
    if folder.began():
        load_code(folder.topology())
        if folder.has_changed(topology_file):
            say(
                f"{topology_file.name} has changed since this job was begun, or is no more: it goes on as it was. "
                f"To begin anew with it, move {folder.path} away."
            )
        try:
            refuse_away(folder.topology(), folder.wanted(), wanted=folder.wanted())
        except PlanError as error:  # its other queries run meanwhile, and it is tried again until it is there
            say(str(error))
        return folder
    topology = planned or load_topology(topology_file.stem, topology_file.parent)
    load_code(topology)
    placement = placement or choose_placement(topology).placement
    refuse_away(topology, placement, factor)
    topics = _made_topics(settings, topology, placement, folder)
    folder.path.mkdir(parents=True, exist_ok=True)
    with alone(folder.path / LOCK):
        if not folder.began():  # by another command, meanwhile: what that begins at may run already
            first_offsets_file(folder.path, topology.name).unlink(missing_ok=True)  # of a beginning that was broken off
            fix_first_offsets(settings, folder.path, topology.name, topics)
            folder.begin(topology_file, placement, topology)
    return folder


def run_blocks(settings: Settings, folder: JobFolder, say: Callable[[str], None] = print) -> None:
    """Run a job's blocks for ever, on its clusters; all that this starts ends with it.

    Args:
        settings: with a broker.
        folder: of the job, which was begun.
        say: called with what a person is told.

    Raises:
        JobRunsError: the job runs already.
        StackError: a cluster does not start. A query that does not begin is tried again.
    """
    topology, say = folder.topology(), _at_will(say)
    own, clusters = settings.model_copy(update={"var": folder.path / "stack"}), folder.path / "clusters"
    with _alone(topology.name), started_clusters(topology, settings, clusters) as there, Stack(own, ()) as home:
        supervisor = Supervisor(folder, home, there.masters, say)
        supervisor.start()
        relay = ReopenedHelper(
            "forecasts of later queries", lambda: ForecastRelay(settings, topology, folder.wanted), say
        )
        offloading = ReopenedHelper("off-loading", lambda: Offloading(settings, folder, say), say)
        shares = ReopenedHelper("shares of the target", lambda: TargetShares(settings, folder, say), say)
        with closing(relay), closing(offloading):
            while True:
                time.sleep(LOOK_S)
                for cluster in there.look(say):
                    supervisor.end_on(cluster)
                for one in (supervisor.look, relay.step, offloading.step, shares.step):
                    one()
                for process in home.processes.values():
                    bound_log(process.log)


@contextmanager
def _alone(job: str) -> Iterator[None]:
    """Say what runs already by the job's name: each of its clusters, and its drivers, are a stack on its folder."""
    try:
        yield
    except StackRunsError as error:
        if error.owner is None:
            raise JobRunsError(
                f"{job}: its queries still run. Try again ten seconds after `tidecast job up {job}` was killed: they "
                "end until then. Where it was not, end it first."
            ) from None
        raise JobRunsError(
            f"{job} runs already (process {error.owner}), which keeps all its queries running. To run it here, end "
            f"that command first (ctrl-C, or `kill {error.owner}`)."
        ) from None


def _at_will(say: Callable[[str], None]) -> Callable[[str], None]:
    """What is told where it can be: a full disk behind a log, or a reader that has gone, ends no query."""

    def tell(line: str) -> None:
        with suppress(OSError):
            say(line)

    return tell


def _made_topics(settings: Settings, topology: Topology, placement: Placement, folder: JobFolder) -> list[str]:
    """The topics of a job's sources, which are there, and of its blocks, which are made."""
    kafka = settings.kafka.model_copy(update={"event_partitions": topology.partitions})
    sources, made = list(topology.sources), list[str]()
    for block in applications_of(topology, placement):
        made += block.writes.values()
    for source in sources:
        _check_source(settings, topology, source)
    for topic in made:
        _refuse_taken(settings, folder, topology.name, topic)
    for topic in made:
        create_topic(kafka, topic)
    for topic in made:
        if (many := len(topic_offsets(settings.kafka, topic))) < topology.partitions:
            raise SettingsError(
                f"{topology.name}.yaml: partitions={topology.partitions}, but the topic {topic} has {many}, where what "
                f"each task has sent is kept. State {many}, or make that topic anew."
            )
    return [*sources, *made]


def _refuse_taken(settings: Settings, folder: JobFolder, job: str, topic: str) -> None:
    """Refuse a topic with records that no earlier beginning of the job has sent."""
    try:
        known = topic_id(settings.kafka, topic)
    except TopicError:
        return
    held = sum(end - first for first, end in topic_offsets(settings.kafka, topic).values())
    if held and known not in _topics_before(folder, job):
        raise SettingsError(
            f"{job}.yaml: a query would write to the topic {settings.kafka.topic(topic)}, which is there already with "
            f"{number_of(held, 'offset')}: others may write or read it. Name the job otherwise, or set another "
            f"kafka.prefix. If the job was begun before, put the folder that it had beside {folder.path}, under any "
            "name; without that folder, delete the topic."
        )


def _topics_before(folder: JobFolder, job: str) -> set[str]:
    """Ids of the topics of a job's earlier beginnings, whose folders were moved away, as far as they lie beside it."""
    found = set[str]()
    for kept in folder.path.parent.glob(f"*/{job}.yaml"):
        for file in kept.parent.glob("*.topics.json"):
            with suppress(OSError, ValueError, AttributeError):
                found.update(json.loads(file.read_text()).values())
    return found


def _check_source(settings: Settings, topology: Topology, source: str) -> None:
    """Refuse a source without a topic, and one for whose partitions the queries that read it would have idle cores."""
    try:
        many = len(topic_offsets(settings.kafka, source))
    except TopicError:
        raise TopicError(
            f"{topology.name}.yaml: sources.{source} is the topic {settings.kafka.topic(source)!r} (kafka.prefix and "
            "its name), which does not exist on the broker, or this user may not see or read it. Make it with "
            f"{topology.partitions} partitions, or name the source as its topic is named. {RIGHTS}"
        ) from None
    if many >= topology.partitions:
        return
    fewer = topology.model_copy(update={"partitions": many})
    try:
        nearest = f"there is a plan: {summary(choose_placement(fewer).placement)}"
    except PlanError as error:
        nearest = f"there is no plan: {error}"
    raise SettingsError(
        f"{topology.name}.yaml: partitions={topology.partitions}, but the topic {source} has {many}: more cores than "
        f"these do nothing for a query that reads it. State `partitions: {many}` in the topology, or give the topic "
        f"{topology.partitions}, which puts keys into other partitions for all who read it. With {many} {nearest}"
    )
