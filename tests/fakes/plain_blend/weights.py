"""How much each expert counts: by its newest errors, alone and together with the others'."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from models.forecast.blend.scoring import (
    _BEYOND,
    _FEW,
    _FOUND,
    _LEAST,
    _LOST,
    _NEWEST,
    _POWER,
    _RATE,
    _SQUARED,
    _STEP,
    _TINY,
)
from models.forecast.core.series import Floats


@dataclass(frozen=True, eq=False)
class Errors:
    """What is remembered of the experts' errors; the first axis is calm, excited.

    Attributes:
        count: (2, H) errors seen.
        size: (2, H) mean squared error of the blend, newest count most.
        loss: (2, H, E) mean squared errors of the experts as multiples of `size`.
        products: (2, H, E, E) mean products of their errors, likewise.
        shares: (2, H, E) how much each counts by the products.
        usual: mean squared one-step error of the blend, single ones cut off.
        steps: one-step errors in `usual`.
        worse: share of the newest steps at which the blend was far worse than the last value; worse at all, if lost.
        lost: whether the load has changed so that the last value had better be said.
    """

    count: Floats
    size: Floats
    loss: Floats
    products: Floats
    shares: Floats
    usual: float
    steps: int
    worse: float
    lost: bool


def start(horizon: int, experts: int) -> Errors:
    """Before the first error: all experts count the same."""
    flat = np.zeros((2, horizon))
    shares = np.full((2, horizon, experts), 1 / experts)
    products = np.zeros((2, horizon, experts, experts))
    return Errors(flat, flat, np.zeros(shares.shape), products, shares, usual=0.0, steps=0, worse=0.0, lost=False)


def surprise(
    errors: Errors, own: float, still: float, half_life: float, before: float = math.nan
) -> tuple[Errors, int]:
    """After one more step had been forecast one step ahead: 1 if it was missed by far more than usual, else 0.

    Where the blend has lately been worse than the last value nearly every time, the load has changed for good: what was
    learnt of the experts before then counts as little as a few steps, and every moment is taken for a calm one. Where
    the same time yesterday was as good as the last value, nothing has changed: the load rests, as it did yesterday.

    Args:
        errors: so far.
        own: error of the blend.
        still: error of the last value.
        half_life: steps.
        before: error of the same time yesterday; NaN where there is none.
    """
    squared = own * own
    rests = before * before <= still * still
    worse = float(squared > (1.0 if errors.lost else _BEYOND) * still * still and not rests)
    worse = errors.worse + (worse - errors.worse) / _NEWEST
    lost = worse > (_FOUND if errors.lost else _LOST)
    steps = errors.steps + 1
    excited = int(errors.steps > 0 and squared > _SQUARED * errors.usual)
    keep = min(0.5 ** (1 / half_life), 1 - 1 / steps)
    if steps > 10 and errors.usual > 0:
        squared = min(squared, _SQUARED * errors.usual)
    usual = keep * errors.usual + (1 - keep) * squared
    after = replace(errors, usual=usual, steps=steps, worse=worse, lost=lost)
    if not lost:
        return after, excited
    return replace(after, count=np.stack([np.minimum(errors.count[0], _FEW), errors.count[1]])), 0


def score(errors: Errors, said: Floats, blended: Floats, moods: Floats, value: float, half_life: float) -> Errors:
    """Take in a step that had been forecast.

    Args:
        errors: so far.
        said: (H, E) what the experts had said of it 1 to H steps ahead, NaN where they were silent: such a one is
            credited with the blend's own error.
        blended: (H,) what the blend had said; NaN where there was no forecast.
        moods: (H,) 0 or 1: whether that was said in an excited moment.
        value: what came.
        half_life: steps.
    """
    told = np.flatnonzero(np.isfinite(blended))
    if not len(told):
        return errors
    at = (moods[told].astype(np.int64), told)
    own = blended[told] - value
    count = errors.count[at] + 1
    share = np.maximum(1 - 0.5 ** (1 / half_life), 1 / count)
    size = errors.size[at] + share * (own * own - errors.size[at])
    miss = np.where(np.isfinite(said[told]), said[told] - value, own[:, None])
    miss /= (np.sqrt(size) + _TINY)[:, None]
    counts, sizes, loss, products = (a.copy() for a in (errors.count, errors.size, errors.loss, errors.products))
    counts[at], sizes[at] = count, size
    loss[at] += share[:, None] * (miss * miss - loss[at])
    products[at] += share[:, None, None] * (miss[:, :, None] * miss[:, None, :] - products[at])
    return replace(errors, count=counts, size=sizes, loss=loss, products=products)


def blend(errors: Errors, said: Floats, mood: int) -> tuple[Errors, Floats]:
    """Blend what the experts say now.

    Half of the blend weighs every expert by its mean squared error to the power −4. The other half minimises the mean
    squared error of the weighted mean over weights ≥ 0 that sum to 1 (Bates and Granger 1969), one step of the
    exponentiated gradient (Kivinen and Warmuth 1997) per moment. Calm and excited moments have their own errors:
    after a spike the last value is worth more than at other times.

    Args:
        errors: so far.
        said: (E, H), NaN where one is silent.
        mood: 0 calm, 1 excited.

    Returns:
        The errors with their new shares, and (H,) the blend; NaN where all are silent.
    """
    speaks = np.isfinite(said).T  # (H, E)
    horizon = np.arange(len(speaks))
    moods = np.where(errors.count[mood] >= _FEW, mood, 0)
    loss = errors.loss[moods, horizon]
    least = np.where(speaks, loss, np.inf).min(axis=1, initial=np.inf)
    least = np.where(np.isfinite(least), least, 0.0) + 1e-9
    alone = np.where(speaks, (least[:, None] / (loss + 1e-12)) ** _POWER, 0.0)
    shares = np.maximum(errors.shares[moods, horizon], _LEAST)
    shares /= shares.sum(axis=1, keepdims=True)
    slope = np.einsum("hef,hf->he", errors.products[moods, horizon], shares) / least[:, None]
    slope -= (slope * shares).sum(axis=1, keepdims=True)
    shares = shares * np.exp(-np.clip(_RATE * slope, -_STEP, _STEP))  # one hopeless expert sets no pace for the others
    shares /= shares.sum(axis=1, keepdims=True)
    together = np.where(speaks, shares, 0.0)
    with np.errstate(invalid="ignore"):
        alone /= alone.sum(axis=1, keepdims=True)
        together /= together.sum(axis=1, keepdims=True)
    all_shares = errors.shares.copy()
    all_shares[moods, horizon] = shares
    blended = ((alone + together) / 2 * np.where(speaks, said.T, 0.0)).sum(axis=1)
    return replace(errors, shares=all_shares), blended
