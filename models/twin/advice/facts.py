"""What a job's batches say of where their time goes, beside what the twin's fit reads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from models.policy.core.capacity import Floats, parallelism

PHASES = ("planning_s", "offsets_s", "log_s", "state_commit_s")
"""Parts of a batch's overhead by name: making the plan, asking for offsets, write-ahead log, state commit."""
DISK_BPS = 100e6
"""Bytes per second at which spilled data are taken to be written, and to be read again: Spark does not report it."""
SKEWED = 2.0
"""A stage whose slowest task takes so many times as long as its median task is skewed."""


class BatchTimes(NamedTuple):
    """Where the time of batches went, (B,) each, NaN where that was not reported; names are those of `MetricSample`.

    Attributes:
        planning_s, offsets_s, log_s: wall seconds.
        state_commit_s, run_s, gc_s, sink_wait_s: seconds summed over tasks.
        spilled_bytes: to disk.
        task_median_s, task_max_s: seconds of the median and of the slowest task of the heaviest stage.
    """

    planning_s: Floats
    offsets_s: Floats
    log_s: Floats
    state_commit_s: Floats
    run_s: Floats
    gc_s: Floats
    sink_wait_s: Floats
    spilled_bytes: Floats
    task_median_s: Floats
    task_max_s: Floats


class Facts(NamedTuple):
    """What those say of a job; None where nothing was reported.

    Attributes:
        phases: wall seconds of a batch by the name of `PHASES`, medians; {} without any.
        skew: slowest task ÷ median task, the median over batches.
        parallel: tasks' worth of parallel work that the heaviest stage has: all its tasks' time ÷ that of the slowest.
        gc_share: of the tasks' time, collecting garbage.
        spill_share: of the tasks' time, writing and reading what was spilled, at `DISK_BPS`.
        spilled_bytes: of a batch, mean.
        wait_share: of the tasks' time, that those of the last stage waited.
    """

    phases: dict[str, float]
    skew: float | None
    parallel: float | None
    gc_share: float | None
    spill_share: float | None
    spilled_bytes: float | None
    wait_share: float | None

    @property
    def skewed(self) -> bool:
        """Whether a task of the heaviest stage takes far longer than its like."""
        return self.skew is not None and self.skew >= SKEWED


def summarise_times(times: BatchTimes, executors: Floats, cores: int, tasks: int) -> Facts:
    """Summarise where the time of a job's batches went.

    Args:
        times: (B,) per batch, NaN where unknown.
        executors: (B,) that worked on the batch.
        cores: per executor.
        tasks: of the heaviest stage.
    """
    slots = np.array([max(parallelism(max(int(n), 1), cores, tasks), 1.0) for n in executors])
    parts = {name: getattr(times, name) / (slots if name == "state_commit_s" else 1.0) for name in PHASES}
    phases = {name: float(np.nanmedian(each)) for name, each in parts.items() if np.isfinite(each).any()}
    spread = times.task_max_s[times.task_median_s > 0] / times.task_median_s[times.task_median_s > 0]
    skew = max(float(np.median(spread)), 1.0) if len(spread) else None
    spilled = times.spilled_bytes[np.isfinite(times.spilled_bytes)]
    disk_s = 2 * times.spilled_bytes / DISK_BPS
    return Facts(
        phases, skew, None if skew is None else 1 + (tasks - 1) / skew,
        _share(times.gc_s, times.run_s), _share(disk_s, times.run_s), float(spilled.mean()) if len(spilled) else None,
        _share(times.sink_wait_s, times.run_s),
    )  # fmt: skip


def _share(part: Floats, whole: Floats) -> float | None:
    both = np.isfinite(part) & np.isfinite(whole)
    total = float(whole[both].sum())
    return min(float(part[both].sum()) / total, 1.0) if total > 0 else None
