"""A trained agent in numpy: its network's weights, and what it was trained and tried on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from models.dqn.agent.actions import MOVES, PARTS, Mask, best_moves
from models.dqn.agent.observation import FEATURES
from models.policy.core.capacity import Floats, Integers

LAYERS = ("first", "second", "last")
MARGIN = 0.1
"""Share of each feature's span by which its familiar range is wider at both ends, and of the largest distance."""


class AgentError(ValueError):
    """A description that makes no agent for this code; the message names what differs and what to do."""


class Familiar(NamedTuple):
    """The region of observations that an agent was trained on.

    Attributes:
        low, high: (F,) range of every feature, with a margin.
        mean: (F,) of every feature.
        inverse: (F, F) inverse covariance.
        limit: squared Mahalanobis distance beyond which an observation is unfamiliar.
    """

    low: Floats
    high: Floats
    mean: Floats
    inverse: Floats
    limit: float

    @classmethod
    def from_observations(cls, seen: Floats) -> Familiar:
        """Compute the region from the observations of a training.

        Args:
            seen: (N, F) finite observations, N at least 2 (one alone gives a region of NaN, outside of which all lies).

        Raises:
            ValueError: N is 0.
        """
        low, high = seen.min(axis=0), seen.max(axis=0)
        span = np.maximum(high - low, 1e-3)
        spread = np.atleast_2d(np.cov(seen, rowvar=False)) + np.diag((0.02 * span) ** 2)
        known = cls(
            low - MARGIN * span, high + MARGIN * span, seen.mean(axis=0), np.linalg.inv(spread).astype(float), np.inf
        )
        return known._replace(limit=float(known.distance(seen).max()) * (1 + MARGIN) ** 2)

    def distance(self, x: Floats) -> Floats:
        """Return (runs,) squared Mahalanobis distances of observations (runs, F) from the mean."""
        off = x - self.mean
        return ((off @ self.inverse) * off).sum(axis=1)

    def is_unfamiliar(self, x: Floats) -> np.ndarray:
        """Return (runs,) whether observations (runs, F) lie outside the region, NaN included."""
        inside = ((x >= self.low) & (x <= self.high)).all(axis=1)
        return ~inside | ~(self.distance(x) <= self.limit)


@dataclass(frozen=True, eq=False)
class DqnModel:
    """A trained agent: the weights of a `learner.Values` network, and how it did when it was tried.

    Attributes:
        weights: by layer, matrix (out, in) and bias (out,).
        familiar: the region it was trained on.
        prices: (P,) rising prices of a second over the target, in seconds of all executors, at which it was tried.
        margins: (P,) least advantage over the advised move for which another is made, in units of sqrt(1 + price),
            because the uncertainty of a violation's value grows with its price.
        tried: (P, 2) executors paid over executors needed, and share of seconds over the target, at these prices.
        curve: one entry per evaluation in training: updates, transitions, loss, score.
    """

    weights: Mapping[str, tuple[np.ndarray, np.ndarray]]
    familiar: Familiar
    prices: Floats
    margins: Floats
    tried: Floats
    curve: tuple[Mapping[str, float], ...] = field(default=())

    def action_values(self, x: np.ndarray) -> np.ndarray:
        """Evaluate the network: observations (runs, 40) to float32 values (runs, 6, 2) of each of `MOVES`.

        A value is the discounted sum of the rewards to come (`actions.reward_parts`): [..., 0] executors, [..., 1]
        violation.

        Raises:
            ValueError: another number of features than the network has.
        """
        hidden = x.astype(np.float32)
        for name in LAYERS[:-1]:
            matrix, bias = self.weights[name]
            hidden = np.maximum(hidden @ matrix.T + bias, 0)
        matrix, bias = self.weights[LAYERS[-1]]
        found = (hidden @ matrix.T + bias).reshape(len(x), -1, PARTS)
        state, action = found[:, :1], found[:, 1:]
        return state + action - action.mean(axis=1, keepdims=True)

    def choose_moves(
        self, seen: np.ndarray, price: Floats, mask: Mask, advised: Integers, margin: Floats | float = 0.0
    ) -> Integers:
        """Choose (runs,) the allowed move of highest value, or the advised one unless another is better by the margin.

        Args:
            seen: (runs, 40) observations.
            price: (runs,) of a second over the target, in seconds of all executors.
            mask: (runs, 6) allowed moves; a row without any gives index 0.
            advised: (runs,) index of the advised move.
            margin: added to the trained margin, in units of sqrt(1 + price).

        Returns:
            Indices of `MOVES`.

        Raises:
            ValueError: another number of features than the network has.
            IndexError: `advised` is no index of `MOVES`.
        """
        values = self.action_values(seen)
        worth = values[:, :, 0] + price[:, None] * values[:, :, 1]
        worth[np.arange(len(worth)), advised] += (self.margin_at(price) + margin) * np.sqrt(1 + price)
        return best_moves(worth, mask)

    def margin_at(self, price: Floats) -> Floats:
        """Return (runs,) trained margins, in units of sqrt(1 + price), at (runs,) prices; 0 for an agent never tried.

        Between two tried prices it is the higher margin of both; beyond the first or last that of the nearest.
        """
        if not len(self.prices):
            return np.zeros(len(price))
        below = np.searchsorted(self.prices, price, side="right") - 1
        beside = np.clip([below, np.searchsorted(self.prices, price)], 0, len(self.prices) - 1)
        return self.margins[beside].max(axis=0)

    def price_for(self, budget: float) -> float:
        """Return the lowest price at which the agent kept the budget when it was tried; the highest if it never did.

        Args:
            budget: share, 0 to 1, of the seconds that may be over the latency target.

        Returns:
            Price of such a second, in seconds of all executors: one of `prices`.

        Raises:
            AgentError: the agent was never tried at any price.
        """
        if not len(self.prices):
            raise AgentError("the agent was never tried at any price: train it to the end")
        kept = np.flatnonzero(self.tried[:, 1] <= budget)
        return float(self.prices[kept[0] if len(kept) else -1])


