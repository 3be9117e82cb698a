"""A timetable, as cron jobs or KEDA's cron scaler follow it: so many executors from this time of day to that.

Learned from a history as a quantile of the rates that each time of day had, then followed whatever comes. The table
holds rates and not executors, so that one history serves runs of different capacity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from configs.contract import Planning
from configs.errors import SettingsError
from models.policy.core.capacity import Floats
from models.policy.core.view import Choice, Memory, View, chosen, flags

DAY_S = 86400.0
QUANTILE = 0.95
"""Of the rates that a slot had in the history."""
SLOTS = 24
"""Into which a day is cut: hours."""


class Timetable(NamedTuple):
    """What each slot of a day is prepared for.

    Attributes:
        rps: (slots,) or (runs, slots) records/s; the first slot begins at midnight UTC.
        day_s: seconds of a day on the clock that decisions are made by; less than 86,400 where a trace runs faster.
        origin_s: seconds since midnight UTC, on that clock, at which it shows 0.
    """

    rps: Floats
    day_s: float = DAY_S
    origin_s: float = 0.0

    def at(self, now_s: float) -> Floats:
        """The rate of the slot at `now_s`, (1,) or (runs,)."""
        slots = self.rps.shape[-1]
        slot = int(((now_s + self.origin_s) % self.day_s) / self.day_s * slots)
        rate: Floats = np.atleast_1d(self.rps[..., min(slot, slots - 1)])
        return rate


def learned(
    times_s: Floats, rps: Floats, quantile: float = QUANTILE, slots: int = SLOTS, day_s: float = DAY_S,
    origin_s: float = 0.0,
) -> Timetable:  # fmt: skip
    """The timetable of a history: per slot of the day the quantile of its rates.

    A slot that the history does not reach takes the quantile of the whole.

    Args:
        times_s: (T,) clock of each rate, seconds.
        rps: (T,) records/s; NaN where none is known.
        quantile: between 0 and 1.
        slots: into which a day is cut.
        day_s: as of `Timetable`.
        origin_s: as of `Timetable`.

    Raises:
        SettingsError: no rate in the history, or a negative one.
    """
    known = np.isfinite(rps)
    if not known.any() or (rps[known] < 0).any():
        raise SettingsError(
            f"a timetable of {int(known.sum())} known rates, {int((rps[known] < 0).sum())} of them negative: "
            "give it a history of rates of at least 0."
        )
    slot = (((times_s + origin_s) % day_s) / day_s * slots).astype(np.int64)
    whole_day = float(np.quantile(rps[known], quantile))
    groups = (rps[known & (slot == at)] for at in range(slots))
    return Timetable(
        np.array([float(np.quantile(g, quantile)) if len(g) else whole_day for g in groups]), day_s, origin_s
    )


@dataclass(frozen=True, eq=False)
class Schedule:
    """Executors for the rate in the timetable, now and a lead time ahead.

    Attributes:
        name: schedule.
        timetable: rates by time of day.
        utilisation: busy share of the capacity to aim for, the head-room.
        ahead_s: seconds before a slot at which its executors are asked for.
    """

    name: str
    timetable: Timetable
    utilisation: Floats | float
    ahead_s: float
    knob: ClassVar[str] = "utilisation"

    @classmethod
    def of(cls, name: str, planning: Planning, timetable: Timetable) -> Schedule:
        """With the contract's target utilisation and lead time."""
        return cls(name, timetable, planning.target_utilisation, planning.lead_s)

    def fresh(self, runs: int) -> Memory:
        """Nothing to carry."""
        return {}

    def decide(self, memory: Memory, view: View) -> tuple[Memory, Choice]:
        """The number in the timetable, whatever is seen."""
        rps = np.maximum(self.timetable.at(view.now_s), self.timetable.at(view.now_s + self.ahead_s))
        need = np.broadcast_to(rps / self.utilisation, view.target.shape)
        found, cut = view.capacity.executors_for(need, view.least, view.most)
        return memory, chosen(found, flags(ceiling=cut))
