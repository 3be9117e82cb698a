"""Whether the promise's account is what the metrics of a run come to; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from models.policy.core.budget import Account, Promise

NEAR_S = 0.01
"""Seconds by which two accounts may differ: decisions tell four digits."""


def judge_account(
    promise: Promise, metrics: Sequence[Mapping[str, Any]], decision: Mapping[str, Any], began_s: float
) -> str:
    """Compare what a decision says of the promise with an account of the same metrics made anew.

    Args:
        promise: to the job's users.
        metrics: of the job, in the order in which they were sent, as messages hold them.
        decision: the last one of the run, as its message, with "promise" and "metric_wall_time" among its inputs.
        began_s: epoch seconds at which the fault began.

    Returns:
        "silent": the decision is older than the fault; "kept": equal to the account of all batches that it knew;
        "anew": to that of some that are not older than the fault; "wrong": to neither.
    """
    if decision["wall_time"] <= began_s:
        return "silent"
    told = decision["inputs"]["promise"]
    own = [one for one in metrics if one["kind"] == "batch" and one.get("latency_max_s") is not None]
    least = sum(one["wall_time"] <= decision["inputs"]["metric_wall_time"] for one in own)
    known = [one for one in own if one["wall_time"] <= decision["wall_time"]]
    if _agrees(promise, known, least, told):
        return "kept"
    older = sum(one["wall_time"] < began_s for one in known)
    anew = any(_agrees(promise, known[first:], least - first, told) for first in range(older, len(known)))
    return "anew" if anew else "wrong"


def _agrees(promise: Promise, metrics: Sequence[Mapping[str, Any]], least: int, told: Mapping[str, Any]) -> bool:
    """Whether an account of at least so many of the metrics, from the first one on, is what was told."""
    return any(
        many >= least
        and abs(account.seconds - told["seconds"]) <= NEAR_S
        and abs(account.late_s - told["late_s"]) <= NEAR_S
        for many, account in enumerate(_accounts(promise, metrics), 1)
    )


def _accounts(promise: Promise, metrics: Sequence[Mapping[str, Any]]) -> Iterator[Account]:
    account = Account()
    for one in metrics:
        account = account.add_batch(promise, one["wall_time"], one["latency_max_s"], one["time_scale"])
        yield account
