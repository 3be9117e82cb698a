"""One thing done to one part while records are live, and how the part comes back."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil

from pipelines.bench.chaos.cells import FaultCell
from pipelines.bench.chaos.disks import fill_disk, free_disk
from pipelines.bench.chaos.signs import wait_until_seen
from pipelines.bench.chaos.world import World
from pipelines.spark.checkpoint.repair import QUIET_S
from pipelines.stack.context import StackError

PAUSE_S, AWAY_S, BACK_S = 20.0, 3.0, 180.0
"""Seconds of a pause, until a supervisor starts what has ended, and within which a part is to be seen at work again."""
SET_BACK_S = 3600
"""Seconds by which a clock is set back."""
PASSING = ("pause", "cut", "full", "clock")
"""Faults that are over after PAUSE_S; nobody is started again who lives through them."""
_REMEDY = re.compile(r"tidecast job repair /\S+(?: --keyed-sink)?|mv /\S+ /\S+")
LINES = 60
"""Of a log, among which a refusal is looked for."""


class Attack(NamedTuple):
    """What came of it.

    Attributes:
        began_s, over_s: epoch seconds of the fault, and of its end: the part was started or went on.
        back_s: seconds from there until the part was seen at work; None: it was not.
        command: that a part named when it refused to start, and that was run then; None: no part refused.
    """

    began_s: float
    over_s: float
    back_s: float | None
    command: str | None


def attack(world: World, cell: FaultCell) -> Attack:
    """Do to a part of a running site what a cell says, let it come back, and wait until it is seen at work.

    Raises:
        SiteError: the part does not run.
        psutil.Error: a process cannot be signalled.
        subprocess.CalledProcessError: the command that it named when it refused to start failed.
        ValueError, OSError: its state cannot be damaged.
    """
    began = time.time()
    ends = cell.part == "executor" and cell.fault in ("kill", "restart")
    executors = world.executors() if ends else set[int]()
    if cell.fault == "restart":
        world.end(cell.part)
    elif cell == ("executor", "corrupt"):
        world.spoil(cell.part)  # its folder goes with it: it has to live on
    elif cell.fault == "cut":
        world.brokers.way.cut()
        time.sleep(PAUSE_S)
        world.brokers.way.heal()
    elif cell.fault == "clock":
        assert world.clock is not None
        world.clock.shift(-SET_BACK_S)
        time.sleep(PAUSE_S)
        world.clock.shift(0)
    elif cell.fault == "full":
        assert world.disk is not None
        fill_disk(world.disk)
        time.sleep(PAUSE_S)
        free_disk(world.disk)
    else:
        struck = world.processes(cell.part)
        _signal(struck, signal.SIGSTOP)
        if cell.fault == "pause":
            time.sleep(PAUSE_S)
            _signal(struck, signal.SIGCONT)
        else:
            if cell.fault == "corrupt":
                world.spoil(cell.part)  # while it stands still: another part may start it again at once
            _signal(struck, signal.SIGKILL)
    if cell.fault not in PASSING:
        time.sleep(AWAY_S)
    return _come_back(world, cell, began, executors)


def named_command(text: str) -> str | None:
    """Return the command that a refusal names first, of several starts that of the last; None where it names none."""
    last = text.rpartition("Its checkpoint keeps it from going on")[-1]
    found = _REMEDY.search(last)
    return None if found is None else found[0]


def run_named(command: str) -> None:
    """Run the command that a refusal named, once nothing has been written for a while.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    time.sleep(QUIET_S + 1)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    subprocess.run(shlex.split(command), check=True, env={**os.environ, "PATH": path})


def _come_back(world: World, cell: FaultCell, began: float, executors: set[int]) -> Attack:
    over, blocks = time.time(), cell == ("executor", "corrupt")
    part = "driver" if blocks else cell.part  # tasks that fail again and again end the query
    process = world.supervised(part)
    survives = cell.fault in PASSING and (process is None or process.running())
    if not survives and not blocks:
        try:
            world.bring_back(part)
        except StackError:
            return Attack(began, over, None, None)  # what is refused at its start is for the session's end
    process = None if cell.fault == "pause" else world.supervised(part)

    def lives() -> bool:
        return process is None or process.running()

    back_s = wait_until_seen(world, cell.part, over, BACK_S, lives, executors)
    if process is None or lives():
        return Attack(began, over, back_s, None)
    command = named_command(process.last_lines(LINES))
    if command is None:
        return Attack(began, over, None, None)
    run_named(command)
    over = time.time()
    world.bring_back(part)
    return Attack(began, over, wait_until_seen(world, cell.part, over, BACK_S, lambda: True), command)


def _signal(processes: list[psutil.Process], number: int) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)
