"""What a run's load would have cost served otherwise, by a twin that is fitted to the run itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from models.twin.calibration.fit import UnfinishedFitError, fit_job
from models.twin.calibration.replayed import replay_recording
from models.twin.experiment.alternatives import price_alternatives
from models.twin.sim.job import TwinJob
from pipelines.report.fit_input import MeasuredRun, read_fit_input
from pipelines.report.measures import RunMeasures

NOTHING: dict[str, Any] = {
    "smallest_fixed": None, "smallest_fixed_executor_s": None, "reactive_executor_s": None, "reactive_late_share": None,
    "clairvoyant_executor_s": None,
}  # fmt: skip


SEEDS = 8
"""Replays of the run in its twin whose mean quantile is compared with the measured one."""


def price_run(measured: RunMeasures) -> dict[str, Any]:
    """Price other ways to serve a run's load under its contract, in executor-seconds; all of it is the twin's.

    They are judged as the run is: a twin is quicker or slower than its job (`latency_bias`), and its target as much so.

    Returns:
        `smallest_fixed` (executors) and `smallest_fixed_executor_s`: the fewest that keep the promise all the time;
        `reactive_executor_s` and `reactive_late_share`: the policy `reactive`, steered by the same promise
        from where its own rehearsal says;
        `clairvoyant_executor_s`: a plan that knows the whole load. None: no number or plan keeps the promise, or, for
        all of them, the run tells too little for a twin (20 warm batches, a start-up).
    """
    run = read_fit_input(measured)
    try:
        job = fit_job(run.batches, run.startups, run.known, draws=1).job
    except UnfinishedFitError:
        return NOTHING
    produced_s = int(np.flatnonzero(np.diff(run.arrived) > 0)[-1]) + 1
    contract = measured.run.contract
    start = None if measured.run.rehearsal is None else measured.run.rehearsal.start("reactive", contract)
    judged = replace(job, latency_target_s=contract.latency_target_s * latency_bias(job, run, contract.error_budget))
    found = price_alternatives(judged, contract, run.arrived[: produced_s + 1], start)
    values = (found.fixed, found.fixed_executor_s, found.reactive_executor_s, found.reactive_late,
              found.clairvoyant_executor_s)  # fmt: skip
    rounded = [round(value, 4 if name.endswith("share") else 1) if isinstance(value, float) else value
               for name, value in zip(NOTHING, values, strict=True)]  # fmt: skip
    return dict(zip(NOTHING, rounded, strict=True))


def latency_bias(job: TwinJob, run: MeasuredRun, budget: float) -> float:
    """Return how slow a twin is ÷ how slow its job was, both under what was decided in a run.

    Compared is the latency that the share `budget` of the seconds exceeds: that decides whether a promise is kept.

    Args:
        job: the twin.
        run: with what was decided, and the latency of every second.
        budget: share of seconds that may be late, in (0, 1).

    Returns:
        Above 0; 1 where nothing was measured.

    Raises:
        TwinError: the run's targets are out of the job's bounds.
    """
    real = run.curves.latency_s[np.isfinite(run.curves.latency_s)]
    twin = replay_recording(
        job, run.arrived, np.round(run.at_s, 1), run.targets.astype(np.int64), max(run.executors, 1),
        np.arange(SEEDS), batches=run.done,
    ).latency_s  # fmt: skip
    if not len(real) or not np.isfinite(twin).any():
        return 1.0
    simulated = float(
        np.mean([np.quantile(one[np.isfinite(one)], 1 - budget) for one in twin if np.isfinite(one).any()])
    )
    return max(simulated, 1e-3) / max(float(np.quantile(real, 1 - budget)), 1e-3)
