"""What page, summary and the twin's fit compute from a run, once: commit times, seconds, actions, forecast steps."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from pipelines.report import accuracy, actions
from pipelines.report.recorded.run import RecordedRun
from pipelines.report.seconds import commit_times, latency_by_second, tasks_by_second


@dataclass(frozen=True, eq=False)
class RunMeasures:
    """A run and what was computed from it once, for page and summary.

    Attributes:
        run: the run.
        committed: (N,) epoch seconds at which each produced record was committed, inf for never.
        live_end: wall time of the last commit of a live record, or the end of production if that is later.
        seconds: a row per second: columns of `latency_by_second` and `tasks_by_second`, `stopped` (all through it a
            record waited and no task of the query ran, for longer than the trigger lets it) and `in_action` (a scale
            action was under way).
        acts: `actions.join_outcomes` of the live decisions.
        step_s: trace seconds per forecast step.
        steps: `accuracy.match_forecasts` of the live forecasts.
    """

    run: RecordedRun
    committed: np.ndarray
    live_end: float
    seconds: pd.DataFrame
    acts: pd.DataFrame
    step_s: float
    steps: pd.DataFrame

    @property
    def latency_s(self) -> np.ndarray:
        """(N,) seconds from each record's production to its commit, or to `live_end` if it never came to one."""
        made = self.run.produced["produced_at"].to_numpy(float)
        waited: np.ndarray = np.minimum(self.committed, self.live_end) - made
        return waited


def measure_run(run: RecordedRun) -> RunMeasures:
    """Compute from a run all that page and summary share: commit times, seconds, actions, forecast steps.

    Without a forecast a step is taken for 1800 s of the trace.

    Raises:
        SeriesError: a time or rate of the metrics is not finite, or they span over a million steps.
        KeyError, ValueError: a message lacks a field, or holds a wrong value.
    """
    produced, batches = run.produced, run.batches
    partition, offset, made_at = (produced[name].to_numpy() for name in ("partition", "offset", "produced_at"))
    committed = commit_times(partition, offset, batches.committed, batches.ends)
    live_end = max([run.end, *committed[np.isfinite(committed)]])
    length = math.ceil(live_end - run.start)
    acts = actions.join_outcomes(run.decisions, run.outcomes)
    seconds = latency_by_second(made_at, committed, run.start, length).join(
        tasks_by_second(*begin_and_end(run.tasks, "start", "end"), run.start, length)
    )
    trigger_s = pd.Timedelta(str(run.info.get("job_settings", {}).get("trigger", "1 second"))).total_seconds()
    idle = (seconds["waiting"] > 0) & ~seconds["ran"]
    seconds["stopped"] = idle & (idle.groupby((~idle).cumsum()).transform("sum") >= trigger_s)
    seconds["in_action"] = actions.seconds_in_action(acts, run.start, length)
    step_s = float(run.forecasts["step_s"].iloc[-1]) if len(run.forecasts) else 1800.0
    steps = accuracy.match_forecasts(run.forecasts, accuracy.actual_load(run.arrivals, step_s))
    return RunMeasures(run, committed, live_end, seconds, acts, step_s, steps)


def lost_executors(measured: RunMeasures) -> pd.Series:
    """Return (executors,) whether each of the run's left during the live load without having been asked to.

    Asked to are those removed by a decommission or the application's end. `measured.run.executors` is indexed alike.
    """
    executors = measured.run.executors
    during = executors["removed"].between(measured.run.start, measured.live_end)
    asked = executors["reason"].str.contains("decommission", case=False) | (executors["reason"] == "application ended")
    return during & ~asked


def begin_and_end(frame: pd.DataFrame, begin: str, end: str) -> tuple[np.ndarray, np.ndarray]:
    """Return two columns of a frame, (rows,) each, as floats."""
    return frame[begin].to_numpy(float), frame[end].to_numpy(float)
