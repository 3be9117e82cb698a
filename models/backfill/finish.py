"""When a backfill is done under a schedule of extra executors, and what it pays until then: a distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from models.backfill.futures import Futures
from models.policy.core.capacity import Floats, Integers

HOUR_S = 3600.0


@dataclass(frozen=True, eq=False)
class FinishTimes:
    """Finishing times, equally likely.

    Attributes:
        seconds: (S,) rising, from now; infinite: not within the steps that were looked at.
    """

    seconds: Floats

    def quantile(self, level: float) -> float:
        """Return the least of the times within which the share `level` of the futures is done; may be infinite."""
        return float(self.seconds[min(math.ceil(level * len(self.seconds) - 1e-9), len(self.seconds)) - 1])

    def chance(self, within_s: float) -> float:
        """Return the share of the futures that are done within some seconds."""
        return float(np.searchsorted(self.seconds, within_s * (1 + 1e-12), side="right")) / len(self.seconds)


def replayed(futures: Futures, extra: Integers) -> Floats:
    """Return (..., S, K + 1) records replayed before each step and at the end, under (..., K) extra executors."""
    done = np.cumsum(futures.replay_rps(extra), axis=-1) * futures.step_s
    return np.concatenate([np.zeros((*done.shape[:-1], 1)), done], axis=-1)


def finish_steps(done: Floats, records: float) -> Floats:
    """Return (...) steps, with fractions, after which (..., K + 1) running totals reach so many records; or infinity.

    Within a step records come evenly.
    """
    at = (done < records * (1 - 1e-12)).sum(axis=-1)
    last = done.shape[-1] - 1
    end = np.clip(at, 1, last)[..., None]
    low, high = (np.take_along_axis(done, end - side, axis=-1)[..., 0] for side in (1, 0))
    share = np.divide(records - low, high - low, out=np.ones_like(low), where=high > low)
    return np.where(at == 0, 0.0, np.where(at > last, math.inf, end[..., 0] - 1 + np.clip(share, 0.0, 1.0)))


def finishing(futures: Futures, extra: Integers, records: float) -> FinishTimes:
    """Return when so many records are replayed under a schedule of (K,) extra executors."""
    return FinishTimes(np.sort(finish_steps(replayed(futures, extra), records) * futures.step_s))


def taken_by(futures: Futures, extra: Integers, records: float) -> Futures:
    """Return the futures as they are for whoever comes after a backfill: its replay and executors belong to the others.

    Args:
        futures: as they are without it.
        extra: (K,) extra executors of it.
        records: that it replays.
    """
    done = replayed(futures, extra)
    share = np.clip(finish_steps(done, records)[:, None] - np.arange(futures.steps), 0.0, 1.0)
    rates = np.diff(done, axis=1) / futures.step_s * share * futures.cost[:, None]
    # In the step in which it is done its executors are paid for a part only: nobody else counts on them.
    held = np.where(share >= 1, futures.executors(extra), futures.held)
    return replace(futures, live=futures.live + rates, high_rps=futures.high_rps + rates, held=held)


def weigh(futures: Futures, extra: Integers, records: float, steps: int) -> tuple[Floats, Floats]:
    """Return the chances that schedules are done within so many steps, and the executor-hours that they pay for it.

    Extra executors are paid from their request until the backfill is done; what the live promise holds is not counted.

    Args:
        futures: S draws over K steps.
        extra: (C, K) schedules.
        records: to replay.
        steps: of the deadline, at most K.

    Returns:
        (C,) chances, 0 to 1, and (C,) executor-hours, mean over the futures.
    """
    finish = finish_steps(replayed(futures, extra), records)
    paid = futures.executors(extra) - futures.held
    share = np.clip(finish[..., None] - np.arange(futures.steps), 0.0, 1.0)
    hours = (paid * share).sum(axis=-1).mean(axis=-1) * futures.step_s / HOUR_S
    return (finish <= steps * (1 + 1e-12)).mean(axis=-1), hours
