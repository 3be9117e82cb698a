"""What was forecast of a job's load, and how far that was right: the outlook of a plan, and the errors to expect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from models.backfill.given import LiveOutlook, LivePromise
from models.backfill.joint import JointErrors, fit_errors, normal_scores, unknown_errors
from models.policy.core.capacity import Floats
from models.policy.received.nowcast import ForecastRows, correct_by_rate

PAST = 300
"""Past forecasts that their errors are learned from, at most."""
OLD_S = 30 * 86_400.0
"""Wall seconds before the newest forecast; one that begins earlier was given a wrong time, or tells nothing of now."""
LATE_STEPS = 2.0
"""Steps within which a forecast is announced after the step that it waited for; later, its clock is another one."""


class JobClock(Protocol):
    """What is asked of a `tidecast.control.Clock`: job seconds per wall second, and either time as the other."""

    @property
    def scale(self) -> float:
        """Job seconds per wall second."""
        ...

    def at(self, wall: float) -> float:
        """Return the job time at a wall time, both epoch seconds."""
        ...

    def wall_at(self, job_time: float) -> float:
        """Return the wall time at a job time."""
        ...


@dataclass(frozen=True, eq=False)
class IssuedLoad:
    """Forecasts that were issued for a job, and what then came; on the wall's clock.

    Attributes:
        times_s: (N,) epoch seconds at which their first steps begin, rising, whole steps apart.
        quantiles: (N, H, L) records/s, means of the H steps that follow.
        last: (N,) records/s of the step that had just ended; NaN where it is not known.
        step_s: seconds per step.
        levels: (L,) of the quantiles.
    """

    times_s: Floats
    quantiles: Floats
    last: Floats
    step_s: float
    levels: tuple[float, ...]

    @property
    def reaches_s(self) -> float:
        """Epoch seconds at which the newest forecast's last step ends."""
        return float(self.times_s[-1] + self.quantiles.shape[1] * self.step_s)

    @property
    def came(self) -> Floats:
        """(T,) records/s of each step from the one before the first forecast to the newest that is over; or NaN."""
        at = np.rint((self.times_s - self.times_s[0]) / self.step_s).astype(int)
        found = np.full(at[-1] + 1, np.nan)
        found[at] = self.last
        return found

    def outlook(self, now_s: float, rate_rps: float, steps: int, step_s: float) -> LiveOutlook:
        """Return what the newest forecast says of the steps from now on, moved to the rate of now.

        Beyond its end the load stays as in its last step.

        Args:
            now_s: epoch seconds.
            rate_rps: live records/s of the last seconds.
            steps: of the plan.
            step_s: seconds per step of it.
        """
        newest = slice(len(self.times_s) - 1, None)
        age_s = np.array([max(now_s - float(self.times_s[-1]), 0.0)])
        return LiveOutlook(self._said(newest, age_s, np.array([rate_rps]), steps, step_s)[0], self.levels, step_s)

    def errors(self, steps: int, step_s: float, level: float) -> tuple[JointErrors, float]:
        """Return how past forecasts erred over the steps of a plan, and how much more was held than came.

        Args:
            steps: of the plan.
            step_s: seconds per step of it.
            level: that the live job's executors are held for; of the quantiles the nearest one.

        Returns:
            Their joint distribution, and the ratio of the forecast at `level` to what came; guesses where no past is
            long enough.
        """
        reach = steps * step_s
        over = np.flatnonzero(self.times_s + reach <= self.times_s[-1] + 1e-6)
        over = over[np.isfinite(self.last[over])]
        if len(over) < 2:
            return unknown_errors(steps), LivePromise().headroom
        some = over[np.unique(np.linspace(0, len(over) - 1, min(len(over), PAST)).astype(int))]
        said = self._said(some, np.zeros(len(some)), self.last[some], steps, step_s)
        edges = self.times_s[some, None] + np.arange(steps + 1) * step_s
        span = float(self.times_s[some[-1]] - self.times_s[some[0]])
        return learn_errors(said, self._means(edges), self.levels, span / reach, level)

    def _said(self, which: Any, age_s: Floats, rates: Floats, steps: int, step_s: float) -> Floats:
        """(N, steps, L) means of a plan's steps, as some of the forecasts have them."""
        quantiles, last = self.quantiles[which], self.last[which]
        middle = int(np.argmin(np.abs(np.array(self.levels) - 0.5)))
        last = np.where(np.isfinite(last), last, quantiles[:, 0, middle])
        rows = ForecastRows(quantiles, last, age_s, self.step_s, self.levels)
        middles = np.asarray((np.arange(steps) + 0.5) * step_s, np.float64)
        # Levels of two steps that are mixed may cross by rounding.
        return np.maximum.accumulate(correct_by_rate(rows, middles, rates, self.step_s), axis=2)

    def _means(self, edges: Floats) -> Floats:
        """(N, K) mean rates between (N, K + 1) moments; NaN where a part is not known."""
        came = self.came
        clock = self.times_s[0] + (np.arange(len(came) + 1) - 1) * self.step_s
        total, unknown = (
            np.concatenate([[0.0], np.cumsum(each)]) for each in (np.nan_to_num(came), np.isnan(came).astype(float))
        )
        records, holes = (np.diff(np.interp(edges, clock, each), axis=1) for each in (total, unknown))
        means: Floats = np.where(holes > 1e-9, np.nan, records * self.step_s / np.diff(edges, axis=1))
        return means


