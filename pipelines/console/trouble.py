"""What is wrong with a job, in words, and how much it matters: the order in which a person should look."""

from __future__ import annotations

import math
from typing import NamedTuple

from configs.bounds import WEEK_S
from models.policy.live.burn import FAST, MOSTLY
from pipelines.console.read.job import FollowedJob
from pipelines.html.numbers import share
from pipelines.scale.shown import SILENT_S, why_not_held

BROKEN, BURNING, BLIND, LATE, NOTED, FINE = 5, 4, 3, 2, 1, 0
"""Ranks: the promise is broken; will soon be; nothing is known or decided; late now; worth a look; nothing."""


class Trouble(NamedTuple):
    """What is wrong with a job: a rank (the higher, the worse) and words; "" where there is nothing to say."""

    rank: int
    words: str


def worst_trouble(seen: FollowedJob, now: float) -> Trouble:
    """Return the worst that is wrong with a job at a wall time (epoch seconds).

    The budget goes fast by the thresholds of `models.policy.live.burn`, the decision's own words for it. Of a job that
    nothing was heard of for a week nothing is wrong any more: it is over, as the old name of one that was renamed.
    """
    told = [one.wall_time for one in (seen.sample, seen.batch, seen.beat, seen.word) if one]
    heard_at = max([seen.accepted_at, *told])
    if heard_at and now - heard_at > WEEK_S:
        return Trouble(FINE, f"not heard of for {_span(now - heard_at)}")
    worst = max(_troubles(seen, now), key=lambda trouble: trouble.rank, default=Trouble(FINE, ""))
    silent = _silent(seen, now)  # the figures beside it are of then, whatever is worse
    return worst if silent in worst.words else worst._replace(words=f"{worst.words}; {silent}")


def _silent(seen: FollowedJob, now: float) -> str:
    """Say that no metrics come any more; "" where some do, or none ever came."""
    if seen.sample is None:
        return ""
    limit_s = SILENT_S if seen.contract is None else max(seen.contract.planning.metrics_age_s, 5.0)
    age_s = now - seen.sample.wall_time
    return f"no metrics for {_span(age_s)}" if age_s > limit_s else ""


def _troubles(seen: FollowedJob, now: float) -> list[Trouble]:
    found = []
    contract, sample = seen.contract, seen.sample
    if contract is None:
        found.append(Trouble(NOTED, "no contract: nothing is decided for it"))
    else:
        standing = seen.standing()
        left, burns = standing["budget_left"], (standing["burn_long"], standing["burn_short"])
        fast = min(FAST, MOSTLY / contract.error_budget) if contract.error_budget else FAST
        if left is not None and left < 0:
            over = share(-left, 0 if left <= -0.1 else 1) if left <= -0.001 else "under 0.1 %"
            found.append(Trouble(BROKEN, f"promise broken, {over} over budget"))
        elif burns[0] is not None and burns[1] is not None and min(burns[0], burns[1]) >= fast:
            found.append(Trouble(BURNING, f"budget burns {min(burns[0], burns[1]):.0f} times as fast as allowed"))
        latency_s = (seen.batch and seen.batch.latency_max_s) or 0.0
        if latency_s > contract.latency_target_s and not seen.rests:
            shown_s = math.ceil(10 * latency_s) / 10  # never what was promised
            found.append(Trouble(LATE, f"late: {shown_s:.1f} s, promised {contract.latency_target_s:g} s"))
        if sample and sample.executors and sample.executors >= contract.executors.max and (burns[1] or 0.0) > 1:
            found.append(Trouble(NOTED, "has all the executors that it may have"))
    if sample is None:
        found.append(Trouble(BLIND if contract else NOTED, "no metrics"))
    elif contract and (silent := _silent(seen, now)):
        found.append(Trouble(BLIND, silent))
    elif contract and (seen.beat is None or now - seen.beat.wall_time > SILENT_S):
        found.append(Trouble(BLIND, "no autoscaler heard"))
    if seen.word and sample and seen.word.mode != sample.mode and now - seen.word.wall_time > SILENT_S:
        found.append(Trouble(NOTED, f"told to {seen.word.mode}, its agent is in {sample.mode or 'no known mode'}"))
    if why_not_held(sample, contract):
        found.append(Trouble(NOTED, f"live records cannot be held back: `tidecast job show {seen.job}` says why"))
    return found


def _span(seconds: float) -> str:
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"
