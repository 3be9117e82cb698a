"""The blend's errors, weights and quantiles of one moment, compiled: what `weights` and `conformal` compute.

`b` is a `Judged` of `online_judged`: everything is changed in place. Row n % H of what was said at a moment is that of
step n; each row is read H times and then written over. All is equal up to rounding, so an outcome that equals one of
the quantiles to the last bit, as where a load repeats itself exactly, may be counted on the other side of it.
"""

from __future__ import annotations

import math
from typing import Any

import numba

from models.forecast.blend import weights
from models.forecast.blend.experts import YESTERDAY
from models.forecast.core import conformal
from models.forecast.core.ordered import exchange

USUAL, STEPS, WORSE, LOST, BLENDED, SCORED = range(6)
"""Of `Judged.one`: those of `weights.Errors`, what the blend said of the next step, and rows in `errors` so far."""


@numba.njit(inline="always")
def _surprise(b: Any, own: float, still: float, before: float) -> int:
    """`weights.surprise` with its half-life of the usual error."""
    one, squared = b.one, own * own
    rests = before * before <= still * still
    worse = 1.0 if squared > (1.0 if one[LOST] else weights._BEYOND) * still * still and not rests else 0.0
    one[WORSE] = one[WORSE] + (worse - one[WORSE]) / weights._NEWEST
    lost = one[WORSE] > (weights._FOUND if one[LOST] else weights._LOST)
    excited = one[STEPS] > 0 and squared > weights._SQUARED * one[USUAL]
    one[STEPS] += 1
    keep = min(b.usual_keep, 1 - 1 / one[STEPS])
    if one[STEPS] > 10 and one[USUAL] > 0:
        squared = min(squared, weights._SQUARED * one[USUAL])
    one[USUAL] = keep * one[USUAL] + (1 - keep) * squared
    one[LOST] = lost
    if not lost:
        return int(excited)
    for h in range(b.told.shape[1]):
        b.told[0, h] = min(b.told[0, h], weights._FEW)
    return 0


@numba.njit(inline="always")
def _score(b: Any, mood: int, h: int, told: Any, spoken: float, value: float) -> None:
    """`weights.score` of one step ahead."""
    experts, own = len(told), spoken - value
    b.told[mood, h] += 1
    share = max(b.share, 1 / b.told[mood, h])
    b.size[mood, h] += share * (own * own - b.size[mood, h])
    unit, miss = math.sqrt(b.size[mood, h]) + weights._TINY, b.scratch
    for e in range(experts):
        miss[e] = (told[e] - value if math.isfinite(told[e]) else own) / unit
    loss, products = b.loss[mood, h], b.products[mood, h]
    for e in range(experts):
        loss[e] += share * (miss[e] * miss[e] - loss[e])
        row = products[e]
        for f in range(experts):
            row[f] += share * (miss[e] * miss[f] - row[f])


@numba.njit(inline="always")
def _blend(b: Any, mood: int, h: int, said: Any) -> float:
    """`weights.blend` of one step ahead."""
    experts, mood = len(said), mood if b.told[mood, h] >= weights._FEW else 0
    loss, shares, products = b.loss[mood, h], b.shares[mood, h], b.products[mood, h]
    least, total = math.inf, 0.0
    for e in range(experts):
        if math.isfinite(said[e]):
            least = min(least, loss[e])
        shares[e] = max(shares[e], weights._LEAST)
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
        shares[e] *= math.exp(-min(max(weights._RATE * (slope[e] - mean), -weights._STEP), weights._STEP))
        total += shares[e]
    alone, together, of_alone, of_together = 0.0, 0.0, 0.0, 0.0
    for e in range(experts):
        shares[e] /= total
        if math.isfinite(said[e]):
            weight = (least / (loss[e] + 1e-12)) ** weights._POWER
            alone, of_alone = alone + weight, of_alone + weight * said[e]
            together, of_together = together + shares[e], of_together + shares[e] * said[e]
    return (of_alone / alone + of_together / together) / 2


@numba.njit(inline="always")
def _cover(b: Any, row: int, h: int, value: float, oldest: int) -> None:
    """`Conformal.score` of one step ahead, whose forecast lies in that row."""
    miss, scale, fresh = value - b.centres[row, h], b.scales[row, h], math.nan
    told = math.isfinite(miss)
    if scale > 0:
        fresh = miss / scale
    b.known[h] = exchange(b.ordered[h], b.known[h], b.errors[oldest, h], fresh)
    b.errors[oldest, h] = fresh
    if told:
        b.seen[h] += 1
        for i in range(2):
            share = max(b.shares_of_size[i], 1 / b.seen[h])
            b.widths[i, h] += share * (abs(miss / b.units[row, h]) - b.widths[i, h])
        for i in range(len(b.levels)):
            under = 1.0 if value <= b.said[row, h, i] else 0.0
            b.moved[h, i] = min(max(b.moved[h, i] + conformal._GAIN * (b.levels[i] - under), b.low[i]), b.high[i])


@numba.njit(inline="always")
def _band(b: Any, h: int) -> None:
    """`Conformal._bands` of one step ahead."""
    ordered, count = b.ordered[h], b.known[h]
    for i in range(len(b.levels)):
        level = min(max(b.levels[i] + b.moved[h, i], 0.0), 1.0)
        place = min(max(level * count - 0.5, 0.0), max(count - 1, 0))
        low = int(place)
        high = min(low + 1, max(count - 1, 0))
        b.bands[h, i] = ordered[low] + (place - low) * (ordered[high] - ordered[low]) if count else 0.0


@numba.njit(inline="always")
def _quantiles(b: Any, row: int, h: int, centre: float, level: float, largest: float, out: Any) -> None:
    """`Conformal.quantiles` of one step ahead: fill (levels,) records/s."""
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
    """One step later, as `Blend._moved`: judge what had been said of it, and blend what is said now.

    Args:
        b: changed in place.
        seen: steps, this one included.
        value: what came, NaN: missing.
        level: of the load.
        said: (E, horizon) what the experts say now.
        out: (horizon, levels) is filled.
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
