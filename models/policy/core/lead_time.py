"""How long executors take to be of use, learned from what each raise really took.

The logarithm of a raise's seconds is normal around a line in the executors asked for at once and in how busy the job
was (Bayesian linear regression with a normal-inverse-gamma prior). A cluster changes: after each raise there is one
hypothesis more, that everything before it has ceased to hold (Bayesian online change-point detection, Adams and MacKay
2007, algorithm 1). A single raise that took unlike any other may be an accident; then it teaches nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

Floats = NDArray[np.float64]

CHANGES, ACCIDENTS = 0.01, 0.1
"""Probability that the cluster has changed since the last raise, and that a raise is an accident: nine times as likely,
so that it takes a second strange raise to move the 0.9 quantile."""
KEPT = 8  # hypotheses, the most probable ones
LEAST_S, MOST_S = 0.05, 86_400.0
"""Bounds of a raise's seconds; what lies outside is taken for the bound."""
SURE, VAGUE = 3.0, 0.02
"""Raises that the contract's lead time weighs as much as: at first, and after a change."""
SPREAD, SHAPE, SLOPES = 0.2, 3.0, 1.0
"""First guess of the standard deviation of a log lead time; half the raises that it, and that slopes of 0, weigh as."""
_STEPS = 30  # halvings in the search of a quantile, to 1e-9 of the logarithm's range


@dataclass(frozen=True)
class StartUp:
    """What one raise took.

    Attributes:
        seconds: from the decision until a batch has used what came; if `censored` it took longer than that.
        executors: asked for at once, at least 1.
        busy: share, 0 to 1, of the executors' time that was work when it was decided.
        censored: they had not come, or had not been used, when it was given up.
    """

    seconds: float
    executors: int = 1
    busy: float = 0.0
    censored: bool = False

    @property
    def log_seconds(self) -> float:
        """Logarithm of the seconds, within LEAST_S and MOST_S."""
        return math.log(min(max(self.seconds, LEAST_S), MOST_S))


@dataclass(frozen=True)
class Regression:
    """What one stretch of raises says of log seconds: a normal-inverse-gamma belief about a line and its scatter.

    Attributes:
        weight: (3, 3) precision of the line's coefficients, in units of the scatter's.
        line: (3,) intercept, slope per doubling of the executors, slope in `busy`.
        shape, rate: of the inverse gamma distribution of the variance.
    """

    weight: tuple[tuple[float, ...], ...]
    line: tuple[float, ...]
    shape: float
    rate: float

    @classmethod
    def guess(cls, lead_s: float, growth: float, raises: float) -> Regression:
        """Create a belief around a lead time in seconds, and its growth, that weighs as much as so many raises."""
        line = StartUp(lead_s).log_seconds, growth * math.log(2), 0.0
        weight = (raises, 0.0, 0.0), (0.0, SLOPES, 0.0), (0.0, 0.0, SLOPES)
        return cls(weight, line, SHAPE, SPREAD**2 * (SHAPE - 1))


class Predicted(NamedTuple):
    """What a belief says of the next log seconds: a Student t distribution."""

    freedom: float
    centre: float
    scale: float


def predict(beliefs: Sequence[Regression], x: Floats) -> list[Predicted]:
    """Return what each of n beliefs says of log seconds at `x` (3,)."""
    weight, line, shape, rate = _arrays(beliefs)
    spread = 1 + np.linalg.solve(weight, np.tile(x, (len(beliefs), 1))[..., None])[..., 0] @ x
    scale = np.sqrt(rate / shape * spread)
    return [Predicted(*one) for one in zip((2 * shape).tolist(), (line @ x).tolist(), scale.tolist(), strict=True)]


def learn(beliefs: Sequence[Regression], x: Floats, seen: Sequence[float], shares: Sequence[float]) -> list[Regression]:
    """Return n beliefs after log seconds `seen` (n,) at `x` (3,), counted as `shares` (n,; 0 to 1) of a raise."""
    weight, before, shape, rate = _arrays(beliefs)
    share, error = np.array(shares), np.array(seen) - before @ x
    weight = weight + share[:, None, None] * np.outer(x, x)
    line = before + np.linalg.solve(weight, ((share * error)[:, None] * x)[..., None])[..., 0]
    rate = rate + 0.5 * share * error * (np.array(seen) - line @ x)
    values = zip(weight.tolist(), line.tolist(), (shape + share / 2).tolist(), rate.tolist(), strict=True)
    return [Regression(tuple(map(tuple, w)), tuple(b), *of) for w, b, *of in values]


def _arrays(beliefs: Sequence[Regression]) -> tuple[Floats, Floats, Floats, Floats]:
    """Their fields, (n, 3, 3), (n, 3), (n,) and (n,)."""
    shape, rate = np.array([(one.shape, one.rate) for one in beliefs]).T
    return np.array([one.weight for one in beliefs]), np.array([one.line for one in beliefs]), shape, rate


