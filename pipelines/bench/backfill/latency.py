"""Row: what live records pay for a replay beside them, and how far below the best fixed rate the controller stays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.bench.backfill.cells import ALONE, OURS, Found, MeasuredCell, of_row, take_turns
from pipelines.bench.backfill.loads import STEADY, TAXI
from pipelines.bench.backfill.ratio import latency_ratio

ROW, LOADS = "latency", (STEADY, TAXI)
MINUTES, TURNS, MOST_RATIO = 4.0, 8, 1.15
"""Minutes of a session, sessions of each side, and the most that live p99 may be of live alone."""
SIDE_S = 1800.0
"""Least seconds of either side: with less, nothing is judged."""
RATES, ENOUGH = (16, 32, 64, 128, 256), 128
"""`maxOffsetsPerTrigger` of the sweep, the same number from each partition, one session each; and the rate from which
on the sweep is whole once one breaks the limit."""


def plan_load(load: str, minutes: float) -> list[MeasuredCell]:
    """Plan the sessions of a load: both sides in turn, then the sweep."""
    sides = take_turns(ROW, load, (ALONE, OURS), TURNS, minutes)
    return sides + take_turns(ROW, load, [f"fixed:{rate}" for rate in RATES], 1, minutes)


def summarise(kept: Mapping[MeasuredCell, Found], load: str) -> dict[str, Any]:
    """Summarise the sessions of a load.

    Returns:
        Live p99 with the replay and alone: `ours_s`, `alone_s`, `ratio`, `low`, `high`, `n`, and `judged`, the ratio
        where either side has SIDE_S; `seconds` of each side; `rps`, the replay's rate; `sweep`, a row per fixed rate
        with its own `ratio`; `best_rps`, of the highest fixed rate that keeps MOST_RATIO, once all were run, and
        `share`, ours ÷ it, not judged where it is the highest that was tried (`edge`: a higher one may keep it, too);
        where none keeps it (`none_keeps`) ours ÷ the lowest of them, which is more than the highest that would.
    """
    arms = of_row(kept, ROW, load, MINUTES)
    alone, ours = arms.get(ALONE, []), arms.get(OURS, [])
    seconds = {ALONE: _seconds(alone), OURS: _seconds(ours)}
    found = latency_ratio(_latencies(ours), _latencies(alone))
    sweep = [_swept(rate, arms.get(f"fixed:{rate}", []), alone) for rate in RATES]
    keeping = [one["rps"] for one in sweep if one["ratio"] is not None and one["ratio"] <= MOST_RATIO]
    whole = _is_whole(sweep)
    none_keeps = whole and not keeping
    best = max(keeping, default=None) if whole else None
    edge = best is not None and sweep[-1]["ratio"] is not None and sweep[-1]["ratio"] <= MOST_RATIO
    beside = min(one["rps"] for one in sweep if one["rps"] is not None) if none_keeps else None if edge else best
    rps = sum((one["rps"] or 0.0) * one["seconds"] for one in ours) / seconds[OURS] if seconds[OURS] else None
    enough = min(seconds.values()) >= 0.99 * SIDE_S
    share = rps / beside if enough and beside and rps is not None else None
    told = found if enough else {"ratio": None, "low": None, "high": None}
    return {
        **found, "judged": told["ratio"], "judged_low": told["low"], "judged_high": told["high"], "seconds": seconds,
        "rps": rps, "sweep": sweep, "best_rps": best, "none_keeps": none_keeps, "edge": edge, "share": share,
    }  # fmt: skip


def _is_whole(sweep: Sequence[Mapping[str, Any]]) -> bool:
    """Whether each rate was run for as long as it was to be, up to one from ENOUGH on that broke the limit."""
    for one in sweep:
        if one["seconds"] < 0.95 * 60 * MINUTES:
            return False
        if one["rate"] >= ENOUGH and one["ratio"] is not None and one["ratio"] > MOST_RATIO:
            return True
    return True


def _swept(rate: int, sessions: Sequence[Found], alone: Sequence[Found]) -> dict[str, Any]:
    found = latency_ratio(_latencies(sessions), _latencies(alone))
    seconds = _seconds(sessions)
    rps = sum((one["rps"] or 0.0) * one["seconds"] for one in sessions) / seconds if seconds else None
    return {"rate": rate, "rps": rps, "seconds": seconds, **{name: found[name] for name in ("ratio", "low", "high")}}


def _latencies(sessions: Sequence[Found]) -> list[list[list[int]]]:
    return [one["latency"] for one in sessions]


def _seconds(sessions: Sequence[Found]) -> float:
    return float(sum(one["seconds"] for one in sessions))
