"""What a held forecast says from now on, as numbers that fit a log; or why there is nothing to go by."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from configs.contract import Planning
from models.policy.view import Ahead


@dataclass(frozen=True)
class Outlook:
    """The remaining steps of a forecast.

    Attributes:
        offsets_s: wall seconds from now to the end of each step.
        levels: quantile levels.
        rps: per step the quantiles, records/s.
    """

    offsets_s: tuple[float, ...]
    levels: tuple[float, ...]
    rps: tuple[tuple[float, ...], ...]

    def ahead(self) -> Ahead:
        """As a policy sees it, for one run."""
        return Ahead(np.array(self.offsets_s), self.levels, np.array([self.rps]))

    @classmethod
    def of(cls, data: dict[str, Any] | None) -> Outlook | None:
        """From its JSON."""
        if data is None:
            return None
        return cls(tuple(data["offsets_s"]), tuple(data["levels"]), tuple(tuple(row) for row in data["rps"]))


def outlook(
    held: dict[str, Any], now: float, job_now: float, scale: float, planning: Planning
) -> tuple[Outlook | None, float | None, str]:
    """The steps that are not over, the highest upper quantile over lead + hold, and which forecast it is.

    Step h of a forecast covers job time [time + h * step, time + (h + 1) * step); a second on the wall is `scale`
    seconds of job time. Without a usable forecast both are None and the text says why.

    Args:
        held: the newest forecast (fields as in `tidecast.messages.Forecast`), empty before one.
        now: wall time.
        job_now: job time.
        scale: seconds of job time per wall second.
        planning: how old a forecast may be, lead, hold and quantile.
    """
    if not held:
        return None, None, "no forecast yet"
    age = now - held["wall_time"]
    if age > planning.forecast_age_s:
        return None, None, f"late forecast: {age:.0f} s old, at most {planning.forecast_age_s:g} s"
    first = max(0, math.floor((job_now - held["time"]) / held["step_s"]))
    rows = held["quantiles"][first:]
    if not rows:
        return None, None, f"late forecast: its {len(held['quantiles'])} steps are over"
    ends = (held["time"] + (first + h + 1) * held["step_s"] - job_now for h in range(len(rows)))
    # Six digits are more than a forecast knows, and keep the log short; what is decided on is what is logged.
    made = Outlook(
        tuple(round(end / scale, 3) for end in ends), tuple(held["levels"]),
        tuple(tuple(float(f"{value:.6g}") for value in row) for row in rows),
    )  # fmt: skip
    upper = float(made.ahead().upper(planning.quantile, planning.lead_s + planning.hold_s)[0])
    if not math.isfinite(upper) or upper < 0:
        return None, None, f"no forecast: its upper quantile is {upper}"
    level = min(held["levels"], key=lambda one: abs(one - planning.quantile))
    return made, upper, f"{held['model']} v{held['version']} ({held['kind']}), {level:g} quantile"
