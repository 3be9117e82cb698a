"""Runs of a plan by micro-batches: the changes of every node's result, from the changes of its sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from models.relation.operators import OperatorState, Records, StatefulOperator
from models.relation.plan import LogicalPlan
from models.relation.records import Relation, RelationError, SignedRecord, net
from models.relation.watermark import ENDED, Source, SourceWatermark, advance_watermark, end_source


class Arrival(NamedTuple):
    """A record that comes in by a partition of a source."""

    source: str
    record: SignedRecord
    partition: int = 0


@dataclass(frozen=True)
class MicroBatch:
    """What is taken at once.

    Attributes:
        now: ingestion time at which it was cut, ms: not before any of its records, nor before the micro-batch before.
        arrivals: in order of arrival.
        ended: sources that bring nothing after it: their watermark is +inf from then on.
    """

    now: int
    arrivals: tuple[Arrival, ...] = ()
    ended: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Execution:
    """How far a run has come: what a checkpoint of it holds.

    Attributes:
        now: of the newest micro-batch, ms; None before the first.
        sources: watermark per source.
        states: state per node.
    """

    now: int | None
    sources: Mapping[str, SourceWatermark]
    states: Mapping[str, OperatorState]


@dataclass(frozen=True)
class StreamResult:
    """A run to the end.

    Attributes:
        relations: per node the net of all that it emitted.
        late_dropped: per stateful node, records dropped as late.
        negative_keys: per stateful node, keys whose net was below 0 when they were closed.
    """

    relations: dict[str, Relation]
    late_dropped: dict[str, int]
    negative_keys: dict[str, int]


def begin(plan: LogicalPlan) -> Execution:
    """Return a run of a plan before its first micro-batch."""
    watermarks = {source.name: SourceWatermark() for source in plan.sources}
    return Execution(None, watermarks, {node.name: node.operator.start() for node in plan.nodes})


def advance(
    plan: LogicalPlan, execution: Execution, batch: MicroBatch
) -> tuple[Execution, dict[str, tuple[SignedRecord, ...]]]:
    """Take one micro-batch through all nodes, each after its inputs.

    Sources' watermarks move with the records of this micro-batch already, and reach every operator after its records.
    An engine that moves them one batch later (as Spark does) tells final results later and drops fewer records, but
    ends in the same net where none is late.

    Args:
        plan: that the execution is of.
        execution: after the micro-batch before.
        batch: what comes.

    Returns:
        The execution after it, and per node the changes of its result.

    Raises:
        RelationError: an unknown source or partition, a record of a source that has ended, or time that runs backward.
    """
    _check(plan, execution, batch)
    flows: dict[str, Records] = {}
    sources: dict[str, SourceWatermark] = {}
    for source in plan.sources:
        mine = [arrival for arrival in batch.arrivals if arrival.source == source.name]
        flows[source.name] = [arrival.record for arrival in mine]
        sources[source.name] = _moved(source, execution.sources[source.name], mine, batch)
    reached = {name: source.value for name, source in sources.items()}
    states: dict[str, OperatorState] = {}
    emitted: dict[str, tuple[SignedRecord, ...]] = {}
    for node in plan.order:
        watermark = min(reached[name] for name in node.inputs)
        batches = [flows[name] for name in node.inputs]
        states[node.name], emitted[node.name] = node.operator.step(execution.states[node.name], batches, watermark)
        flows[node.name], reached[node.name] = emitted[node.name], states[node.name].frontier
    return Execution(batch.now, sources, states), emitted


def run_stream(plan: LogicalPlan, batches: Iterable[MicroBatch]) -> StreamResult:
    """Take micro-batches, then end all sources, and return what it all came to.

    Args:
        plan: what is computed.
        batches: in order; all that comes.
    """
    execution = begin(plan)
    told: dict[str, list[SignedRecord]] = {node.name: [] for node in plan.nodes}
    for batch in _ended(plan, batches):
        execution, emitted = advance(plan, execution, batch)
        for name, records in emitted.items():
            told[name].extend(records)
    stateful = [node.name for node in plan.nodes if isinstance(node.operator, StatefulOperator)]
    return StreamResult(
        {name: net(records) for name, records in told.items()},
        {name: execution.states[name].late_dropped for name in stateful},
        {name: execution.states[name].negative_keys for name in stateful},
    )


def _ended(plan: LogicalPlan, batches: Iterable[MicroBatch]) -> Iterator[MicroBatch]:
    """The micro-batches, and an empty one that ends all sources."""
    now = 0
    for batch in batches:
        now = batch.now
        yield batch
    yield MicroBatch(now, ended=frozenset(source.name for source in plan.sources))


def _moved(source: Source, known: SourceWatermark, mine: list[Arrival], batch: MicroBatch) -> SourceWatermark:
    newest: dict[int, int] = {}
    for arrival in mine:
        newest[arrival.partition] = max(newest.get(arrival.partition, arrival.record.t_e), arrival.record.t_e)
    moved = advance_watermark(source, known, newest, batch.now)
    return end_source(moved) if source.name in batch.ended else moved


def _check(plan: LogicalPlan, execution: Execution, batch: MicroBatch) -> None:
    if execution.now is not None and batch.now < execution.now:
        raise RelationError(f"micro-batch at {batch.now} ms after one at {execution.now} ms: give them in order")
    partitions = {source.name: source.partitions for source in plan.sources}
    if unknown := sorted({*batch.ended, *(arrival.source for arrival in batch.arrivals)} - {*partitions}):
        raise RelationError(f"sources {unknown} of a micro-batch are unknown: the plan has {sorted(partitions)}")
    for source, record, partition in batch.arrivals:
        if not 0 <= partition < partitions[source]:
            raise RelationError(
                f"partition {partition} of source {source!r}: it has {partitions[source]}, from 0 on; give it more"
            )
        if record.t_i > batch.now:
            raise RelationError(f"{record} in a micro-batch at {batch.now} ms: cut it after its records have come")
        if execution.sources[source].value == ENDED:
            raise RelationError(f"{record} of source {source!r}, which has ended: end a source after its last record")
