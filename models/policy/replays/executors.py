"""How many executors a job has beyond those of its live records, for its replays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from models.contract.controller import CHANGED
from models.policy.replays.further import executors_of_use


def with_replays(
    executors: int, reason: str, codes: list[str], decided: Mapping[str, Any] | None, most: int
) -> tuple[int, str, list[str]]:
    """Return how many executors to ask for, why, and the codes, by a rate's logged inputs (`control.DecidedRate`).

    Executors of a schedule of which neither live records nor replays would get anything are not asked for; those that
    run, and were not given back by the decision before, are kept as long as the schedule asks for them.

    Args:
        executors: of live records.
        reason: of that number, one line for a person.
        codes: the same for programs; "response_changed" is added where the controller's newest interval told of it.
        decided: None where there is no replay; older logs keep no executors, weigh none, tell of no response, or do not
            say what the decision before asked for.
        most: that may be asked for.
    """
    if decided is None:
        return executors, reason, codes
    extra, running = decided.get("executors", 0), decided["signals"]["executors"] or 0
    running = kept_running(running, decided.get("standing"))
    soon, publishing = decided.get("executors_soon", extra), decided.get("publishing", 0)
    of_use = executors_of_use(decided.get("weighed"), executors, extra, publishing, most)
    asked, reason = add_executors(executors, reason, of_use, most, soon, running)
    if (useless := min(executors + extra, most) - max(executors + of_use, asked)) > 0:
        reason = f"{reason}; {useless} more would bring neither live records nor replays anything"
    if decided.get("response_changed"):
        return asked, f"{reason}; {CHANGED}", [*codes, "response_changed"]
    return asked, reason, codes


def add_executors(
    executors: int, reason: str, extra: int, most: int, soon: int = 0, running: int = 0
) -> tuple[int, str]:
    """Return how many executors to ask for, and why, where replays are to have some beyond those of live records.

    Args:
        executors: of live records.
        reason: of that number.
        extra: beyond them, now.
        most: that may be asked for.
        soon: beyond them, within the time in which one that is given back would have to be started again.
        running: now, by `kept_running`.
    """
    added = min(extra, max(most - executors, 0))
    kept = max(min(executors + soon, running, most) - executors - added, 0)
    words = [f"{added} more for replays"] * bool(added) + [f"{kept} kept for replays"] * bool(kept)
    return executors + added + kept, "; ".join([reason, *words])


def kept_running(running: int, standing: int | None) -> int:
    """Return how many of the executors that run were not given back by the decision before.

    Metrics are up to a second old: by them an executor runs that has just been told to leave. To keep that one would be
    to start another.

    Args:
        running: by the newest metrics.
        standing: executors that the decision before asks for; None: not known.
    """
    return running if standing is None else min(running, standing)
