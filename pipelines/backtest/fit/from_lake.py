"""What the lake says about a job: its batches from `metrics`, its start-ups from `outcomes`."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd

from configs.contract import Contract
from models.policy.core.capacity import Floats, Integers
from models.policy.live.learned_lead import LONGEST_S, no_room
from models.twin.calibration.fit import UnfinishedFitError
from models.twin.calibration.measurements import MeasuredBatches, Startups, estimate_most_rows, estimate_trigger_s
from models.twin.sim.job import TwinJob
from pipelines.lake.folder import Folder
from pipelines.report.actions import APPLIED
from pipelines.report.fit_input import configured_twin
from tidecast.fields import job_name

NEWEST = 100_000
"""Most actions that a fit reads."""
_NEAR_S = 1.0
ACTION = (
    "wall_time", "decision_id", "status", "executors_before", "target", "decided_at", "confirmed_at", "useful_at",
    "observed",
)  # fmt: skip


def read_measurements(root: Folder, job: str, contract: Contract) -> tuple[MeasuredBatches, Startups, TwinJob]:
    """Read the newest batches and start-ups of a job from the lake, by Spark where `opened_lake` says so.

    Args:
        root: folder of the lake.
        job: its name.
        contract: of the job (latency target, bounds of executors, first guesses).

    Returns:
        As `measurements_from_rows`, of at most 100,000 batches and as many actions.

    Raises:
        LakeError: nothing was ever ingested.
        UnfinishedFitError: the lake holds no batch of the job.
        MessageError: no job may have that name.
        TwinError: the contract has a value that no job can have.
        SettingsError, JavaError, JarsError: Spark is needed and does not start: a wrong setting, no Java, no jars.
    """
    from pipelines.lake.file_lake import opened_lake
    from pipelines.lake.load import read_batches

    job = job_name(job)
    with opened_lake(root, "twin") as lake:
        metrics = read_batches(lake, job, NEWEST)
        outcomes = lake.newest_rows("outcomes", ("job", *ACTION), [("job", "eq", job)], NEWEST).to_pandas()
    outcomes = outcomes[::-1].reset_index(drop=True)
    return measurements_from_rows(metrics, outcomes, contract)


def measurements_from_rows(
    metrics: pd.DataFrame, outcomes: pd.DataFrame, contract: Contract
) -> tuple[MeasuredBatches, Startups, TwinJob]:
    """Turn rows of the lake's `metrics` and `outcomes` into batches, start-ups and the job as configured.

    An executor counts as registered when the agent saw it; its first batch is the one that ended within 1 s of when it
    was of use (-1: none). A request for more executors that was never confirmed is censored at its last outcome. A
    start-up that ended before it was asked for, after its outcome or over two hours later is left out (`read_start`):
    the clocks of autoscaler and agent differ; so is one for which the cluster had no room at first. A batch's id stands
    for the number of batches done before it, so a query that resumes from a checkpoint counts as warm.

    Args:
        metrics: columns `pipelines.lake.load.BATCH`.
        outcomes: columns `ACTION`; `observed`, which may be missing, as JSON or what that holds.
        contract: of the job (latency target, bounds of executors, first guesses).

    Returns:
        (B,) batches and (S,) start-ups in order of time, in epoch seconds, and the job as configured; its trigger
        interval (1 s if unknown) and most rows per batch are estimated from the batches.

    Raises:
        UnfinishedFitError: no batch with rows.
        KeyError: a column is missing.
        TwinError: the contract has a value that no job can have.
    """
    rows = metrics[(metrics["kind"] == "batch") & (metrics["batch_rows"] > 0)].sort_values("wall_time")
    if rows.empty:
        raise UnfinishedFitError("unfinished fit: no batch in the lake; run the job and the DAG ingest_metrics")
    end, batch_s = rows["wall_time"].to_numpy(float), rows["batch_s"].to_numpy(float)
    batches = MeasuredBatches(
        end - batch_s, end, rows["batch_rows"].to_numpy(float), rows["executors"].to_numpy(float),
        rows["batch_id"].astype(float).fillna(np.inf).to_numpy(float),
    )  # fmt: skip
    ups = outcomes[outcomes["status"].isin(APPLIED) & (outcomes["target"] > outcomes["executors_before"])]
    ups = ups.sort_values("wall_time").drop_duplicates("decision_id", keep="last").dropna(subset=["decided_at"])
    ups = ups[_is_plausible(ups) & _had_room(ups)]
    censored = ups["confirmed_at"].isna().to_numpy(bool)
    seen_s = ups["confirmed_at"].fillna(ups["wall_time"]).to_numpy(float)
    first = _first_batches(end, ups["useful_at"].to_numpy(float))
    startups = Startups(ups["decided_at"].to_numpy(float), seen_s, first, censored)
    tasks = rows["task_ceiling"].dropna()
    task_count = int(tasks.iloc[-1]) if len(tasks) else 64
    return (
        batches,
        startups,
        configured_twin(contract, task_count, estimate_trigger_s(batches) or 1.0, estimate_most_rows(batches)),
    )


def _first_batches(end: Floats, useful: Floats) -> Integers:
    """(S,) indices of the batches (rising ends) that ended nearest to when start-ups were of use; -1: none near, NaN.

    Of equally near ones it is the first.
    """
    after = np.searchsorted(end, useful)
    before = np.searchsorted(end, end[np.maximum(after - 1, 0)])
    both = np.stack([before, np.minimum(after, len(end) - 1)])
    off = np.abs(end[both] - useful)
    return np.where(off.min(axis=0) <= _NEAR_S, np.where(off[0] <= off[1], *both), -1)


def _had_room(ups: pd.DataFrame) -> pd.Series:
    """Whether executors took as long as they take to start, row by row, and did not wait for others to leave."""
    observed = ups["observed"] if "observed" in ups else pd.Series(None, ups.index, dtype=object)
    held = (json.loads(one) if isinstance(one, str) else one for one in observed)
    return pd.Series([not no_room({"observed": one}) for one in held], ups.index, dtype=bool)


def _is_plausible(ups: pd.DataFrame) -> pd.Series:
    """Whether start-ups took as long as `read_start` believes, row by row."""
    until = ups["confirmed_at"].fillna(ups["wall_time"]).astype(float)
    took_s = until - ups["decided_at"].astype(float)
    return (took_s > 0) & (took_s <= LONGEST_S) & (until <= ups["wall_time"] + 1)
