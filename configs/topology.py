"""A job as a graph of operators, and the clusters on which its parts may run: `configs/topologies/NAME.yaml`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from configs.bounds import DAY_S, TOPIC, Count, Key, Level, Name, NotNegative, Positive, Section, Whole
from configs.errors import SettingsError
from configs.files import LinedYaml, read_section
from tidecast.fields import JOB_NAME

LISTED = "docs/placement.md"


MOST_RPS, MOST_SELECTIVITY, MOST_COUNT = 1e12, 1e6, 1_000_000
"""Of a source, of an operator, and of cores and partitions: beyond lies a slip of the keyboard."""


class RecordSource(Section):
    """Records that come from outside, on a topic.

    Attributes:
        rps: records/s.
        bytes: of a record.
    """

    rps: float = Field(ge=0, le=MOST_RPS)
    bytes: Positive = 200.0


class JobOperator(Section):
    """A step of the job.

    Attributes:
        of: sources and operators whose records it takes.
        work_ms: core-milliseconds of a record that it takes.
        selectivity: records that it makes of one.
        bytes: of a record that it makes.
        memory_mb: beside its state.
        state_mb: of its state; 0: it has none.
        cluster: on which it has to run; None: on any.
        unit: recovery unit; operators of different ones are never one query.
        exactly_once: commit unit of its sink; None: it has none.
        timer: whether it owns event-time timers.
        served: whether each record also waits `work_ms` when the job runs, as for a service: a plan is tried before its
            work is written.
    """

    of: Annotated[tuple[Name, ...], Field(min_length=1)]
    work_ms: Positive
    selectivity: float = Field(1.0, ge=0, le=MOST_SELECTIVITY)
    bytes: Positive = 200.0
    memory_mb: NotNegative = 0.0
    state_mb: NotNegative = 0.0
    cluster: Name | None = None
    unit: str = ""
    exactly_once: Name | None = None
    timer: bool = False
    served: bool = False


class SparkCluster(Section):
    """A Spark cluster.

    Attributes:
        cores: that its applications may have together.
        memory_gb: likewise.
        price: of a core for an hour, in any currency.
        executor_cores: of one executor.
        round_trip_ms: to other clusters, by name; each pair is stated once.
        master: its address, as `spark://HOST:PORT`; None: a cluster of this size is started on this computer.
    """

    cores: int = Field(ge=1, le=MOST_COUNT)
    memory_gb: Positive = 16.0
    price: NotNegative = 1.0
    executor_cores: Count = 1
    round_trip_ms: Mapping[Name, NotNegative] = Field(default_factory=dict)
    master: Name | None = None

    @model_validator(mode="after")
    def _has_an_executor(self) -> SparkCluster:
        if self.executor_cores > self.cores:
            raise ValueError(
                f"executor_cores={self.executor_cores} of cores={self.cores}: no executor has room. State less"
            )
        return self


class Hop(Section):
    """What an edge between two queries costs, which is a topic, beside one inside a query.

    The first two defaults are as measured (`tidecast bench placement --parts hop`); the third is assumed.

    Attributes:
        write_ms: core-milliseconds of a record, by the query that writes it.
        read_ms: likewise, by the one that reads it.
        inline_ms: likewise, where both are one query.
    """

    write_ms: NotNegative = 0.005
    read_ms: NotNegative = 0.011
    inline_ms: NotNegative = 0.001


class Topology(Section):
    """A job and where it may run.

    Attributes:
        name: of the job, and of the file.
        target_s: within which records are to be in the results, along the slowest path.
        quantile: share of the records for which that holds.
        trigger_s: from micro-batch to micro-batch of each query.
        overhead_s: of a micro-batch beside its records.
        partitions: of each topic and of each query's state: more cores than these do nothing for a query.
        driver_cores: cores of a cluster that each query takes beside its executors; 0 where drivers run elsewhere.
        broker: cluster in which the topics lie.
        code: module whose SOURCES and OPERATORS say what the operators do; None: it can be planned, and not run.
        hop: what an edge through a topic costs.
        quota_cores: that the executors of all its queries may have together, on all clusters; None: no bound.
        sources: by name.
        operators: by name.
        clusters: by name.
    """

    name: Name
    target_s: float = Field(10.0, gt=0, le=DAY_S)
    quantile: Level = 0.95
    trigger_s: float = Field(1.0, gt=0, le=DAY_S)
    overhead_s: float = Field(0.3, ge=0, le=DAY_S)
    partitions: int = Field(12, ge=1, le=MOST_COUNT)
    driver_cores: Whole = 0
    broker: Name
    code: Name | None = None
    hop: Hop = Hop()
    quota_cores: Annotated[int, Field(ge=1, le=MOST_COUNT)] | None = None
    sources: Annotated[Mapping[Name, RecordSource], Field(min_length=1)]
    operators: Annotated[Mapping[Name, JobOperator], Field(min_length=1)]
    clusters: Annotated[Mapping[Name, SparkCluster], Field(min_length=1)]

    def round_trip_ms(self, one: str, other: str) -> float:
        """Return the round trip between two clusters; 0 to itself."""
        if one == other:
            return 0.0
        stated = self.clusters[one].round_trip_ms.get(other)
        return self.clusters[other].round_trip_ms[one] if stated is None else stated


def load_topology(name: str, folder: Path, begun: bool = False) -> Topology:
    """Read and check the topology `<folder>/<name>.yaml`.

    Of one with which a job was `begun` names are as they are: an operator inside a query names no query and no topic.

    Raises:
        SettingsError: there is no such file, it cannot be read or is not YAML, or something in it is wrong: an unknown
            key, operator or cluster, an operator that takes its own records, operators that take each other's in a
            cycle, a round trip that is not stated. The message names file, line, value and remedy.
    """
    path = folder / f"{name}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in folder.glob("*.yaml"))) or "none"
        raise SettingsError(f"topology {name!r}: there is no {path}. Known topologies: {known}. Copy one and edit it.")
    topology, read = read_section(path, Topology, LISTED, "topology", f"name: {name}")
    if wrong := sorted(_told(_list_wrong(topology, name, begun), read)):
        raise SettingsError("\n".join(f"{path.name}, line {line}: {what}" for line, what in wrong))
    return topology


def _told(wrong: Iterator[tuple[Key, str]], read: LinedYaml) -> Iterator[tuple[int, str]]:
    for key, what in wrong:
        yield read.line_of(key), f"{'.'.join(map(str, key))}{what}"


def _list_wrong(topology: Topology, name: str, begun: bool) -> Iterator[tuple[Key, str]]:
    """What does not go together: keys, and their values with the reason and the remedy."""
    if topology.name != name:
        yield ("name",), f"={topology.name!r}: the file's name and the job's must be one. Rename one of them."
    yield from () if begun else _wrong_names(topology)
    known, clusters = {*topology.sources, *topology.operators}, ", ".join(topology.clusters)
    for both in {*topology.sources} & {*topology.operators}:
        yield ("operators", both), ": a source has this name, too. Rename one of them."
    if topology.broker not in topology.clusters:
        yield ("broker",), f"={topology.broker!r}: no such cluster. There are {clusters}."
    for own, operator in topology.operators.items():
        for place, other in enumerate(operator.of):
            at = ("operators", own, "of", place)
            if other == own:
                yield at, f"={other!r}: an operator takes no records of its own. Name where they come from."
            elif other not in known:
                yield at, f"={other!r}: no such source or operator. There are {', '.join(sorted(known))}."
        if operator.cluster is not None and operator.cluster not in topology.clusters:
            yield ("operators", own, "cluster"), f"={operator.cluster!r}: no such cluster. There are {clusters}."
    cycle = _cycle(topology)
    if cycle:
        yield ("operators", cycle[0], "of"), f": {' > '.join(cycle)} is a cycle. Take one edge out."
    yield from _wrong_trips(topology)
    least = min(one.executor_cores for one in topology.clusters.values())
    if topology.quota_cores is not None and topology.quota_cores < least:
        what = f"={topology.quota_cores}: one executor has {least} cores at least. State as many or more."
        yield ("quota_cores",), what


def _wrong_names(topology: Topology) -> Iterator[tuple[Key, str]]:
    """Names that no topic may have, or no query: each operator may be the first of one, which is a job."""
    for source in topology.sources:
        if not TOPIC.fullmatch(source):
            what = "a source is a topic, whose name has 1 to 249 letters a-z, digits, dots, dashes or underscores"
            yield ("sources", source), f": {what}. Name it as its topic is named."
    if not JOB_NAME.pattern.fullmatch(topology.name):
        yield ("name",), f"={topology.name!r}: {JOB_NAME.words} are expected. Rename the file and the job."
        return
    for own in topology.operators:
        if not JOB_NAME.pattern.fullmatch(query := f"{topology.name}.{own}"):
            what = f"{JOB_NAME.words} are expected of the query {query!r} ({len(query)})"
            yield ("operators", own), f": {what}. Name the operator, or the job, otherwise."


def _wrong_trips(topology: Topology) -> Iterator[tuple[Key, str]]:
    names = list(topology.clusters)
    for number, one in enumerate(names):
        for other in topology.clusters[one].round_trip_ms:
            at = ("clusters", one, "round_trip_ms", other)
            if other not in topology.clusters or other == one:
                yield at, f": no other cluster. There are {', '.join(names)}."
        for other in names[number + 1 :]:
            stated = [one in topology.clusters[other].round_trip_ms, other in topology.clusters[one].round_trip_ms]
            if sum(stated) != 1:
                what = "is stated twice. Delete one" if all(stated) else f"is not stated. State {other} there"
                yield ("clusters", one, "round_trip_ms"), f": the round trip to {other} {what}."


def _cycle(topology: Topology) -> list[str]:
    """Operators of which each takes records of the one before, the first one also at the end; none without a cycle."""
    needs = {own: [other for other in one.of if other != own] for own, one in topology.operators.items()}
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []
