"""The planner: capacity for the load and for what has piled up, with or without a forecast.

Flink's operator formula (`LAG / CATCH_UP + RATE / TARGET_UTIL`, AutoScalerUtils) without its restart term, because
nothing restarts. A forecast may raise the number; only observed load lowers it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from configs.contract import Contract
from models.policy.core import window
from models.policy.core.backlog import backlog
from models.policy.core.capacity import Floats
from models.policy.core.choice import Choice, why_flags
from models.policy.core.policy import Rule
from models.policy.core.view import Memory, View


@dataclass(frozen=True, eq=False)
class Planner(Rule):
    """`reactive` without a forecast, `forecast` with the highest upper quantile over lead + hold.

    Attributes:
        utilisation: busy share of the capacity to aim for.
        quantile: level of the forecast that is provisioned for.
        ahead_s: seconds ahead that the forecast is looked at, lead + hold.
        catch_up_s: seconds in which a backlog is to be worked off.
        batch_s: seconds that batches should take.
        down_delay_s: the number never falls below the highest need of so many seconds; a number or one per run.
        cooldown_s: least seconds between two changes.
        step_up, step_down: most executors that one change adds or takes.
    """

    utilisation: Floats | float
    quantile: float
    ahead_s: float
    catch_up_s: float
    batch_s: float
    down_delay_s: Floats | float
    cooldown_s: float
    step_up: float
    step_down: float
    knob: ClassVar[str] = "utilisation"

    @classmethod
    def of(cls, name: str, contract: Contract, learned: Any = None) -> Self:
        """Build it with the contract's planning parameters; `learned` is ignored."""
        p = contract.planning
        return cls(
            name, p.utilisation, p.quantile, p.lead_s + p.hold_s, p.catch_up_s, contract.batch_s, p.scale_down_delay_s,
            p.cooldown_s, p.step_up, p.max_step_down,
        )  # fmt: skip

    def fresh(self, runs: int) -> Memory:
        """Return an empty window of needs."""
        return window.fresh(runs, "need", ("max",))

    def decide(self, memory: Memory, view: View) -> tuple[Memory, Choice]:
        """Raise by at most `step_up` where load or forecast needs more; lower by `step_down` after `down_delay_s`.

        Nothing is lowered during a backlog (more waits than the arrivals of 1.5 batches), and nothing changes within
        `cooldown_s` of the last change. A rate that is NaN or negative leaves the target. `reactive` reads no forecast.

        Returns:
            The new memory, and the choice: (runs,) executors, reasons (flags) and both needs (executors or NaN).

        Raises:
            KeyError: the memory is not from `fresh`.
        """
        piled = backlog(view.arrival_rps, view.lag_records, self.batch_s)
        listens = self.name == "forecast"
        if listens and view.ahead is not None:
            loads = np.stack([view.arrival_rps, view.ahead.peak_rps_at(self.quantile, self.ahead_s)])
            (observed, forecast), (cut, cut_too) = self._executors(view, loads, piled)
            cut = cut | cut_too
        else:
            observed, cut = self._executors(view, view.arrival_rps, piled)
            forecast = np.full(view.runs, np.nan)
        wanted = np.fmax(observed, forecast)
        recent = window.highest(memory, "need")
        allowed = np.maximum(wanted, np.where(np.isfinite(recent), recent, view.target))
        soon = view.since_change_s < self.cooldown_s
        up, down = wanted > view.target, wanted < view.target
        caught = down & (piled > 0)
        late = down & ~caught & ((allowed >= view.target) | soon)
        raised = self.raise_towards(view, wanted)
        lowered = np.maximum(allowed, view.target - self.step_down)
        target = np.where(up & ~soon, raised, np.where(down & ~caught & ~late, lowered, view.target))
        known = np.isfinite(view.arrival_rps) & (view.arrival_rps >= 0)
        why = why_flags(
            forecast=up & (observed <= view.target), backlog=piled > 0, ceiling=cut, cooldown=up & soon,
            catch_up=caught, delayed_down=late, no_forecast=listens & np.isnan(forecast), not_a_number=~known,
        )  # fmt: skip
        memory = window.push_values(memory, "need", np.where(known, wanted, np.nan), view.now_s, self.down_delay_s)
        return memory, Choice(np.where(known, target, view.target), why, observed, forecast)

    def raise_towards(self, view: View, wanted: Floats) -> Floats:
        """Return (runs,) executors to ask for now on the way up to (runs,) wanted: at most `step_up` more."""
        begun: Floats = np.minimum(wanted, view.target + self.step_up)
        return begun

    def _executors(self, view: View, rps: Floats, piled: Floats) -> tuple[Floats, np.ndarray]:
        usable = np.isfinite(rps) & (rps >= 0)
        need = np.where(usable, rps, 0.0) / self.utilisation + piled / self.catch_up_s
        found, cut = view.capacity.executors_for(need, view.least, view.most)
        return np.where(usable, found, np.nan), cut & usable
