"""Promotion gate: whether a challenger, forecaster or policy, is good enough beside its rivals to serve."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from models.forecast.core.bootstrap import independent_bound
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
        ratio_bound: upper 97.5 % confidence bound of the challenger's mean cost ÷ this one's (`core.bootstrap`).
        max_ratio: greatest bound that passes: 1 asks for not worse, somewhat more tolerates that much.
    """

    cost: float
    ratio_bound: float
    max_ratio: float = 1.0

    @classmethod
    def compare(cls, mine: Floats, theirs: Floats, max_ratio: float, rivals: int = 1) -> Rival:
        """Build a rival from its costs and those of the challenger on the same rows.

        Args:
            mine: (T,) costs of the challenger, at least 0, of rows that know nothing of each other, such as seeds; one
                that is not finite in either array is left out.
            theirs: (T,) costs of the rival, in the same unit.
            max_ratio: greatest bound that passes.
            rivals: number of comparisons made, for the Bonferroni correction.

        Returns:
            The rival with its mean cost and `ratio_bound` (`core.bootstrap.independent_bound`); with fewer than two
            known rows it is NaN.

        Raises:
            ValueError: the arrays differ in length.
        """
        known = [(a, b) for a, b in zip(mine.tolist(), theirs.tolist(), strict=True) if math.isfinite(a + b)]
        cost = sum(b for _, b in known) / len(known) if known else math.nan
        if len(known) < 2:
            return cls(cost, math.nan, max_ratio)
        return cls(cost, independent_bound(mine, theirs, rivals), max_ratio)


def decide_promotion(cost: float, rivals: Mapping[str, Rival], where: str = "") -> Verdict:
    """Decide whether a challenger may serve, and say why: each rival's `ratio_bound` must be ≤ its `max_ratio`.

    A rival without a finite cost is passed over; without any other rival the challenger is promoted.

    Args:
        cost: the challenger's mean cost on held-out rows, in any unit, lower is better; it stands in the reason, and
            decides only where it is not finite: rejected.
        rivals: by name; a bound that is NaN rejects the challenger.
        where: prefix of the cost in the reason, such as the name of the data with a space at the end.

    Returns:
        The verdict; the reason of a rejection names the first rival that fails.
    """
    if not math.isfinite(cost):
        return Verdict(False, f"rejected: {where}the challenger has no cost ({cost})")
    compared = []
    for name, rival in rivals.items():
        if not math.isfinite(rival.cost):
            continue
        compared.append(
            f"{name}'s {rival.cost:.4g} (at most {rival.ratio_bound:.3f} of it, {rival.max_ratio:g} allowed)"
        )
        if not rival.ratio_bound <= rival.max_ratio:
            return Verdict(False, f"rejected: {where}{cost:.4g} is not surely low enough beside the {compared[-1]}")
    beside = f", beside the {', the '.join(compared)}" if compared else ", and nobody to compare with"
    return Verdict(True, f"promoted: {where}{cost:.4g}{beside}")
