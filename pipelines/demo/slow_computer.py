"""A run fitted to a slow computer: under the whole load one would show nothing but its slowness."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from configs.backpressure import Backpressure
from configs.contract import Contract
from configs.settings import Settings
from models.backfill.live.known import PUBLISHED_S
from pipelines.demo.timed_loop import STEPS
from pipelines.traces.trace import PEAK_RPS
from pipelines.workers import usable_cores

STEP_S = 32e-9
"""Seconds of a step of the timed loop on the computers on which PEAK_RPS was chosen."""
ROOM = 1.5
"""How many times as slow a computer may be that carries the whole load."""
FALL, LEAST_RPS = 1.5, 38.0
"""Exponent by which the highest load falls with the speed: its executors serve less, and those that start hold batches
up for longer, while more arrives. On a computer three times as slow 11 % of the seconds were late with 45 records/s and
half as many with 32; since readers of topics ask the broker less often none was with LEAST_RPS. With less the fewest
executors carry all of it, and nothing would be scaled."""
USUAL_TRIGGER = "1 second"
"""Trigger of the autoscaler's query that is longer there, in whole seconds: one a second took a fifth of two cores."""
MEASURED_S, CORES, SLOW_ROUND = 5.0, 2, 0.75
"""Seconds in which the speed is measured, on so many cores, and the quantile of rounds that it is."""


class FittedRun(NamedTuple):
    """What a run takes in place of what was configured.

    Attributes:
        settings: with the highest load that the computer carries, fewer evaluations, and more time for the backfill.
        contract: changes of the main job's contract, as `own_contracts.with_contract` takes them; {} for none.
        said: in a sentence what was changed, and why; "" where nothing was.
    """

    settings: Settings
    contract: Mapping[str, Mapping[str, Any]]
    said: str


def fit_run(settings: Settings, main: Contract, slowness: float) -> FittedRun:
    """Fit a run to a computer: its load, its backfill's deadline, and when executors are first believed to be of use.

    Where the autoscaler looks less often, what it goes by may be older by as much, and an interval of the controller of
    replays is not shorter: it is closed when the autoscaler looks.

    A load that the settings state stays, as does one for the policy `schedule`, whose timetable is of the whole load;
    then the contract stays, too.

    Args:
        settings: without `replay.peak_rps` where it may be fitted.
        main: contract of the main job; its first guesses are those of a usual computer.
        slowness: as `measure_slowness`, above 0.
    """
    if settings.replay.peak_rps is not None or settings.autoscaler.policy == "schedule" or slowness <= ROOM:
        return FittedRun(settings, {}, "")
    slower = slowness / ROOM
    peak_rps = round(max(PEAK_RPS / slower**FALL, LEAST_RPS), 1)
    planning, lead_s = main.planning, main.planning.lead_s
    longer_s, after_s = round(lead_s * slower, 1), round(PUBLISHED_S * (slower - 1), 1)
    changed = {"peak_rps": peak_rps, "backfill_after_s": settings.replay.backfill_after_s + after_s}
    contract: dict[str, dict[str, Any]] = {"planning": {"lead_s": longer_s}}
    scaling, look_s, older_too = settings.autoscaler, round(slowness), ""
    if scaling.trigger == USUAL_TRIGGER:
        scaling = scaling.model_copy(update={"trigger": f"{look_s} seconds"})
        older = {name: getattr(planning, name) + look_s for name in ("forecast_age_s", "metrics_age_s")}
        interval_s = (main.backpressure or Backpressure()).interval_s
        contract = {"planning": {"lead_s": longer_s, **older}, "backpressure": {"interval_s": max(interval_s, look_s)}}
        older_too = (
            f" (so forecasts and metrics may be {look_s} s older, and the controller of replays has intervals as long)"
        )
    return FittedRun(
        settings.model_copy(update={"replay": settings.replay.model_copy(update=changed), "autoscaler": scaling}),
        contract,
        f"Python runs {slowness:.1f} times as slowly here as on the computers that the load was chosen for. So the "
        f"load's peak is {peak_rps:g} records/s instead of {PEAK_RPS:g} (the setting replay.peak_rps overrides it), "
        f"a new executor is first assumed to be of use after {longer_s:g} s instead of {lead_s:g}, the autoscaler's "
        f"query has a trigger of {scaling.trigger}{older_too}, and the backfill has {after_s:g} s more.",
    )  # fmt: skip


def measure_slowness() -> float:
    """Return how many times as long a loop of Python takes here as on the computers on which PEAK_RPS was chosen.

    On two cores at once for MEASURED_S, in which the computer should have nothing else to do, and of all rounds the one
    that a quarter is slower than: the speed of shared computers changes from second to second by nearly a half, and
    what a run is late in are the slow ones.

    Raises:
        OSError: the loop cannot be started.
        subprocess.CalledProcessError: it failed.
    """
    words = [sys.executable, "-m", "pipelines.demo.timed_loop", str(MEASURED_S)]
    cores = min(usable_cores(), CORES)
    with ThreadPoolExecutor(cores) as pool:
        told = list(pool.map(lambda _: subprocess.check_output(words), range(cores)))
    rounds = [took for one in told for took in json.loads(one)]
    return float(np.quantile(rounds, SLOW_ROUND)) / (STEPS * STEP_S)
