"""One step of the blend's errors, weights and quantiles, compiled.

`state` is a `ScoreState`, changed in place. Row n % H of an array of pending forecasts belongs to step n; it is read H
times, then overwritten.
"""

from __future__ import annotations

import math
from typing import Any

import numba

from models.forecast.blend.experts import YESTERDAY
from models.forecast.core import conformal
from models.forecast.core.residuals import replace_sorted

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
RESTS = 0.15
"""Share of the long-run mean below which a load rests in a day. Errors of forecasts made then have no size: in units of
a weekend with next to no records the first load of Monday missed by so much that for days upper quantiles were a
hundred times any load. No day of a shipped series has less than 0.19."""
USUAL, STEPS, WORSE, LOST, BLENDED, SCORED = range(6)
"""Places in `ScoreState.scalars`.

The blend's mean squared one-step error, single ones cut off, and of how many steps; the share of the newest steps at
which it was far worse than the last value (worse at all, if lost); 1 while it is lost and the last value
is issued; the blend's forecast of the next step; rows in `errors` so far.
"""


@numba.njit(inline="always")
def _surprise(state: Any, own: float, still: float, before: float) -> int:
    """Update the one-step error statistics; return 1 if the step was missed by far more than usual, else 0.

    Where the blend was far worse than the last value at nearly all of the newest steps, the load has changed for good
    ("lost"): past errors of the experts then count as only a few, and 0 is returned. A step at which the same time
    yesterday was as good as the last value does not count as such.

    Args:
        state: changed.
        own: error of the blend, records/s.
        still: error of the last value.
        before: error of the same time yesterday; NaN where there is none.
    """
    scalars, squared = state.scalars, own * own
    rests = before * before <= still * still
    worse = 1.0 if squared > (1.0 if scalars[LOST] else _BEYOND) * still * still and not rests else 0.0
    scalars[WORSE] = scalars[WORSE] + (worse - scalars[WORSE]) / _NEWEST
    lost = scalars[WORSE] > (_FOUND if scalars[LOST] else _LOST)
    excited = scalars[STEPS] > 0 and squared > _SQUARED * scalars[USUAL]
    scalars[STEPS] += 1
    keep = min(state.usual_keep, 1 - 1 / scalars[STEPS])
    if scalars[STEPS] > 10 and scalars[USUAL] > 0:
        squared = min(squared, _SQUARED * scalars[USUAL])
    scalars[USUAL] = keep * scalars[USUAL] + (1 - keep) * squared
    scalars[LOST] = lost
    if not lost:
        return int(excited)
    for h in range(state.counts.shape[1]):
        state.counts[0, h] = min(state.counts[0, h], _FEW)
    return 0


@numba.njit(inline="always")
def _score(state: Any, mood: int, h: int, issued: Any, blended: float, value: float) -> None:
    """Update the errors of (E,) experts that forecast a step h + 1 steps ahead; a NaN expert gets the blend's error."""
    experts, own = len(issued), blended - value
    state.counts[mood, h] += 1
    share = max(state.share, 1 / state.counts[mood, h])
    state.size[mood, h] += share * (own * own - state.size[mood, h])
    unit, miss = math.sqrt(state.size[mood, h]) + _TINY, state.scratch
    for e in range(experts):
        miss[e] = (issued[e] - value if math.isfinite(issued[e]) else own) / unit
    loss, products = state.loss[mood, h], state.products[mood, h]
    for e in range(experts):
        loss[e] += share * (miss[e] * miss[e] - loss[e])
        row = products[e]
        for f in range(experts):
            row[f] += share * (miss[e] * miss[f] - row[f])


@numba.njit(inline="always")
def _blend(state: Any, mood: int, h: int, forecasts: Any) -> float:
    """Return the weighted mean of what (E,) experts forecast h + 1 steps ahead; NaN where all are NaN.

    Half of the blend weighs every expert by its mean squared error to the power −4. The other half minimises the mean
    squared error of the weighted mean over weights ≥ 0 that sum to 1 (Bates and Granger 1969), one step of the
    exponentiated gradient (Kivinen and Warmuth 1997) per moment. Calm and excited moments have their own errors: after
    a spike the last value is worth more than at other times.
    """
    experts, mood = len(forecasts), mood if state.counts[mood, h] >= _FEW else 0
    loss, shares, products = state.loss[mood, h], state.shares[mood, h], state.products[mood, h]
    least, total = math.inf, 0.0
    for e in range(experts):
        if math.isfinite(forecasts[e]):
            least = min(least, loss[e])
        shares[e] = max(shares[e], _LEAST)
        total += shares[e]
    least = (least if math.isfinite(least) else 0.0) + 1e-9
    slope, mean = state.scratch, 0.0
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
        if math.isfinite(forecasts[e]):
            weight = (least / (loss[e] + 1e-12)) ** _POWER
            alone, of_alone = alone + weight, of_alone + weight * forecasts[e]
            together, of_together = together + shares[e], of_together + shares[e] * forecasts[e]
    return (of_alone / alone + of_together / together) / 2


