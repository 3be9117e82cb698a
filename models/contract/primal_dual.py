"""One step of projected primal-dual descent on the controls and the prices of limits.

Unified batch-stream runtime paper, eq. 3.5, without its adaptive steps. Controls are scaled to [0, 1] of their boxes.
Slow steps of both are what keeps a closed loop around an M/M/1 queue within 2 records/s of its fixed point; ten times
the dual step makes it swing by 66.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from models.contract.terms import ControlBox

PRIMAL_STEP, DUAL_STEP = 0.05, 0.05
"""Step sizes of the controls and of the multipliers."""
MOST_MULTIPLIER = 10.0
"""The multipliers are clipped here, so that a limit that cannot be kept leaves no debt that outlasts it long."""
PROBE = 1e-4
"""Half the width of central differences, in units of a control's range."""

HALVINGS = 30
"""Of a step that crosses the balance: it is found to a billionth of the step."""

Model = Callable[[Sequence[float]], tuple[float, Mapping[str, float]]]
"""From scaled controls to the objective and the constraints g by name, each at most 0 where it is kept."""


class Scaling(NamedTuple):
    """A control's box, and whether its range is cut by ratios (intervals, widths of sketches) or evenly (rates)."""

    box: ControlBox
    logarithmic: bool = False

    def to_unit(self, value: float) -> float:
        """Return where a value, above 0 on a logarithmic range, lies in the box: 0 to 1, beyond it at the nearer end.

        A box without width gives 0.
        """
        low, high = self._ends()
        at = math.log(value) if self.logarithmic else value
        return min(max((at - low) / (high - low), 0.0), 1.0) if high > low else 0.0

    def from_unit(self, unit: float) -> float:
        """Return the value at a place in the box, 0 to 1."""
        low, high = self._ends()
        at = low + unit * (high - low)
        return math.exp(at) if self.logarithmic else at

    def _ends(self) -> tuple[float, float]:
        if self.logarithmic and not self.box.min > 0:
            raise ValueError(f"min={self.box.min}: a range that is cut by ratios begins above 0")
        return (math.log(self.box.min), math.log(self.box.max)) if self.logarithmic else (self.box.min, self.box.max)


def lagrangian_gradient(model: Model, units: Sequence[float], multipliers: Mapping[str, float]) -> tuple[float, ...]:
    """Return ∇f + Σ ν·∇g by central differences.

    Args:
        model: predicts objective and constraints; asked `PROBE` beyond the box, too.
        units: (controls,) scaled.
        multipliers: ν by constraint; 0 for one that is not named.

    Returns:
        (controls,) slopes.
    """

    def priced(at: int, offset: float) -> float:
        cost, constraints = model([unit + offset * (other == at) for other, unit in enumerate(units)])
        return cost + math.fsum(multipliers.get(name, 0.0) * value for name, value in constraints.items())

    return tuple((priced(at, PROBE) - priced(at, -PROBE)) / (2 * PROBE) for at in range(len(units)))


def descend(
    units: Sequence[float], gradient: Sequence[float], slews: Sequence[float], caps: Sequence[float]
) -> tuple[float, ...]:
    """Return the controls after a step against the gradient, projected onto boxes and caps.

    Args:
        units: (controls,) scaled, 0 to 1.
        gradient: (controls,) slopes; a NaN leaves its control where it is.
        slews: (controls,) longest steps.
        caps: (controls,) highest scaled values of this interval; a control above its cap falls to it at once.
    """
    moved = []
    for unit, slope, slew, cap in zip(units, gradient, slews, caps, strict=True):
        step = 0.0 if math.isnan(slope) else min(max(-PRIMAL_STEP * slope, -slew), slew)
        moved.append(max(min(unit + step, 1.0, cap), 0.0))
    return tuple(moved)


def stop_at_balance(slope: Callable[[float], float], start: float, end: float) -> float:
    """Return the end of a step of one control, or where on the way the slope vanishes, if it is crossed.

    Near saturation a step of fixed size leaps from one side of the best rate to the other and back, for ever: with the
    default weights by 7 % of the capacity. A step that stays on its side is the paper's.

    Args:
        slope: of the Lagrangian, by the control, scaled.
        start: of the step, scaled.
        end: likewise.
    """
    low, high = start, end
    before = slope(low)
    if not before * slope(high) < 0:  # also where one of them is no number
        return end
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if slope(middle) * before > 0:
            low = middle
        else:
            high = middle
    return low


def raise_prices(multipliers: Mapping[str, float], measured: Mapping[str, float]) -> dict[str, float]:
    """Return ν ← clip(ν + η·g, 0, 10) by constraint, the integral part of the controller.

    Args:
        multipliers: ν, at least 0; 0 for one that is not named.
        measured: g from what was measured; a constraint that is missing or NaN keeps its price.
    """
    known = {name: value for name, value in measured.items() if not math.isnan(value)}
    raised = {
        name: min(max(multipliers.get(name, 0.0) + DUAL_STEP * value, 0.0), MOST_MULTIPLIER)
        for name, value in known.items()
    }
    return {**multipliers, **raised}
