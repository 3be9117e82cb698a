"""Where the seconds of a raise go, and what a forecast of them was worth; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from models.policy.core.lead_time import LeadTime
from models.policy.live.learned_lead import LearnedLead, read_start

PHASES = {
    "request": "decision → asked of Spark",
    "launch": "→ executor's process started",
    "jvm": "→ registered with the driver",
    "waiting": "→ first task began (the next batch)",
    "first_task": "→ first task ended",
    "deserialize": "  of it its classes and its code",
    "python": "  of it a Python worker made ready",
    "rest": "→ the batch that used it ended",
    "registered": "decision → registered",
    "useful": "decision → of use",
}
"""Names of the phases, and in words; the last two are sums."""
LEVELS = (0.05, 0.95)
FIRST_JUDGED = 5
"""Ends of the interval that is held against the next raise, as quantiles; number of the first raise that is judged."""


def measure_phases(known: Mapping[str, Any]) -> dict[str, float] | None:
    """Return the seconds of each phase of a raise, by name of `PHASES`; what is not known is left out.

    None for a raise that was given up, or that no batch had need of.

    Args:
        known: of `recorded.match_raises`.

    Raises:
        KeyError: an entry is missing.
    """
    outcome = known["outcome"]
    start = read_start(outcome)
    if start is None or start.censored:
        return None
    decided, registered = outcome["decided_at"], known["registered_at"]
    useful = decided + start.seconds
    ends = {
        "request": (decided, outcome["applied_at"]), "launch": (outcome["applied_at"], known["launched_at"]),
        "jvm": (known["launched_at"], registered), "waiting": (registered, known["task_began_at"]),
        "first_task": (known["task_began_at"], known["task_ended_at"]), "rest": (known["task_ended_at"], useful),
        "registered": (decided, registered), "useful": (decided, useful),
    }  # fmt: skip
    steps = {name: until - since for name, (since, until) in ends.items() if since is not None and until is not None}
    parts = {"deserialize": known["deserialize_s"], "python": known["python_s"]}
    return {**steps, **{name: seconds for name, seconds in parts.items() if seconds is not None}}


def judge_predictions(outcomes: Iterable[Mapping[str, Any]], prior_s: float) -> dict[str, Any]:
    """Hold each raise against what the autoscaler's own learned lead time said before it, and then teach it that raise.

    Args:
        outcomes: of raises, in order; fields of `tidecast.messages.Outcome`. Those that say nothing of the lead time
            are passed over.
        prior_s: the contract's lead time, seconds.

    Returns:
        `each`: `low`, `median`, `high` (seconds, the quantiles 0.05, 0.5 and 0.95 before the raise), `took`, `judged`
        (False before the fifth raise) and `within`; a raise that was given up is within none. `n` judged, and `within`,
        the share of them (None without any).
    """
    known = LearnedLead(LeadTime.guess(prior_s))
    each: list[dict[str, Any]] = []
    for outcome in outcomes:
        start = read_start(outcome)
        if start is not None:
            low, median, high = known.lead.quantiles_s([LEVELS[0], 0.5, LEVELS[1]], start.executors, start.busy)
            within = not start.censored and low <= start.seconds <= high
            each.append({
                "low": low, "median": median, "high": high, "took": start.seconds,
                "judged": len(each) + 1 >= FIRST_JUDGED, "within": within,
            })  # fmt: skip
        known = known.learn_outcome(outcome)
    judged = [one["within"] for one in each if one["judged"]]
    return {"each": each, "n": len(judged), "within": sum(judged) / len(judged) if judged else None}
