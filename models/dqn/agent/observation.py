"""The agent's observation: numbers without a unit, so that one agent serves jobs of any size and speed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.dqn.agent.actions import Advice, usable_rps
from models.policy.core.capacity import Capacity, Floats
from models.policy.core.view import LoadAhead, Memory, View

RING = 16
"""Decisions for which forecasts are remembered, to compare them with what came."""
LEVELS = (0.5, 0.75, 0.9, 0.98, 0.998)
"""Quantile levels of the forecast that are observed."""
FEATURES = (
    "now", "now_of_most", "fast", "slow_of_most", "spread", "trend",
    "ahead_50", "ahead_75", "ahead_90", "ahead_98", "ahead_99", "at_lead_50", "later_50", "later_90", "heard",
    "error_forecast", "error_last", "over_90", "lag_s", "waiting", "busy", "in_batch", "batch",
    "pending", "starting", "leaving", "target_of_most", "size", "since_change", "lead", "pace", "price", "overhead",
    "headroom", "headroom_target", "advised", "planned", "worth_10th", "worth", "worth_10",
)  # fmt: skip
"""Names of the observation's columns. `now`, `fast`, `ahead_*`, `at_lead_50` and `later_*` are executors needed less
the target, in fours, as are what is `advised`, `planned` without waiting, and `worth` it at three prices;
without a forecast they say what `now` says, and `heard` is 0."""
_FAST, _SLOW, _RECORD = 1 / 3, 1 / 20, 1 / 30


class JobFacts(NamedTuple):
    """What an agent is told of its job; each a number, or (runs,) numbers.

    Attributes:
        lead_s: seconds from the request of an executor to its first task.
        latency_s: the latency target in seconds.
        price: of a second over the target, in seconds of all executors (`actions.reward_parts`).
        pace_s: seconds between two decisions of the agent.
    """

    lead_s: Any
    latency_s: Any
    price: Any
    pace_s: Any

    def broadcast(self, runs: int) -> JobFacts:
        """Broadcast each fact to (runs,)."""
        return JobFacts(*(np.broadcast_to(np.asarray(fact, float), (runs,)) for fact in self))


def decision_interval_s(lead_s: float, every_s: float) -> float:
    """Return the seconds between two decisions: a fifteenth of the lead time, at most 60 s, in whole looks.

    Args:
        lead_s: seconds from the request of an executor to its first task.
        every_s: seconds between two looks.
    """
    return max(every_s, every_s * round(min(lead_s / 15, 60.0) / every_s))


def executors_needed(capacity: Capacity, rps: Floats) -> Floats:
    """Compute the executors that sustain a load, with fractions: interpolated between the speeds of whole numbers.

    Args:
        capacity: of the (runs,) jobs, or one row of speeds for all.
        rps: (runs, J) records/s; each of the J columns is answered for itself.

    Returns:
        (runs, J) executors; above what the most executors sustain, in proportion to the load. NaN stays NaN.
    """
    slots = rps / capacity.per_slot_rps[:, None]
    speeds = np.broadcast_to(capacity.speeds, (len(rps), capacity.speeds.shape[1]))
    last = speeds.shape[1] - 1
    upper = np.clip((speeds[:, None] < slots[:, :, None]).sum(axis=2), 1, last)
    row = np.arange(len(rps))[:, None]
    below, above = speeds[row, upper - 1], speeds[row, upper]
    part = (slots - below) / np.maximum(above - below, 1e-9)
    return np.where(slots > speeds[:, -1:], last * slots / speeds[:, -1:], upper - 1 + part)


def fresh(runs: int) -> Memory:
    """Create the memory of `observe` for (runs,) runs of which nothing was observed yet; all keys begin with "obs_"."""
    none = {name: np.full(runs, np.nan) for name in ("obs_fast", "obs_slow", "obs_error_forecast", "obs_error_last")}
    said = {f"obs_said_{name}": np.full((runs, RING), np.nan) for name in ("now", "50", "90")}
    return {**none, **said, "obs_square": np.zeros(runs), "obs_over": np.full(runs, 0.1)}


def observe(memory: Memory, view: View, facts: JobFacts, advice: Advice) -> tuple[Memory, NDArray[np.float32]]:
    """Build the agent's observation at a decision, and the memory for the next one; the memory given is not changed.

    Args:
        memory: of `fresh` or the last call: averages, and the forecasts of the last 16 decisions, a row per run.
        view: of (runs,) jobs; arrivals that are NaN or negative count as 0, so do busy shares and batch times of NaN.
        facts: of the jobs: start-up, latency target and pace in seconds, and price.
        advice: of the baseline at this decision.

    Returns:
        The new memory, and float32 observations (runs, 40) in the order of `FEATURES`: without a unit, between -4 and
        4.

    Raises:
        KeyError: a memory without the keys of `fresh`.
        ValueError: facts, advice or memory of another number of runs than the view.
    """
    lead, latency, price, pace = facts.broadcast(view.runs)
    rate = usable_rps(view)
    coming = _ahead(view.ahead, lead, pace, rate)
    every = executors_needed(view.capacity, np.column_stack([rate, *coming, advice.needs]))
    need, worth = every[:, :9], every[:, 9:]
    now: Floats = need[:, 0]
    heard = np.asarray(np.isfinite(need[:, 1:]).all(axis=1))
    need = np.where(np.isfinite(need), need, now[:, None])
    memory = _remember(memory, now, need, heard, np.clip(np.rint(lead / pace), 1, RING).astype(int))
    fast, slow = memory["obs_fast"], memory["obs_slow"]
    most, target, ready = view.most, view.target, view.ready
    capable, asked = view.capacity.sustained_rps(ready), view.capacity.sustained_rps(target)
    busy, in_batch, batch = (np.nan_to_num(value) for value in (view.busy, view.in_batch, view.batch_s))

    def off(executors: Floats) -> Floats:
        return np.clip(executors - target, -8, 8) / 4

    columns = (
        off(now), now / most, off(fast), slow / most, 10 * np.sqrt(memory["obs_square"]) / most,
        10 * (fast - slow) / most, *(off(need[:, j]) for j in range(1, 9)), heard,
        10 * np.nan_to_num(memory["obs_error_forecast"]) / most, 10 * np.nan_to_num(memory["obs_error_last"]) / most,
        memory["obs_over"] * 2, np.log1p(view.lag_records / np.maximum(capable, 1e-9)),
        view.lag_records / np.maximum(rate, 1e-9) / latency, busy, in_batch, batch / latency,
        np.clip(target - ready, -8, 8) / 4, view.starting / most, view.leaving / most, target / most,
        np.log2(most) / 4, np.minimum(view.since_change_s / pace, 16) / 16, np.log(np.maximum(lead, 1.0) / pace) / 2,
        np.log(pace / latency) / 2, np.log10(price), np.broadcast_to(view.capacity.overhead_s / latency * 4, now.shape),
        np.log((capable + 1e-9) / (rate + 1e-9)), np.log((asked + 1e-9) / (rate + 1e-9)),
        off(advice.target), off(advice.plan), *(off(worth[:, j]) for j in range(worth.shape[1])),
    )  # fmt: skip
    return memory, np.clip(np.column_stack(columns), -4, 4).astype(np.float32)


def _ahead(ahead: LoadAhead | None, lead: Floats, pace: Floats, rate: Floats) -> list[Floats]:
    """(runs,) each: highest quantiles until an executor asked for next time could work, median then, and later on."""
    if ahead is None:
        return [np.full(len(rate), np.nan)] * 8
    begins = np.concatenate([[0.0], ahead.offsets_s[:-1]])
    until = (lead + 2 * pace)[:, None]
    soon, later = begins < until, (ahead.offsets_s > until) & (begins < 3 * until)
    at = np.minimum((ahead.offsets_s < lead[:, None]).sum(axis=1), len(begins) - 1)
    columns = [int(np.argmin(np.abs(np.array(ahead.levels) - level))) for level in LEVELS]
    rows = np.arange(len(rate))
    found = [np.where(soon, ahead.rps[:, :, c], -np.inf).max(axis=1) for c in columns]
    found.append(ahead.rps[rows, at, columns[0]])
    for c, instead in ((columns[0], found[0]), (columns[2], found[2])):
        top = np.where(later, ahead.rps[:, :, c], -np.inf).max(axis=1)
        found.append(np.where(np.isneginf(top), instead, top))
    bad = ~(np.isfinite(ahead.rps).all(axis=(1, 2)) & (ahead.rps >= 0).all(axis=(1, 2)))
    return [np.where(bad, np.nan, value) for value in found]


def _remember(memory: Memory, now: Floats, need: Floats, heard: np.ndarray, back: np.ndarray) -> Memory:
    """Averages of the need, and how far off the forecast and the last value were that were known a lead time ago."""
    new = np.isnan(memory["obs_fast"])
    fast, slow = np.where(new, now, memory["obs_fast"]), np.where(new, now, memory["obs_slow"])
    square = memory["obs_square"] + _SLOW * ((now - slow) ** 2 - memory["obs_square"])
    row = np.arange(len(now))
    then = {name: memory[f"obs_said_{name}"][row, back - 1] for name in ("now", "50", "90")}
    said = {"now": now, "50": np.where(heard, need[:, 6], np.nan), "90": np.where(heard, need[:, 3], np.nan)}
    known = np.isfinite(then["90"])
    over = memory["obs_over"] + _RECORD * np.where(known, (now > then["90"]) - memory["obs_over"], 0.0)
    return {
        "obs_fast": fast + _FAST * (now - fast), "obs_slow": slow + _SLOW * (now - slow), "obs_square": square,
        "obs_over": over,
        "obs_error_forecast": _average(memory["obs_error_forecast"], np.abs(now - then["50"])),
        "obs_error_last": _average(memory["obs_error_last"], np.abs(now - then["now"])),
        **{f"obs_said_{n}": np.column_stack([v, memory[f"obs_said_{n}"][:, :-1]]) for n, v in said.items()},
    }  # fmt: skip


def _average(before: Floats, value: Floats) -> Floats:
    begun = np.where(np.isnan(before), value, before)
    return np.where(np.isfinite(value), begun + _RECORD * (value - begun), before)
