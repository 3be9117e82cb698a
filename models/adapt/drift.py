"""Drift detection on a load or on its forecast errors: ADWIN and Page-Hinkley (river's), confirmed by medians.

Bifet and Gavaldà, "Learning from Time-Changing Data with Adaptive Windowing", SDM 2007; Page, "Continuous Inspection
Schemes", Biometrika 41 (1954). Nothing is kept between two calls but the last drift: the newest weeks are replayed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from configs.bounds import DAY_S
from models.adapt.surprise import BlockMeans, Shift, block_means, error_size, error_surprise, load_surprise
from models.forecast.core.series import Floats, Series, SeriesError

if TYPE_CHECKING:
    from river.base import DriftDetector

KEPT_DAYS = 42
"""Newest days that are read: those replayed, and the four weeks before that say what was usual."""
REPLAYED_DAYS = 14
"""Newest days over which the detectors are replayed."""
QUIET_S = DAY_S
"""Seconds after a drift in which none is reported: from then on yesterday is at the new level."""
LEAST = 0.15
"""The smallest change reported, as |log ratio|: + 16 % or − 14 %."""
_BLOCK = 6  # steps per mean that the detectors read
_LASTING = 6  # means over which the change must hold in the median
_THRESHOLD = 6.0  # units of the noise: Page-Hinkley's lambda
_DELTA = 0.05  # ADWIN's significance
_FIRST_DAYS = 3  # days before which nothing is reported
_NOISE_DAYS = 28
_NOISE_SHARE = 0.8  # quantile of the absolute running median that counts as noise
_NOISE_TIMES = 2.0  # least change, in units of the noise
_UNIT = 0.05  # log ratio: the least noise that is assumed
_HIGHEST = 5.0  # units: values are cut to this
_SLACK = 1.0  # units: Page-Hinkley's delta, the tolerated deviation
_LEAST_WINDOW = 4  # means: ADWIN's shortest part


@dataclass(frozen=True)
class Drift:
    """A lasting change of a load or of the size of its forecast errors.

    Attributes:
        time: epoch seconds at which it is estimated to have begun.
        found: epoch seconds at which it was confirmed; never before that step was complete.
        kind: the detector that noticed it, "page_hinkley" or "adwin".
        signal: "load" or "forecast_error".
        before: median over the day before; of the load as log ratio to its usual range at that time, of errors as mean
            |log ratio| above their usual range; 0 is usual.
        after: median since, likewise.
    """

    time: float
    found: float
    kind: str
    signal: str
    before: float
    after: float

    @property
    def factor(self) -> float:
        """By how much the signal changed: 1.3 is a load 30 % higher, or a usual ratio of error 30 % larger."""
        return math.exp(self.after - self.before)


def detect_drifts(
    series: Series, last: Drift | None = None, errors: Series | None = None, least: float = LEAST
) -> list[Drift]:
    """Return the lasting changes in the newest 14 days of a load, by replaying two detectors over means of 6 steps.

    Args:
        series: records/s, NaN: missing; the newest 42 days are used. A step length of 0: ZeroDivisionError.
        last: the last drift already known; nothing is reported until a day after `Drift.found`.
        errors: log(actual/forecast) at the same steps; NaN where unknown. Only growing errors are reported.
        least: the smallest change reported, as |log ratio| of medians after and before: 0.15 is + 16 % or − 14 %.

    Returns:
        Oldest first, each found at least a day after the one before; none within the first three days of the series.
        Times are epoch seconds.

    Raises:
        SeriesError: the errors are not at the steps of the series.
    """
    if errors is not None and (
        len(errors) != len(series)
        or errors.step_s != series.step_s
        or abs(errors.start - series.start) >= 1e-3 * series.step_s
    ):
        raise SeriesError(
            f"{len(errors)} errors of {errors.step_s:g} s from {errors.start}, {len(series)} steps of "
            f"{series.step_s:g} s from {series.start}: one error per step is expected. Put NaN where there is none."
        )
    kept = round(KEPT_DAYS * DAY_S / series.step_s)
    _, newest = series.split(kept)
    load = block_means(newest, _BLOCK)
    signals = [_Signal("load", load, load_surprise, False, least)]
    if errors is not None:
        _, newest = errors.split(kept)
        signals.append(_Signal("forecast_error", error_size(newest, _BLOCK), error_surprise, True, least))
    for signal in signals:
        signal.restart(last)
    resumes = last.found + QUIET_S if last else -math.inf
    drifts: list[Drift] = []
    count = len(load.values)
    for at in range(max(_FIRST_DAYS * load.day, count - REPLAYED_DAYS * load.day), count):
        if load.end_of(at) - load.span_s < resumes:
            continue
        confirmed = [drift for signal in signals if (drift := signal.step(at)) is not None]
        if confirmed:
            drifts.append(confirmed[0])
            resumes = confirmed[0].found + QUIET_S
            for signal in signals:
                signal.restart(confirmed[0])
    return drifts


class _Signal:
    """The load or the size of its errors, as block means, and the detectors that are replayed over it."""

    def __init__(
        self,
        signal: str,
        means: BlockMeans,
        surprise: Callable[[BlockMeans, Shift | None], Floats],
        only_up: bool,
        least: float,
    ) -> None:
        self._signal, self._means, self._surprise, self._only_up, self._least = signal, means, surprise, only_up, least
        self._noise_every = max(means.day // 8, 1)

    def restart(self, last: Drift | None) -> None:
        """Reset both detectors (Page-Hinkley and ADWIN), the noise and what they suspected.

        Args:
            last: the newest drift, None where there was none; if it was of this signal, its level counts as usual
                beside the old one.
        """
        from river.drift import ADWIN, PageHinkley  # takes a second to import, of which most is its data sets' SQL

        shift = Shift(last.time, last.after - last.before) if last and last.signal == self._signal else None
        self._values = self._surprise(self._means, shift)
        self._middle = _running_median(self._values, _LASTING)
        self._noise: float | None = None
        self._detectors: dict[str, DriftDetector] = {
            "page_hinkley": PageHinkley(min_instances=1, delta=_SLACK, threshold=_THRESHOLD, alpha=1.0),
            "adwin": ADWIN(_DELTA, 1, min_window_length=_LEAST_WINDOW, grace_period=2 * _LEAST_WINDOW),  # type: ignore[no-untyped-call]
        }
        self._suspicion: tuple[str, int] | None = None
        self._begun: int | None = None

    def step(self, at: int) -> Drift | None:
        """Feed the block mean at an index to the detectors, and report the drift that it confirms.

        Returns:
            The drift, where a detector alarmed at this or one of the last six means, and the median of the newest six
            differs from that of the day before by `least` and by twice the noise; else None, as for a mean that is NaN.
        """
        if self._begun is None:
            self._begun = at
        # Noise is recomputed at fixed times of day, so that it does not depend on where the replay begins.
        sized = at - round(self._means.end_of(at) / self._means.span_s) % self._noise_every
        if self._noise is None or sized == at:
            self._noise = self._noise_at(sized)
        value = self._values[at]
        if math.isnan(value):
            return None
        unit = max(_UNIT, self._noise)
        scaled = min(max(value / unit, -_HIGHEST), _HIGHEST)
        for kind, detector in self._detectors.items():
            detector.update(scaled)
            if detector.drift_detected:
                self._suspicion = (kind, at + _LASTING)
        if self._suspicion is None or at > self._suspicion[1]:
            return None
        return self._certain(at, self._suspicion[0])

    def _certain(self, at: int, kind: str) -> Drift | None:
        """Return the drift if the median of the newest means lies far enough from that of the day before, else None."""
        edge = at - _LASTING + 1
        assert self._begun is not None and self._noise is not None
        earlier = self._values[max(self._begun, edge - self._means.day) : max(edge, 0)]
        earlier = earlier[np.isfinite(earlier)]
        before = float(np.median(earlier)) if len(earlier) else 0.0
        change = self._middle[at] - before
        if not abs(change) >= max(self._least, _NOISE_TIMES * self._noise) or (self._only_up and change < 0):
            return None
        first = max(self._begun, at - 2 * _LASTING + 1)
        gains = np.nan_to_num((self._values[first : at + 1] - before) * np.sign(change) - abs(change) / 2)
        onset = first + int(np.argmax(np.cumsum(gains[::-1])[::-1]))  # maximises the summed evidence from there on
        time = self._means.end_of(onset) - self._means.span_s
        after = float(np.nanmedian(self._values[onset : at + 1]))
        return Drift(time, self._means.end_of(at), kind, self._signal, before, after)

    def _noise_at(self, at: int) -> float:
        seen = np.abs(self._middle[max(at - _NOISE_DAYS * self._means.day, 0) : at])
        seen = seen[np.isfinite(seen)]
        return float(np.quantile(seen, _NOISE_SHARE)) if len(seen) else math.inf


def _running_median(values: Floats, width: int) -> Floats:
    """Return (N,) medians of the newest `width` values; NaN where half of them or more are unknown."""
    medians = np.full(len(values), np.nan)
    if len(values) < width:
        return medians
    windows = np.lib.stride_tricks.sliding_window_view(values, width)
    enough = 2 * np.isfinite(windows).sum(axis=1) > width
    medians[width - 1 :][enough] = np.nanmedian(windows[enough], axis=1)
    return medians
