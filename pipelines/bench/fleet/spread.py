"""What more jobs and more partitions cost the autoscaler: CPU for each metric of a job, and the same decisions."""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from configs.settings import Settings
from pipelines.bench.fleet.jobs import STEP_S
from pipelines.bench.fleet.partitions import EVERY_S, compare_partitions
from pipelines.spark.session import local_session

COUNTED = {500: 2, 2000: 1}
"""Minutes of the log that count, by number of jobs: in each every job has one forecast."""
WARM_STEPS = 5000
"""Steps of jobs until the JVM has compiled what they run; the rounds that they take do not count."""
PARTITIONS, TURNS = (1, 4), 3


def measure_spread(settings: Settings) -> dict[str, Any]:
    """Decide on a recorded log of each number of jobs, on each number of partitions, in turns; some 15 minutes.

    It goes as fast as it can, not in real time: on a wall clock a micro-batch that takes longer has more metrics, and
    what one costs says nothing of what a job costs.

    Args:
        settings: `var`, under which the logs and checkpoints lie.

    Returns:
        `every_s`; `turns`: for each, by number of jobs (text), what `compare_partitions` returns; `cpu_ms`: medians by
        number of jobs and of partitions; `ratios` of `ratios_of`; the sums of `decisions`, `differ` and `differ_alone`.

    Raises:
        Exception: as `compare_partitions`.
    """
    folder = settings.var_dir / "bench" / "spread"
    shutil.rmtree(folder, ignore_errors=True)
    turns = [_turn(folder / str(turn)) for turn in range(TURNS)]
    cpu_ms = {
        str(jobs): {str(n): median(one[str(jobs)]["cpu_ms"][str(n)] for one in turns) for n in PARTITIONS}
        for jobs in COUNTED
    }
    compared = [found for turn in turns for found in turn.values()]
    sums = {name: sum(one[name] for one in compared) for name in ("decisions", "differ", "differ_alone")}
    return {"every_s": EVERY_S, "turns": turns, "cpu_ms": cpu_ms, "ratios": ratios_of(turns), **sums}


def ratios_of(turns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return medians of ratios within a turn, whose two sides ran one soon after the other, on the same computer.

    Args:
        turns: as `measure_spread` returns them, at least one.

    Returns:
        `jobs`: by number of partitions (text), the most jobs ÷ the fewest; `partitions`: by number of jobs, the most
        partitions ÷ the fewest; `n`, how many turns.
    """

    def within(jobs: int, partitions: int, other_jobs: int, other_partitions: int) -> float:
        sides = (jobs, partitions), (other_jobs, other_partitions)
        each = [[turn[str(one)]["cpu_ms"][str(n)] for one, n in sides] for turn in turns]
        return float(median(of / over for of, over in each))

    fewest, most = min(COUNTED), max(COUNTED)
    return {
        "jobs": {str(n): within(most, n, fewest, n) for n in PARTITIONS},
        "partitions": {str(jobs): within(jobs, max(PARTITIONS), jobs, min(PARTITIONS)) for jobs in COUNTED},
        "n": len(turns),
    }


def _turn(folder: Path) -> dict[str, dict[str, Any]]:
    """Every number of jobs once, in a session of its own, so that none finds what the turn before has compiled."""
    spark, found = local_session("spread", cores=max(PARTITIONS), prompt=True), {}
    try:
        for jobs, minutes in COUNTED.items():
            warm = math.ceil(WARM_STEPS / jobs)
            rounds = warm + round(minutes * STEP_S / EVERY_S)
            found[str(jobs)] = compare_partitions(spark, folder / str(jobs), PARTITIONS, jobs, rounds, warm)
            print(f"{jobs:>5} jobs: {found[str(jobs)]}", flush=True)
    finally:
        spark.stop()
    return found
