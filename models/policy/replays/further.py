"""What an executor more, or one fewer, brings: to live records and to replays, by the controller of their rate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from models.contract.controller import served_rates
from models.contract.signals import SharedPlan, Signals
from models.contract.state import ControllerState
from models.contract.terms import Terms

Weighed = dict[str, Any]
"""JSON values: `backlog` (replayed records that are left), and `numbers`, by rising `executors` what each serves
(`certain_rps` of an executor, `live_rps`, `replay_rps`)."""
ROUNDING = 1e-9
"""Relative difference of two rates that is none: where a further core has no task, so much is left of its gain."""


def numbers_to_weigh(live: int, extra: int, most: int) -> range:
    """Return the numbers of executors of which is asked what they bring: from one fewer than live records' to one more.

    Args:
        live: executors of live records.
        extra: beyond them, by the replays' schedules.
        most: that there may be.
    """
    return range(max(live - 1, 1), min(live + extra + 1, max(most, live)) + 1)


def weigh_executors(
    terms: Terms, plan: SharedPlan, state: ControllerState, signals: Signals, backlog: float,
    of_each: Mapping[int, float],
) -> Weighed:  # fmt: skip
    """Ask the controller what each number of executors would serve, all else as it is.

    Args:
        terms: the contract.
        plan: of the job's operator.
        state: of the controller, so far.
        signals: measured up to now.
        backlog: records that are left of replays, those that wait for a calmer time among them.
        of_each: by number of executors, what one of so many certainly serves, records/s.
    """
    numbers = []
    for executors, certain_rps in of_each.items():
        readings = {name: replace(one, certain_rps=certain_rps) for name, one in signals.operators.items()}
        there = replace(signals, executors=executors, operators=readings, replay_backlog=backlog)
        served = served_rates(terms, plan, state, there)
        numbers.append({"executors": executors, "certain_rps": certain_rps, **served._asdict()})
    return {"backlog": backlog, "numbers": numbers}


def executors_of_use(weighed: Weighed | None, live: int, extra: int, publishing: int, most: int) -> int:
    """Return how many executors of the replays' schedules to ask for: no more than somebody gets anything of.

    They are the fewest with which live records and replays are served as with all that the schedules ask for.

    Args:
        weighed: of `weigh_executors`; None: older logs, in which nobody asked.
        live: executors of live records.
        extra: beyond them, by the schedules.
        publishing: those of `extra` for replays that are read: these have no rate, and get their executors.
        most: that there may be.
    """
    asked, least = min(live + extra, most), min(live + publishing, most)
    if weighed is None or asked <= least:
        return extra
    served = {row["executors"]: (row["live_rps"], row["replay_rps"]) for row in weighed["numbers"]}
    aim = [rps * (1 - ROUNDING) for rps in served[asked]]
    enough = (n for n in range(least, asked) if all(a >= b for a, b in zip(served[n], aim, strict=True)))
    return next(enough, asked) - live
