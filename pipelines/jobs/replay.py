"""The plan of a replay: when each record is produced, with which key, and which come late. Random, from a seed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from configs.sections import Replay
from models.workload.keys import zipf
from pipelines.jobs.withheld import back_s, withheld_hour
from pipelines.traces.trace import Trace, live_start

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

BURST = 1.5  # load of a burst's second, relative to the plan without bursts
_GRID_S = 0.05


@dataclass(frozen=True, eq=False)
class ReplayPlan:
    """Every record of a replay, in the order of production; all arrays are (N,).

    Attributes:
        send_at: wall seconds since the start at which the record is produced; rising.
        event_at: wall seconds since the start at which its event happened; before `send_at` where it is late.
        seq: sequence number in the order of happening, from 0.
        key: index of the record's key, 0 the most frequent.
        withheld: whether its source was cut off, so that it is produced long after its window is final.
        seconds: wall seconds the plan covers, without the last late records.
    """

    send_at: Floats
    event_at: Floats
    seq: Ints
    key: Ints
    withheld: Flags
    seconds: float

    def __len__(self) -> int:
        return len(self.seq)

    @property
    def late(self) -> Flags:
        """(N,) which records are produced later than they happened."""
        return self.send_at > self.event_at


def plan_replay(trace: Trace, replay: Replay) -> ReplayPlan:
    """Plan when every record of the live part of a trace is produced; equal trace and settings give equal plans.

    The rate is continuous: the derivative of a monotone cubic through the cumulated steps, which keeps every step's
    mean. Event k happens where the cumulated rate passes k + u, u uniform in [0, 1).

    Args:
        trace: the load; rates in records per wall second, times in epoch seconds.
        replay: `speed` (trace seconds per wall second), `keys` (number) and `zipf` (exponent), `surge` (a stretch at
            `factor` times the load), `burst_share` (of the seconds, at BURST times the load), `late_share` (of the
            records, produced up to `late_s` wall seconds later), `withheld_share` (of the records of one hour, produced
            `withheld.back_s` later), `seed`.

    Returns:
        The N records by rising `send_at`, as arrays (N,); N is the cumulated rate, rounded down.

    Raises:
        TraceError: records are withheld, and `live_start` is no time.
    """
    # One generator per concern: a changed share of late records leaves keys and bursts as they are.
    seeds = np.random.SeedSequence(replay.seed).spawn(5)
    arrivals, bursts, keys, lateness, cut = (np.random.default_rng(seed) for seed in seeds)
    grid, cumulated = _cumulated(trace, replay, bursts)
    total = int(cumulated[-1])
    happened = np.interp(np.arange(total) + arrivals.random(total), cumulated, grid)
    send = happened.copy()
    if replay.late_s > 0:
        late = lateness.choice(total, size=round(replay.late_share * total), replace=False)
        send[late] += replay.late_s * (1 - lateness.random(len(late)))
    withheld = _withheld(happened, replay, cut)
    send[withheld] = happened[withheld] + back_s(replay)
    key = keys.choice(replay.keys, size=total, p=zipf(replay.keys, replay.zipf))
    order = np.argsort(send, kind="stable")
    seq = np.arange(total)
    return ReplayPlan(send[order], happened[order], seq[order], key[order], withheld[order], float(grid[-1]))


def _withheld(happened: Floats, replay: Replay, cut: np.random.Generator) -> Flags:
    """Which of the events are withheld: a share of those of the hour, whose times are told to the ms."""
    withheld, hour = np.zeros(len(happened), bool), withheld_hour(replay)
    if hour is not None:
        times = np.round(live_start(replay) + happened * replay.speed, 3)
        inside = np.flatnonzero((times >= hour[0]) & (times < hour[1]))
        withheld[cut.choice(inside, size=round(replay.withheld_share * len(inside)), replace=False)] = True
    return withheld


def _cumulated(trace: Trace, replay: Replay, bursts: np.random.Generator) -> tuple[Floats, Floats]:
    """Wall seconds since the start on a fine grid, and the records that should have been produced by then."""
    from scipy.interpolate import PchipInterpolator  # half of what a load generator imports; a warm-up needs none

    begins, rates = trace.live()
    edges = (np.append(begins, begins[-1] + trace.step_s) - trace.live_start) / replay.speed
    smooth = PchipInterpolator(edges, np.concatenate([[0.0], np.cumsum(rates * np.diff(edges))]))
    seconds = (trace.live_end - trace.live_start) / replay.speed
    grid = np.linspace(0.0, seconds, max(2, int(np.ceil(seconds / _GRID_S)) + 1))
    parts = np.maximum(np.diff(smooth(grid)), 0.0)
    whole = int(np.ceil(seconds))
    chosen = bursts.choice(whole, size=round(replay.burst_share * whole), replace=False)
    if surge := replay.surge:
        since_h = grid[:-1] * replay.speed / 3600 - surge.after_h
        parts[(since_h >= 0) & (since_h < surge.minutes / 60)] *= surge.factor
    parts[np.isin(np.floor(grid[:-1]).astype(np.int64), chosen)] *= BURST
    return grid, np.concatenate([[0.0], np.cumsum(parts)])
