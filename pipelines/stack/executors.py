"""The living executors of a stack's Spark applications, as processes."""

from __future__ import annotations

import contextlib
from typing import NamedTuple

import psutil

from pipelines.stack.processes import find_processes


class Executor(NamedTuple):
    """A living executor: its process, its id, and the port of the driver that it reports to."""

    process: psutil.Process
    id: str
    port: int


def find_executors(stack_id: str) -> list[Executor]:
    """Return all executors of a stack, of whatever job."""
    found = []
    for process in find_processes([], stack_id):
        with contextlib.suppress(psutil.Error):  # it has ended since it was found
            words = process.cmdline()
            if any("CoarseGrainedExecutorBackend" in word for word in words) and "--executor-id" in words:
                told = {words[i]: words[i + 1] for i in range(len(words) - 1)}
                port = int(told["--driver-url"].rpartition(":")[2])
                found.append(Executor(process, told["--executor-id"], port))
    return found


def executors_of(stack_id: str, driver: int) -> list[Executor]:
    """Return the executors that have registered with a driver, by the ports on which that listens, the oldest first.

    Args:
        stack_id: of the stack.
        driver: process id of the driver, or of the process that started it.
    """
    ports: set[int] = set()
    for process in find_processes([driver]):
        with contextlib.suppress(psutil.Error):  # it has ended since it was found
            listening = [one for one in process.net_connections("tcp") if one.status == psutil.CONN_LISTEN]
            ports |= {one.laddr.port for one in listening}
    mine = [one for one in find_executors(stack_id) if one.port in ports]
    return sorted(mine, key=lambda one: one.process.create_time())


def oldest_executor(stack_id: str, driver: int) -> Executor | None:
    """Return the first of `executors_of`; None: none has registered."""
    return next(iter(executors_of(stack_id, driver)), None)
