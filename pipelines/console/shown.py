"""The read model as JSON values for the pages: a row for each job, and all that the page of one job shows."""

from __future__ import annotations

import math
from typing import Any

from pipelines.console.read.fold import ReadModel
from pipelines.console.read.job import FollowedJob
from pipelines.console.trouble import worst_trouble

Values = dict[str, Any]
SHOWN_LEVELS = 7
"""Quantiles of a forecast that are drawn at most."""


def rows_since(model: ReadModel, revision: int, now: float) -> list[Values]:
    """Return the rows of the jobs that changed after a revision, or whose trouble is a matter of time.

    A job that falls silent changes nothing, so that rows without news of a second ago are always among them.
    """
    return [
        job_row(seen, now)
        for seen in model.jobs.values()
        if seen.revision > revision or seen.sample is None or now - seen.sample.wall_time > 1
    ]


def job_row(seen: FollowedJob, now: float) -> Values:
    """Return what the page of all jobs shows of one; None for what is not known.

    Args:
        seen: what is known of the job.
        now: wall time, epoch seconds.
    """
    sample, contract, standing = seen.sample, seen.contract, seen.standing()
    rank, words = worst_trouble(seen, now)
    return {
        "job": seen.job, "rank": rank, "trouble": words,
        "target_s": contract and contract.latency_target_s, "budget": contract and contract.error_budget,
        "window_days": contract and contract.window_days,
        **{name: _rounded(standing.get(name)) for name in ("budget_left", "burn_long", "burn_short")},
        "executors": sample and sample.executors,
        "target": seen.decisions[-1].executors if seen.decisions else None,
        "most": contract and contract.executors.max, "least": contract and contract.executors.min,
        "arrival_rps": _rounded(sample.arrival_rps) if sample else None, "lag_records": sample and sample.lag_records,
        "latency_s": _rounded(seen.batch.latency_max_s) if seen.batch else None,
        "mode": sample and sample.mode, "word": word_of(seen),
        "age_s": sample and round(max(now - sample.wall_time, 0.0), 1),
    }  # fmt: skip


def word_of(seen: FollowedJob) -> Values | None:
    """Return the mode that a person gave a job last, when (epoch seconds) and who; None where nobody has."""
    word = seen.word
    return None if word is None else {"mode": word.mode, "at": word.wall_time, "by": word.by}


def job_details(seen: FollowedJob, now: float, after: float) -> Values:
    """Return what the page of one job shows.

    Args:
        seen: what is known of the job.
        now: wall time, epoch seconds.
        after: wall time; of the history only what is later.

    Returns:
        The job's `row`; `fine` and `coarse`, columns of times and of the fields of `Point`, and when the latter begins,
        whatever `after` is (`oldest`); `forecast` (None without one); `decisions`, newest first, each with what became
        of it.
    """
    became = {outcome.id: outcome for outcome in seen.outcomes}
    return {
        "now": now, "row": job_row(seen, now), "oldest": seen.coarse.oldest,
        "fine": seen.fine.columns(after), "coarse": seen.coarse.columns(after), "forecast": forecast_fan(seen),
        "decisions": [
            {
                "at": decided.at, "mode": decided.mode, "policy": decided.policy, "codes": decided.codes,
                "reason": decided.reason, "executors": decided.executors, "before": _rounded(decided.before),
                "outcome": became[decided.id].status if decided.id in became else None,
                "outcome_reason": became[decided.id].reason if decided.id in became else "",
            }
            for decided in reversed(seen.decisions)
        ],
    }  # fmt: skip


def forecast_fan(seen: FollowedJob) -> Values | None:
    """Return the newest forecast over wall time: a band of its steps from the forecast's own time on.

    Returns:
        "model", "version", "levels" and "issued_at"; "times" (epoch seconds, wall), at which the steps begin
        and the last one ends; "quantiles", a list for each level. None without a forecast, and before metrics tell how
        job time goes with wall time.
    """
    forecast, sample = seen.forecast, seen.sample
    if forecast is None or sample is None:
        return None
    ended = sample.time + sample.span_s
    levels = _spread(len(forecast.levels))
    times = [
        sample.wall_time + (forecast.time + step * forecast.step_s - ended) / sample.time_scale
        for step in range(len(forecast.quantiles) + 1)
    ]
    if not all(map(math.isfinite, times)):
        return None
    return {
        "model": forecast.model, "version": forecast.version, "issued_at": forecast.wall_time,
        "levels": [forecast.levels[i] for i in levels], "times": [round(time, 1) for time in times],
        "quantiles": [[_rounded(row[i]) for row in forecast.quantiles] for i in levels],
    }  # fmt: skip


def _spread(many: int) -> list[int]:
    """Indices of at most SHOWN_LEVELS levels, the outermost and the middle among them."""
    if many <= SHOWN_LEVELS:
        return list(range(many))
    return [round(i * (many - 1) / (SHOWN_LEVELS - 1)) for i in range(SHOWN_LEVELS)]


def _rounded(value: float | None) -> float | None:
    """A number with five digits, as JSON knows it; None for none."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.5g}")
