"""Keeps a job's blocks running, each where it is wanted: starts them, starts those again that end, moves them."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from models.placement.plan.applications import BlockApplication, applications_of
from models.placement.plan.moved import take_back
from pipelines.placement.begun import did_batch, has_undone, last_tasks_ns, without_executors
from pipelines.placement.job_folder import JobFileError, JobFolder
from pipelines.placement.watched_block import BlockEpoch, DriverHome, WatchedBlock, is_as_wanted, pause_after
from pipelines.stack.processes import ProcessError

BEGIN_S, STOP_S, ASK_S = 90.0, 20.0, 0.2
"""Seconds for an application to begin, or without an executor at work; for a driver to end; and between two looks."""


class Supervisor:
    """A job's blocks, as they run."""

    def __init__(
        self, folder: JobFolder, home: DriverHome, masters: Mapping[str, str], say: Callable[[str], None] = print,
        begin_s: float = BEGIN_S,
    ) -> None:  # fmt: skip
        """Nothing is started yet.

        Args:
            folder: of the job, which was begun.
            home: of the drivers.
            masters: address of each cluster's master.
            say: called with what a person is told.
            begin_s: within which the executors of an application have to be at work.
        """
        self._folder, self._home, self._masters, self._say, self._begin_s = folder, home, masters, say, begin_s
        self._topology = folder.topology()
        self._blocks, self._unbegun = dict[str, WatchedBlock](), dict[str, str]()
        self._wanted_last: tuple[BlockApplication, ...] = ()

    def start(self) -> None:
        """Start all blocks, upstream first: each once the one before it is at its first batch, works, or was given up.

        `look` goes on then, also with one that is wanted elsewhere meanwhile and cannot move yet.
        """
        for name in [block.name for block in self._wanted()]:
            while (block := next((one for one in self._wanted() if one.name == name), None)) is not None:
                self.look_at(block)
                known = self._blocks.get(name)
                if known is None or not known.begins() or not is_as_wanted(known.epoch, block):
                    break
                time.sleep(ASK_S)

    def look(self) -> None:
        """Start again what has ended, and move what is wanted elsewhere; call it every second or so."""
        for block in self._wanted():
            self.look_at(block)

    def end_on(self, cluster: str) -> None:
        """End the drivers of a cluster that has another master, which gives them no executors: `look` starts them."""
        for name, known in self._blocks.items():
            if known.epoch.block.cluster == cluster and self._runs(name):
                known.ended()
                self._say(f"{name}: begins anew on {cluster}, which has another master")
                with suppress(subprocess.TimeoutExpired):  # it was killed, and ends some time
                    self._home.end(name, STOP_S)

    def starting(self) -> bool:
        """Return whether of a block that was started it is not known yet if it works, as of the last look."""
        return any(known.since_s is not None for known in self._blocks.values())

    def settled(self) -> bool:
        """Return whether every block works where it is wanted, as of the last look."""
        work = {name: known.epoch for name, known in self._blocks.items() if known.worked_s is not None}
        return all(block.name in work and is_as_wanted(work[block.name], block) for block in self._wanted())

    def look_at(self, block: BlockApplication) -> None:
        """See to one block, as it is wanted; waits for nothing but the end of one that moves.

        What fails is said and tried again: a full disk, a cluster that is away or a driver that cannot be ended stops
        no other block.
        """
        try:
            known = self._blocks.get(block.name) or self._known(block)
            waits = known.waits(block, time.monotonic())
            as_wanted = is_as_wanted(known.epoch, block)
            if known.since_s is not None and as_wanted:
                self._await(known, block)
            elif not as_wanted and not waits and not self._others_begin(block):
                self._see_to_move(known, block)  # one after the other: what one leaves another may take
            elif as_wanted and not self._runs(block.name) and not waits:
                self._start_again(known, block)
            elif known.worked_s is not None:
                known.steady(time.monotonic())
                if line := without_executors(known):
                    self._say(line)
        except (ProcessError, OSError, subprocess.SubprocessError) as error:
            self._give_up(block, error)

    def _wanted(self) -> tuple[BlockApplication, ...]:
        """The blocks as they are wanted; as of the last look where that cannot be read now."""
        try:
            self._wanted_last = applications_of(self._topology, self._folder.wanted())
        except (OSError, ValueError, KeyError, TypeError):  # files that may be open at once, or another program
            if not self._wanted_last:
                raise
        return self._wanted_last

    def _known(self, block: BlockApplication) -> WatchedBlock:
        """A block that this process has not seen yet, in its newest epoch."""
        return self._blocks.setdefault(block.name, WatchedBlock(self._newest(block) or self._folder.begin_epoch(block)))

    def _newest(self, block: BlockApplication) -> BlockEpoch | None:
        """The newest epoch of a block; where it is not known any more what that is, it is what is wanted now."""
        try:
            return self._folder.newest(block.name)
        except JobFileError as error:
            self._say(f"{block.name}: {error}")
            return self._folder.restate(block)

    def _others_begin(self, block: BlockApplication) -> bool:
        at = {one.name: one for one in self._wanted_last if one.name != block.name}
        return any(it.begins() and own in at and is_as_wanted(it.epoch, at[own]) for own, it in self._blocks.items())

    def _runs(self, name: str) -> bool:
        return name in self._home.processes and self._home.processes[name].running()

    def _await(self, known: WatchedBlock, block: BlockApplication) -> None:
        """Say that an application works, or give it up; a batch at which executors are at work is waited for."""
        process, epoch, now_s = self._home.processes[block.name], known.epoch, time.monotonic()
        assert known.since_s is not None
        after = f"epoch {epoch.number}, {now_s - known.since_s:.0f} s after its start"
        if epoch.worked_by() == process.pid:
            known.works(now_s)
            self._say(f"{block.name}: runs on {block.cluster}, {after}")
        elif not process.running():
            raise ProcessError(f"It ended before it worked.\n{process.last_lines()}")
        elif (noted_ns := last_tasks_ns(epoch)) != known.tasks_ns:
            if not known.at_batch:
                self._say(f"{block.name}: is at its first batch on {block.cluster}, {after}")
            known.has_tasks(noted_ns, now_s)
        elif now_s - known.idle_s > self._begin_s:
            raise ProcessError(
                f"It does not work after {now_s - known.since_s:.0f} s, of which for the last "
                f"{now_s - known.idle_s:.0f} s no executor was at work.\n{process.last_lines()}"
            )

    def _start_again(self, known: WatchedBlock, block: BlockApplication) -> None:
        """Start what does not run; of what worked it is said how it ended, and what ends ever again has to wait."""
        if known.worked_s is None:
            self._spawn(known)
            return
        process, now, pause_s = self._home.processes[block.name], time.monotonic(), pause_after(known.failed)
        if self._worked_before(known.epoch, block) is not None:
            raise ProcessError(f"It had nothing to read there, and ended at its first batch.\n{process.last_lines()}")
        worked_s = now - known.worked_s
        known.failed_as(block, now, pause_s)
        self._say(
            f"{block.name}: ended with status {process.wait()} on {block.cluster}, where it had worked for "
            f"{worked_s:.0f} s, and is started again in {pause_s:.0f} s.\n{process.last_lines()}"
        )
        if not pause_s:
            self._spawn(known)

    def _see_to_move(self, known: WatchedBlock, block: BlockApplication) -> None:
        """Move a block once there is room, or nobody is to make any; the first of some that exchange places does."""
        run = {name: one.epoch for name, one in self._blocks.items() if self._runs(name)}
        rest = [one for one in self._wanted_last if one.name in run and not is_as_wanted(run[one.name], one)]
        movers = [one for one in rest if one.cluster != run[one.name].block.cluster]
        if self._can_move(block):
            self._move(known, block)
        elif block in movers[:1] and not any(map(self._can_move, rest)):
            self._home.end(block.name, STOP_S)
            known.ended()
            was = run[block.name].block.cluster
            self._say(f"{block.name}: has ended on {was}, where another query is to come first")

    def _can_move(self, block: BlockApplication) -> bool:
        """Whether an executor has room beside the blocks that run where one is wanted, or none of these makes any."""
        if (cluster := self._topology.clusters.get(block.cluster)) is None:
            return True  # it does not begin there, and goes back
        there = {
            name: one.epoch for name, one in self._blocks.items()
            if name != block.name and one.epoch.block.cluster == block.cluster and self._runs(name)
        }  # fmt: skip
        executors = sum(1 if one.is_scaled() else one.block.executors for one in there.values())
        taken = executors * cluster.executor_cores + (len(there) + 1) * self._topology.driver_cores
        room = any(one.name in there and there[one.name].makes_room(one) for one in self._wanted_last)
        return taken + cluster.executor_cores <= cluster.cores or not room

    def _move(self, known: WatchedBlock, block: BlockApplication) -> None:
        """Hand a block over: it ends, its state goes with it."""
        was = known.epoch.block
        if block.name in self._home.processes:
            self._home.end(block.name, STOP_S)
        known.epoch = self._folder.begin_epoch(block)
        known.ended()
        way = f"goes from {was.cluster} to" if was.cluster != block.cluster else "begins anew on"
        self._say(f"{block.name}: {way} {block.cluster}; executors: {was.executors} before, {block.executors} then")
        self._spawn(known)

    def _spawn(self, known: WatchedBlock) -> None:
        block = known.epoch.block
        if (master := self._masters.get(block.cluster)) is None:  # whatever has written where it is wanted
            raise ProcessError(f"The job has no cluster {block.cluster!r}; it has {', '.join(self._masters)}.")
        self._newest(block)  # its driver reads it
        argv = [sys.executable, "-m", "pipelines.placement.block", str(self._folder.path), block.name]
        tasks_ns = last_tasks_ns(known.epoch)
        self._home.spawn(block.name, argv, {"TIDECAST_SPARK__MASTER": master})
        known.started(tasks_ns, time.monotonic())

    def _give_up(self, block: BlockApplication, error: Exception) -> None:
        """Want a block that does not begin where it was, if it worked there and never here; else try it again later."""
        known, now = self._blocks.get(block.name), time.monotonic()
        if known is None:
            if self._unbegun.get(block.name) != f"{error}":  # it is tried at each look
                self._unbegun[block.name] = f"{error}"
                self._say(f"{block.name}: does not begin on {block.cluster}, and is tried again and again. {error}")
            return
        pause_s = pause_after(known.failed + 1)
        known.failed_as(block, now, pause_s)
        told = f"{block.name}: does not begin on {block.cluster}"
        try:
            if block.name in self._home.processes:
                self._home.end(block.name)
            if (home := self._worked_before(known.epoch, block)) is not None:
                tried, back = (block.cluster, block.executors), (home.cluster, home.executors)
                self._folder.change(lambda now: take_back(self._topology, now, block.operators, tried, back))
                at = next((one.cluster for one in self._wanted() if one.name == block.name), home.cluster)
                self._say(f"{told}, and goes {'back' if at == home.cluster else 'on'} to {at}. {error}")
                return
        except (OSError, ValueError, subprocess.SubprocessError) as another:
            told = f"{told} ({another})"
        self._say(f"{told}, and is tried again in {pause_s:.0f} s. {error}")

    def _worked_before(self, epoch: BlockEpoch, block: BlockApplication) -> BlockApplication | None:
        """Where a block worked before it was wanted here in vain; None: it has worked here, or nowhere.

        Of one that was here with nothing to read, and failed at its first batch, it is where it has done one.
        """
        if not is_as_wanted(epoch, block):
            return epoch.block if epoch.worked_by() is not None else None  # its state could not be copied
        idle, before = epoch.worked_by() is not None, self._folder.before(epoch)
        if idle and (did_batch(self._folder, epoch) or not has_undone(epoch)):
            return None
        while before is not None and not (did_batch(self._folder, before) if idle else before.worked_by() is not None):
            before = self._folder.before(before)
        return None if before is None or before.block == block else before.block
