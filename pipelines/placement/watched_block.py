"""A block of a job: its epoch on disk, and as its supervisor sees it, at work since when, and how often it failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from models.placement.plan.applications import BlockApplication
from pipelines.stack.processes import Process
from pipelines.whole_file import write_text

AGAIN_S, LONGEST_S, STEADY_S = 2.0, 60.0, 300.0
"""Pause before a block is tried again, doubled each time that it failed; at most; and work after which that is over."""


class DriverHome(Protocol):
    """Who runs the applications' drivers: a `Stack`."""

    @property
    def processes(self) -> Mapping[str, Process]:
        """Every process by name, ended ones included."""

    def spawn(self, name: str, argv: list[str], env: Mapping[str, str] | None = None) -> Process:
        """Start a process."""

    def end(self, name: str, grace_s: float = ...) -> int:
        """End a process."""


@dataclass(frozen=True)
class BlockEpoch:
    """A block from one move to the next.

    Attributes:
        number: 1 at first, higher by one after each move.
        block: what runs, where.
        folder: of its checkpoint and of what it tells.
    """

    number: int
    block: BlockApplication
    folder: Path

    def note_work(self, pid: int) -> None:
        """Note that the application works, by the process id of its driver."""
        (self.folder / "works").write_text(str(pid))

    def note_scaled(self, scaled: bool) -> None:
        """Note whether the agent of the application that begins applies decisions."""
        (self.folder / "scaled").write_text(str(int(scaled)))

    def is_scaled(self) -> bool:
        """Return whether the agent of the last application applied decisions."""
        try:
            return (self.folder / "scaled").read_text() == "1"
        except FileNotFoundError:
            return False

    def makes_room(self, wanted: BlockApplication) -> bool:
        """Return whether the block leaves its cluster as it is wanted, or gives executors up there."""
        if wanted.cluster != self.block.cluster:
            return True
        return wanted.executors < self.block.executors and not self.is_scaled()

    def note_round_trip(self, seconds: float) -> None:
        """Note how long an executor's way to the broker and back takes."""
        write_text(self.folder / "round_trip", f"{seconds:.9f}")

    def round_trip_s(self) -> float | None:
        """Return how long an executor's way to the broker and back took; None: that was not probed."""
        try:
            return float((self.folder / "round_trip").read_text())
        except (FileNotFoundError, ValueError):
            return None

    def worked_by(self) -> int | None:
        """Return the process id of the last driver that worked, 0 where it is not known; None: none ever did."""
        try:
            return int((self.folder / "works").read_text())
        except FileNotFoundError:
            return None
        except ValueError:  # cut off, as at a power failure
            return 0


class OffloadNote(NamedTuple):
    """A query that was off-loaded from its own cluster to another, or has `left` that; since when, epoch seconds."""

    home: str
    away: str
    since_s: float
    left: bool = False


@dataclass
class WatchedBlock:
    """A block, as it runs.

    Attributes:
        epoch: that it is in.
        since_s: when its application was started; None: it works, or was given up.
        idle_s: since when none of its executors is known to have been at work.
        tasks_ns: when its driver noted last that they were; None: never.
        at_batch: whether they were, since it was started.
        failed: times in a row that it did not begin, or ended before it had worked for STEADY_S.
        again_s: before which it is not tried again where it was wanted then (`tried`).
        tried: what was wanted when it failed last.
        worked_s: since when it works; None: it does not, as of the last look.
        without: whether it was said that it has no executors.
    """

    epoch: BlockEpoch
    since_s: float | None = None
    idle_s: float = 0.0
    tasks_ns: int | None = None
    at_batch: bool = False
    failed: int = 0
    again_s: float = 0.0
    tried: BlockApplication | None = None
    worked_s: float | None = None
    without: bool = False

    def begins(self) -> bool:
        """Return whether it is not known yet if its cluster gives it executors."""
        return self.since_s is not None and not self.at_batch

    def waits(self, block: BlockApplication, now_s: float) -> bool:
        """Return whether it failed so lately where it is wanted that it is not tried again yet."""
        return now_s < self.again_s and self.tried == block

    def started(self, tasks_ns: int | None, now_s: float) -> None:
        """Take it that its application was started; `tasks_ns` as it was before that."""
        self.since_s = self.idle_s = now_s
        self.tasks_ns, self.at_batch, self.worked_s, self.without = tasks_ns, False, None, False

    def has_tasks(self, tasks_ns: int | None, now_s: float) -> None:
        """Take it that executors are at work, as its driver has noted."""
        self.tasks_ns, self.idle_s, self.at_batch = tasks_ns, now_s, True

    def works(self, now_s: float) -> None:
        """Take it that its application works."""
        self.since_s, self.worked_s, self.tried = None, now_s, None

    def steady(self, now_s: float) -> None:
        """Forget how often it failed once it has worked for STEADY_S."""
        if self.worked_s is not None and now_s - self.worked_s > STEADY_S:
            self.failed = 0

    def ended(self) -> None:
        """Take it that its application has ended, by no failure of its own."""
        self.since_s = self.worked_s = None

    def failed_as(self, block: BlockApplication, now_s: float, pause_s: float) -> None:
        """Take it that it has failed as it is wanted, and is not tried again like that for a pause."""
        self.ended()
        self.failed, self.again_s, self.tried = self.failed + 1, now_s + pause_s, block


def pause_after(failed: int) -> float:
    """Return the seconds before what has failed so many times in a row is tried again; 0 where it had worked long."""
    return min(AGAIN_S * 2 ** min(failed - 1, 9), LONGEST_S) if failed else 0.0  # of 1,025 it would be no float


def is_as_wanted(epoch: BlockEpoch, block: BlockApplication) -> bool:
    """Return whether a block is in an epoch as it is wanted; of a scaled one the autoscaler decides the executors."""
    but_for_executors = block._replace(executors=epoch.block.executors) == epoch.block
    return block == epoch.block or (but_for_executors and epoch.is_scaled())
