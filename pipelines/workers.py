"""Processes that compute beside this one, and end with it however it ends."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.context import SpawnContext
from typing import Any

LOOK_S = 1.0  # seconds between two looks whether the parent is there
SPAWN: SpawnContext = multiprocessing.get_context("spawn")
"""Workers begin as fresh interpreters: a fork would take over this one's threads, half way through."""


def usable_cores() -> int:
    """Return how many cores this process may use; where the system does not say, as on macOS, those of the computer."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def worker_pool(
    processes: int, initialise: Callable[..., None] | None = None, given: tuple[Any, ...] = ()
) -> ProcessPoolExecutor:  # fmt: skip
    """Return a pool of worker processes; one whose parent was killed ends within LOOK_S (1 s), also in mid work.

    Args:
        processes: at least 1.
        initialise: called once in each worker.
        given: its arguments.
    """
    return ProcessPoolExecutor(processes, SPAWN, _begin, (os.getpid(), initialise, given))


def _begin(parent: int, initialise: Callable[..., None] | None, given: tuple[Any, ...]) -> None:
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    if initialise is not None:
        initialise(*given)


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_S)
    os._exit(1)
