"""What processes take: seconds of a core, and memory, of a process and all that it has started."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import NamedTuple

import psutil

from pipelines.bench.repeated import repeated

EVERY_S = 5.0


class Usage(NamedTuple):
    """Cores busy in the mean, and the most memory at one time (10⁶ bytes, what is shared counted once)."""

    cores: float
    megabytes: float


@contextmanager
def usage_of(pids: Mapping[str, int]) -> Iterator[dict[str, Usage]]:
    """Measure processes by name while the block runs; what is yielded holds their usage after it.

    Processes that they start and end in between count as well.
    """
    begun, before = time.monotonic(), {name: cpu_s_of(pid) for name, pid in pids.items()}
    most, usage = dict.fromkeys(pids, 0.0), dict[str, Usage]()

    def sample() -> None:
        for name, pid in pids.items():
            most[name] = max(most[name], _bytes(pid))

    with repeated(sample, EVERY_S):
        yield usage
    took = time.monotonic() - begun
    for name, pid in pids.items():
        usage[name] = Usage(round((cpu_s_of(pid) - before[name]) / took, 3), round(most[name] / 1e6, 1))


def cpu_s_of(pid: int) -> float:
    """Return the seconds of a core that a process took so far, with those that it started and that have not ended."""
    total = 0.0
    for process in _family(pid):
        with suppress(psutil.Error):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def _family(pid: int) -> list[psutil.Process]:
    with suppress(psutil.Error):
        first = psutil.Process(pid)
        return [first, *first.children(recursive=True)]
    return []


def _bytes(pid: int) -> float:
    total = 0.0
    for process in _family(pid):
        with suppress(psutil.Error):
            total += process.memory_full_info().pss
    return total
