"""How long tasks of a replay should be: what live records may wait for them, by the latency that their job promises."""

from __future__ import annotations

from configs.contract import Contract

WAIT_SHARE = 0.05
"""Of the tightest limit of live latency, what a task of a replay may take: each stage of a live batch that begins when
a replay has just taken the cores waits for such tasks, so that a batch of two stages loses a tenth of the limit."""
SHORTEST_S, LONGEST_S = 0.1, 2.0
"""A task that is to be shorter does little but begin. Longer ones spread what a batch takes beside its tasks, as a
commit of seconds, over more records; beyond this little is left to spread."""


def task_target_s(contract: Contract) -> float:
    """Return how long the records of a replay's task should take beside a job's live ones, seconds."""
    stated = contract.backpressure.paths if contract.backpressure else ()
    limits_ms = [path.max_ms for path in stated if path.kind == "live"]
    target_s = contract.latency_target_s  # also of a path that states no limit
    tightest_s = min((target_s if limit is None else limit / 1000 for limit in limits_ms), default=target_s)
    return min(max(WAIT_SHARE * tightest_s, SHORTEST_S), LONGEST_S)
