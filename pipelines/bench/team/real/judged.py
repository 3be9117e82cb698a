"""What a session came to: late seconds of each job, and what its decisions say; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from models.policy.live.recomputed import Contracts, recompute_decision
from pipelines.bench.team.real.feed import SentLoad
from pipelines.bench.team.real.sides import NAME
from pipelines.report.recorded.batches import QueryBatches
from pipelines.report.seconds import commit_times, latency_by_second

WITHIN_S = 60.0


def judge_latency(sent: SentLoad, batches: QueryBatches, began: float, target_s: float) -> dict[str, float]:
    """Judge the load's own records.

    Args:
        sent: to the job.
        batches: of its query.
        began: when the load did, epoch seconds.
        target_s: of the latency, seconds.

    Returns:
        `seconds` in which any were produced; `late_s`, those in which any was committed more than the target later,
        or never; `longest_s`, the longest latency of one that was committed.
    """
    committed = commit_times(sent.partition, sent.offset, batches.committed, batches.ends)
    length = int(sent.produced_at[-1] - began) + 1
    by_second = latency_by_second(sent.produced_at, committed, began, length)
    took = (committed - sent.produced_at)[committed < float("inf")]
    return {
        "seconds": int((by_second["produced"] > 0).sum()),
        "late_s": int((by_second["latency_max_s"] > target_s).sum()),
        "longest_s": round(float(took.max()), 1) if len(took) else 0.0,
    }


def judge_decisions(decisions: Sequence[Mapping[str, Any]], contracts: Contracts) -> dict[str, int]:
    """Judge what was decided about one job.

    Args:
        decisions: as on the topic, in order.
        contracts: of their hashes.

    Returns:
        Numbers of `decisions` made of an observation; of those that come out otherwise when they are made `again`;
        `changes` of its executors, and `most_changes` of them within any minute; `yields`, decisions with fewer
        executors than the policy asks for because of the pool, `given_up`, those of them by which it has fewer than
        before, and `unexplained`, those whose reason does not name the pool.
    """
    again = yields = given_up = unexplained = made = 0
    before: int | None = None
    for one in decisions:
        told = recompute_decision(one, contracts)
        if told is not None:
            made += 1
            again += told != (one["executors"], one["reason"], one["codes"])
            if one["executors"] < _asked(one, contracts):
                yields += 1
                given_up += before is not None and one["executors"] < before
                unexplained += f"pool {NAME}: " not in one["reason"]
        before = one["executors"]
    changed = [
        later["wall_time"] for one, later in pairwise(decisions) if later["executors"] != one["executors"]
    ]  # fmt: skip
    most = max((sum(at - WITHIN_S < other <= at for other in changed) for at in changed), default=0)
    return {
        "decisions": made, "again": again, "changes": len(changed), "most_changes": most, "yields": yields,
        "given_up": given_up, "unexplained": unexplained,
    }  # fmt: skip


def most_asked_for(decisions: Sequence[Mapping[str, Any]]) -> int:
    """Return the most executors that all jobs were to have together at any time.

    Args:
        decisions: about all jobs, by rising time.
    """
    has: dict[str, int] = {}
    most = 0
    for one in decisions:
        has[one["job"]] = one["executors"]
        most = max(most, sum(has.values()))
    return most


def _asked(decision: Mapping[str, Any], contracts: Contracts) -> int:
    """What the policy alone asks for."""
    inputs = {name: value for name, value in decision["inputs"].items() if name != "pool"}
    told = recompute_decision({**decision, "inputs": inputs}, contracts)
    assert told is not None
    return told[0]
