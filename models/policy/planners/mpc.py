"""A newsvendor (cost-quantile) planner, called `mpc`: the executors that cost least, what they risk included.

The plan covers the time until a raise asked for now is of use: the start-up delay, the start-ups under way, the backlog
that the present capacity will leave by then, and the price of an action (nothing is dropped that the plan would ask for
again). Where starts are made in turns it looks as many turns further, so that the first is made while there is time for
all. The forecast is moved to the rate of now, and the capacity learned from busy batches, before the plan is made.
After OptScaler (Zou et al., PVLDB 17(12), 2024), with a price in place of a fixed chance constraint: at moments whose
load is less certain, where safety costs more, violations may be more frequent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from configs.contract import LEAST_BUDGET, Contract
from models.policy.core import window
from models.policy.core.backlog import backlog
from models.policy.core.capacity import Floats
from models.policy.core.choice import Choice, why_flags
from models.policy.core.policy import Rule
from models.policy.core.view import Memory, View
from models.policy.planners.delay import hold_of
from models.policy.planners.turns import plan_turns, raise_in_turns

RARER = 4.0
"""How many times rarer late seconds are than stretches with a peak above the plan, in which most seconds are none: the
median over those of the value map's loads that a hash of their names puts into the first half was 10 ** 0.73."""
_UNSURE = 0.012
"""Scale of the exponentially distributed relative error of the capacity model."""
_DEAR, _LENIENT = 0.5, 0.08
"""For each factor of ten that the price is below 10^_DEAR, the planned utilisation rises by the share _LENIENT."""


def cheapest_capacity(quantiles: Floats, levels: tuple[float, ...], per_rps: Floats, price: Floats) -> Floats:
    """Return (runs,) records/s of capacity `x` that minimise `per_rps * x + price * P(peak of the load > x)`.

    Never below the lowest quantile. Between quantiles the chance of exceedance falls exponentially, beyond the last as
    between the last two; quantiles above the median are raised by the share -0.012 ln(2 (1 - level)), because capacity
    is not known exactly either. With a single level the answer is its quantile.

    Args:
        quantiles: (runs, Q) records/s that the peak stays under, rising; NaN makes the answer NaN.
        levels: Q levels, at least one, rising, below 1.
        per_rps: (runs,) executors per record/s, above 0.
        price: (runs,) executors that a sure violation (peak over capacity) is worth, above 0.
    """
    if len(levels) == 1:
        return quantiles[:, 0]
    depth, wider, deeper = _depths(levels)
    quantiles = quantiles * wider
    low, high, per_rps, price = quantiles[:, :-1], quantiles[:, 1:], per_rps[:, None], price[:, None]
    fall = deeper / np.maximum(high - low, 1e-9 * np.maximum(high, 1.0))
    with np.errstate(divide="ignore"):
        further = (np.log(price * fall / per_rps) - depth) / fall
    x = low + np.maximum(further, 0.0)
    np.minimum(x[:, :-1], high[:, :-1], out=x[:, :-1])
    cost = per_rps * x + price * np.exp(-(depth + (x - low) * fall))
    best: Floats = x[np.arange(len(x)), np.argmin(cost, axis=1)]
    return np.where(np.isfinite(quantiles).all(axis=1), best, np.nan)


@lru_cache(maxsize=8)
def _depths(levels: tuple[float, ...]) -> tuple[Floats, Floats, Floats]:
    """(Q - 1,) -log(chance to exceed) of every level but the last, (Q,) factors of the quantiles, (Q - 1,) steps."""
    depth = -np.log1p(-np.asarray(levels))
    # Capacity is uncertain too; without the factors a certain load would leave no way to buy more safety.
    return depth[:-1], 1 + _UNSURE * np.maximum(depth - math.log(2), 0.0), np.diff(depth)


