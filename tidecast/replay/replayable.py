"""What a job gives its agent so that ranges of its topics can be read again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tidecast.orders import ReplayOrder, order_key

if TYPE_CHECKING:
    from tidecast.job import OrderedJob

log = logging.getLogger("tidecast")


class HeldElsewhereError(RuntimeError):
    """Another agent or application, as one that is just ending, still has a replay: it is begun once that lets go."""


@dataclass(frozen=True)
class Replayable:
    """What a job gives so that ranges of it can be read again.

    Attributes:
        start: builds the order's query (`replay_stream`, the live query's plan, a sink of the replay's own) and starts
            it; with a checkpoint by the order's id it goes on where it was. In a session of its own (`own_session`), or
            its end would end `spark.streams.awaitAnyTermination()` of the live query's. Where it, or `cancel`, raises a
            HeldElsewhereError it is called again some seconds later; by any other error the replay has failed.
        publish: called once all of the range is committed, to bring what the replay wrote into what readers see; may be
            called again after a failure or a restart, and has to change nothing where it has done its work. It returns
            why it has to be called again some seconds later, or "".
        cancel: called after a cancelled replay's query has stopped, to remove what it wrote.
        compare: returns in words what a publication would change, and changes nothing; None: replays of this job cannot
            be compared. It and `publish` are called in a thread of their own, never both at once for one order.
        orders: that the job places itself as soon as its agent acts, unless they are known.
        dry_run: runs an order's first batch for nobody, and leaves nothing behind; called once, in a thread of its
            own, before anything is ordered, so that the first batch that counts is quick. None: that one is slow.
        close: called when the agent ends; whatever is not done is gone on with by the next one.
        ended: called with the order that says that a replay is over. Keep its `wall_time`, by its id, where the results
            lie: the record on the broker goes where somebody sends an older order again.
        ended_at: returns what was kept of an id; 0: nothing, and such an order is met again by the next agent.
    """

    start: Callable[[ReplayOrder], Any]
    publish: Callable[[ReplayOrder], str | None] = lambda order: None
    cancel: Callable[[ReplayOrder], None] = lambda order: None
    compare: Callable[[ReplayOrder], str] | None = None
    orders: tuple[ReplayOrder, ...] = ()
    dry_run: Callable[[ReplayOrder], None] | None = None
    close: Callable[[], None] = lambda: None
    ended: Callable[[ReplayOrder], None] = lambda order: None
    ended_at: Callable[[str], float] = lambda name: 0.0


def check_order(order: ReplayOrder, replayable: Replayable, topics: Collection[str]) -> None:
    """Refuse an order that a job cannot meet.

    Args:
        order: that is to begin.
        replayable: of the job.
        topics: that its query reads; none where that is not known.

    Raises:
        ValueError: it is to be compared and cannot be, or it is of a topic that the job does not read.
    """
    if order.then == "compare" and replayable.compare is None:
        raise ValueError("replays of this job cannot be compared: its Replayable has no compare=; order it without")
    if strange := sorted({topic for topic, _ in order.first} - {*topics} if topics and not order.table else ()):
        raise ValueError(
            f"the job reads {', '.join(sorted(topics))}, the range is of {', '.join(strange)}: order it with --topic"
        )


class EndedOrders:
    """Which replays of a job are over: an order of before that, which somebody sends again, is met no more."""

    def __init__(self, job: OrderedJob, replayable: Replayable | None) -> None:
        """Know what the replayable has kept; None: nothing."""
        self._job, self._replayable = job, replayable or Replayable(lambda order: None)
        self._at: dict[str, float] = {}

    def tell(self, order: ReplayOrder, at: float) -> None:
        """Keep and say that a replay is over since a wall time, later than the order's."""
        over = replace(order, wanted="done", wall_time=at)
        try:
            self._replayable.ended(over)
        except Exception as error:  # what was published is published
            log.warning("%s: the end of replay %s is not kept: %s", order.job, order.id, error)
        self._at[order.id] = at
        self._job.orders[order.id] = over
        self._job.outbox.enqueue("control", order_key(order.job, order.id), over)

    def covers(self, order: ReplayOrder) -> bool:
        """Return whether an order is none of later than its replay's end; that end is then said again.

        While the agent observes it is not looked for.
        """
        if self._job.mode == "observe":
            return False
        if order.id not in self._at:
            self._at[order.id] = self._replayable.ended_at(order.id)
        if self._at[order.id] < order.wall_time:
            return False
        log.warning("%s: replay %s is over: an order of before its end came again", order.job, order.id)
        self.tell(order, self._at[order.id])
        return True
