"""The autoscaler of Flink's Kubernetes operator, for one operator.

Source: apache/flink-kubernetes-operator, `flink-autoscaler`: AutoScalerUtils (capacity needed), ScalingMetricEvaluator
(true processing rate, thresholds, backlog), ScalingMetricCollector (windows), JobVertexScaler and DelayedScaleDown; its
defaults of AutoScalerOptions. Left out: alignment with key groups, observed scalability (off by default), blocking of
ineffective scalings (off), quotas. A delayed scale-down asks the band of now, not that of the recommendation it takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from models.policy.core import window
from models.policy.core.capacity import Floats, round_up
from models.policy.core.choice import Choice
from models.policy.core.policy import Rule, clipped_choice
from models.policy.core.view import Memory, View

INTERVAL_S = 60.0
"""Seconds from one decision to the next (the operator's reconcile interval)."""
OBSERVED_LAG_S, OBSERVED_LEAST, OBSERVED_SWITCH = 30.0, 2, 0.15
"""Observed rates replace the true rate with more lag than these seconds, from so many values on, where the true rate
is higher by more than that share."""


def capacity_needed(
    rate_rps: Floats, lag_records: Floats, utilisation: Floats | float, catch_up_s: float, restart_s: float
) -> Floats:
    """Return (runs,) records/s of capacity needed, rounded to whole ones: Flink's operator formula (AutoScalerUtils).

    `lag / catch_up_s + rate * restart_s / catch_up_s + rate / utilisation`

    Args:
        rate_rps: (runs,) arriving records/s; NaN gives NaN.
        lag_records: (runs,) records that wait.
        utilisation: busy share, clipped to 0 to 1, a number or (runs,); 0 gives infinity.
        catch_up_s: seconds in which the lag is to be worked off; 0 leaves out the first two terms.
        restart_s: seconds that a change is expected to take.
    """
    use = np.clip(np.asarray(utilisation, float), 0.0, 1.0)
    catch_up = (lag_records + rate_rps * restart_s) / catch_up_s if catch_up_s > 0 else 0.0
    needed = np.floor(catch_up + rate_rps / np.where(use > 0, use, 1.0) + 0.5)
    return np.where(use > 0, needed, np.where(np.isnan(rate_rps), np.nan, np.inf))


@dataclass(frozen=True, eq=False)
class Flink(Rule):
    """The Flink operator's rule: parallelism `ceil(p * needed / true rate)` when the true rate is outside the band.

    The true rate is records per busy second; the band lies around the target utilisation. Times are seconds.

    Attributes:
        utilisation: busy share to aim for, a number or one per run.
        boundary: distance of the band's ends from it.
        catch_up_s: in which a backlog is to be worked off.
        restart_s: that a change is expected to take.
        window_s: over which rates are averaged.
        stabilisation_s: after a change, in which no rates are taken.
        down_interval_s: a decrease waits so long and takes the highest recommendation of that time.
        down_factor: largest share of the executors that one decrease takes.
        up_factor: one increase multiplies by at most 1 plus this.
        backlog_s: lag in seconds of arrivals beyond which nothing is taken away.
    """

    utilisation: Floats | float = 0.7
    boundary: float = 0.3
    catch_up_s: float = 1800.0
    restart_s: float = 300.0
    window_s: float = 900.0
    stabilisation_s: float = 300.0
    down_interval_s: float = 3600.0
    down_factor: float = 0.6
    up_factor: float = 100000.0
    backlog_s: float = 300.0
    knob: ClassVar[str] = "utilisation"

    def fresh(self, runs: int) -> Memory:
        """Return empty windows of rates and recommendations, with no clock started."""
        rates = window.fresh(runs, "rates", ("sum", "count"), columns=4)
        lower = window.fresh(runs, "lower", ("max",))
        return {**rates, **lower, "born": np.full(runs, np.inf), "down_since": np.full(runs, np.inf)}

    def decide(self, memory: Memory, view: View) -> tuple[Memory, Choice]:
        """Keep the target until rates of `window_s` are known; then raise at once, and lower after `down_interval_s`.

        By default these are 900 and 3600 s. Nothing changes while the true rate (records per busy second) is within the
        band around the target utilisation, nor within `stabilisation_s` of a change.

        Returns:
            The new memory, and the choice: (runs,) executors within the view's bounds, reasons (flags); needs are NaN.

        Raises:
            KeyError: the memory is not from `fresh`.
        """
        memory = self._measured(memory, view)
        rate, true_rps = self._rates(memory)
        stable = np.minimum(view.since_change_s - self.stabilisation_s, view.now_s - memory["born"])
        ready = (stable >= self.window_s) & ~np.isnan(true_rps)
        needed = capacity_needed(rate, view.lag_records, self.utilisation, self.catch_up_s, self.restart_s)
        factor = np.clip(needed / true_rps, 1 - self.down_factor, 1 + self.up_factor)
        recommended = round_up(np.where(ready, factor * view.ready, view.target))
        recommended = np.where(np.isnan(recommended), view.target, recommended)
        bounded = np.minimum(np.maximum(recommended, view.least), view.most)
        outside = self._outside(view, rate, true_rps)
        up, down = bounded > view.target, bounded < view.target
        since = np.where(down, np.minimum(memory["down_since"], view.now_s), np.inf)
        memory = window.push_values(memory, "lower", np.where(down, bounded, np.nan), view.now_s, self.down_interval_s)
        waited = down & (view.now_s - since >= self.down_interval_s)
        lowest = np.minimum(window.highest(memory, "lower"), view.target)
        lowered = waited & outside & (lowest < view.target)
        wanted = np.where(up & outside, recommended, np.where(lowered, lowest, view.target))
        since = np.where(lowered, np.inf, since)
        return {**memory, "down_since": since}, clipped_choice(view, wanted, delayed_down=down & ~waited)

    def _measured(self, memory: Memory, view: View) -> Memory:
        """One more value of each rate, but none while stabilising."""
        far_behind = view.lag_records > OBSERVED_LAG_S * view.arrival_rps
        seen = np.stack(
            [view.arrival_rps, view.processed_rps, view.busy, np.where(far_behind, view.processed_rps, np.nan)], axis=-1
        )
        seen[view.since_change_s < self.stabilisation_s] = np.nan
        memory = window.push_values(memory, "rates", seen, view.now_s, self.window_s)
        return {**memory, "born": np.minimum(memory["born"], view.now_s)}

    @staticmethod
    def _rates(memory: Memory) -> tuple[Floats, Floats]:
        """(runs,) mean arrivals and the true processing rate, records/s; NaN where nothing was measured."""
        rate, processed, busy, observed = window.mean(memory, "rates", np.array([1, 1, 1, OBSERVED_LEAST])).T
        with_work = np.where(processed > 0, processed / np.where(busy > 0, busy, np.nan), np.inf)
        true_rps = np.where(np.isnan(processed), np.nan, with_work)
        switched = ~(true_rps <= observed * (1 + OBSERVED_SWITCH)) & (observed > 0)
        return rate, np.where(switched, observed, true_rps)

    def _outside(self, view: View, rate: Floats, true_rps: Floats) -> np.ndarray:
        """(runs,) whether the true rate is beyond the band around the target utilisation."""
        behind = view.lag_records > self.backlog_s * rate
        most = np.where(behind, 1.0, self.utilisation + self.boundary)
        least = np.where(behind, 0.0, self.utilisation - self.boundary)
        low = capacity_needed(rate, view.lag_records, most, self.catch_up_s, 0.0)
        high = capacity_needed(rate, view.lag_records, least, self.catch_up_s, self.restart_s)
        outside: np.ndarray = (true_rps < low) | (true_rps > high)
        return outside
