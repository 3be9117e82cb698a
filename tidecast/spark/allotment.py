"""Which executors of an application count for which of its queries, where agents scale several of them.

Spark gives every query's tasks to every executor. So the application is asked for as many as all its queries need
together, and each agent counts, reports and dismisses those that are its own.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Hashable, Iterable
from typing import Any, NamedTuple

KEPT = 1000
"""Executors that have ended and are remembered: who looks a moment later may have an older list of those there."""


class Left(NamedTuple):
    """What a query had that is scaled no more, until its heir asks for another number.

    Attributes:
        heir: the query that has it.
        target: executors that were asked for.
        executors: ids of those that had come.
    """

    heir: Hashable
    target: int
    executors: frozenset[str]


class Allotment:
    """The executors of one application, and what each of its scaled queries asks for; hold `lock` from look to change.

    Attributes:
        lock: of all that follows; a thread may take it again.
        scaled: whether a query has ever asked for executors.
    """

    def __init__(self) -> None:
        """Nobody asks for anything yet."""
        self.lock, self.scaled = threading.RLock(), False
        self._targets: dict[Hashable, int] = {}
        self._whose: dict[str, Hashable] = {}
        self._asked_to_leave: dict[str, None] = {}
        self._resting: set[Hashable] = set()
        self._names: dict[Hashable, str] = {}
        self._left: dict[str, Left] = {}
        self._last: dict[str, int] = {}  # what the only query that was scaled asked for, until anybody asks again

    def rest(self, query: Hashable, rests: bool) -> None:
        """Note whether a query's decisions are not applied, so that it lets none go."""
        (self._resting.add if rests else self._resting.discard)(query)

    def rests(self, query: Hashable) -> bool:
        """Return what was noted last."""
        return query in self._resting

    def target(self, query: Hashable) -> int | None:
        """Return the executors that a query asks for; None: it is not scaled."""
        return self._targets.get(query)

    def total(self, query: Hashable, executors: int) -> int:
        """Return what the application needs if a query asks for so many."""
        return sum(n for one, n in self._targets.items() if one is not query) + executors

    def begin(self, query: Hashable, name: str) -> int:
        """Note that a query is scaled, and return the executors that it asks for so far.

        Of one whose agent has begun anew they are those of the agent before: that one scales it no more, or has left
        them to nobody, or to a query that has asked for no other number since. Of any other there are none.

        Args:
            query: as in all other methods; another one after a new beginning.
            name: of the query, which stays.
        """
        for before in [one for one, called in self._names.items() if called == name and one is not query]:
            self.leave(before)
        left, last = self._left.pop(name, None), self._last.get(name, 0)
        self.ask(query, last if left is None else left.target)
        self._names[query] = name
        if left is None:
            return last
        self._targets[left.heir] -= left.target
        self._whose.update({one: query for one in left.executors if self._whose.get(one) is left.heir})
        return left.target

    def ask(self, query: Hashable, executors: int) -> None:
        """Note that a query asks for so many from now on; what others have left to it is its own then."""
        self._targets[query], self.scaled, self._last = executors, True, {}
        self._left = {name: left for name, left in self._left.items() if left.heir is not query}

    def dismiss(self, executors: Iterable[str]) -> None:
        """Note that executors were asked to leave; Spark does not use an id again."""
        self._asked_to_leave.update(dict.fromkeys(executors))

    def own(self, query: Hashable, registered: Collection[str]) -> list[str]:
        """Return those of the registered executors that count for a query, in their order; of one not scaled, all.

        A new one is allotted to the query that lacks the most; the first query that is scaled has those it finds. Those
        that were asked to leave count for none. Of those that have ended the newest KEPT are remembered.
        """
        for known in (self._whose, self._asked_to_leave):
            _forget_ended(known, registered)
        live = [one for one in registered if one not in self._asked_to_leave]
        if query not in self._targets:
            return live
        have = Counter(self._whose[one] for one in live if one in self._whose)
        for one in live:
            if one not in self._whose:
                needy = max(self._targets, key=lambda other: self._targets[other] - have[other])
                self._whose[one] = needy
                have[needy] += 1
        return [one for one in live if self._whose[one] is query]

    def leaving(self, query: Hashable, registered: Collection[str]) -> list[str]:
        """Return those of the registered executors that were asked to leave, and counted for a query until then."""
        gone = [one for one in registered if one in self._asked_to_leave]
        return gone if query not in self._targets else [one for one in gone if self._whose.get(one) is query]

    def leave(self, query: Hashable) -> None:
        """A query is scaled no more: what it had is from now on that of the query scaled longest, if there is one.

        That one's next decision finds more executors than it needs, and lets them go; an agent of the query that begins
        anew before that has them back. Where decisions of another one are applied and of that one not, the other one
        has them; where of none are, they stay, as the query itself may go on without its agent.
        """
        self._resting.discard(query)
        name = self._names.pop(query, None)
        if query not in self._targets:
            return
        had = self._targets.pop(query)
        heir = next((one for one in self._targets if one not in self._resting), next(iter(self._targets), None))
        if heir is None:
            self._whose.clear()
            self._left.clear()
            self._last = {} if name is None else {name: had}
            return
        passed_on = {of: left for of, left in self._left.items() if left.heir is query}
        own = {one for one, whose in self._whose.items() if whose is query}
        self._targets[heir] += had
        self._whose.update(dict.fromkeys(own, heir))
        self._left.update({of: left._replace(heir=heir) for of, left in passed_on.items()})
        if name is not None:
            had -= sum(left.target for left in passed_on.values())
            own = own.difference(*(left.executors for left in passed_on.values()))
            self._left[name] = Left(heir, had, frozenset(own))


def _forget_ended(known: dict[str, Any], registered: Collection[str]) -> None:
    if (many := len(known) - KEPT - len(registered)) > 0:
        there = {*registered}
        for one in [one for one in known if one not in there][:many]:
            del known[one]


_known: dict[str, Allotment] = {}  # what an application was scaled to is known when all its agents have ended, too
_known_lock = threading.Lock()


def allotment_of(application: str) -> Allotment:
    """Return the allotment of an application of this process, by Spark's id of it; all its agents have the same."""
    with _known_lock:
        return _known.setdefault(application, Allotment())
