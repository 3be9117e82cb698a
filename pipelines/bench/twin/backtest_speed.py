"""`tidecast bench backtest`: how long a backtest of 60 days at 5 minutes takes, with all policies and one lead time."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from configs.bounds import DAY_S
from models.forecast.core.series import Series
from models.twin.experiment.setup import Setup
from pipelines.backtest.load import NamedLoad, read_load
from pipelines.backtest.report import backtest

LOAD, DAYS, STEP_S = "nyc_taxi", 60, 300.0
"""A shipped load that is long enough; its steps of 30 minutes are cut into 5, along straight lines."""


def sixty_days() -> NamedLoad:
    """Return the newest 60 days of the load in steps of 5 minutes."""
    whole = read_load(LOAD).series
    steps = round(DAYS * DAY_S / STEP_S)
    times = (np.arange(steps) - steps + 1) * STEP_S + (len(whole) - 1) * whole.step_s
    values = np.interp(times, np.arange(len(whole)) * whole.step_s, whole.values)
    return NamedLoad(f"{LOAD} {DAYS} days", "", Series(whole.start + float(times[0]), STEP_S, values))


def measure_backtest(processes: int, report_share: Callable[[float], None]) -> dict[str, Any]:
    """Time one backtest as `tidecast backtest` runs it by default.

    Args:
        processes: that it is computed in.
        report_share: called now and then with the share of the work, 0 to 1, that is done.

    Returns:
        `load`, `days`, `steps`, `lead_s`, `processes`, `policies` (the optimum among them), `runs` (theirs on the
        part that is judged), `judged_days`; `wall_s`, `cpu_s` (of all processes), and `load_average` at the beginning:
        what else the computer was busy with.
    """
    load, busy, began = sixty_days(), os.getloadavg()[0], time.monotonic()
    (found,) = backtest([load], Setup(), processes=processes, report_share=report_share)
    wall_s = time.monotonic() - began
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    points = sum(len(points) for points in found["policies"].values())
    return {
        "load": load.name, "days": DAYS, "steps": len(load.series), "lead_s": found["lead_s"], "processes": processes,
        "policies": len(found["policies"]), "runs": points * found["seeds"],
        "judged_days": found["test"]["seconds"] / DAY_S, "wall_s": wall_s,
        "cpu_s": sum(one.ru_utime + one.ru_stime for one in used), "load_average": busy,
    }  # fmt: skip


def format_time(found: dict[str, Any]) -> str:
    """Return in a line what `measure_backtest` has found."""
    return (
        f"{found['days']} days: {found['wall_s']:.0f} s in {found['processes']} processes ({found['cpu_s']:.0f} s of "
        f"CPU), load average {found['load_average']:.1f} before"
    )
