"""One step of the blend's errors, weights and quantiles, compiled.

`b` is a `Judged`, changed in place. Row n % H of a pending array belongs to step n; it is read H times, then
overwritten.
"""

from __future__ import annotations

import math
from typing import Any

import numba

from models.forecast.blend.experts import YESTERDAY
from models.forecast.core import conformal
from models.forecast.core.residuals import exchange

_POWER = 4.0  # exponent of the ratio of mean squared errors
_RATE = 0.3  # step of the exponentiated gradient
_STEP = 2.0  # no share changes by more than exp(this) at once
_LEAST = 0.002  # share below which no expert falls, so that it can come back
_FEW = 8.0  # errors of excited moments, before which they are weighed as calm ones
_EXCITED = 2.5  # times the usual one-step error: after a larger error the moment is excited
_SQUARED = _EXCITED**2
_BEYOND = 4.0  # times the last value's squared error: beyond it the blend was far worse
_LOST, _FOUND = 0.7, 0.4  # share of such newest steps above which it becomes lost; at or below which, found
_NEWEST = 8.0  # effective number of these newest steps
_TINY = 1e-12
USUAL, STEPS, WORSE, LOST, BLENDED, SCORED = range(6)
"""Places in `Judged.one`.

The blend's mean squared one-step error, single ones cut off, and of how many steps; the share of the newest steps at
which it was far worse than the last value (worse at all, if lost); whether it is lost, so that the last value had
better be said; what the blend said of the next step; rows in `errors` so far.
"""


@numba.njit(inline="always")
def _surprise(b: Any, own: float, still: float, before: float) -> int:
    """Update the one-step error statistics; return 1 if the step was missed by far more than usual, else 0.

    Where the blend was far worse than the last value at nearly all of the newest steps, the load has changed for good
    ("lost"): past errors of the experts then count as only a few, and 0 is returned. A step at which the same time
    yesterday was as good as the last value does not count as such.

    Args:
        b: changed.
        own: error of the blend, records/s.
        still: error of the last value.
        before: error of the same time yesterday; NaN where there is none.
    """
    one, squared = b.one, own * own
    rests = before * before <= still * still
    worse = 1.0 if squared > (1.0 if one[LOST] else _BEYOND) * still * still and not rests else 0.0
    one[WORSE] = one[WORSE] + (worse - one[WORSE]) / _NEWEST
    lost = one[WORSE] > (_FOUND if one[LOST] else _LOST)
    excited = one[STEPS] > 0 and squared > _SQUARED * one[USUAL]
    one[STEPS] += 1
    keep = min(b.usual_keep, 1 - 1 / one[STEPS])
    if one[STEPS] > 10 and one[USUAL] > 0:
        squared = min(squared, _SQUARED * one[USUAL])
    one[USUAL] = keep * one[USUAL] + (1 - keep) * squared
    one[LOST] = lost
    if not lost:
        return int(excited)
    for h in range(b.judged.shape[1]):
        b.judged[0, h] = min(b.judged[0, h], _FEW)
    return 0


@numba.njit(inline="always")
def _score(b: Any, mood: int, h: int, issued: Any, spoken: float, value: float) -> None:
    """Update the experts' errors with a step forecast h + 1 steps ahead; a NaN expert gets the blend's error."""
    experts, own = len(issued), spoken - value
    b.judged[mood, h] += 1
    share = max(b.share, 1 / b.judged[mood, h])
    b.size[mood, h] += share * (own * own - b.size[mood, h])
    unit, miss = math.sqrt(b.size[mood, h]) + _TINY, b.scratch
    for e in range(experts):
        miss[e] = (issued[e] - value if math.isfinite(issued[e]) else own) / unit
    loss, products = b.loss[mood, h], b.products[mood, h]
    for e in range(experts):
        loss[e] += share * (miss[e] * miss[e] - loss[e])
        row = products[e]
        for f in range(experts):
            row[f] += share * (miss[e] * miss[f] - row[f])


@numba.njit(inline="always")
def _blend(b: Any, mood: int, h: int, said: Any) -> float:
    """Return the weighted mean of what (E,) experts forecast h + 1 steps ahead; NaN where all are NaN.

    Half of the blend weighs every expert by its mean squared error to the power −4. The other half minimises the mean
    squared error of the weighted mean over weights ≥ 0 that sum to 1 (Bates and Granger 1969), one step of the
    exponentiated gradient (Kivinen and Warmuth 1997) per moment. Calm and excited moments have their own errors: after
    a spike the last value is worth more than at other times.
    """
    experts, mood = len(said), mood if b.judged[mood, h] >= _FEW else 0
    loss, shares, products = b.loss[mood, h], b.shares[mood, h], b.products[mood, h]
    least, total = math.inf, 0.0
    for e in range(experts):
        if math.isfinite(said[e]):
            least = min(least, loss[e])
        shares[e] = max(shares[e], _LEAST)
        total += shares[e]
    least = (least if math.isfinite(least) else 0.0) + 1e-9
    slope, mean = b.scratch, 0.0
    for e in range(experts):
        slope[e] = 0.0
        shares[e] /= total
    for f in range(experts):
        for e in range(experts):
            slope[e] += products[f, e] * shares[f]
    for e in range(experts):
        slope[e] /= least
        mean += slope[e] * shares[e]
    total = 0.0
    for e in range(experts):
        shares[e] *= math.exp(-min(max(_RATE * (slope[e] - mean), -_STEP), _STEP))
        total += shares[e]
    alone, together, of_alone, of_together = 0.0, 0.0, 0.0, 0.0
    for e in range(experts):
        shares[e] /= total
        if math.isfinite(said[e]):
            weight = (least / (loss[e] + 1e-12)) ** _POWER
            alone, of_alone = alone + weight, of_alone + weight * said[e]
            together, of_together = together + shares[e], of_together + shares[e] * said[e]
    return (of_alone / alone + of_together / together) / 2


