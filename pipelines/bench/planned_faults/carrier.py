"""Whoever carries out a plan of faults: kills and stops workers, and makes the way to the broker narrow or lossy."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Protocol

import psutil

from models.workload.faults import Fault
from pipelines.bench.planned_faults.due import FaultsHeld, begun_between, ends_s, standing_at

TICK_S = 0.05


class Hindered(Protocol):
    """A way that can be made worse (`pipelines.bench.site.way.Way`)."""

    def hinder(self, bytes_s: float, lost: float) -> None:
        """Let so many bytes/s pass, and lose such a share of the packets, from now on."""


class FaultCarrier:
    """Carries out a plan; `done` holds what was, by whom it was done to (pids), `missed` what met nobody.

    Whoever made it ends it, too: a worker that stands still goes on, and the way is free, however the session ends.
    """

    def __init__(
        self, plan: Sequence[Fault], began: float, workers: Callable[[], list[psutil.Process]], way: Hindered
    ) -> None:
        """Begin, in a thread of its own.

        Args:
            plan: times are seconds since `began`.
            began: epoch seconds.
            workers: those of the session alone, the oldest first; `worker-N` is the N-th of them, counted round.
            way: to the broker; every worker's at once, whichever target a cap or a loss has.
        """
        self.done: list[tuple[Fault, int | None]] = []
        self.missed: list[Fault] = []
        self.failure: Exception | None = None
        self._plan, self._began, self._workers, self._way = tuple(plan), began, workers, way
        self._still: dict[str, psutil.Process] = {}
        self._slowed: dict[str, psutil.Process] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="planned faults", daemon=True)
        self._thread.start()

    @property
    def finished(self) -> bool:
        """Whether the whole plan was carried out, or carrying it out has failed."""
        return not self._thread.is_alive()

    def end(self) -> None:
        """End it, and undo what can be undone; a second call does nothing."""
        self._over.set()
        self._thread.join(30)

    def _run(self) -> None:
        before, stands = 0.0, FaultsHeld()
        try:
            while not self._over.wait(TICK_S) and before <= ends_s(self._plan):
                at_s = time.time() - self._began
                for fault in begun_between(self._plan, before, at_s):
                    self._begin(fault)
                now = standing_at(self._plan, at_s)
                if now[1:] != stands[1:]:
                    self._way.hinder(now.bytes_s, now.lost)
                self._stand_still(now.still)
                before, stands = at_s, now
        except Exception as error:  # told to whoever waits for the session
            self.failure = error
        finally:
            self._stand_still(frozenset())
            self._way.hinder(*FaultsHeld()[1:])

    def _begin(self, fault: Fault) -> None:
        if fault.kind in ("bandwidth cap", "packet loss"):
            self.done.append((fault, None))
        elif (struck := self._worker(fault.target)) is None:
            self.missed.append(fault)
        else:
            self.done.append((fault, struck.pid))
            if fault.kind == "slow node":
                self._slowed[fault.target] = struck
            else:
                _signal(struck, signal.SIGKILL)

    def _worker(self, target: str) -> psutil.Process | None:
        living = self._workers()
        return living[int(target.rpartition("-")[2]) % len(living)] if living else None

    def _stand_still(self, targets: frozenset[str]) -> None:
        for target in self._still.keys() - targets:
            _signal(self._still.pop(target), signal.SIGCONT)
        for target in targets - self._still.keys():
            if (struck := self._slowed.get(target)) is not None:
                self._still[target] = struck
                _signal(struck, signal.SIGSTOP)


def _signal(process: psutil.Process, number: int) -> None:
    """Signal a process that may have ended since it was found; psutil tells it from a later one with its pid."""
    with suppress(psutil.NoSuchProcess):
        process.send_signal(number)


@contextmanager
def carrying(
    plan: Sequence[Fault], began: float, workers: Callable[[], list[psutil.Process]], way: Hindered
) -> Iterator[FaultCarrier]:
    """Context manager: a plan is carried out (`FaultCarrier`); it ends with this, too."""
    carrier = FaultCarrier(plan, began, workers, way)
    try:
        yield carrier
    finally:
        carrier.end()
