"""`tidecast bench placement --parts demo`: that demonstration as a person runs it (`tidecast plan --demo`), measured.

A job is planned, run on two clusters, and planned anew while its load rises.
"""

from __future__ import annotations

import time
from typing import Any

import psutil

from configs.settings import Settings
from models.placement.plan.measured import Placement
from pipelines.figures.written import find_commit
from pipelines.placement.demo.run import DemoResult, run_demo
from pipelines.stack.isolation import isolated_settings

LOOK_S = 5.0
"""For how long the cores are watched before, seconds."""


def measure_demo(settings: Settings) -> dict[str, Any]:
    """Run the demonstration on services of its own, in the bench's folder; some five minutes.

    Args:
        settings: without the address of a service.

    Returns:
        `wrong` of `windows` counts; `moved`, queries that went to another cluster, within `moved_s` seconds; `seconds`
        of the whole, from its first service to the end of its last; `latency_s` along the slowest path, as measured
        (None: not) and as `planned_s`, each `before` and `after`; `events` sent; `busy_before`, share of the cores that
        something else took; `commit`.

    Raises:
        SettingsError, BrokerError, PlanError, StackError, ProcessError, PortError, JavaError, TrialError: as
            `run_demo`.
    """
    busy = psutil.cpu_percent(LOOK_S) / 100
    began = time.monotonic()
    _, done = run_demo(isolated_settings(settings, "bench"))
    seconds = time.monotonic() - began
    return {**summarise_demo(done), "seconds": seconds, "busy_before": busy, "commit": find_commit()}


def summarise_demo(done: DemoResult) -> dict[str, Any]:
    """Return the figures of a demonstration that do not depend on how long it took."""
    phases = {"before": done.before, "after": done.after}
    return {
        "wrong": done.wrong, "windows": done.windows, "events": done.events, "moved_s": done.moved_s,
        "moved": queries_moved(done.before.placement, done.after.placement),
        "latency_s": {name: one.path_s for name, one in phases.items()},
        "planned_s": {name: one.placement.latency_s for name, one in phases.items()},
    }  # fmt: skip


def queries_moved(before: Placement, after: Placement) -> int:
    """Return how many queries are on another cluster."""
    was = {one.operators: one.cluster for one in before.blocks}
    return sum(was.get(one.operators, one.cluster) != one.cluster for one in after.blocks)
