"""The correction of a live day: once all that was withheld of an hour has come, it is read again beside live load."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any

from configs.settings import Settings
from pipelines.backfill.follow import FollowedOrder, follow_order
from pipelines.backfill.orders import send_order
from pipelines.backfill.stated import zone_of
from pipelines.backfill.text import describe_order, describe_progress
from pipelines.backfill.watch import read_now
from pipelines.demo.correction_plan import deadline, length_s, order_at, order_range, plan_correction
from pipelines.jobs.truth import Counted
from pipelines.jobs.withheld import back_s, withheld_hour
from pipelines.kafka.clocks import read_clock
from pipelines.kafka.connection import BrokerError
from pipelines.report.recorded.backfill import RecordedBackfill
from tidecast.control import Clock
from tidecast.orders import ReplayOrder, ReplayProgress

NAME = "corrected-hour"
STAMPED_S = 2.0
"""Wall seconds after the last withheld record was due, by which it has been stamped on a slow computer too."""
LOOK_S = 1.0
"""Wall seconds between two looks for the replay's clock, and for which clocks may differ."""
_WORD = ("wall_time", "state", "done", "admitted_rps", "rps", "executors")


class Correction:
    """Orders the backfill of the withheld hour once it can be planned, and follows it, in a thread of its own.

    What fails in it ends the correction alone: the run goes on, and its record says so.

    Attributes:
        told: what became of it so far.
    """

    def __init__(self, settings: Settings, since: float, hour: tuple[float, float]) -> None:
        """Take the settings of a stack, the wall time (epoch seconds) since when clocks count, and the hour's ends.

        The hour is in trace time, epoch seconds.
        """
        self._settings, self._since = settings, since
        due_at = since + length_s(settings)  # as long as no clock says when the load really began
        self.told = RecordedBackfill(NAME, *hour, due_at=due_at, planned_at=due_at)
        self._notes: SimpleQueue[str] = SimpleQueue()
        self._stopped = Event()
        self._thread = Thread(target=self._run, name="correction", daemon=True)

    def start(self) -> None:
        """Begin to wait for the live load."""
        self._thread.start()

    def stop(self) -> None:
        """Follow it no longer; a replay that runs is left running."""
        self._stopped.set()

    @property
    def over(self) -> bool:
        """Whether nothing more will be heard of it."""
        return not self._thread.is_alive()

    def notes(self) -> list[str]:
        """Return what is to be shown since the last call, in lines."""
        found = []
        while True:
            try:
                found.append(self._notes.get_nowait())
            except Empty:
                return found

    def _run(self) -> None:
        try:
            self._order_and_follow()
        except Exception as error:
            self.told = replace(self.told, state="failed", reason=f"{type(error).__name__}: {error}"[:500])
            self._notes.put(f"backfill: {self.told.reason}")

    def _order_and_follow(self) -> None:
        if (clock := self._wait_for_clock()) is None:
            return
        came_at = clock.wall_at(self.told.end) + back_s(self._settings.replay) + STAMPED_S
        due_at = deadline(self._settings, clock, came_at)
        self.told = replace(self.told, due_at=due_at, planned_at=due_at)
        if self._stopped.wait(max(order_at(self._settings, came_at, due_at) + LOOK_S - time.time(), 0.0)):
            return
        order = self._send(order_range(self._settings, clock, self.told, came_at))
        for said in self._follow(order):
            begun = self.told.begun_at
            self.told = with_word(self.told, said)
            if said.state in ("done", "cancelled", "failed") or begun != self.told.begun_at:
                self._notes.put(f"backfill: {describe_progress(said)}")

    def _send(self, order: ReplayOrder) -> ReplayOrder:
        """Plan an order and send it; returns it with its schedule."""
        settings, due_at = self._settings, self.told.due_at
        moment = read_now(settings, order.job)
        made = plan_correction(order, zone_of(moment.known.contract, settings), due_at, moment)
        order = made.order
        send_order(settings.kafka, order)
        self.told = replace(
            self.told, records=order.records, ordered_at=order.wall_time, plan=made.sentence, planned_at=made.done_at
        )
        how = made.sentence or f"{describe_order(order)}, with {order.schedule[0][1]} more of its executors: {made.why}"
        self._notes.put(f"backfill ordered: {how}, due {due_at - order.wall_time:.0f} s from now")
        return order

    def _wait_for_clock(self) -> Clock | None:
        """The clock that the load generator announces, that of this run; None where the correction was stopped."""
        while True:
            with suppress(BrokerError):  # one look without an answer: the clock may be told at the next
                clock = read_clock(self._settings.kafka, self._settings.job.name)
                if clock is not None and clock.wall_start >= self._since:
                    return clock
            if self._stopped.wait(LOOK_S):
                return None

    def _follow(self, order: ReplayOrder) -> Iterator[ReplayProgress]:
        for new in follow_order(self._settings, order):
            if self._stopped.is_set():
                return
            if text := _note(new):
                self._notes.put(f"backfill: {text}")
            if new.said is not None:
                yield new.said


def begin_correction(settings: Settings, since: float) -> Correction | None:
    """Start the correction of the hour of which the live load withholds records; None where it withholds none.

    Args:
        settings: of a stack that runs.
        since: epoch seconds; clocks that were announced for an earlier load do not count.
    """
    hour = withheld_hour(settings.replay)
    if hour is None:
        return None
    correction = Correction(settings, since, hour)
    correction.start()
    return correction


def with_word(told: RecordedBackfill, said: ReplayProgress) -> RecordedBackfill:
    """Return the record of a backfill after a word on it."""
    begun = said.wall_time if said.done or said.state == "running" else None
    return replace(
        told, state=said.state, reason=said.reason,
        progress=[*told.progress, {name: getattr(said, name) for name in _WORD}],
        begun_at=begun if told.begun_at is None else told.begun_at,
        done_at=said.wall_time if said.state == "done" else told.done_at,
    )  # fmt: skip


def judge_windows(truth: Mapping[str, Any], found: Counted) -> dict[str, int]:
    """Judge the results of a live day that was corrected, by the truth of every window.

    Returns:
        Numbers of results, one per key and window: `differed`, in which live records alone come to another one than all
        records do; `corrected`, of these, that are right now; `wrong`, of all, that are not.

    Raises:
        KeyError: the truth lacks its windows.
    """
    live, corrected = truth["windows"]["live"], truth["windows"]["corrected"]
    differed = {name for name, right in corrected.items() if live.get(name) != right}
    right = {**live, **corrected}
    wrong = {name for name in {*right, *found.windows} if found.windows.get(name) != right.get(name)}
    return {"differed": len(differed), "corrected": len(differed - wrong), "wrong": len(wrong)}


def _note(new: FollowedOrder) -> str:
    return "nothing is heard of the job's agent" if new.silent else new.note
