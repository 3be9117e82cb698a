"""What becomes of a decision where a job's executors come from a pool: it has what it is granted, with the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def with_grant(
    live: int, target: int, executors: int, reason: str, codes: Sequence[str], granted: Mapping[str, Any] | None,
    standing: int | None = None,
) -> tuple[int, str, list[str]]:  # fmt: skip
    """Return how many executors to ask for, why, and the codes, by the logged inputs of a grant.

    Where that is not what the policy asks for, reason and first code say which way it goes all the same.

    Args:
        live: executors that the policy asks for, for live records.
        target: for live records, that were asked for last.
        executors: with those for replays.
        reason: of these, what is done before a colon.
        codes: likewise.
        granted: "pool", its name, "executors" for live records, "replay" beside them, and "reason" ("" where it was
            what was asked for when the pool was divided); None: the job is in no pool.
        standing: executors that the decision before asks for, where there are replays: one that is under way for these
            may be what live records need, and stays until they are granted more.
    """
    if granted is None:
        return executors, reason, list(codes)
    under_way = 0 if standing is None else min(executors, standing) - granted["executors"]
    has = granted["executors"] + min(max(executors - live, under_way, 0), granted["replay"])
    if has == executors and live <= granted["executors"]:
        return executors, reason, list(codes)
    why = granted["reason"] or f"pool {granted['pool']}: {has} until it is divided again"
    goes, done = granted["executors"], "hold"
    if goes != target:
        done = f"{'up' if goes > target else 'down'} {target} → {goes}"
    return has, f"{done}: {reason.partition(': ')[2]}; {why}", [done.partition(" ")[0], *codes[1:], "pool"]