@numba.njit(inline="always")
def _cover(b: Any, row: int, h: int, value: float, oldest: int) -> None:
    """Do `Conformal.score` for one step ahead, whose forecast lies in that row."""
    miss, scale, fresh = value - b.centres[row, h], b.scales[row, h], math.nan
    known = math.isfinite(miss)
    if scale > 0:
        fresh = miss / scale
    b.known[h] = exchange(b.ordered[h], b.known[h], b.errors[oldest, h], fresh)
    b.errors[oldest, h] = fresh
    if known:
        b.seen[h] += 1
        for i in range(2):
            share = max(b.shares_of_size[i], 1 / b.seen[h])
            b.widths[i, h] += share * (abs(miss / b.units[row, h]) - b.widths[i, h])
        for i in range(len(b.levels)):
            under = 1.0 if value <= b.said[row, h, i] else 0.0
            b.moved[h, i] = min(max(b.moved[h, i] + conformal._GAIN * (b.levels[i] - under), b.low[i]), b.high[i])


@numba.njit(inline="always")
def _band(b: Any, h: int) -> None:
    """Do `Conformal._bands` for one step ahead."""
    ordered, count = b.ordered[h], b.known[h]
    for i in range(len(b.levels)):
        level = min(max(b.levels[i] + b.moved[h, i], 0.0), 1.0)
        place = min(max(level * count - 0.5, 0.0), max(count - 1, 0))
        low = int(place)
        high = min(low + 1, max(count - 1, 0))
        b.bands[h, i] = ordered[low] + (place - low) * (ordered[high] - ordered[low]) if count else 0.0


@numba.njit(inline="always")
def _quantiles(b: Any, row: int, h: int, centre: float, level: float, largest: float, out: Any) -> None:
    """Do `Conformal.quantiles` for one step ahead: fill (levels,) records/s."""
    unit = math.sqrt(max(centre, 0.0) * level + conformal._LEAST * level * level)
    size = (b.widths[0, h] + b.widths[1, h]) / 2 if b.seen[h] > 0 else largest
    b.centres[row, h], b.units[row, h], b.scales[row, h] = centre, unit, unit * size
    for i in range(len(b.levels)):
        found = max(centre + unit * size * b.bands[h, i], 0.0)
        if b.levels[i] <= 0.5:
            found = min(found, centre)
        if b.levels[i] >= 0.5:
            found = max(found, centre)
        k = i
        while k and out[k - 1] > found:
            out[k] = out[k - 1]
            k -= 1
        out[k] = found
    for i in range(len(b.levels)):
        b.said[row, h, i] = out[i]


# Nothing is allocated here: reference counts, taken at every inlined call, would take most of the time.
@numba.njit(cache=True, error_model="numpy", _nrt=False)  # type: ignore[call-overload, untyped-decorator]
def judge(b: Any, seen: int, value: float, level: float, said: Any, out: Any) -> None:
    """Score the forecasts of the step that came, update weights and quantiles, and blend the experts' new forecasts.

    Where the blend has lately been far worse than the last value, as after a change of level, the quantiles are put
    around the last value until it is better again. Compiled; allocates nothing.

    Args:
        b: a `Judged`, changed in place.
        seen: steps so far, this one included.
        value: records/s of the step; NaN: missing, nothing is scored.
        level: mean load of the newest day, records/s.
        said: (E, horizon) records/s the experts forecast now; NaN: none.
        out: (horizon, levels) records/s, filled: rising over the levels and at least 0.
    """
    experts, horizon = said.shape
    mood = 0
    if not math.isnan(value):
        last = b.pending[(seen - 1) % horizon, 0]
        if math.isfinite(b.one[BLENDED]):
            mood = _surprise(b, b.one[BLENDED] - value, last[0] - value, last[YESTERDAY] - value)
        oldest = int(b.one[SCORED]) % conformal.KEPT
        for h in range(horizon):
            row = (seen - 1 - h) % horizon
            if math.isfinite(b.centres[row, h]):
                _score(b, b.moods[row], h, b.pending[row, h], b.centres[row, h], value)
            _cover(b, row, h, value, oldest)
        b.one[SCORED] += 1
    row, largest = seen % horizon, 0.0
    for h in range(horizon):
        largest = max(largest, (b.widths[0, h] + b.widths[1, h]) / 2)
    for h in range(horizon):
        for e in range(experts):
            b.pending[row, h, e] = said[e, h]
        blended = _blend(b, mood, h, b.pending[row, h])
        if h == 0:
            b.one[BLENDED] = blended
        if seen < conformal.EVERY or (h + seen) % conformal.EVERY == 0:
            _band(b, h)
        _quantiles(b, row, h, said[0, h] if b.one[LOST] else blended, level, largest, out[h])
    b.moods[row] = mood
