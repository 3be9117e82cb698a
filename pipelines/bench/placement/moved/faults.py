"""What is killed while a query moves, and in which phase of that."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from models.placement.plan.moved import move_block
from pipelines.placement.job_folder import JobFolder
from pipelines.placement.tried import TrialError
from pipelines.placement.watched_block import BlockEpoch
from pipelines.stack import state
from pipelines.stack.processes import Process, end_processes, find_processes
from pipelines.stack.stack import Stack

POLL_S, ASK_S, PATIENCE_S = 0.005, 0.05, 240.0
"""Seconds between two looks for a phase of milliseconds, and for others, and for which one is waited for."""
ENDS_S, BEGINS_S, AWAY_S = 1.5, 5.0, 15.0
"""Seconds from the wish for a move until its query is ending, from the start of a driver until its session is
beginning, and for which the broker is away."""
EXECUTOR = "CoarseGrainedExecutorBackend"
"""Class that an executor's process runs."""


@dataclass(frozen=True)
class MovingQuery:
    """A query that goes to another cluster.

    Attributes:
        folder: of its job.
        name: of the query.
        before: number of the epoch from which it goes.
        home: cluster from which it goes.
        target: cluster to which it goes.
        up: the process that keeps the job running (`tidecast job up`).
        stack: in which that runs, with the broker.
    """

    folder: JobFolder
    name: str
    before: int
    home: str
    target: str
    up: Process
    stack: Stack

    def epoch(self) -> BlockEpoch:
        """Return the newest epoch.

        Raises:
            TrialError: there is none.
        """
        if (found := self.folder.newest(self.name)) is None:
            raise TrialError(f"{self.name}: has not begun")
        return found

    def driver(self) -> int | None:
        """Return the process id of its driver; None: none runs."""
        return driver_of(self.folder, self.name)

    def until(self, holds: Callable[[], bool], what: str, every_s: float = ASK_S) -> None:
        """Wait for a phase.

        Raises:
            TrialError: it did not come in time.
        """
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            if time.monotonic() > deadline:
                raise TrialError(f"{self.name}: {what} was waited for in vain.\n{self.up.last_lines()}")
            time.sleep(every_s)

    def missed(self, phase: str) -> TrialError:
        """Return the error for a phase that was over before anything could be killed in it."""
        return TrialError(f"{self.name}: too late, {phase}")


def driver_of(folder: JobFolder, name: str) -> int | None:
    """Return the process id of a query's driver; None: none runs."""
    known = state.read(folder.path / "stack")
    return known.processes[name][0] if known is not None and name in known.living() else None


def kill_nothing(move: MovingQuery) -> int:
    """Let it move."""
    return move.before


def come_back(move: MovingQuery) -> int:
    """Let it move, and have it come back once it works there, as one that was off-loaded."""
    _await_work(move)
    topology, operator = move.folder.topology(), move.epoch().block.operators[0]
    move.folder.want(move_block(topology, move.folder.wanted(), operator, move.home))
    return move.before + 1


def kill_ending(move: MovingQuery) -> int:
    """Kill the driver that is to end, while it does."""
    old = move.driver()
    time.sleep(ENDS_S)
    if not _kill_session(old):
        raise move.missed("its driver had ended")
    return move.before


def kill_copying(move: MovingQuery) -> int:
    """Kill who moves the query, while its state is copied."""
    coming = move.epoch().folder.with_name(f"{move.before + 1}.coming")
    move.until(coming.exists, "the copy of its state", POLL_S)
    os.kill(move.up.pid, signal.SIGKILL)  # at once: a copy takes a moment
    move.up.wait(10)
    if move.epoch().number > move.before:
        raise move.missed("its state was copied")
    return move.before


def kill_beginning(move: MovingQuery) -> int:
    """Kill the driver on the other cluster before it works."""
    _await_new_driver(move)
    time.sleep(BEGINS_S)
    if move.epoch().worked_by() is not None or not _kill_session(move.driver()):
        raise move.missed("the driver worked already")
    return move.before


def kill_working(move: MovingQuery) -> int:
    """Kill the driver on the other cluster as soon as it works: in the batches that catch up."""
    _await_work(move)
    if not _kill_session(move.driver()):
        raise move.missed("the driver had ended")
    return move.before


def kill_executor(move: MovingQuery) -> int:
    """Kill an executor on the other cluster as soon as the query works there."""
    _await_work(move)
    executors = [one for one in find_processes(_cluster(move)) if any(EXECUTOR in part for part in one.cmdline())]
    if not executors:
        raise move.missed("no executor was there")
    executors[0].kill()
    return move.before


def kill_cluster(move: MovingQuery) -> int:
    """Kill the cluster to which it goes, when its driver begins there: it has to go back."""
    _await_new_driver(move)
    if not [pid for pid in _cluster(move) if _kill_session(pid)]:
        raise move.missed(f"{move.target} was no more")
    return move.before + 1


def kill_broker(move: MovingQuery) -> int:
    """Kill the broker when the driver begins on the other cluster, and start it again after a while."""
    _await_new_driver(move)
    time.sleep(BEGINS_S)
    if move.epoch().worked_by() is not None:
        raise move.missed("the driver worked already")
    move.stack.processes["broker"].kill()
    time.sleep(AWAY_S)
    move.stack.respawn("broker")
    return move.before


FAULTS: Mapping[str, Callable[[MovingQuery], int]] = {
    "nothing": kill_nothing, "back": come_back, "ending": kill_ending, "copying": kill_copying,
    "beginning": kill_beginning, "working": kill_working, "executor": kill_executor, "cluster": kill_cluster,
    "broker": kill_broker,
}  # fmt: skip
"""By the phase, or by what is killed; each returns the number of the epoch after which the query has to work."""


def stacks_of(folder: JobFolder) -> list[Path]:
    """Return the folders of the services that a job's process starts: its drivers, and each cluster."""
    return [folder.path / "stack", *sorted((folder.path / "clusters").glob("*"))]


def _await_new_driver(move: MovingQuery) -> None:
    old = move.driver()
    move.until(lambda: move.driver() not in (None, old), "its driver")


def _await_work(move: MovingQuery) -> None:
    _await_new_driver(move)
    move.until(lambda: move.epoch().number > move.before and move.epoch().worked_by() is not None, "its work")


def _cluster(move: MovingQuery) -> list[int]:
    """The processes of the cluster to which it goes, each with a session of its own."""
    known = state.read(move.folder.path / "clusters" / move.target)
    return [pid for pid, _ in known.processes.values()] if known is not None else []


def _kill_session(pid: int | None) -> bool:
    """Kill a process with its session; return whether it ran."""
    if pid is None or not find_processes([pid]):
        return False
    end_processes(lambda: find_processes([pid]), grace_s=0)
    return True