@numba.njit(inline="always")
def _cover(state: Any, row: int, h: int, value: float, oldest: int) -> None:
    """Do `Conformal.score` for one step ahead, whose forecast lies in that row."""
    miss, scale = value - state.centres[row, h], state.scales[row, h]
    known = math.isfinite(miss) and state.units[row, h] > 0  # of a load of 0 errors have no unit
    if scale > 0:  # else the slot keeps its error: weeks of rest would empty them all
        fresh = miss / scale
        state.known[h] = replace_sorted(state.ordered[h], state.known[h], state.errors[oldest, h], fresh)
        state.errors[oldest, h] = fresh
    if known:
        state.seen[h] += 1
        for i in range(2):
            share = max(state.shares_of_size[i], 1 / state.seen[h])
            state.widths[i, h] += share * (abs(miss / state.units[row, h]) - state.widths[i, h])
        for i in range(len(state.levels)):
            under = 1.0 if value <= state.issued[row, h, i] else 0.0
            state.moved[h, i] = min(
                max(state.moved[h, i] + conformal._GAIN * (state.levels[i] - under), state.low[i]), state.high[i]
            )


@numba.njit(inline="always")
def _band(state: Any, h: int) -> None:
    """Do `Conformal._bands` for one step ahead."""
    ordered, count = state.ordered[h], state.known[h]
    for i in range(len(state.levels)):
        level = min(max(state.levels[i] + state.moved[h, i], 0.0), 1.0)
        place = min(max(level * count - 0.5, 0.0), max(count - 1, 0))
        low = int(place)
        high = min(low + 1, max(count - 1, 0))
        state.bands[h, i] = ordered[low] + (place - low) * (ordered[high] - ordered[low]) if count else 0.0


@numba.njit(inline="always")
def _quantiles(
    state: Any, row: int, h: int, centre: float, level: float, largest: float, rests: bool, out: Any
) -> None:
    """Do `Conformal.quantiles` for one step ahead: fill (levels,) records/s; while a load rests errors have no size."""
    unit = math.sqrt(max(centre, 0.0) * level + conformal._LEAST * level * level)
    size = (state.widths[0, h] + state.widths[1, h]) / 2 if state.seen[h] > 0 else largest
    told = 0.0 if rests else unit
    state.centres[row, h], state.units[row, h], state.scales[row, h] = centre, told, told * size
    for i in range(len(state.levels)):
        found = max(centre + unit * size * state.bands[h, i], 0.0)
        if state.levels[i] <= 0.5:
            found = min(found, centre)
        if state.levels[i] >= 0.5:
            found = max(found, centre)
        k = i
        while k and out[k - 1] > found:
            out[k] = out[k - 1]
            k -= 1
        out[k] = found
    for i in range(len(state.levels)):
        state.issued[row, h, i] = out[i]


# Nothing is allocated here: reference counts, taken at every inlined call, would take most of the time.
@numba.njit(cache=True, error_model="numpy", _nrt=False)  # type: ignore[call-overload, untyped-decorator]
def score_and_blend(state: Any, seen: int, value: float, level: float, usual: float, forecasts: Any, out: Any) -> None:
    """Score past forecasts of the newest step, then blend the experts' new forecasts and fill in their quantiles.

    Each expert's errors and weight and the widths of the quantiles are updated first. After a change of level
    (`BlendTrack.basis`) the quantiles lie around the last value. Compiled: shapes are not checked.

    Args:
        state: a `ScoreState`, changed in place.
        seen: steps so far, this one included.
        value: records/s of the newest step; NaN: missing, nothing is scored.
        level: mean load of the newest day, records/s; 0 while all loads were.
        usual: long-run mean load, records/s.
        forecasts: (E, horizon) records/s, what the experts forecast now; row 0 is the last value, NaN: none.
        out: (horizon, levels) records/s, filled: rising over the levels and at least 0; NaN where all experts are.
    """
    experts, horizon = forecasts.shape
    mood = 0
    if not math.isnan(value):
        last = state.pending[(seen - 1) % horizon, 0]
        if math.isfinite(state.scalars[BLENDED]):
            mood = _surprise(state, state.scalars[BLENDED] - value, last[0] - value, last[YESTERDAY] - value)
        oldest = int(state.scalars[SCORED]) % conformal.KEPT
        for h in range(horizon):
            row = (seen - 1 - h) % horizon
            if math.isfinite(state.centres[row, h]):
                _score(state, state.moods[row], h, state.pending[row, h], state.centres[row, h], value)
            _cover(state, row, h, value, oldest)
        state.scalars[SCORED] += 1
    row, largest, rests = seen % horizon, 0.0, level < RESTS * usual
    for h in range(horizon):
        largest = max(largest, (state.widths[0, h] + state.widths[1, h]) / 2)
    for h in range(horizon):
        for e in range(experts):
            state.pending[row, h, e] = forecasts[e, h]
        blended = _blend(state, mood, h, state.pending[row, h])
        if h == 0:
            state.scalars[BLENDED] = blended
        if seen < conformal.EVERY or (h + seen) % conformal.EVERY == 0:
            _band(state, h)
        _quantiles(state, row, h, forecasts[0, h] if state.scalars[LOST] else blended, level, largest, rests, out[h])
    state.moods[row] = mood
