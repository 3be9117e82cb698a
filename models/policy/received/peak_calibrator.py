"""How the peaks of one job's load are forecast while it runs: learned beside a forecaster's version, kept as JSON."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from configs.contract import Planning
from models.policy.core.capacity import Floats
from models.policy.received.nowcast import ForecastRows
from models.policy.received.peaks import LEVELS, TRENDS_S, Line, Moments, Peaks, stretch_ends

_CLOSE, _NEAR = 1e-6, 1.6
_CURVES = ForecastRows(np.ones((1, 2, 2)), np.ones(1), np.zeros(1), 60.0, (0.5, 0.9))
_TRIAL = Moments(_CURVES, np.ones(1), np.full((1, len(TRENDS_S)), np.nan))
"""A moment at which kept peaks are tried: what fails at a decision would fail the decisions of all jobs."""


class PeakCalibratorError(ValueError):
    """Stored data that are no peak calibrator of this version of the code."""


@dataclass(frozen=True, eq=False)
class PeakCalibrator:
    """Quantile forecasts of the peak load in two stretches ahead, for the policies of `configs.policies.BY_PEAKS`.

    Attributes:
        soon, then: peaks until what is asked for now works, and in the hold after it; records/s.
        lead_s, hold_s: wall seconds that these stretches last.
        scale: job seconds per wall second.
    """

    soon: Peaks
    then: Peaks
    lead_s: float
    hold_s: float
    scale: float

    @property
    def ends_s(self) -> Floats:
        """(2,) ends of both stretches, wall seconds from now."""
        return stretch_ends(self.lead_s, self.hold_s)

    def quantiles_rps(self, moments: Moments) -> Floats:
        """Return (N, 2, levels) records/s that the load stays under in both stretches, at `peaks.LEVELS`."""
        return np.stack([peaks.quantiles_rps(moments) for peaks in (self.soon, self.then)], axis=1)

    def fits(self, planning: Planning, scale: float) -> bool:
        """Return whether hold and time scale (job seconds per wall second) are those it was fitted for, the lead near.

        A lead time that is learned moves: up to a factor of 1.6 the peaks of the stretch still tell.
        """
        mine, theirs = (self.hold_s, self.scale), (planning.hold_s, scale)
        near = self.lead_s / _NEAR <= planning.lead_s <= self.lead_s * _NEAR
        return near and all(math.isclose(a, b, rel_tol=_CLOSE) for a, b in zip(mine, theirs, strict=True))


def describe(calibrator: PeakCalibrator) -> dict[str, Any]:
    """Return the calibrator as JSON values: its fields, and the `levels`; `revive` is the inverse."""
    plain: dict[str, Any] = json.loads(json.dumps(asdict(calibrator), default=np.ndarray.tolist))
    return {**plain, "levels": list(LEVELS)}


def revive(data: Any) -> PeakCalibrator:
    """Rebuild a peak calibrator (quantile forecasts of the peak load) from the JSON values that `describe` made.

    Raises:
        PeakCalibratorError: other levels than `peaks.LEVELS`, a missing field, one of a wrong type, or parts whose
            lengths do not go together.
        ValueError: a text or list is no number.
    """
    try:
        if data["levels"] != list(LEVELS):
            raise PeakCalibratorError(
                f"peaks at the levels {data['levels']}; this code has {list(LEVELS)}: train again"
            )
        soon, then = (_revived(data[name]) for name in ("soon", "then"))
        made = PeakCalibrator(soon, then, *(float(data[name]) for name in ("lead_s", "hold_s", "scale")))
    except (KeyError, TypeError) as error:
        raise PeakCalibratorError(f"no peaks of this code ({error!r}); train again") from None
    try:
        shape = made.quantiles_rps(_TRIAL).shape
    except (IndexError, ValueError) as error:
        raise PeakCalibratorError(f"no peaks can be told by it ({error}); train again") from None
    if shape != (1, 2, len(LEVELS)):
        raise PeakCalibratorError(f"it tells peaks of the shape {shape}; train again")
    return made


def _revived(data: dict[str, Any]) -> Peaks:
    centre, scale = (
        data[name] and Line(np.array(data[name]["weight"], float), float(data[name]["bias"]))
        for name in ("centre", "scale")
    )
    scores, offsets_s = (np.array(data[name], float) for name in ("scores", "offsets_s"))
    return Peaks(centre, scale, scores, float(data["least"]), offsets_s, float(data["gain"]), bool(data["foretold"]))