@dataclass(frozen=True)
class LeadTime:
    """Seconds from a raise until it is of use, as learned so far.

    Attributes:
        prior_s: the contract's lead time.
        hypotheses: (probability, belief) for each time at which the cluster may have changed last.
        starts: raises learned from.
        prior_growth: the contract's exponent of its growth with the executors that start at once.
    """

    prior_s: float
    hypotheses: tuple[tuple[float, Regression], ...]
    starts: int = 0
    prior_growth: float = 0.0

    @classmethod
    def guess(cls, prior_s: float, prior_growth: float = 0.0) -> LeadTime:
        """Create what is known before any raise: the contract's lead time, in seconds, and its growth."""
        return cls(prior_s, ((1.0, Regression.guess(prior_s, prior_growth, SURE)),), 0, prior_growth)

    def with_prior(self, prior_s: float, prior_growth: float) -> LeadTime:
        """Return what is known under another guess, which is all before any raise, and what follows a change later."""
        if self.starts == 0:
            return LeadTime.guess(prior_s, prior_growth)
        return replace(self, prior_s=prior_s, prior_growth=prior_growth)

    @property
    def growth(self) -> float:
        """Exponent by which the lead time grows with the executors that start at once, as expected."""
        return sum(likely * belief.line[1] for likely, belief in self.hypotheses) / math.log(2)

    def learn(self, start: StartUp) -> LeadTime:
        """Return what is known after one more raise; a censored one counts as what is to be expected beyond it."""
        x, y = _features(start.executors, start.busy), start.log_seconds
        anew = Regression.guess(self.prior_s, self.prior_growth, VAGUE)
        beliefs = [anew, *(belief for _, belief in self.hypotheses)]
        predicted = predict(beliefs, x)
        strange, *usual = (_likelihood(one, y, start.censored) for one in predicted)
        found = [(CHANGES * strange, 1.0, 0)]
        for at, ((probability, _), likely) in enumerate(zip(self.hypotheses, usual, strict=True), start=1):
            whole = (1 - ACCIDENTS) * likely + ACCIDENTS * strange
            found.append((probability * (1 - CHANGES) * whole, (1 - ACCIDENTS) * likely / whole, at))
        best = sorted(found, key=lambda one: -one[0])[:KEPT]
        total = sum(likely for likely, _, _ in best)
        seen = [_seen(predicted[at], y, start.censored) for _, _, at in best]
        learned = learn([beliefs[at] for _, _, at in best], x, seen, [share for _, share, _ in best])
        hypotheses = tuple((likely / total, belief) for (likely, _, _), belief in zip(best, learned, strict=True))
        return replace(self, starts=self.starts + 1, hypotheses=hypotheses)

    def quantile_s(self, level: float, executors: int = 1, busy: float = 0.0) -> float:
        """Return the seconds within which a raise of so many executors is of use with probability `level`.

        Args:
            level: above 0 and below 1.
            executors: asked for at once.
            busy: share, 0 to 1, of the executors' time that is work now.
        """
        return self.quantiles_s([level], executors, busy)[0]

    def quantiles_s(self, levels: Sequence[float], executors: int = 1, busy: float = 0.0) -> list[float]:
        """As `quantile_s`, at several levels."""
        freedom, centre, scale = np.array(
            predict([belief for _, belief in self.hypotheses], _features(executors, busy))
        ).T
        probability, level = np.array([likely for likely, _ in self.hypotheses]), np.array(levels)
        low, high = np.full(len(level), math.log(LEAST_S)), np.full(len(level), math.log(MOST_S))
        for _ in range(_STEPS):
            middle = (low + high) / 2
            short = stdtr(freedom, (middle[:, None] - centre) / scale) @ probability < level
            low, high = np.where(short, middle, low), np.where(short, high, middle)
        return [math.exp(one) for one in high.tolist()]

    @classmethod
    def from_json_values(cls, kept: dict[str, Any]) -> LeadTime:
        """Rebuild it from what `dataclasses.asdict` made of it and JSON kept.

        Raises:
            KeyError, TypeError, ValueError: they are not such values.
        """
        found = tuple(
            (float(likely), Regression(tuple(map(tuple, one["weight"])), tuple(one["line"]), one["shape"], one["rate"]))
            for likely, one in kept["hypotheses"]
        )
        return cls(float(kept["prior_s"]), found, int(kept["starts"]), float(kept.get("prior_growth", 0.0)))


def _log_beta(freedom: float) -> float:
    return math.lgamma(freedom / 2) - math.lgamma((freedom + 1) / 2) + 0.5 * math.log(freedom * math.pi)


def _features(executors: int, busy: float) -> Floats:
    return np.array([1.0, math.log2(max(executors, 1)), min(max(busy, 0.0), 1.0)])


def _density(freedom: float, z: float) -> float:
    return math.exp(-_log_beta(freedom) - (freedom + 1) / 2 * math.log1p(z * z / freedom))


def _likelihood(predicted: Predicted, y: float, censored: bool) -> float:
    """Density of log seconds, or the probability of more where the start is censored; never 0."""
    freedom, centre, scale = predicted
    z = (y - centre) / scale
    return max(float(stdtr(freedom, -z)) if censored else _density(freedom, z) / scale, 1e-300)


def _seen(predicted: Predicted, y: float, censored: bool) -> float:
    """Log seconds to learn from: as seen, or the mean of those beyond; never over both the usual and twice the wait."""
    if not censored:
        return y
    freedom, centre, scale = predicted
    z = (y - centre) / scale
    beyond = (freedom + z * z) / (freedom - 1) * _density(freedom, z) / max(float(stdtr(freedom, -z)), 1e-300)
    return min(max(centre + scale * beyond, y), max(centre, y + math.log(2)))