def learn_errors(
    said: Floats, came: Floats, levels: tuple[float, ...], independent: float, level: float
) -> tuple[JointErrors, float]:
    """Learn from past forecasts how they erred together, and by how much more was held than came.

    Args:
        said: (N, K, L) quantiles of K steps.
        came: (N, K) of these; NaN where it is not known.
        levels: (L,) of the quantiles.
        independent: how many of the N count as independent.
        level: that executors were held for: in a step for the higher of it and the next.
    """
    held = int(np.argmin(np.abs(np.array(levels) - level)))
    asked, most = said[:, :2, held].max(axis=1), came[:, :2].max(axis=1)
    known = np.isfinite(most)
    # A ratio of sums, as executors that are free add up: of a load with bursts the usual ratio promises too many.
    ratio = float(asked[known].sum()) / max(float(most[known].sum()), 1e-9)
    headroom = max(ratio, 1.0) if known.any() else LivePromise().headroom
    return fit_errors(normal_scores(came, said, levels), independent), headroom


def read_issued(forecasts: Iterable[Mapping[str, Any]], clock: JobClock) -> IssuedLoad | None:
    """Read forecasts as they stand on the topic into arrays; None where there is none.

    Args:
        forecasts: fields of `tidecast.messages.Forecast`. Of several that begin at one time the newest counts; those of
            another clock, such as an earlier replay's, of another step or of other levels than the newest, or of over
            OLD_S (30 days) before it are left out.
        clock: of the job.
    """
    by_time = {
        one["time"]: one
        for one in sorted(forecasts, key=lambda one: float(one["wall_time"]))
        if one["time_scale"] == clock.scale
        and abs(one["wall_time"] - clock.wall_at(one["time"])) < LATE_STEPS * one["step_s"] / clock.scale
    }
    if not by_time:
        return None
    newest = by_time[max(by_time)]
    since = newest["time"] - OLD_S * clock.scale
    alike = [by_time[time] for time in sorted(by_time) if time >= since and _form(by_time[time]) == _form(newest)]
    rates = [np.nan if one.get("last_rps") is None else one["last_rps"] for one in alike]
    return IssuedLoad(
        np.array([clock.wall_at(one["time"]) for one in alike]), np.array([one["quantiles"] for one in alike], float),
        np.array(rates, float), newest["step_s"] / clock.scale, tuple(newest["levels"]),
    )  # fmt: skip


def _form(one: Mapping[str, Any]) -> tuple[Any, ...]:
    return one["step_s"], tuple(one["levels"]), len(one["quantiles"])
