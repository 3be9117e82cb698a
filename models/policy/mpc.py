"""Model-predictive control with a chance constraint: fewest executors that carry the peak in all but a share of cases.

The plan covers the time until a raise asked for now is of use. Inside it: the start-up delay (the peak is that of
lead + hold), the start-ups already under way, the backlog that the present capacity will leave by then, the price of an
action (nothing is dropped that the plan would ask for again), and the reactive side, which corrects both the load (the
forecast is moved to the rate of now) and the capacity (learned from busy batches) before the plan is made. After
OptScaler (PVLDB 17(12), 2024), where forecast and feedback are inputs of one optimisation under chance constraints.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from configs.contract import Contract
from models.policy import window
from models.policy.capacity import Floats
from models.policy.planner import backlog
from models.policy.view import Choice, Memory, View, flags


def at_level(quantiles: Floats, levels: tuple[float, ...], asked: Floats | float) -> Floats:
    """(runs,) the value of (runs, Q) quantiles at any level, on lines over `-log(1 - level)`.

    Beyond the last level the line of the last two goes on: an exponential tail.
    """
    depth = -np.log1p(-np.asarray(levels))
    want = np.broadcast_to(-np.log1p(-np.clip(asked, 0.0, 1 - 1e-9)), len(quantiles))
    right = np.clip(np.searchsorted(depth, want), 1, len(depth) - 1)
    share = np.maximum((want - depth[right - 1]) / (depth[right] - depth[right - 1]), 0.0)
    rows = np.arange(len(quantiles))
    low, high = quantiles[rows, right - 1], quantiles[rows, right]
    value: Floats = low + (high - low) * share
    return value


@dataclass(frozen=True, eq=False)
class Mpc:
    """Chance-constrained planning over the start-up delay.

    Attributes:
        name: mpc.
        kept: share of cases in which the load stays under what is provided; a number or one per run.
        utilisation: busy share of the capacity at which the latency target is still met.
        ahead_s: seconds ahead that are planned for, lead + hold.
        catch_up_s: seconds in which a backlog is to be worked off.
        batch_s: seconds that batches should take.
        hold_s: nothing is dropped that the plans of the last so many seconds asked for.
    """

    name: str
    kept: Floats | float
    utilisation: float
    ahead_s: float
    catch_up_s: float
    batch_s: float
    hold_s: float
    knob: ClassVar[str] = "kept"

    @classmethod
    def of(cls, name: str, contract: Contract, learned: Any = None) -> Mpc:
        """With the numbers of a contract."""
        p = contract.planning
        hold_s = max(p.scale_down_delay_s, p.cooldown_s)
        return cls(name, p.quantile, 1.0, p.lead_s + p.hold_s, p.catch_up_s, p.batch_s, hold_s)

    def fresh(self, runs: int) -> Memory:
        """No plan made yet."""
        return window.fresh(runs, "plan", ("max",))

    def decide(self, memory: Memory, view: View) -> tuple[Memory, Choice]:
        """Raise to the plan at once; lower to the highest recent plan once the backlog is gone."""
        known = np.isfinite(view.arrival_rps) & (view.arrival_rps >= 0)
        rate = np.where(known, view.arrival_rps, 0.0)
        piled = backlog(view, self.batch_s)
        observed, cut = self._executors(view, rate, piled)
        forecast = np.full(view.runs, np.nan)
        if view.ahead is not None:
            highest, levels = view.ahead.peak(self.ahead_s), view.ahead.levels
            peak = at_level(highest, levels, self.kept)
            coming = np.maximum(at_level(highest, levels, 0.5), rate)
            short = np.maximum(coming - view.capacity.rps(view.ready + view.starting), 0.0)
            usable = np.isfinite(peak) & (peak >= 0)
            later = piled + np.where(usable, short, 0.0) * self.batch_s
            asked, cut_too = self._executors(view, np.where(usable, peak, 0.0), later)
            forecast, cut = np.where(usable, asked, np.nan), cut | (cut_too & usable)
        plan = np.fmax(observed, forecast)
        memory = window.push(memory, "plan", np.where(known, plan, np.nan), view.now_s, self.hold_s)
        caught = (plan < view.target) & (piled > 0)
        lowered = np.minimum(np.maximum(window.highest(memory, "plan"), plan), view.target)
        target = np.where(plan >= view.target, plan, np.where(caught, view.target, lowered))
        why = flags(
            forecast=(plan > view.target) & (observed <= view.target), backlog=piled > 0, ceiling=cut, catch_up=caught,
            delayed_down=(plan < view.target) & ~caught & (lowered >= view.target), no_forecast=np.isnan(forecast),
            not_a_number=~known,
        )  # fmt: skip
        return memory, Choice(np.where(known, target, view.target), why, observed, forecast)

    def _executors(self, view: View, rps: Floats, piled: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        need = rps / self.utilisation + piled / self.catch_up_s
        return view.capacity.executors_for(need, view.least, view.most)
