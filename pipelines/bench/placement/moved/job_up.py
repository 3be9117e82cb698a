"""A job that `tidecast job up` keeps running in a stack, as a person's command does."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import yaml

from configs.settings import Settings
from pipelines.bench.placement.moved.faults import driver_of, stacks_of
from pipelines.placement.job_folder import JobFolder
from pipelines.placement.tried import CheckedFeed, TrialError
from pipelines.stack import state
from pipelines.stack.processes import Process
from pipelines.stack.stack import Stack

GONE_S, ASK_S = 60.0, 0.5
"""Seconds for what the command had started to end, and between two looks."""


def begin_command(stack: Stack, live: Settings, argv: list[str], name: str) -> Process:
    """Start a command of `tidecast` under these settings, in a stack.

    Args:
        stack: in which it runs.
        live: its settings, which are written to `NAME.yaml` in their `var`.
        argv: of the command.
        name: of the process.

    Raises:
        OSError: the settings cannot be written.
        AbandonedError, ProcessError: the stack was stopped, or the program cannot be executed.
    """
    file = live.var_dir / f"{name}.yaml"
    file.write_text(yaml.safe_dump(live.model_dump(mode="json"), sort_keys=False))
    return stack.spawn(name, [str(Path(sys.executable).with_name("tidecast")), *argv], {"TIDECAST_FILE": str(file)})


def begin_job_up(stack: Stack, live: Settings, topology_file: Path, name: str) -> Process:
    """Start `tidecast job up`, of a job that was begun.

    Raises:
        OSError, AbandonedError, ProcessError: as `begin_command`.
    """
    return begin_command(stack, live, ["job", "up", str(topology_file)], name)


def begin_job_up_again(stack: Stack, folder: JobFolder, name: str) -> Process:
    """Start the command again, as a person does, once what it had started is gone.

    Raises:
        TrialError: that still runs.
    """
    _await_end(folder, name)
    return stack.respawn(name)


def end_job_up(stack: Stack, folder: JobFolder, name: str) -> None:
    """End the command, and wait until what it had started is gone.

    Raises:
        TrialError: that still runs.
    """
    stack.end(name)
    _await_end(folder, name)


def works(folder: JobFolder, query: str, after: int = 0) -> bool:
    """Return whether a query works, in an epoch after one."""
    epoch = folder.newest(query)
    return epoch is not None and epoch.number > after and epoch.worked_by() == driver_of(folder, query) is not None


def watch(feed: CheckedFeed, seconds: float) -> None:
    """Let a job be fed for a while.

    Raises:
        BrokerError: a record was not taken.
    """
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        feed.check()
        time.sleep(ASK_S)


def _await_end(folder: JobFolder, name: str) -> None:
    deadline = time.monotonic() + GONE_S
    while any(state.running(one) for one in stacks_of(folder)):
        if time.monotonic() > deadline:
            raise TrialError(f"what {name} had started still runs after {GONE_S:.0f} s")
        time.sleep(ASK_S)
