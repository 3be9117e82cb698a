"""What becomes of a decision where a job's executors come from a pool: it has what it is granted, with the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def with_grant(
    live: int, executors: int, reason: str, codes: Sequence[str], granted: Mapping[str, Any] | None
) -> tuple[int, str, list[str]]:
    """Return how many executors to ask for, why, and the codes, by the logged inputs of a grant.

    Args:
        live: executors that the policy asks for, for live records.
        executors: with those for replays.
        reason: of these.
        codes: likewise.
        granted: "executors" for live records, "replay" beside them, and "reason" ("" where it is what was asked for);
            None: the job is in no pool.
    """
    if granted is None:
        return executors, reason, list(codes)
    has = granted["executors"] + min(max(executors - live, 0), granted["replay"])
    if has == executors:
        return executors, reason, list(codes)
    return has, "; ".join(filter(None, [reason, granted["reason"]])), [*codes, "pool"]
