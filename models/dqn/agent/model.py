"""A trained agent as plain parameters: its network in numpy, and what it was trained on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from models.dqn.agent.actions import MOVES, Mask, best
from models.dqn.agent.observation import FEATURES
from models.dqn.agent.reward import PARTS
from models.policy.core.capacity import Floats, Integers

LAYERS = ("first", "second", "last")


class AgentError(ValueError):
    """Parameters that make no agent here; the message names what differs and the remedy."""


@dataclass(frozen=True, eq=False)
class Familiar:
    """Where the observations lay that an agent was trained on.

    Attributes:
        low, high: (F,) range of every feature, with a margin.
        mean: (F,) of every feature.
        inverse: (F, F) inverse covariance.
        limit: squared Mahalanobis distance beyond which nothing was seen.
    """

    low: Floats
    high: Floats
    mean: Floats
    inverse: Floats
    limit: float

    @classmethod
    def of(cls, seen: Floats, margin: float = 0.1) -> Familiar:
        """From (N, F) observations; a margin in spans beyond what was seen is familiar too."""
        low, high = seen.min(axis=0), seen.max(axis=0)
        mean: Floats = np.asarray(seen.mean(axis=0), float)
        span = np.maximum(high - low, 1e-3)
        spread = np.atleast_2d(np.cov(seen, rowvar=False)) + np.diag((0.02 * span) ** 2)
        known = cls(low - margin * span, high + margin * span, mean, np.linalg.inv(spread).astype(float), np.inf)
        return cls(known.low, known.high, mean, known.inverse, float(known.distance(seen).max()) * (1 + margin) ** 2)

    def distance(self, x: Floats) -> Floats:
        """(runs,) squared Mahalanobis distance from the mean."""
        off = x - self.mean
        squared: Floats = ((off @ self.inverse) * off).sum(axis=1)
        return squared

    def strange(self, x: Floats) -> np.ndarray:
        """(runs,) whether an observation is unlike anything seen in training."""
        inside = ((x >= self.low) & (x <= self.high)).all(axis=1)
        return ~inside | ~(self.distance(x) <= self.limit)


@dataclass(frozen=True, eq=False)
class DqnModel:
    """Weights of `network.Values`, and what goes with them.

    Attributes:
        weights: by layer, matrix (out, in) and bias (out,).
        dueling: as of `Values`.
        familiar: what it was trained on.
        prices: (P,) prices at which it was tried, rising.
        margins: (P,) what a move must be worth more than the advised one to be made instead, in units of the root of
            `1 + price`, because what is not known of violations grows with what they cost.
        tried: (P, 2) executors paid over executors needed, and violation, at these prices.
        curve: one entry per evaluation: updates, transitions, loss, score.
    """

    weights: Mapping[str, tuple[np.ndarray, np.ndarray]]
    dueling: bool
    familiar: Familiar
    prices: Floats
    margins: Floats
    tried: Floats
    curve: tuple[Mapping[str, float], ...] = field(default=())

    def values(self, x: np.ndarray) -> np.ndarray:
        """From observations (runs, F) to what every action is worth, (runs, A, K)."""
        hidden = x.astype(np.float32)
        for name in LAYERS[:-1]:
            matrix, bias = self.weights[name]
            hidden = np.maximum(hidden @ matrix.T + bias, 0)
        matrix, bias = self.weights[LAYERS[-1]]
        said: np.ndarray = (hidden @ matrix.T + bias).reshape(len(x), -1, PARTS)
        if not self.dueling:
            return said
        state, action = said[:, :1], said[:, 1:]
        worth: np.ndarray = state + action - action.mean(axis=1, keepdims=True)
        return worth

    def moves(
        self, seen: np.ndarray, price: Floats, mask: Mask, advised: Integers, margin: Floats | float = 0.0
    ) -> Integers:
        """(runs,) the allowed move of highest worth; the advised one where no other is worth enough more.

        With `margin` it must be worth more by that much more than `margins` say.
        """
        values = self.values(seen)
        worth = values[:, :, 0] + price[:, None] * values[:, :, 1]
        worth[np.arange(len(worth)), advised] += (self.margin_at(price) + margin) * np.sqrt(1 + price)
        return best(worth, mask)

    def margin_at(self, price: Floats) -> Floats:
        """(runs,) `margins` at prices, the higher of the two beside each; 0 for an agent that was never tried."""
        if not len(self.prices):
            return np.zeros(len(price))
        below = np.searchsorted(self.prices, price, side="right") - 1
        beside = np.clip([below, np.searchsorted(self.prices, price)], 0, len(self.prices) - 1)
        margin_for: Floats = self.margins[beside].max(axis=0)
        return margin_for

    def price_for(self, budget: float) -> float:
        """The lowest price at which the violation of the trial was within the budget; the highest if it never was."""
        kept = np.flatnonzero(self.tried[:, 1] <= budget)
        return float(self.prices[kept[0] if len(kept) else -1])


def describe(agent: DqnModel) -> dict[str, Any]:
    """The agent as JSON values."""
    known = agent.familiar
    return {
        "kind": "dqn", "features": list(FEATURES), "moves": list(MOVES), "dueling": agent.dueling,
        "weights": {name: [m.tolist(), b.tolist()] for name, (m, b) in agent.weights.items()},
        "familiar": {
            "low": known.low.tolist(), "high": known.high.tolist(), "mean": known.mean.tolist(),
            "inverse": known.inverse.tolist(), "limit": known.limit,
        },
        "prices": agent.prices.tolist(), "margins": agent.margins.tolist(), "tried": agent.tried.tolist(),
        "curve": [dict(row) for row in agent.curve],
    }  # fmt: skip


def revive(described: Mapping[str, Any]) -> DqnModel:
    """The agent that was described.

    Raises:
        AgentError: its features or moves are not the ones of this code, or something is missing or misshapen.
    """
    if not isinstance(described, Mapping):
        raise AgentError(f"{type(described).__name__} is no agent; an object with its features and weights is expected")
    for name, here in (("features", list(FEATURES)), ("moves", list(MOVES))):
        if described.get(name) != here:
            raise AgentError(f"{name}={described.get(name)}: this environment has {here}; train the agent again")
    try:
        weights = {n: (_array(described["weights"][n][0]), _array(described["weights"][n][1])) for n in LAYERS}
        known = described["familiar"]
        parts = {name: np.asarray(known[name], float) for name in ("low", "high", "mean", "inverse")}
        familiar = Familiar(**parts, limit=float(known["limit"]))
        described = {"margins": described.get("heeds"), **described}  # as they were called until version 0.1
        prices, margins, tried = (np.asarray(described[name], float) for name in ("prices", "margins", "tried"))
        agent = DqnModel(
            weights, bool(described["dueling"]), familiar, prices, margins, tried, tuple(described["curve"])
        )
    except (KeyError, TypeError, IndexError) as error:
        raise AgentError(f"the description of an agent lacks {error}; train it again") from None
    shapes = [layer.shape for pair in weights.values() for layer in pair]
    hidden, out = len(weights["first"][1]), (len(MOVES) + agent.dueling) * PARTS
    fitting = [(hidden, len(FEATURES)), (hidden,), (hidden, hidden), (hidden,), (out, hidden), (out,)]
    if shapes != fitting or not all(np.isfinite(layer).all() for pair in weights.values() for layer in pair):
        raise AgentError(f"weights of shapes {shapes} do not fit, {fitting} would; train the agent again")
    wide, priced = len(FEATURES), len(prices)
    kept = [*(part.shape for part in parts.values()), prices.shape, margins.shape, tried.shape]
    fitting = [(wide,), (wide,), (wide,), (wide, wide), (priced,), (priced,), (priced, 2)]
    if kept != fitting or not priced:
        raise AgentError(f"limits and prices of shapes {kept} do not fit, {fitting} would; train the agent again")
    return agent


def _array(values: Any) -> np.ndarray:
    return np.asarray(values, np.float32)