def describe(agent: DqnModel) -> dict[str, Any]:
    """Convert an agent to JSON values, as `revive` takes them.

    Keys: "kind" ("dqn"), "features", "moves", "weights" (by layer), "familiar", "prices", "margins", "tried", "curve".
    """
    return {
        "kind": "dqn", "features": list(FEATURES), "moves": list(MOVES),
        "weights": {name: [part.tolist() for part in layer] for name, layer in agent.weights.items()},
        "familiar": {name: np.asarray(part).tolist() for name, part in agent.familiar._asdict().items()},
        "prices": agent.prices.tolist(), "margins": agent.margins.tolist(), "tried": agent.tried.tolist(),
        "curve": [dict(row) for row in agent.curve],
    }  # fmt: skip


def revive(described: Mapping[str, Any]) -> DqnModel:
    """Rebuild an agent from the JSON values of `describe`.

    Args:
        described: as of `describe`; of version 0.1 too, in which "margins" was called "heeds".

    Raises:
        AgentError: no mapping, other features or moves than this code's, a missing part, one of the wrong shape (as of
            an agent that was never tried), or weights that are not finite.
        ValueError: ragged lists, or text in place of numbers.
    """
    if not isinstance(described, Mapping):
        raise AgentError(f"{type(described).__name__} is no agent; an object with its features and weights is expected")
    for name, here in (("features", list(FEATURES)), ("moves", list(MOVES))):
        if described.get(name) != here:
            raise AgentError(f"{name}={described.get(name)}: this environment has {here}; train the agent again")
    described = {"margins": described.get("heeds"), **described}  # as they were called until version 0.1
    try:
        with np.errstate(over="ignore"):  # what becomes infinite is refused below
            layers = [np.asarray(described["weights"][name][i], np.float32) for name in LAYERS for i in (0, 1)]
        limits = [np.asarray(described["familiar"][name], float) for name in Familiar._fields]
        tables = [np.asarray(described[name], float) for name in ("prices", "margins", "tried")]
        curve = tuple(described["curve"])
    except (KeyError, TypeError, IndexError, OverflowError) as error:
        raise AgentError(f"the description of an agent lacks {error}; train it again") from None
    wide, hidden, out, priced = len(FEATURES), layers[1].size, (len(MOVES) + 1) * PARTS, max(tables[0].size, 1)
    for what, found, fitting in (
        ("weights", layers, [(hidden, wide), (hidden,), (hidden, hidden), (hidden,), (out, hidden), (out,)]),
        ("limits and prices", [*limits, *tables],
         [(wide,), (wide,), (wide,), (wide, wide), (), (priced,), (priced,), (priced, 2)]),
    ):  # fmt: skip
        shapes = [part.shape for part in found]
        if shapes != fitting:
            raise AgentError(f"{what} of shapes {shapes} do not fit, {fitting} would; train the agent again")
    if not all(np.isfinite(part).all() for part in (*layers, *tables)):
        raise AgentError("weights or prices that are not finite; train the agent again")
    weights = {name: (layers[2 * i], layers[2 * i + 1]) for i, name in enumerate(LAYERS)}
    prices, margins, tried = tables
    return DqnModel(weights, Familiar._make(limits), prices, margins, tried, curve)
