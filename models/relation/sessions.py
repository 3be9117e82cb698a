"""Session windows: what a key did without a pause, cut anew whenever a record comes or is retracted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from models.relation.operators import Content, OperatorState, Records, StatefulOperator
from models.relation.records import Change, Fact, Relation, RelationError, Tallies, Tally, changes_of, merge, relation
from models.relation.windows import Span, WindowedKey, check_time, end_of


@dataclass(frozen=True)
class SessionWindow(StatefulOperator):
    """Put each record into the session of its key: the key becomes a `WindowedKey`, t_e stays.

    A session is a maximal run of event times of one key in which each is less than `gap_ms` after the one before, and
    spans [first, last + gap). Only facts with a net above 0 make sessions and are told. When sessions merge, split,
    grow or shrink, their records are retracted from the old window and inserted into the new one, so that an aggregate
    behind emits the old result with -1 and the new one with +1.

    Windows are half open: a record at the very end of a session begins a new one, as in Beam. (Spark's `session_window`
    and Flink merge sessions that touch; but then a session that is final, e ≤ W, could still grow by a record at W.)

    A record is late once its event time, not the end of the session it would make alone, is behind the watermark by
    more than the lateness: it may belong with a session that is closed, which nobody could tell any more. So whatever
    is taken gives the sessions of a batch.

    Attributes:
        gap_ms: pause that ends a session.
    """

    gap_ms: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.gap_ms <= 0:
            raise RelationError(f"gap of a session window, {self.gap_ms} ms: give more than 0")

    def apply(self, *relations: Relation) -> Relation:
        """Return all facts with a net above 0 under their sessions."""
        (facts,) = relations
        members = {fact: Tally(mult, 0, "live") for fact, mult in facts.items()}
        return relation((fact, tally.net) for fact, tally in self._assigned(members).items())

    def start(self) -> OperatorState:
        """Return a state without members; its content is a tally per fact, negative nets included."""
        return OperatorState(content={})

    def end(self, fact: Fact) -> float:
        """Return the first ms after a record's event time."""
        return fact[2] + 1

    def result_end(self, fact: Fact) -> float:
        """Return the end of the session."""
        return end_of(fact[0])

    def absorb(self, content: Content, batches: Sequence[Records]) -> tuple[Content, list[Change]]:
        """Return the members with the records, and what moved from one session to another."""
        (batch,) = batches
        members = merge(content, changes_of(batch))
        keys = {record.k for record in batch}
        old, new = (self._assigned(_under(keys, facts)) for facts in (content, members))
        undone = [(fact, tally._replace(net=-tally.net)) for fact, tally in old.items()]
        return members, list(merge({}, [*undone, *new.items()]).items())

    def expire(self, content: Content, closed: float) -> tuple[Content, int]:
        """Return the members of sessions that may still change, and negative nets whose insertion may still come."""
        spans = self._spans(content)
        ends = {fact: spans[fact].end if fact in spans else self.end(fact) for fact in content}
        kept = {fact: tally for fact, tally in content.items() if ends[fact] > closed}
        return kept, sum(tally.net < 0 for fact, tally in content.items() if fact not in kept)

    def _assigned(self, members: Tallies) -> dict[Fact, Tally]:
        spans = self._spans(members)
        return {(WindowedKey(spans[k, v, t_e], k), v, t_e): members[k, v, t_e] for k, v, t_e in spans}

    def _spans(self, members: Tallies) -> dict[Fact, Span]:
        """The session of each fact whose net is above 0."""
        present = [fact for fact, tally in members.items() if tally.net > 0]
        times: defaultdict[object, list[int]] = defaultdict(list)
        for k, _, t_e in present:
            times[k].append(check_time(t_e))
        sessions = {k: self._sessions(of_key) for k, of_key in times.items()}
        return {fact: sessions[fact[0]][fact[2]] for fact in present}

    def _sessions(self, times: Iterable[int]) -> dict[int, Span]:
        """The session of each event time of a key."""
        runs: list[list[int]] = []
        for t_e in sorted(set(times)):
            if runs and t_e < runs[-1][-1] + self.gap_ms:
                runs[-1].append(t_e)
            else:
                runs.append([t_e])
        return {t_e: Span(run[0], run[-1] + self.gap_ms) for run in runs for t_e in run}


def _under(keys: set[object], facts: Tallies) -> dict[Fact, Tally]:
    return {fact: tally for fact, tally in facts.items() if fact[0] in keys}
