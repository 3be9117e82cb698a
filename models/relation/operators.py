"""What all operators have in common: the order of a step, lateness, finality, the two modes of emission."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from models.relation.records import (
    Change,
    Fact,
    Relation,
    RelationError,
    SignedRecord,
    Tallies,
    merge,
    records_of,
)
from models.relation.watermark import OPEN
from models.relation.windows import last_instant

Emission = Literal["changelog", "final"]
Records = Sequence[SignedRecord]
Content = Any
"""What an operator knows of its input; each operator has its own mapping for it, which no step changes in place."""


@dataclass(frozen=True)
class OperatorState:
    """All that an operator carries from one micro-batch to the next: what a checkpoint of it holds.

    Attributes:
        content: what it knows of its input, by key; None for operators without state.
        held: results that are not yet final, in mode `final`.
        watermark: of its input, ms: the least of all inputs.
        frontier: watermark of its output, ms.
        late_dropped: records dropped because all they could change was closed. Behind a sliding window a record is
            several, one per window, and each that is dropped counts.
        negative_keys: keys (of joins and sessions: facts) whose net was below 0 when they were closed: retractions of
            what never came.
    """

    content: Content = None
    held: Tallies = field(default_factory=dict)
    watermark: float = OPEN
    frontier: float = OPEN
    late_dropped: int = 0
    negative_keys: int = 0


class Operator(ABC):
    """A function from relations to a relation, twice: of whole relations, and of their changes."""

    arity: ClassVar[int | None] = 1
    """How many inputs it has; None: any number from 1 on."""

    @abstractmethod
    def apply(self, *relations: Relation) -> Relation:
        """Return the result on whole relations: the meaning that any sequence of steps has to end in."""

    @abstractmethod
    def start(self) -> OperatorState:
        """Return the state before the first micro-batch."""

    @abstractmethod
    def step(
        self, state: OperatorState, batches: Sequence[Records], watermark: float
    ) -> tuple[OperatorState, tuple[SignedRecord, ...]]:
        """Take one micro-batch.

        Args:
            state: after the micro-batch before.
            batches: records per input, each in order of arrival.
            watermark: of the inputs after these records, ms; one below that of the state leaves that in force.

        Returns:
            The state after it, and the changes of the result.
        """


@dataclass(frozen=True, kw_only=True)
class StatefulOperator(Operator):
    """An operator with a store: all records first, then the watermark step, then expiry.

    A record is judged by the watermark before its micro-batch. What is emitted because of a watermark is thus on time
    for the operator behind, which takes it in the same micro-batch before its own watermark step.

    In mode `changelog` a step emits every change of the result: per key the old result with -1, if there was one, then
    the new one with +1; what came and went within one micro-batch is not told. In mode `final` a result is held until
    the watermark reaches its end; records that come after that, within the lateness, correct it as a changelog does.
    Both modes thus end in the same net.

    Attributes:
        lateness_ms: how far the watermark may be past the end of what a record changes, for the record still to be
            taken. The output's watermark stays as far behind, because corrections may come as late.
        emission: `changelog` or `final`.
    """

    lateness_ms: int = 0
    emission: Emission = "changelog"

    def __post_init__(self) -> None:
        name = type(self).__name__
        if self.lateness_ms < 0:
            raise RelationError(f"lateness_ms of {name}, {self.lateness_ms}: give 0 or more")
        if self.emission not in ("changelog", "final"):
            raise RelationError(f"emission of {name}, {self.emission!r}: give 'changelog' or 'final'")

    @abstractmethod
    def end(self, fact: Fact) -> float:
        """Return the watermark, ms, from which on no expected record has to do with what this input fact changes."""

    def result_end(self, fact: Fact) -> float:
        """Return the watermark, ms, from which on a result is final."""
        return self.end(fact)

    @abstractmethod
    def absorb(self, content: Content, batches: Sequence[Records]) -> tuple[Content, list[Change]]:
        """Return the content with the records in it, and the changes of the result in the order to be told."""

    @abstractmethod
    def expire(self, content: Content, closed: float) -> tuple[Content, int]:
        """Return the content without what no record may change any more, and how many nets below 0 go with it.

        Args:
            content: after the records.
            closed: the watermark less the lateness, ms.
        """

    def step(
        self, state: OperatorState, batches: Sequence[Records], watermark: float
    ) -> tuple[OperatorState, tuple[SignedRecord, ...]]:
        """Take one micro-batch: all records, then the watermark step, then expiry."""
        closed = state.watermark - self.lateness_ms
        taken = [[record for record in batch if self.end(record.fact) > closed] for batch in batches]
        late = sum(map(len, batches)) - sum(map(len, taken))
        content, changes = self.absorb(state.content, taken)

        watermark = max(state.watermark, watermark)
        results = merge(state.held, changes)
        told = {fact: tally for fact, tally in results.items() if self._is_told(fact, watermark)}
        held = {fact: tally for fact, tally in results.items() if fact not in told}

        content, negative = self.expire(content, watermark - self.lateness_ms)
        frontier = min([watermark - self.lateness_ms, *map(last_instant, held)])
        after = OperatorState(
            content, held, watermark, max(state.frontier, frontier), state.late_dropped + late,
            state.negative_keys + negative,
        )  # fmt: skip
        return after, tuple(records_of(told.items()))

    def _is_told(self, fact: Fact, watermark: float) -> bool:
        return self.emission == "changelog" or self.result_end(fact) <= watermark
