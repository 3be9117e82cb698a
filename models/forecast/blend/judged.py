"""What the blend remembers of errors, laid out for the compiled step; and back into the blend's own form."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.forecast.blend.blend import _USUAL, Blend, Carried
from models.forecast.blend.experts import Learnt
from models.forecast.blend.judge import BLENDED, LOST, SCORED, STEPS, USUAL, WORSE
from models.forecast.blend.weights import Errors
from models.forecast.core.conformal import KEPT, Spread
from models.forecast.core.series import Floats

Counts = NDArray[np.int64]


class Judged(NamedTuple):
    """What is remembered of errors: `weights.Errors`, `conformal.Spread`, and what was said at the H newest moments.

    Attributes:
        levels, low, high: (levels,) of the quantiles, and by how much they may be moved.
        shares_of_size, share, usual_keep: how fast sizes, the experts' errors and the usual error are renewed.
        one: numbers by the names in `online_judge`.
        told, size, loss, products, shares: of `Errors`, there `count` and so on.
        errors, widths, seen, moved, bands: of `Spread`, there `errors`, `size`, `count`, `moved`, `bands`.
        ordered, known: (H, KEPT + 1) and (H,) the columns of `errors`, rising, and how many there are.
        centres, units, scales, said: of `Spread`; row n % H is that of step n.
        pending, moods: (H, H, E) and (H,), likewise: by moment, step ahead, expert.
        scratch: (E,) of no meaning.
    """

    levels: Floats
    low: Floats
    high: Floats
    shares_of_size: Floats
    share: float
    usual_keep: float
    one: Floats
    told: Floats
    size: Floats
    loss: Floats
    products: Floats
    shares: Floats
    errors: Floats
    widths: Floats
    seen: Floats
    moved: Floats
    bands: Floats
    ordered: Floats
    known: Counts
    centres: Floats
    units: Floats
    scales: Floats
    said: Floats
    pending: Floats
    moods: Counts
    scratch: Floats


def judged(blend: Blend, carried: Carried, seen: int) -> Judged:
    """What the blend carries after so many steps, as arrays of its own."""
    errors, spread, h = carried.errors, carried.spread, blend.horizon
    rows = (seen + 1 + np.arange(h)) % h

    def placed(array: Floats) -> Floats:
        out = np.empty(array.shape)
        out[rows] = array
        return out

    ordered, known = np.empty((h, KEPT + 1)), np.zeros(h, dtype=np.int64)
    for i, column in enumerate(spread.errors.T):
        rising = np.sort(column[np.isfinite(column)])
        ordered[i, : len(rising)], known[i] = rising, len(rising)
    one = np.array([errors.usual, errors.steps, errors.worse, errors.lost, carried.blended, 0.0])
    low, high = blend._conformal.bounds
    return Judged(
        np.array(blend.levels), low, high, blend._conformal.shares, 1 - 0.5 ** (1 / blend._half_life),
        0.5 ** (1 / (_USUAL * blend._half_life)), one,
        errors.count.copy(), errors.size.copy(), errors.loss.copy(), errors.products.copy(), errors.shares.copy(),
        spread.errors.copy(), spread.size.copy(), spread.count.copy(), spread.moved.copy(), spread.bands.copy(),
        ordered, known, placed(spread.centres), placed(spread.units), placed(spread.scales), placed(spread.said),
        placed(carried.pending).transpose(0, 2, 1).copy(), placed(carried.moods).astype(np.int64),
        np.empty(blend.experts.count),
    )  # fmt: skip


def carried(b: Judged, learnt: Learnt, quantiles: Floats) -> Carried:
    """The blend's own form of it, with what its experts have learnt and what was said last; arrays may be shared."""
    horizon = len(b.moods)
    order = (learnt.seen + 1 + np.arange(horizon)) % horizon
    errors = Errors(
        b.told, b.size, b.loss, b.products, b.shares,
        float(b.one[USUAL]), int(b.one[STEPS]), float(b.one[WORSE]), bool(b.one[LOST]),
    )  # fmt: skip
    spread = Spread(
        np.roll(b.errors, -(int(b.one[SCORED]) % KEPT), axis=0), b.widths, b.seen, b.moved, b.bands,
        b.centres[order], b.units[order], b.scales[order], b.said[order],
    )  # fmt: skip
    pending, moods = b.pending[order].transpose(0, 2, 1), b.moods[order].astype(np.float64)
    return Carried(learnt, errors, spread, pending, moods, float(b.one[BLENDED]), quantiles)
