"""Operators that take each record by itself: what they do to a sum of changes is the sum of what they do to each.

Functions that are given read k, v and t_e, so that a retraction takes the way of its insertion; they must be
deterministic and never look at a clock. No operator but a stateful one changes t_e, which watermarks rest on.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from models.relation.operators import Operator, OperatorState, Records
from models.relation.records import (
    Fact,
    Relation,
    RelationError,
    SignedRecord,
    changes_of,
    check_fact,
    records_of,
    relation,
)
from models.relation.windows import WindowedKey, spans_at

FactFunction = Callable[[Any, Any, int], Any]
"""Of k, v and t_e."""


class LinearOperator(Operator):
    """An operator without state; its watermark is the least of its inputs'."""

    @abstractmethod
    def images(self, side: int, fact: Fact) -> Iterable[tuple[Fact, int]]:
        """Yield what becomes of one insertion of a fact, each image with its sign.

        Args:
            side: which input it came by, from 0 on.
            fact: what came.
        """

    def apply(self, *relations: Relation) -> Relation:
        """Return the images of all facts, added up."""
        return relation(
            (image, sign * mult)
            for side, facts in enumerate(relations)
            for fact, mult in facts.items()
            for image, sign in self.images(side, fact)
        )

    def start(self) -> OperatorState:
        """Return a state that holds watermarks only."""
        return OperatorState()

    def step(
        self, state: OperatorState, batches: Sequence[Records], watermark: float
    ) -> tuple[OperatorState, tuple[SignedRecord, ...]]:
        """Return each record's images, in order of arrival, input by input."""
        changes = [
            (image, tally._replace(net=sign * tally.net))
            for side, batch in enumerate(batches)
            for fact, tally in changes_of(batch)
            for image, sign in self.images(side, fact)
        ]
        reached = max(state.watermark, watermark)
        return OperatorState(watermark=reached, frontier=reached), tuple(records_of(changes))


@dataclass(frozen=True)
class Select(LinearOperator):
    """Keep the records for which the predicate is true."""

    predicate: FactFunction

    def images(self, side: int, fact: Fact) -> Iterable[tuple[Fact, int]]:
        """Yield the fact or nothing."""
        return [(fact, 1)] if self.predicate(*fact) else []


@dataclass(frozen=True)
class Map(LinearOperator):
    """Replace each value."""

    function: FactFunction

    def images(self, side: int, fact: Fact) -> Iterable[tuple[Fact, int]]:
        """Yield the fact with the function's value."""
        k, _, t_e = fact
        return [(check_fact(k, self.function(*fact), t_e), 1)]


@dataclass(frozen=True)
class FlatMap(LinearOperator):
    """Replace each value by any number of values; equal ones count as often as they come."""

    function: Callable[[Any, Any, int], Iterable[Any]]

    def images(self, side: int, fact: Fact) -> Iterable[tuple[Fact, int]]:
        """Yield the fact once with each of the function's values."""
        k, _, t_e = fact
        return [(check_fact(k, v, t_e), 1) for v in self.function(*fact)]


@dataclass(frozen=True)
class Rekey(LinearOperator):
    """Replace each key."""

    function: FactFunction

    def images(self, side: int, fact: Fact) -> Iterable[tuple[Fact, int]]:
        """Yield the fact under the function's key."""
        _, v, t_e = fact
        return [(check_fact(self.function(*fact), v, t_e), 1)]


@dataclass(frozen=True)
class Union(LinearOperator):
    """Concatenate any number of inputs: multiplicities add up, as in SQL's UNION ALL."""

    arity: ClassVar[int | None] = None

    def images(self, side: int, fact: Fact) -> Iterable[tuple[Fact, int]]:
        """Yield the fact."""
        return [(fact, 1)]


@dataclass(frozen=True)
class Difference(LinearOperator):
    """Take the second input from the first: multiplicities are subtracted.

    Unlike SQL's EXCEPT ALL it does not stop at 0, or it would not be linear: what the second has in excess stays as a
    negative net.
    """

    arity: ClassVar[int | None] = 2

    def images(self, side: int, fact: Fact) -> Iterable[tuple[Fact, int]]:
        """Yield the fact, with its sign flipped if it is the second input's."""
        return [(fact, -1 if side else 1)]


@dataclass(frozen=True)
class SlidingWindow(LinearOperator):
    """Put each record into all windows that hold its event time: the key becomes a `WindowedKey`, t_e stays.

    Windows are [start, start + size) with starts at multiples of the slide since the epoch, as in Spark. The size need
    not be a multiple of the slide.

    Attributes:
        size_ms: length of a window.
        slide_ms: from one start to the next; at most the size, or records between windows would get lost (Spark refuses
            that, too).
    """

    size_ms: int
    slide_ms: int

    def __post_init__(self) -> None:
        if self.size_ms <= 0:
            raise RelationError(f"size of a window, {self.size_ms} ms: give more than 0")
        if not 0 < self.slide_ms <= self.size_ms:
            raise RelationError(
                f"slide of a window of {self.size_ms} ms, {self.slide_ms} ms: give more than 0 and at most the size;"
                " to leave records out, select the others before"
            )

    def images(self, side: int, fact: Fact) -> Iterable[tuple[Fact, int]]:
        """Yield the fact once per window."""
        k, v, t_e = fact
        return [((WindowedKey(span, k), v, t_e), 1) for span in spans_at(t_e, self.size_ms, self.slide_ms)]


def tumbling(size_ms: int) -> SlidingWindow:
    """Return windows side by side: the slide is the size."""
    return SlidingWindow(size_ms, size_ms)
