"""The correction of a live day: once all that was withheld of an hour has come, it is read again beside live load."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any

from configs.settings import Settings
from pipelines.backfill.orders import follow_progress, send_order
from pipelines.backfill.ranges import TimeRange, find_offsets
from pipelines.backfill.text import describe_order, describe_progress
from pipelines.jobs.truth import Counted
from pipelines.jobs.withheld import back_s, withheld_hour
from pipelines.kafka.clocks import read_clock
from pipelines.report.recorded.backfill import RecordedBackfill
from tidecast.control import Clock
from tidecast.messages import decode, encode
from tidecast.orders import ReplayOrder, ReplayProgress

NAME = "corrected-hour"
STAMPED_S = 2.0
"""Wall seconds after the last withheld record was due, by which it has been stamped on a slow computer too."""
LEAST_S = 90.0
"""Wall seconds that a backfill is given: its rate begins at 0, and rises by a tenth of its box every ten seconds."""
LOOK_S = 1.0
"""Wall seconds between two looks for the replay's clock, and for which clocks may differ."""
_WORD = ("wall_time", "state", "done", "admitted_rps", "rps", "executors")


class Correction:
    """Orders the backfill of the withheld hour once all of it has come, and follows it, in a thread of its own.

    What fails in it ends the correction alone: the run goes on, and its record says so.

    Attributes:
        told: what became of it so far.
    """

    def __init__(self, settings: Settings, since: float, hour: tuple[float, float]) -> None:
        """Take the settings of a stack, the wall time (epoch seconds) since when clocks count, and the hour's ends.

        The hour is in trace time, epoch seconds.
        """
        self._settings, self._since = settings, since
        due_at = since + _length_s(settings)  # as long as no clock says when the load really began
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
        if self._stopped.wait(max(came_at + LOOK_S - time.time(), 0.0)):
            return
        order = order_range(self._settings, clock, self.told, came_at)
        send_order(self._settings.kafka, order)
        self.told = replace(self.told, records=order.records, ordered_at=order.wall_time)
        self._notes.put(f"backfill ordered: {describe_order(order)}, due {due_at - order.wall_time:.0f} s from now")
        for said in self._follow(order):
            begun = self.told.begun_at
            self.told = with_word(self.told, said)
            if said.state in ("done", "cancelled", "failed") or begun != self.told.begun_at:
                self._notes.put(f"backfill: {describe_progress(said)}")

    def _wait_for_clock(self) -> Clock | None:
        """The clock that the load generator announces, that of this run; None where the correction was stopped."""
        while True:
            clock = read_clock(self._settings.kafka, self._settings.job.name)
            if clock is not None and clock.wall_start >= self._since:
                return clock
            if self._stopped.wait(LOOK_S):
                return None

    def _follow(self, order: ReplayOrder) -> Iterator[ReplayProgress]:
        for said in follow_progress(self._settings.kafka, order):
            if self._stopped.is_set():
                return
            if said is None:
                self._notes.put("backfill: nothing is heard of the job's agent")
            else:
                yield said


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


def deadline(settings: Settings, clock: Clock, came_at: float) -> float:
    """Return when a backfill has to be done whose records have come at a wall time: with the live load, epoch seconds.

    Where that leaves less than `LEAST_S` (90 s), so long after they have come.
    """
    return max(clock.wall_start + _length_s(settings), came_at + LEAST_S)


def _length_s(settings: Settings) -> float:
    """Wall seconds of the live load."""
    return settings.replay.live_hours * 3600 / settings.replay.speed


def order_range(settings: Settings, clock: Clock, told: RecordedBackfill, came_at: float) -> ReplayOrder:
    """Make the order to read a range again: all records of the topic since its begin, until all of it had come.

    Args:
        settings: with broker and job.
        clock: of the job.
        told: with name and range.
        came_at: epoch seconds at which the last record of the range had come; not in the future.

    Raises:
        RangeError: the topic does not hold the range.
        BrokerError, ValueError, kafka.errors.KafkaError: as `find_offsets`.
    """
    begin, end, now = clock.wall_at(told.begin), clock.wall_at(told.end), time.time()
    found = find_offsets(settings.kafka, "events", TimeRange(begin, end, came_at - end, now))
    order = ReplayOrder(
        told.id, settings.job.name, now, "run", found.starts, found.ends, begin_ms=round(told.begin * 1000),
        end_ms=round(told.end * 1000),
    )  # fmt: skip
    return decode(ReplayOrder, encode(order))


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
