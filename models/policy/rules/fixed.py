"""What is set beforehand: a number of executors (`--num-executors`), or a timetable as cron or KEDA's cron scaler has.

A timetable is a quantile of the rates that each time of day had in a history. It holds rates and not executors, so that
one history serves runs of different capacity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from configs.bounds import DAY_S
from configs.contract import Contract
from configs.errors import SettingsError
from models.policy.core.capacity import Floats
from models.policy.core.choice import Choice, make_choice, why_flags
from models.policy.core.policy import Rule, clipped_choice
from models.policy.core.view import Memory, View

QUANTILE = 0.95
"""Quantile of a slot's rates in the history that a timetable holds."""
SLOTS = 24
"""Equal parts of a day: hours."""


class Timetable(NamedTuple):
    """Rates that each slot of a day is prepared for.

    Attributes:
        rps: (slots,) or (runs, slots) records/s; the first slot begins at midnight UTC.
        day_s: seconds of a day on the policy's clock; less than 86,400 where a trace is replayed faster.
        origin_s: seconds since midnight UTC, on that clock, at which it shows 0.
    """

    rps: Floats
    day_s: float = DAY_S
    origin_s: float = 0.0

    def rate_at(self, now_s: float) -> Floats:
        """Return the records/s of the day's slot at `now_s`, seconds of the policy's clock; (1,) or (runs,)."""
        slots = self.rps.shape[-1]
        slot = int(((now_s + self.origin_s) % self.day_s) / self.day_s * slots)
        rate: Floats = np.atleast_1d(self.rps[..., min(slot, slots - 1)])
        return rate


def learn_timetable(times_s: Floats, rps: Floats, slots: int = SLOTS, day_s: float = DAY_S) -> Timetable:
    """Make a timetable of a history: QUANTILE of the rates of each slot of the day, or of all where it has none.

    Args:
        times_s: (T,) time of each rate, seconds since some midnight UTC.
        rps: (T,) records/s; NaN or infinite where none is known.
        slots: equal parts of a day.
        day_s: seconds of a day on that clock.

    Returns:
        A timetable with `rps` (slots,) and that `day_s`, whose first slot begins at midnight.

    Raises:
        SettingsError: no known rate in the history, or a negative one.
        ValueError: arrays of different lengths.
    """
    known = np.isfinite(rps)
    if not known.any() or (rps[known] < 0).any():
        raise SettingsError(
            f"a timetable of {int(known.sum())} known rates, {int((rps[known] < 0).sum())} of them negative: "
            "give it a history of rates of at least 0."
        )
    slot = ((times_s % day_s) / day_s * slots).astype(np.int64)
    groups = [rps[known & (slot == at)] for at in range(slots)]
    return Timetable(np.array([np.quantile(g if len(g) else rps[known], QUANTILE) for g in groups]), day_s)


@dataclass(frozen=True, eq=False)
class Static(Rule):
    """Always the same number of `executors`, a number or one per run."""

    executors: Floats | float
    knob: ClassVar[str] = "executors"

    @classmethod
    def of(cls, name: str, contract: Contract, learned: Any = None) -> Self:
        """Build it with the contract's `planning.static_executors`; `learned` is ignored."""
        return cls(name, float(contract.planning.static_executors))

    def decide(self, memory: Memory, view: View) -> tuple[Memory, Choice]:
        """Choose the fixed number, cut to the bounds, whatever is seen; the memory stays empty."""
        return memory, clipped_choice(view, np.zeros(view.runs) + self.executors)


@dataclass(frozen=True, eq=False)
class Schedule(Rule):
    """Executors for the rate in a timetable, now or a lead time ahead, whichever is higher.

    Attributes:
        timetable: rates by time of day.
        utilisation: busy share of the capacity to aim for, a number or one per run.
        ahead_s: seconds before a slot at which its executors are asked for.
    """

    timetable: Timetable
    utilisation: Floats | float
    ahead_s: float
    knob: ClassVar[str] = "utilisation"

    @classmethod
    def of(cls, name: str, contract: Contract, learned: Any = None) -> Self:
        """Build it with the contract's target utilisation and lead time.

        Args:
            name: of the policy.
            contract: of the job.
            learned: a `Timetable`.

        Raises:
            SettingsError: `learned` is no timetable.
        """
        if not isinstance(learned, Timetable):
            raise SettingsError(f"policy {name!r} was given {learned!r}: it needs a timetable (fixed.learn_timetable).")
        return cls(name, learned, contract.planning.utilisation, contract.planning.lead_s)

    def decide(self, memory: Memory, view: View) -> tuple[Memory, Choice]:
        """Choose the fewest executors that sustain the timetable's rate at the utilisation, whatever load is seen.

        The rate is the higher of those now and `ahead_s` seconds from now. Returns the memory as it was (empty), and
        the choice: (runs,) executors, with the reason `Why.CEILING` where bounds or the task count cut the number
        short.
        """
        rps = np.maximum(self.timetable.rate_at(view.now_s), self.timetable.rate_at(view.now_s + self.ahead_s))
        need = np.zeros(view.runs) + rps / self.utilisation
        found, cut = view.capacity.executors_for(need, view.least, view.most)
        return memory, make_choice(found, why_flags(ceiling=cut))
