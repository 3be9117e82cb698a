"""How much each expert counts: by its newest errors, alone and together with the others'."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from models.forecast.series import Floats

_POWER = 4.0  # of the ratio of mean squared errors
_RATE = 0.3  # step of the exponentiated gradient
_LEAST = 0.002  # share below which no expert falls, so that it can come back
_FEW = 8  # errors, before which an excited moment is weighed as a calm one
_EXCITED = 3.0  # usual one-step errors: a step that was missed by more is followed by an excited moment
_SQUARED = _EXCITED**2
_BROKEN = 0.5  # share of excited ones among the newest steps from which the load is taken to be another one
_NEWEST = 8.0  # these are about so many steps; older errors then count as one of so many
_MOST = 20.0  # usual errors of the blend: an expert's error counts as no more


@dataclass(frozen=True, eq=False)
class Errors:
    """What is remembered of the experts' errors; the first axis is calm, excited.

    Attributes:
        count: (2, H) errors seen.
        size: (2, H) mean squared error of the blend in levels, newest count most.
        loss: (2, H, E) mean squared errors of the experts as multiples of `size`.
        products: (2, H, E, E) mean products of their errors, likewise.
        shares: (2, H, E) how much each counts by the products.
        usual: mean squared one-step error of the blend in levels, single ones cut off.
        steps: one-step errors in `usual`.
        excited: share of excited ones among the newest steps.
    """

    count: Floats
    size: Floats
    loss: Floats
    products: Floats
    shares: Floats
    usual: float
    steps: int
    excited: float


def start(horizon: int, experts: int) -> Errors:
    """Before the first error: all experts count the same."""
    flat = np.zeros((2, horizon))
    shares = np.full((2, horizon, experts), 1 / experts)
    products = np.zeros((2, horizon, experts, experts))
    return Errors(flat, flat, np.zeros(shares.shape), products, shares, usual=0.0, steps=0, excited=0.0)


def surprise(errors: Errors, error: float, half_life: float) -> tuple[Errors, int]:
    """After a one-step error of the blend: 1 if it was far beyond the usual, else 0.

    Where most of the newest errors are, the load has changed for good, and what was learnt before counts little.
    """
    squared = error * error
    excited = int(errors.steps > 0 and squared > _SQUARED * errors.usual)
    steps = errors.steps + 1
    keep = min(0.5 ** (1 / half_life), 1 - 1 / steps)
    if steps > 10 and errors.usual > 0:
        squared = min(squared, _SQUARED * errors.usual)
    usual = keep * errors.usual + (1 - keep) * squared
    share = errors.excited + (excited - errors.excited) / _NEWEST
    count = np.minimum(errors.count, _NEWEST) if share > _BROKEN else errors.count
    return replace(errors, count=count, usual=usual, steps=steps, excited=share), excited


def score(
    errors: Errors, said: Floats, blended: Floats, moods: Floats, value: float, level: float, half_life: float
) -> Errors:
    """Take in a step that had been forecast.

    Args:
        errors: so far.
        said: (H, E) what the experts had said of it 1 to H steps ahead, NaN where they were silent: such a one is
            credited with the blend's own error.
        blended: (H,) what the blend had said; NaN where there was no forecast.
        moods: (H,) 0 or 1: whether that was said in an excited moment.
        value: what came.
        level: the load's level then, in which errors are measured: after a lasting shift new errors count as old ones.
        half_life: steps.
    """
    told = np.flatnonzero(np.isfinite(blended))
    if not len(told):
        return errors
    at = (moods[told].astype(np.int64), told)
    own = (blended[told] - value) / level
    count = errors.count[at] + 1
    share = np.maximum(1 - 0.5 ** (1 / half_life), 1 / count)
    size = errors.size[at] + share * (own * own - errors.size[at])
    miss = np.where(np.isfinite(said[told]), (said[told] - value) / level, own[:, None])
    miss = np.clip(miss / (np.sqrt(size) + 1e-12)[:, None], -_MOST, _MOST)
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
    shares = shares * np.exp(np.clip(-_RATE * slope, -2.0, 2.0))
    shares /= shares.sum(axis=1, keepdims=True)
    together = np.where(speaks, shares, 0.0)
    with np.errstate(invalid="ignore"):
        alone /= alone.sum(axis=1, keepdims=True)
        together /= together.sum(axis=1, keepdims=True)
    all_shares = errors.shares.copy()
    all_shares[moods, horizon] = shares
    blended = ((alone + together) / 2 * np.where(speaks, said.T, 0.0)).sum(axis=1)
    return replace(errors, shares=all_shares), blended
