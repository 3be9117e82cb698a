"""Row: the promise under steps, bursts, hot keys and a wrongly told capacity; ripple of the rate after a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.bench.backfill.arrangement import CAPACITY_RPS, TARGET_S
from pipelines.bench.backfill.cells import ALONE, OURS, Found, MeasuredCell, of_row, take_turns
from pipelines.bench.backfill.loads import BURSTS, HOT, NOISY_STEP, STEP, TOLD_HIGH, TOLD_LOW
from pipelines.bench.backfill.ratio import PER_S

ROW, LOADS = "limits", (STEP, NOISY_STEP, BURSTS, HOT, TOLD_LOW, TOLD_HIGH)
MINUTES, TURNS = 2.0, 1
SETTLED = 2 / 3
"""Share of a step after which the rate is taken for settled."""


def plan_load(load: str, minutes: float) -> list[MeasuredCell]:
    """Plan the sessions of a load: both sides in turn."""
    return take_turns(ROW, load, (ALONE, OURS), TURNS, minutes)


def summarise(kept: Mapping[MeasuredCell, Found], load: str) -> dict[str, Any]:
    """Summarise the sessions of a load.

    Returns:
        `over_s`, mean seconds of production with a record over TARGET_S, by side; `more_s`, their difference, None
        where TURNS sessions of MINUTES of either side are not there; `ripple`, the largest of the sessions'
        (`ripple_of`), of the loads that step; `n`, sessions of the smaller side.
    """
    arms = of_row(kept, ROW, load, MINUTES)
    sides = {arm: arms.get(arm, []) for arm in (ALONE, OURS)}
    n = min(map(len, sides.values()))
    over = {arm: _mean([float(seconds_over(one["latency"], TARGET_S)) for one in each]) for arm, each in sides.items()}
    ripples = [ripple_of(one["rates"], 60 * MINUTES) for one in sides[OURS]] if load not in (BURSTS, HOT) else []
    whole = n >= TURNS and over[OURS] is not None and over[ALONE] is not None
    known = [one for one in ripples if one is not None]
    return {
        "over_s": over, "more_s": over[OURS] - over[ALONE] if whole else None, "n": n,  # type: ignore[operator]
        "ripple": max(known) if whole and len(known) == len(ripples) and known else None,
    }  # fmt: skip


def over_loads(parts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the most that a replay added over all loads, and the ripple without and with noise; None until known."""
    more = [part["more_s"] for part in parts.values()]
    return {
        "more_s": None if None in more or not more else max(more),
        "ripple": parts[STEP]["ripple"], "noisy_ripple": parts[NOISY_STEP]["ripple"],
        "n": sum(part["n"] for part in parts.values()),
    }  # fmt: skip


def seconds_over(latency: Sequence[Sequence[int]], limit_s: float) -> int:
    """Return in how many seconds of production a record was over a limit; latencies in hundredths of a second."""
    return sum(max(second) > PER_S * limit_s for second in latency if second)


def ripple_of(rates: Sequence[Sequence[float]], session_s: float) -> float | None:
    """Return the most that the decided rate moved, highest less lowest, once it had settled after a step.

    As a share of the capacity; the larger of the two steps, one at each third of the session.

    Args:
        rates: (seconds since the begin, records/s) of each decision, rising; a rate holds until the next.
        session_s: length of the session.

    Returns:
        None where nothing was decided before a step had settled.
    """
    found = []
    for third in (1, 2):
        since, until = (third + SETTLED) * session_s / 3, (third + 1) * session_s / 3
        before = [rps for at, rps in rates if at <= since]
        if not before:
            return None
        held = [before[-1], *(rps for at, rps in rates if since < at < until)]
        found.append((max(held) - min(held)) / CAPACITY_RPS)
    return max(found)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
