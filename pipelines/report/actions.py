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


def join_outcomes(decisions: pd.DataFrame, outcomes: pd.DataFrame) -> pd.DataFrame:
    """Join decisions with their last outcomes, one decision per row, in order; NaN where there is no outcome.

    Both tables have a message per row, oldest first, its fields as columns.

    Returns:
        The decision's columns and the outcome's `status`, executor counts and times (epoch seconds), its reason as
        `outcome_reason`, its time as `closed_at`, and `observed`, a dict of what it measured; and the flags `up` and
        `down` (the target rose or fell) and `by_forecast` (the forecast caused it).

    Raises:
        KeyError, ValueError: a column is missing, or a count or time is no number.
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


def count_decisions(acts: pd.DataFrame, outcomes: pd.DataFrame) -> dict[str, int]:
    """Count decisions (rows of `join_outcomes`) and actions.

    The outcomes have a message per row, oldest first; `made_between` selects those of the live load.

    Returns:
        `decisions` (evaluations, holds included), `stood_in` (of these, by a stand-in policy), `scale_ups`,
        `scale_downs` (that reached the cluster: confirmed or ineffective), `scale_ups_by_forecast`,
        `forecast_scale_ups_confirmed`, and `ineffective`, `refused`, `failed`: decisions whose last outcome was that.

    Raises:
        KeyError: a column is missing.
    """
    ended = outcomes.drop_duplicates("decision_id", keep="last")["status"].value_counts()
    up, down = (acts[way] & acts["status"].isin(APPLIED) for way in ("up", "down"))
    forecast = up & acts["by_forecast"]
    counts = {
        "decisions": acts["evaluations"].sum(),
        "stood_in": acts["evaluations"][_says(acts, "stand_in")].sum(),
        "scale_ups": up.sum(),
        "scale_downs": down.sum(),
        "scale_ups_by_forecast": forecast.sum(),
        "forecast_scale_ups_confirmed": (forecast & (acts["status"] == "confirmed")).sum(),
        **{status: ended.get(status, 0) for status in ("ineffective", "refused", "failed")},
    }
    return {key: int(count) for key, count in counts.items()}


def made_between(outcomes: pd.DataFrame, start: float, end: float) -> pd.DataFrame:
    """Return the outcomes of decisions made from `start` to `end` (epoch seconds), in order.

    What came of a decision made while the job warmed up is left out, whenever it came. The decision's moment is
    `decided_at`, or the outcome's own `wall_time` where that is unknown; with neither, a row is kept.
    """
    made_at = outcomes["decided_at"].astype(float).fillna(outcomes["wall_time"].astype(float))
    return outcomes[made_at.isna() | made_at.between(start, end)]


def action_delays(acts: pd.DataFrame) -> dict[str, Any]:
    """Return delays in wall seconds of rows of `join_outcomes`, as arrays; NaN where the end never came.

    Returns:
        `decision_to_executor_s` (until all executors were registered) and `decision_to_useful_s` (until the first batch
        that used them ended): an entry per scale-up. `metric_to_decision_s`: an entry per metrics record, until the
        first decision made with it, by rising time; decisions made because metrics had stopped are left out.

    Raises:
        KeyError: a column is missing.
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
    """Return (seconds,) whether a scale action was under way: from its application until it was of use or given up.

    Args:
        acts: rows of `join_outcomes`.
        start: epoch seconds at which the first second begins.
        seconds: how many.

    Raises:
        KeyError: a column is missing.
    """
    under_way = np.zeros(seconds, dtype=bool)
    applied = acts[acts["status"].isin(APPLIED) & acts["applied_at"].notna()]
    until = applied[["confirmed_at", "useful_at"]].max(axis=1).fillna(applied["closed_at"])
    for begin, end in zip(applied["applied_at"] - start, until - start, strict=True):
        under_way[max(0, int(np.floor(begin))) : max(0, int(np.ceil(end)))] = True
    return under_way


def learned_lead(acts: pd.DataFrame) -> dict[str, float] | None:
    """Return the lead time that the decisions (rows of `join_outcomes`, in order) were planned with; None if none says.

    Returns:
        `planned_first`, `planned_last` and `median_last` (wall seconds), and `starts`, the raises learned from at last.
    """
    told = [inputs["lead"] for inputs in acts["inputs"] if "lead" in inputs]
    if not told:
        return None
    first, last = told[0], told[-1]
    return {
        "planned_first": first["planned_s"], "planned_last": last["planned_s"], "median_last": last["median_s"],
        "starts": last["starts"],
    }  # fmt: skip


def first_warning(acts: pd.DataFrame) -> float | None:
    """Return when a decision first said that the promise is in danger (codes `shortage`, `burn`), epoch seconds.

    None where none of the rows of `join_outcomes` does.
    """
    warned = acts.loc[_says(acts, "shortage") | _says(acts, "burn"), "wall_time"]
    return float(warned.min()) if len(warned) else None


def _says(acts: pd.DataFrame, code: str) -> np.ndarray:
    """(N,) whether a code is among those of each decision."""
    return np.array([code in codes for codes in acts["codes"]], dtype=bool)
