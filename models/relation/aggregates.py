"""One result per key, and distinct values: operators that keep a group of records together and tell what changes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from models.relation.operators import Content, OperatorState, Records, StatefulOperator
from models.relation.records import Change, Fact, Relation, Tally, changes_of, relation
from models.relation.reducers import Reducer
from models.relation.windows import end_of, result_time

GroupId = tuple[Any, ...]
"""What the records of a group have in common; the key comes first."""


class Group(NamedTuple):
    """What is known of a group: its net number of records, and what the operator makes of their values."""

    tally: Tally
    partial: Any


@dataclass(frozen=True)
class GroupedOperator(StatefulOperator):
    """An operator with at most one result per group, which it has while the group's net is above 0.

    A net at or below 0 is kept and nothing is told: a retraction may come before its insertion. A result's event time
    is its window's last ms (`result_time`), because that of the records would depend on which of them came. A group in
    no window closes at the end of the input only; until then none of its records is late, and in mode `final` nothing
    is told.
    """

    @property
    @abstractmethod
    def zero(self) -> Any:
        """Return the partial of no records."""

    @abstractmethod
    def group(self, k: Any, v: Any) -> GroupId:
        """Return the group of a record."""

    @abstractmethod
    def fold(self, partial: Any, v: Any, mult: int) -> Any:
        """Return the partial with a value added so many times; `partial` itself stays as it is."""

    @abstractmethod
    def value(self, group: GroupId, count: int, partial: Any) -> Any:
        """Return the result of a group of so many records."""

    def apply(self, *relations: Relation) -> Relation:
        """Return the result of each group."""
        (facts,) = relations
        groups = self._folded({}, (((k, v, t_e), Tally(mult, 0, "live")) for (k, v, t_e), mult in facts.items()))
        return relation((fact, 1) for group, known in groups.items() for fact in self._results(group, known))

    def start(self) -> OperatorState:
        """Return a state without groups."""
        return OperatorState(content={})

    def end(self, fact: Fact) -> float:
        """Return the end of the key's window."""
        return end_of(fact[0])

    def absorb(self, content: Content, batches: Sequence[Records]) -> tuple[Content, list[Change]]:
        """Return the groups with the records, and per group that changed its old result and its new one."""
        (batch,) = batches
        groups = self._folded(content, changes_of(batch))
        changes: list[Change] = []
        for group in dict.fromkeys(self.group(record.k, record.v) for record in batch):
            known = groups[group]
            old, new = self._results(group, content.get(group)), self._results(group, known)
            if old != new:
                changes += [(fact, known.tally._replace(net=-1)) for fact in old]
                changes += [(fact, known.tally._replace(net=1)) for fact in new]
            if known.tally.net == 0 and known.partial == self.zero:
                del groups[group]
        return groups, changes

    def expire(self, content: Content, closed: float) -> tuple[Content, int]:
        """Return the groups whose window may still change."""
        kept = {group: known for group, known in content.items() if end_of(group[0]) > closed}
        return kept, sum(known.tally.net < 0 for group, known in content.items() if group not in kept)

    def _folded(self, groups: Mapping[GroupId, Group], changes: Iterable[Change]) -> dict[GroupId, Group]:
        folded = dict(groups)
        for (k, v, _), tally in changes:
            group = self.group(k, v)
            known = folded.get(group)
            partial = self.fold(known.partial if known else self.zero, v, tally.net)
            folded[group] = Group(known.tally.plus(tally) if known else tally, partial)
        return folded

    def _results(self, group: GroupId, known: Group | None) -> list[Fact]:
        if known is None or known.tally.net <= 0:
            return []
        return [(group[0], self.value(group, known.tally.net, known.partial), result_time(group[0]))]


@dataclass(frozen=True)
class Aggregate(GroupedOperator):
    """Reduce the values under each key to one.

    Attributes:
        reducer: what they are reduced to.
    """

    reducer: Reducer

    @property
    def zero(self) -> Any:
        """Return the reducer's partial of no values."""
        return self.reducer.zero

    def group(self, k: Any, v: Any) -> GroupId:
        """Return the key alone."""
        return (k,)

    def fold(self, partial: Any, v: Any, mult: int) -> Any:
        """Return the reducer's partial with the value added."""
        return self.reducer.add(partial, v, mult)

    def value(self, group: GroupId, count: int, partial: Any) -> Any:
        """Return the reducer's result."""
        return self.reducer.result(partial, count)


@dataclass(frozen=True)
class Distinct(GroupedOperator):
    """Keep each value once per key: +1 when its net rises above 0, -1 when it falls back."""

    @property
    def zero(self) -> Any:
        """Return None: the net is all there is to know."""
        return None

    def group(self, k: Any, v: Any) -> GroupId:
        """Return key and value."""
        return k, v

    def fold(self, partial: Any, v: Any, mult: int) -> Any:
        """Return None."""
        return None

    def value(self, group: GroupId, count: int, partial: Any) -> Any:
        """Return the value of the group."""
        return group[1]
