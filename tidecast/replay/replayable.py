"""What a job gives its agent so that ranges of its topics can be read again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from tidecast.orders import ReplayOrder


class HeldElsewhereError(RuntimeError):
    """Another agent or application, as one that is just ending, still has a replay: it is begun once that lets go."""


class AgentTurn:
    """Which agent is at work with a job's replays: one that ends lets go of all that is open, whoever began it."""

    def __init__(self) -> None:
        """It is nobody's."""
        self._lock = threading.Lock()
        self._agent: object = None

    def take(self, agent: object) -> None:
        """Give it to an agent, until that has let go.

        Raises:
            HeldElsewhereError: another one has it.
        """
        with self._lock:
            if self._agent is not None and self._agent is not agent:
                raise HeldElsewhereError("the job's agent before is ending and still has its replays: it is waited for")
            self._agent = agent

    def leave(self, close: Callable[[], None], agent: object) -> None:
        """Call `close` and take it from the agent, unless another one has it."""
        try:
            self.take(agent)
        except HeldElsewhereError:
            return  # that one is to close
        try:
            close()
        finally:
            self._agent = None


@dataclass(frozen=True)
class Replayable:
    """What a job gives so that ranges of it can be read again.

    Attributes:
        start: builds the order's query (`replay_stream`, the live query's plan, a sink of the replay's own) and starts
            it; with a checkpoint by the order's id it goes on where it was. In a session of its own (`own_session`), or
            its end would end `spark.streams.awaitAnyTermination()` of the live query's. Where it, or `cancel`, raises a
            HeldElsewhereError it is called again some seconds later; by any other error the replay has failed.
        publish: called once all of the range is committed, to bring what the replay wrote into what readers see; may be
            called again after a failure or a restart, and has to change nothing where it has done its work. That of a
            gap is called again after a failure without another start. It returns why it has to be called again some
            seconds later, or "".
        cancel: called after a cancelled replay's query has stopped, to remove what it wrote. It returns what stays all
            the same, and what to do, or "".
        compare: returns in words what a publication would change, and changes nothing; None: replays of this job cannot
            be compared. It and `publish` are called in a thread of their own, never both at once for one order.
        orders: that the job places itself as soon as its agent acts, unless they are known.
        dry_run: runs an order's first batch for nobody, and leaves nothing behind; called once, in a thread of its
            own, before anything is ordered, so that the first batch that counts is quick. None: that one is slow.
        close: called when the agent ends; whatever is not done is gone on with by the next one.
        ended: called with the order that says that a replay is over. Keep its `wall_time`, by its id, where the results
            lie: the record on the broker goes where somebody sends an older order again.
        ended_at: returns what was kept of an id; 0: nothing, and such an order is met again by the next agent.
        begun: returns whether a replay of an id has begun to read, so that it goes on with the topics of its order. One
            that has not is refused where it leaves out a topic that the job reads by now, as a pattern may match more.
        turn: of the agents that are given this one, as where a query is started again in its driver.
    """

    start: Callable[[ReplayOrder], Any]
    publish: Callable[[ReplayOrder], str | None] = lambda order: None
    cancel: Callable[[ReplayOrder], str | None] = lambda order: None
    compare: Callable[[ReplayOrder], str] | None = None
    orders: tuple[ReplayOrder, ...] = ()
    dry_run: Callable[[ReplayOrder], None] | None = None
    close: Callable[[], None] = lambda: None
    ended: Callable[[ReplayOrder], None] = lambda order: None
    ended_at: Callable[[str], float] = lambda name: 0.0
    begun: Callable[[str], bool] = lambda name: False
    turn: AgentTurn = field(default_factory=AgentTurn, repr=False, compare=False)


def check_order(order: ReplayOrder, replayable: Replayable, topics: Collection[str]) -> None:
    """Refuse an order that a job cannot meet.

    Args:
        order: that is to begin.
        replayable: of the job.
        topics: that its query reads; none where that is not known.

    Raises:
        ValueError: it is to be compared and cannot be, it is of a topic that the job does not read, or it leaves out
            one that the job reads, and has not begun.
    """
    if order.then == "compare" and replayable.compare is None:
        raise ValueError("replays of this job cannot be compared: its Replayable has no compare=; order it without")
    ordered, known = {topic for topic, _ in order.first}, sorted(topics)
    strange, missing = sorted(ordered - {*known}), [topic for topic in known if topic not in ordered]
    read = f"the job reads {', '.join(known)}, the range"
    if known and strange and not order.table:
        raise ValueError(f"{read} is of {', '.join(strange)}: order it with --topic")
    # A table may have a topic under another name. A gap has all topics that the job read when it went out.
    if len(missing) > len(strange) and order.holds is None and not replayable.begun(order.id):
        raise ValueError(
            f"{read} leaves out {', '.join(missing)}, without whose records its results would be counted wrongly: "
            f"order it again with --topic {' --topic '.join(known)}, or with Topic {','.join(known)} in the form of "
            "Airflow's DAG"
        )
