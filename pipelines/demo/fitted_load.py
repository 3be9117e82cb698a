"""The load of a run, fitted to the computer: under all of it a slow one would show nothing but its slowness."""

from __future__ import annotations

import statistics
import time

from configs.settings import Settings
from pipelines.traces.trace import PEAK_RPS

STEP_S = 32e-9
"""Seconds of a step of the timed loop on the computers on which PEAK_RPS was chosen."""
ROOM = 1.5
"""How many times as slow a computer may be that carries the whole load."""
_ROUNDS, _STEPS = 15, 500_000  # a quarter of a second there; the speed of shared computers changes within it


def fit_load(settings: Settings, slowness: float) -> tuple[Settings, str]:
    """Fit the highest load of a run to a computer: what its executors carry falls about as the speed of its cores.

    A load that the settings state stays, as does one for the policy `schedule`, whose timetable is of the whole load.

    Args:
        settings: without `replay.peak_rps` where it may be fitted.
        slowness: as `measure_slowness`, above 0.

    Returns:
        The settings, and in a sentence what was made less, and why; "" where nothing was.
    """
    if settings.replay.peak_rps is not None or settings.autoscaler.policy == "schedule" or slowness <= ROOM:
        return settings, ""
    peak_rps = round(PEAK_RPS * ROOM / slowness, 1)
    replay = settings.replay.model_copy(update={"peak_rps": peak_rps})
    return settings.model_copy(update={"replay": replay}), (
        f"A loop of Python takes {slowness:.1f} times as long here as on the computers that the load was chosen on: it "
        f"is at most {peak_rps:g} records/s instead of {PEAK_RPS:g}, so that executors carry it "
        "(replay.peak_rps sets another)."
    )


def measure_slowness() -> float:
    """Return how many times as long a loop of Python takes here as on the computers on which PEAK_RPS was chosen.

    Takes a second, in which the computer should have nothing else to do.
    """
    return statistics.median(_loop_s() for _ in range(_ROUNDS)) / (_STEPS * STEP_S)


def _loop_s() -> float:
    begun, total = time.perf_counter(), 0
    for step in range(_STEPS):
        total += step * step
    return time.perf_counter() - begun
