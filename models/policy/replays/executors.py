"""How many executors a job has beyond those of its live records, for its replays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from configs.contract import Contract


def with_replays(executors: int, reason: str, decided: Mapping[str, Any] | None, contract: Contract) -> tuple[int, str]:
    """Return how many executors to ask for, and why, by the logged inputs of a rate (`control.DecidedRate.inputs`).

    Args:
        executors: of live records.
        reason: of that number.
        decided: None where there is no replay; older logs keep no executors.
        contract: with the most.
    """
    if decided is None:
        return executors, reason
    extra, running = decided.get("executors", 0), decided["signals"]["executors"] or 0
    return add_executors(executors, reason, extra, contract, decided.get("executors_soon", extra), running)


def add_executors(
    executors: int, reason: str, extra: int, contract: Contract, soon: int = 0, running: int = 0
) -> tuple[int, str]:
    """Return how many executors to ask for, and why, where replays are to have some beyond those of live records.

    Args:
        executors: of live records.
        reason: of that number.
        extra: beyond them, now.
        contract: with the most.
        soon: beyond them, within the time in which one that is given back would have to be started again.
        running: now.
    """
    most = contract.executors.max
    added = min(extra, max(most - executors, 0))
    kept = max(min(executors + soon, running, most) - executors - added, 0)
    words = [f"{added} more for replays"] * bool(added) + [f"{kept} kept for replays"] * bool(kept)
    return executors + added + kept, "; ".join([reason, *words])
