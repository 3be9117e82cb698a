"""A job without a contract, as the messages of its agent tell of it, and the contract that they come to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from configs.contract import Contract
from configs.planning import Planning
from models.policy.core.capacity import Floats
from models.policy.live.learned_lead import LearnedLead, lead_quantiles
from models.twin.calibration.fit import UnfinishedFitError
from models.twin.contract.kept import latency_by_second, round_up, target_kept
from models.twin.contract.proposed import fewest_executors
from pipelines.advise.acting import repeat_recorded
from pipelines.advise.measured import BATCH, GAP_S, INTERVAL, MeasuredJob, measure_job

LEAST_S, LEAST_BATCHES, LEAST_LATE_S = 3600.0, 200, 30
"""Least seconds of load, and batches with a latency, that a contract is proposed from; seconds that may be late in what
was observed, so that a few of them do not decide."""
WINDOW_DAYS = 7.0
"""Of a proposed promise, as where a contract states none: no window can be observed."""


@dataclass(frozen=True, eq=False)
class ObservedJob:
    """What was observed of a job that has no contract.

    Attributes:
        seen: its twin and its load, measured under the draft.
        draft: what a contract's file would state: the promise that the job keeps now, executors as they were.
        batches: with a latency.
        latency_s: (S,) of each second of production, as the promise counts it.
        repeated: share of the seconds of production that its twin has over the target that was kept, with the
            executors that were there; where it differs from what was observed, the twin is wrong.
        unmeasured_s: seconds of production in which nothing was measured; they are left out.
        fewest, most: executors that were there.
        cores_known: whether the agent told the executors' cores.
        quiet_rps: rate of its quiet minutes, records/s.
        lead: what raises told of the lead time (`lead_quantiles`); None: none were seen.
    """

    seen: MeasuredJob
    draft: dict[str, Any]
    batches: int
    latency_s: Floats
    repeated: float
    unmeasured_s: int
    fewest: int
    most: int
    cores_known: bool
    quiet_rps: float
    lead: dict[str, float] | None

    @property
    def days(self) -> float:
        """Days of load."""
        return len(self.seen.executors) / 86_400


def observe_job(
    job: str, metrics: pd.DataFrame, outcomes: pd.DataFrame, budget: float, price: float | None = None
) -> ObservedJob:
    """Work out a draft of a job's contract from the messages of its agent.

    The latency target is the shortest that the promised share of seconds kept with the executors that were there.

    Args:
        job: its name.
        metrics: rows, as for `measure_job`, with `cores` where the agent told them.
        outcomes: rows, as for `measure_job`.
        budget: share of the seconds that may be late.
        price: of an executor-hour; None: none is stated.

    Raises:
        UnfinishedFitError: too little was observed; the message says how much there is, and how much is needed.
    """
    rows = metrics.reindex(columns=list(dict.fromkeys((*INTERVAL, *BATCH, "cores")))).sort_values("wall_time")
    live = rows[rows["kind"] == "interval"].dropna(subset=["arrival_rps", "executors"]).drop_duplicates("wall_time")
    timed = rows[(rows["kind"] == "batch") & (rows["batch_rows"] > 0)].dropna(subset=["latency_max_s"])
    at = live["wall_time"].to_numpy(float)
    seconds, latency_s = latency_by_second(timed["wall_time"].to_numpy(float), timed["latency_max_s"].to_numpy(float))
    measured = _measured(seconds, at)
    kept = latency_s[measured]
    _refuse_too_little(job, float(np.minimum(np.diff(at), GAP_S).sum()), len(kept), len(timed), budget)
    there = np.rint(live["executors"].to_numpy(float))
    fewest, most = max(int(there.min()), 1), max(int(there.max()), 1)
    each = (rows["cores"] / rows["executors"].where(rows["executors"] > 0)).dropna()
    cores = max(round(float(each.median())), 1) if len(each) else 1
    draft: dict[str, Any] = {
        "job": job, "latency_target_s": target_kept(kept, budget), "error_budget": budget, "window_days": WINDOW_DAYS,
        "executors": {"min": fewest, "max": most, "cores": cores},
    }  # fmt: skip
    if price is not None:
        draft["price_per_executor_hour"] = price
    lead = _lead(outcomes)
    planning = {} if lead is None else {"lead_s": lead["median_s"]}
    if lead is not None and lead["growth"]:
        planning["start_growth"] = lead["growth"]
    seen = measure_job(metrics, outcomes, Contract.model_validate({**draft, "planning": planning}))
    planning |= {"overhead_s": round_up(seen.twin.overhead_s, 3), "per_record_s": round_up(seen.twin.per_record_s, 3)}
    if seen.scaling_known:
        planning["scaling"] = min(round_up(seen.twin.scaling), 1.0)
    draft["planning"] = planning
    draft["latency_target_s"] = max(draft["latency_target_s"], round_up(planning["overhead_s"]))
    batch_s = Contract.model_validate(draft).batch_s
    draft["executors"]["min"], quiet_rps = fewest_executors(seen.twin, seen.arrived, batch_s, fewest)
    repeated = repeat_recorded(seen).late_s / seen.produced_s
    return ObservedJob(
        seen, draft, len(timed), kept, repeated, int((~measured).sum()), fewest, most, bool(len(each)), quiet_rps, lead
    )


def _measured(seconds: Floats, at: Floats) -> np.ndarray:
    """(S,) whether an interval that ended soon after each second tells of it; `at` are rising ends."""
    if not len(at):
        return np.zeros(len(seconds), bool)
    following = np.searchsorted(at, seconds)
    return (following < len(at)) & (at[np.minimum(following, len(at) - 1)] - seconds <= GAP_S)


def _refuse_too_little(job: str, observed_s: float, seconds: int, batches: int, budget: float) -> None:
    least_s = max(LEAST_S, LEAST_LATE_S / budget)
    if observed_s >= least_s and seconds >= 0.5 * least_s and batches >= LEAST_BATCHES:
        return
    raise UnfinishedFitError(
        f"{job}: {observed_s / 3600:.1f} hours were observed, {seconds / 3600:.1f} of production, and {batches} "
        f"batches with a latency; {least_s / 3600:.1f} hours, {least_s / 7200:.1f} of production, and {LEAST_BATCHES} "
        f"batches are needed for a share of {budget:g} late. Let it run on with its agent, then run the DAG "
        "ingest_metrics"
    )


def _lead(outcomes: pd.DataFrame) -> dict[str, float] | None:
    """What raises told of the lead time, as the autoscaler learns it; the lake's rows without what it needs not."""
    known = LearnedLead.guess(Planning())
    for row in outcomes.sort_values("wall_time").to_dict("records"):
        told = {name: None if pd.isna(value) else value for name, value in row.items()}
        known = known.learn_outcome({**told, "expected": {}})
    found = lead_quantiles(known, Contract(job="any"), 0.0)
    return found if found["starts"] else None
