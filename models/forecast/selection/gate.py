"""The gate that a challenger, forecaster or policy, passes before it may serve: surely good enough beside rivals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from models.forecast.core.bootstrap import at_most
from models.forecast.core.series import Floats


@dataclass(frozen=True)
class Verdict:
    """Whether the challenger becomes champion, and why in words."""

    promoted: bool
    reason: str


@dataclass(frozen=True)
class Rival:
    """Whom a challenger is held against.

    Attributes:
        cost: what it costs on the same held-out rows; NaN where it could not be compared.
        at_most: what the challenger's cost is of that at most (`bootstrap.at_most`).
        allowed: what it may be: under 1 for surely better, a little above for surely not much worse.
    """

    cost: float
    at_most: float
    allowed: float = 1.0

    @classmethod
    def of(cls, mine: Floats, theirs: Floats, allowed: float, rivals: int = 1) -> Rival:
        """From (T,) costs of the challenger and of the rival; a single pair tells no more than itself."""
        known = [(a, b) for a, b in zip(mine.tolist(), theirs.tolist(), strict=True) if math.isfinite(a + b)]
        cost = sum(b for _, b in known) / len(known) if known else math.nan
        if len(known) < 2:
            return cls(cost, known[0][0] / known[0][1] if known and known[0][1] > 0 else math.nan, allowed)
        return cls(cost, at_most(mine, theirs, rivals), allowed)


def verdict(cost: float, rivals: Mapping[str, Rival], where: str = "") -> Verdict:
    """Judge a challenger's mean cost on held-out rows; without a rival that could be compared it is promoted.

    Args:
        cost: the challenger's; one that is not finite is never good enough.
        rivals: by name.
        where: said in the reason, of what the costs are.
    """
    if not math.isfinite(cost):
        return Verdict(False, f"rejected: {where}the challenger has no cost ({cost})")
    said = []
    for name, rival in rivals.items():
        if not math.isfinite(rival.cost):
            continue
        said.append(f"{name}'s {rival.cost:.4g} (at most {rival.at_most:.3f} of it, {rival.allowed:g} allowed)")
        if not rival.at_most <= rival.allowed:
            return Verdict(False, f"rejected: {where}{cost:.4g} is not surely low enough beside the {said[-1]}")
    beside = f", beside the {', the '.join(said)}" if said else ", and nobody to compare with"
    return Verdict(True, f"promoted: {where}{cost:.4g}{beside}")
