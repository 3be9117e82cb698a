"""The equi-join of two relations, of changes on both sides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from models.relation.operators import Content, OperatorState, Records, StatefulOperator
from models.relation.records import Change, Fact, Relation, RelationError, changes_of, merge, relation
from models.relation.windows import WindowedKey, end_of


@dataclass(frozen=True)
class Join(StatefulOperator):
    """Pair the records of two inputs that have equal keys: (k, (v_left, v_right), max of both t_e), nets multiplied.

    ΔA⋈B + A⋈ΔB + ΔA⋈ΔB. It is bilinear: a net below 0 on one side gives pairs below 0, which vanish when the insertion
    comes.

    When a record is closed depends on what bounds its partners. Keys in windows: with the window. Otherwise, with
    `bound_ms`: once its event time is behind the watermark, because some of its partners may be gone by then; a record
    itself stays for partners up to the bound after it. With neither, all records stay until the inputs end, and none is
    late before.

    Attributes:
        bound_ms: largest distance |t_e left - t_e right| of a pair; None: any.
    """

    arity: ClassVar[int | None] = 2
    bound_ms: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bound_ms is not None and self.bound_ms < 0:
            raise RelationError(f"bound of a join, {self.bound_ms} ms: give 0 or more, or None for no bound")

    def apply(self, *relations: Relation) -> Relation:
        """Return all pairs."""
        left, right = relations
        return relation((pair, left[a] * right[b]) for a, b, pair in self._pairs(left, right))

    def start(self) -> OperatorState:
        """Return a state of two empty sides; its content is a tally per fact of either side."""
        return OperatorState(content=({}, {}))

    def end(self, fact: Fact) -> float:
        """Return the end of the window; without one the ms after t_e if there is a bound, +inf if there is none."""
        k, _, t_e = fact
        return end_of(k) if isinstance(k, WindowedKey) or self.bound_ms is None else t_e + 1

    def absorb(self, content: Content, batches: Sequence[Records]) -> tuple[Content, list[Change]]:
        """Return both sides with their records, and the pairs that come and go."""
        (left, right), (new_left, new_right) = content, (merge({}, changes_of(batch)) for batch in batches)
        all_left, all_right = merge(left, new_left.items()), merge(right, new_right.items())
        with_old = [(pair, new_left[a].times(right[b])) for a, b, pair in self._pairs(new_left, right)]
        with_new = [(pair, all_left[a].times(new_right[b])) for a, b, pair in self._pairs(all_left, new_right)]
        return (all_left, all_right), with_old + with_new

    def expire(self, content: Content, closed: float) -> tuple[Content, int]:
        """Return both sides without what no record on time can be paired with."""
        kept = tuple({fact: side[fact] for fact in side if self._stays_until(fact) > closed} for side in content)
        gone = [side[fact].net for side in content for fact in side if self._stays_until(fact) <= closed]
        return kept, sum(net < 0 for net in gone)

    def _stays_until(self, fact: Fact) -> float:
        return self.end(fact) + (0 if isinstance(fact[0], WindowedKey) else self.bound_ms or 0)

    def _pairs(self, left: Iterable[Fact], right: Iterable[Fact]) -> Iterator[tuple[Fact, Fact, Fact]]:
        """A fact of each side, and what they give together."""
        partners: dict[object, list[Fact]] = {}
        for b in right:
            partners.setdefault(b[0], []).append(b)
        for a in left:
            for b in partners.get(a[0], []):
                if self.bound_ms is None or abs(a[2] - b[2]) <= self.bound_ms:
                    yield a, b, (a[0], (a[1], b[1]), max(a[2], b[2]))
