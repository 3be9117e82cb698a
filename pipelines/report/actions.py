"""Decisions and what became of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

APPLIED = ("confirmed", "ineffective")
"""Outcomes of decisions that reached the cluster."""

_NUMBERS = [
    "executors_before", "executors_after", "target", "decided_at", "applied_at", "confirmed_at", "useful_at",
    "closed_at",
]  # fmt: skip


def table(decisions: pd.DataFrame, outcomes: pd.DataFrame) -> pd.DataFrame:
    """One decision per row, in order, with its last outcome beside it (missing where nothing was to be done).

    Adds to the decision's fields: those of the outcome, its reason as `outcome_reason`, what it observed as
    `observed`, when it was published as `closed_at`; `up`, `down`: what it did to the target; `by_forecast`: the
    forecast was the cause.
    """
    names = {"reason": "outcome_reason", "wall_time": "closed_at"}
    last = outcomes.drop_duplicates("decision_id", keep="last").rename(columns=names)
    kept = last[["decision_id", "outcome_reason", "observed", "status", *_NUMBERS]]
    joined = decisions.merge(kept, how="left", left_on="id", right_on="decision_id").drop(columns="decision_id")
    joined[_NUMBERS] = joined[_NUMBERS].astype(float)
    joined["by_forecast"] = _says(joined, "forecast")
    joined["up"] = joined["target"] > joined["executors_before"]
    joined["down"] = joined["target"] < joined["executors_before"]
    return joined


def counts(acts: pd.DataFrame, outcomes: pd.DataFrame) -> dict[str, int]:
    """How many scale actions reached the cluster, how many the forecast caused, how many came to nothing."""
    ended = outcomes.drop_duplicates("decision_id", keep="last")["status"].value_counts()
    up, down = (acts[way] & acts["status"].isin(APPLIED) for way in ("up", "down"))
    forecast = up & acts["by_forecast"]
    found = {
        "decisions": acts["evaluations"].sum(),
        "stood_in": acts["evaluations"][_says(acts, "stand_in")].sum(),
        "scale_ups": up.sum(),
        "scale_downs": down.sum(),
        "scale_ups_by_forecast": forecast.sum(),
        "forecast_scale_ups_confirmed": (forecast & (acts["status"] == "confirmed")).sum(),
        **{status: ended.get(status, 0) for status in ("ineffective", "refused", "failed")},
    }
    return {key: int(count) for key, count in found.items()}


def delays(acts: pd.DataFrame) -> dict[str, Any]:
    """Seconds from decision to executors and to use, of scale-ups; and from metrics to decision, as arrays.

    A metrics record counts once, with the first decision it led to; decisions that a timer made because the metrics
    had stopped count not at all.
    """
    ups = acts[acts["up"]]
    measured = acts[~_says(acts, "no_metrics")]
    metric = pd.Series([i.get("metric_wall_time") for i in measured["inputs"]], index=measured.index, dtype=float)
    first = measured["wall_time"].groupby(metric).min()
    return {
        "decision_to_executor_s": (ups["confirmed_at"] - ups["decided_at"]).to_numpy(float),
        "decision_to_useful_s": (ups["useful_at"] - ups["decided_at"]).to_numpy(float),
        "metric_to_decision_s": (first - first.index).to_numpy(float),
    }


def seconds_in_action(acts: pd.DataFrame, start: float, seconds: int) -> np.ndarray:
    """(seconds,) whether a scale action was under way: from its application until it was of use or given up."""
    under_way = np.zeros(seconds, dtype=bool)
    applied = acts[acts["status"].isin(APPLIED) & acts["applied_at"].notna()]
    until = applied[["confirmed_at", "useful_at"]].max(axis=1).fillna(applied["closed_at"])
    for begin, end in zip(applied["applied_at"] - start, until - start, strict=True):
        under_way[max(0, int(np.floor(begin))) : max(0, int(np.ceil(end)))] = True
    return under_way


def _says(acts: pd.DataFrame, code: str) -> np.ndarray:
    """(N,) whether a code is among those of each decision."""
    return np.array([code in codes for codes in acts["codes"]], dtype=bool)