def unserved_records(now: Floats, then: Floats, capacity: Floats, seconds: Floats | float) -> Floats:
    """Return (runs,) records that pile up while the load goes linearly from `now` to `then` at constant capacity.

    Only what comes above the capacity counts; what spare capacity would work off in the same time is not taken away.

    Args:
        now: (runs,) records/s at the beginning.
        then: (runs,) records/s at the end.
        capacity: (runs,) records/s.
        seconds: at least 0.
    """
    low, high = np.minimum(now, then), np.maximum(now, then)
    over = np.maximum(high - capacity, 0.0)
    part = np.minimum(over / np.maximum(high - low, 1e-9), 1.0)  # of the time in which it is above the capacity
    left: Floats = seconds * part * (over + np.maximum(low - capacity, 0.0)) / 2
    return left


@dataclass(frozen=True, eq=False)
class Mpc(Rule):
    """The cheapest capacity over the start-up delay, by the price of a violation (a second over the latency target).

    Attributes:
        violation_cost: decimal logarithm of the price of such a second, in seconds of all executors that the job may
            have; a number or one per run.
        utilisation: busy share of the capacity at which the latency target is still met, where violations are dear; it
            and `catch_up_s` may be one per run too.
        lead_s: seconds from now until what is asked for now works; it, `ahead_s` and `growth` may be one per run.
        ahead_s: seconds ahead that are planned for, lead + hold.
        catch_up_s: seconds in which a backlog is to be worked off.
        batch_s: seconds that batches should take.
        hold_s: nothing is dropped that the plans of the last so many seconds asked for; a number or one per run.
        step_up: most executors that start at once.
        growth: exponent by which `lead_s` grows with the executors that start at once.
    """

    violation_cost: Floats | float
    utilisation: Floats | float
    lead_s: Floats | float
    ahead_s: Floats | float
    catch_up_s: Floats | float
    batch_s: float
    hold_s: Floats | float
    step_up: float = math.inf
    growth: Floats | float = 0.0
    knob: ClassVar[str] = "violation_cost"

    @classmethod
    def of(cls, name: str, contract: Contract, learned: Any = None) -> Self:
        """Build it from a contract; `learned` is ignored.

        An executor just pays if it is needed in RARER times as large a share of cases as the error budget (at least
        0.0001) allows: `violation_cost = -log10(RARER * error_budget * executors.max)`.
        """
        p = contract.planning
        violation_cost = -math.log10(RARER * max(contract.error_budget, LEAST_BUDGET) * contract.executors.max)
        return cls(
            name, violation_cost, 1.0, p.lead_s, p.lead_s + p.hold_s, p.catch_up_s, contract.batch_s, hold_of(p),
            p.step_up, p.start_growth,
        )  # fmt: skip

    @cached_property
    def busy(self) -> Floats | float:
        """Busy share of the capacity that is planned for, at this price of a violation."""
        return self.utilisation * (1 + _LENIENT * np.maximum(_DEAR - np.asarray(self.violation_cost, float), 0.0))

    @cached_property
    def _price(self) -> Floats:
        price: Floats = 10.0 ** np.asarray(self.violation_cost, float)
        return price

    def fresh(self, runs: int) -> Memory:
        """Return an empty window of plans."""
        return window.fresh(runs, "plan", ("max",))

    def decide(self, memory: Memory, view: View) -> tuple[Memory, Choice]:
        """Raise to the cheapest plan, lower to the highest one of the last `hold_s`, but not with a backlog.

        As many executors start at once as are soonest of use, at most `step_up`; the next ones when these should work:
        what a later turn can still bring is not asked for yet, and what it cannot is (`turns.Turns`).

        Without a usable forecast (none, NaN or negative) the plan is what the present rate and backlog (what waits
        beyond the arrivals of 1.5 batches) need. A rate that is NaN or negative leaves the target as it is.

        Returns:
            The new memory, and the choice: (runs,) executors, reasons (flags) and both needs (executors or NaN).

        Raises:
            KeyError: the memory is not from `fresh`.
        """
        known = np.isfinite(view.arrival_rps) & (view.arrival_rps >= 0)
        rate = np.where(known, view.arrival_rps, 0.0)
        piled = backlog(view.arrival_rps, view.lag_records, self.batch_s)
        busy = self.busy
        if view.ahead is None:
            observed, cut = view.capacity.executors_for(rate / busy + piled / self.catch_up_s, view.least, view.most)
            forecast, keeps = np.full(view.runs, np.nan), observed
        else:
            turns = plan_turns(np.maximum(view.most - view.ready, 0.0), self.growth, self.step_up, self.lead_s)
            reach_s = view.ahead.offsets_s[..., -1] - self.ahead_s
            ends = [self.ahead_s, *(self.ahead_s + turn * turns.seconds for turn in range(1, turns.within(reach_s)))]
            then = [view.ahead.peak_rps(end, self.lead_s) for end in ends]
            peaks = np.array([view.ahead.peak_rps(self.ahead_s), *then])
            usable = np.asarray((np.isfinite(peaks) & (peaks >= 0)).all(axis=(0, 2)))
            coming = view.ahead.peak_rps_at(0.5, self.lead_s)
            left = unserved_records(rate, coming, view.capacity.sustained_rps(view.ready + view.starting), self.lead_s)
            later = piled + np.where(usable, left, 0.0)
            # Needed now, until the end of the hold after an executor asked for now works, and in that hold, by turns.
            loads = np.concatenate([rate[None], self._worth(view, peaks, usable, busy)])
            needs = loads / busy + np.array([piled, *[later] * len(peaks)]) / self.catch_up_s
            (observed, kept, *each), (cut, _, cut_too, *_) = view.capacity.executors_for(needs, view.least, view.most)
            asked = turns.first(each)
            forecast, cut = np.where(usable, asked, np.nan), cut | (cut_too & usable)
            keeps = np.where(usable, np.maximum(kept, observed), observed)
        plan = np.fmax(observed, forecast)
        keeps = np.maximum(keeps, plan)
        memory = window.push_values(memory, "plan", np.where(known, keeps, np.nan), view.now_s, self.hold_s)
        caught = (plan < view.target) & (piled > 0)
        lowered = np.minimum(np.maximum(window.highest(memory, "plan"), keeps), view.target)
        raised = self.raise_towards(view, np.maximum(plan, view.target))
        target = np.where(plan >= view.target, raised, np.where(caught, view.target, lowered))
        why = why_flags(
            forecast=(plan > view.target) & (observed <= view.target), backlog=piled > 0, ceiling=cut, catch_up=caught,
            delayed_down=(plan < view.target) & ~caught & (lowered >= view.target), no_forecast=np.isnan(forecast),
            not_a_number=~known, turn=(plan > view.target) & (raised <= view.target),
        )  # fmt: skip
        return memory, Choice(np.where(known, target, view.target), why, observed, forecast)

    def raise_towards(self, view: View, wanted: Floats) -> Floats:
        """Return (runs,) executors to ask for now on the way up to (runs,) wanted, at least the target: in turns."""
        if not np.any(self.growth) and math.isinf(self.step_up):
            return wanted
        return raise_in_turns(view, wanted, self.growth, self.step_up, self.lead_s)

    def _worth(self, view: View, quantiles: Floats, usable: NDArray[np.bool_], busy: Floats | float) -> Floats:
        """(P, runs) records/s to provide for, of quantiles (P, runs, Q); 0 without a usable forecast."""
        assert view.ahead is not None, "only a received forecast has quantiles"
        shape = quantiles.shape[:2]
        per_rps = view.most / (view.capacity.sustained_rps(view.most) * busy)
        price = self._price * view.most
        each = (np.concatenate([one] * shape[0]) for one in (per_rps, price))
        worth = cheapest_capacity(quantiles.reshape(-1, quantiles.shape[-1]), view.ahead.levels, *each)
        return np.where(usable, worth.reshape(shape), 0.0)
