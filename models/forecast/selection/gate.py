"""Promotion gate: whether a challenger, forecaster or policy, is good enough beside its rivals to serve."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from models.forecast.core.bootstrap import at_most
from models.forecast.core.series import Floats


@dataclass(frozen=True)
class Verdict:
    """Whether the challenger becomes champion, and the reason in words."""

    promoted: bool
    reason: str


@dataclass(frozen=True)
class Rival:
    """What a challenger is compared with.

    Attributes:
        cost: mean cost on the same held-out rows; NaN where it could not be compared.
        at_most: upper confidence bound of the challenger's mean cost over this one's (`bootstrap.at_most`).
        allowed: greatest bound that passes: 1 asks for not worse, somewhat more tolerates that much.
    """

    cost: float
    at_most: float
    allowed: float = 1.0

    @classmethod
    def compare(cls, mine: Floats, theirs: Floats, allowed: float, rivals: int = 1) -> Rival:
        """Build a rival from its costs and those of the challenger on the same rows.

        Args:
            mine: (T,) costs of the challenger, at least 0; a row that is not finite in either array is left out.
            theirs: (T,) costs of the rival, in the same unit.
            allowed: greatest bound that passes.
            rivals: number of comparisons made, for the Bonferroni correction.

        Returns:
            The rival with its mean cost and `at_most`. With one known row that bound is the plain ratio; with none, or
            where that one cost of the rival is not above 0, it is NaN.

        Raises:
            ValueError: the arrays differ in length.
        """
        known = [(a, b) for a, b in zip(mine.tolist(), theirs.tolist(), strict=True) if math.isfinite(a + b)]
        cost = sum(b for _, b in known) / len(known) if known else math.nan
        if len(known) < 2:
            return cls(cost, known[0][0] / known[0][1] if known and known[0][1] > 0 else math.nan, allowed)
        return cls(cost, at_most(mine, theirs, rivals), allowed)


def decide_promotion(cost: float, rivals: Mapping[str, Rival], where: str = "") -> Verdict:
    """Decide whether a challenger may serve, and say why: every rival's `at_most` must be within what it allows.

    A rival without a finite cost is passed over; without any other rival the challenger is promoted.

    Args:
        cost: the challenger's mean cost on held-out rows, for the reason; not finite: rejected.
        rivals: by name; one whose `at_most` (bound of the challenger's cost ÷ the rival's) is NaN rejects the
            challenger.
        where: prefix of the cost in the reason, such as the name of the data with a space at the end.
    """
    if not math.isfinite(cost):
        return Verdict(False, f"rejected: {where}the challenger has no cost ({cost})")
    compared = []
    for name, rival in rivals.items():
        if not math.isfinite(rival.cost):
            continue
        compared.append(f"{name}'s {rival.cost:.4g} (at most {rival.at_most:.3f} of it, {rival.allowed:g} allowed)")
        if not rival.at_most <= rival.allowed:
            return Verdict(False, f"rejected: {where}{cost:.4g} is not surely low enough beside the {compared[-1]}")
    beside = f", beside the {', the '.join(compared)}" if compared else ", and nobody to compare with"
    return Verdict(True, f"promoted: {where}{cost:.4g}{beside}")
