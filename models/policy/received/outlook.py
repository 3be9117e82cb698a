"""The load ahead that a policy is told now, out of the newest forecast; or why there is none."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from configs.contract import Planning
from models.policy.core.capacity import Floats
from models.policy.core.view import LoadAhead
from models.policy.received.nowcast import ForecastRows, correct_by_rate, forecast_offsets
from models.policy.received.past import Past
from models.policy.received.peak_calibrator import PeakCalibrator
from models.policy.received.peaks import LEVELS as PEAK_LEVELS
from models.policy.received.peaks import TRENDS_S, Moments

SMOOTH_S = 3.0
"""Shortest time over which arrivals are averaged, seconds: short against the lead."""
MEMORY_STEPS = 1.0
"""Forecast steps after which a share of 1/e of the forecast's present error is left."""


@dataclass(frozen=True)
class Outlook:
    """The load ahead that a policy is given out of a forecast.

    Attributes:
        offsets_s: wall seconds from now, rising; an entry covers the time since the one before.
        levels: quantile levels.
        rps: per entry the quantiles, records/s.
    """

    offsets_s: tuple[float, ...]
    levels: tuple[float, ...]
    rps: tuple[tuple[float, ...], ...]

    def to_arrays(self) -> LoadAhead:
        """Return the same as the arrays that a policy's view holds, for one run."""
        return LoadAhead(np.array(self.offsets_s), self.levels, np.array([self.rps]))

    @classmethod
    def from_json_values(cls, data: Any) -> Outlook | None:
        """Rebuild it from its JSON values; None or {} is returned as it is.

        Raises:
            KeyError, TypeError: a field is missing, or is no list.
        """
        return data and cls(tuple(data["offsets_s"]), tuple(data["levels"]), tuple(map(tuple, data["rps"])))


@dataclass(frozen=True)
class Moment:
    """When a policy decides about a job, and what arrives there.

    Attributes:
        now: epoch seconds.
        job_now: the job's own time, seconds.
        scale: job seconds per wall second.
        arrival_rps: records/s of the last seconds.
        past: what arrived before.
        refuted: whether forecasts are refuted: nothing has come of the load that they said was sure.
    """

    now: float
    job_now: float
    scale: float
    arrival_rps: float
    past: Past
    refuted: bool = False


def make_outlook(
    held: dict[str, Any], moment: Moment, planning: Planning, calibrator: PeakCalibrator | None = None
) -> tuple[Outlook | None, float | None, str]:
    """Turn the newest forecast into the load ahead as a policy is told it now, moved to the present rate.

    With a calibrator that fits the contract's lead, hold and the clock: quantiles of the peak in two stretches (lead,
    hold). Else the forecast itself, interpolated between the middles of its steps.

    Args:
        held: "quantiles" (steps of levels, records/s), "levels", "step_s" and "time" (job seconds), "wall_time" (epoch
            seconds), "model", "version", "kind", and maybe "last_rps" (records/s); empty before the first forecast.
        moment: of the decision; its `scale` above 0.
        planning: greatest age of a forecast, lead, hold and quantile.
        calibrator: of the model version that made the forecast.

    Returns:
        The load ahead with six digits, the highest value over lead + hold of its level nearest to `planning.quantile`
        in records/s, and which forecast it is. None, None and the reason, where there is no forecast, it is too old
        (beginning with "late"), its steps are over, forecasts are refuted and nothing arrives, that value is negative,
        or any is not finite.

    Raises:
        KeyError: the forecast lacks a field.
        ValueError, TypeError: its quantiles are no numbers, or ragged.
        ZeroDivisionError: a scale of 0.
    """
    if not held:
        return None, None, "no forecast yet"
    age = moment.now - held["wall_time"]
    if age > planning.forecast_age_s:
        return None, None, f"late forecast: {age:.0f} s old, at most {planning.forecast_age_s:g} s"
    curves = _curves(held, moment)
    if curves.age_s[0] >= curves.step_s * len(held["quantiles"]):
        return None, None, f"late forecast: its {len(held['quantiles'])} steps are over"
    if moment.refuted and moment.arrival_rps == 0:
        return None, None, "no forecast counts while nothing comes of it"
    rate = np.array([moment.arrival_rps])
    peaked = calibrator is not None and calibrator.fits(planning, moment.scale)
    if calibrator is not None and peaked:
        ends, levels, what = calibrator.ends_s, tuple(PEAK_LEVELS), " of the peak"
        before = [moment.past.rate(moment.now - ago, SMOOTH_S) for ago in TRENDS_S]
        said = calibrator.quantiles_rps(Moments(curves, rate, moment.arrival_rps - np.array([before])))
    else:
        ends, levels, what = _ends(curves, planning), curves.levels, ""
        said = correct_by_rate(curves, ends, rate, MEMORY_STEPS * curves.step_s)
    # Rounded before the decision, so that the short numbers in the log are exactly those that were decided on.
    rows = tuple(tuple(float(f"{value:.6g}") for value in row) for row in said[0].tolist())
    made = Outlook(tuple(ends.tolist()), levels, rows)
    upper = float(made.to_arrays().peak_rps_at(planning.quantile, planning.lead_s + planning.hold_s)[0])
    if not math.isfinite(upper) or upper < 0:
        return None, None, f"no forecast: its upper quantile is {upper}"
    if not all(math.isfinite(value) for row in rows for value in row):  # no message holds such a number
        return None, None, "no forecast: a quantile of it is no finite number"
    level = min(levels, key=lambda one: abs(one - planning.quantile))
    return made, upper, f"{held['model']} v{held['version']} ({held['kind']}), {level:g} quantile{what}"


def _curves(held: dict[str, Any], moment: Moment) -> ForecastRows:
    """The forecast on the wall's clock."""
    quantiles, last = np.array(held["quantiles"], float)[None], held.get("last_rps")
    known = np.array([math.nan if last is None else last])
    age_s = np.array([max(moment.job_now - held["time"], 0.0) / moment.scale])
    curves = ForecastRows(quantiles, known, age_s, held["step_s"] / moment.scale, tuple(held["levels"]))
    return curves if last is not None else replace(curves, last=quantiles[:, 0, curves.nearest(0.5)])


def _ends(curves: ForecastRows, planning: Planning) -> Floats:
    """Those of a backtest, and the middles of steps between them: there a line turns.

    Where executors start in turns, the rest of the forecast, too: the first one starts for a load that is turns away.
    """
    ends = forecast_offsets(planning.lead_s, planning.hold_s)
    middles = (np.arange(curves.quantiles.shape[1]) + 0.5) * curves.step_s - curves.age_s[0]
    far = math.inf if planning.in_turns else ends[-1]
    return np.unique(np.concatenate([ends, middles[(middles > 0) & (middles < far)]]))
