"""What a run's load would have cost served otherwise, by a twin that is fitted to the run itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from models.twin.calibration.fit import UnfinishedFitError, fit_job
from models.twin.experiment.alternatives import price_alternatives
from pipelines.report.fit_input import read_fit_input
from pipelines.report.measures import RunMeasures

NOTHING: dict[str, Any] = {
    "smallest_fixed": None, "smallest_fixed_executor_s": None, "reactive_executor_s": None, "reactive_late_share": None,
    "clairvoyant_executor_s": None,
}  # fmt: skip


def price_run(measured: RunMeasures) -> dict[str, Any]:
    """Price other ways to serve a run's load under its contract, in executor-seconds; all of it is the twin's.

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
    found = price_alternatives(job, contract, run.arrived[: produced_s + 1], start)
    values = (found.fixed, found.fixed_executor_s, found.reactive_executor_s, found.reactive_late,
              found.clairvoyant_executor_s)  # fmt: skip
    rounded = [round(value, 4 if name.endswith("share") else 1) if isinstance(value, float) else value
               for name, value in zip(NOTHING, values, strict=True)]  # fmt: skip
    return dict(zip(NOTHING, rounded, strict=True))
