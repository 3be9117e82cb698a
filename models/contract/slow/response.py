"""Whether a job still answers to its controls as it did: the linear model (eq. 6.2), learned interval by interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from configs.bounds import Declared, NotNegative, Whole
from models.contract.slow.linear_model import LinearModel, learn

LEAST = 1e-3
"""Share of a limit below which a measurement counts as so much."""
WIDE = 100.0
"""Variance that the weights may have at first: what inputs of about 1 tell is learned within a few intervals."""


@dataclass(frozen=True)
class Response(Declared):
    """What was learned of a job's response so far; JSON holds it exactly.

    Attributes:
        weights, spread, noise, excess, count, alarm: as in `LinearModel`, in lists; empty before the first interval.
        inputs: φ of the newest interval: 1, its output, and ln(1 + x) of its controls; None: they were not all read.
    """

    weights: tuple[float, ...] = ()
    spread: tuple[tuple[float, ...], ...] = ()
    noise: NotNegative = 0.0
    excess: NotNegative = 0.0
    count: Whole = 0
    alarm: bool = False
    inputs: tuple[float, ...] | None = None

    def after(self, ratio: float | None, controls: Sequence[float | None], intervals: int) -> Response:
        """Return it after an interval.

        Args:
            ratio: of what was measured to its limit, the worst; None: unread.
            controls: x ≥ 0, in force from the interval's end on, as many each time; None: unread.
            intervals: that are over since the newest one; only from one to the next is learned.
        """
        follows = intervals == 1 and self.inputs is not None
        read = [ratio, *controls]
        output = math.nan if ratio is None else math.log(max(ratio, LEAST))
        inputs = None if None in read else (1.0, output, *(math.log1p(one) for one in controls if one is not None))
        model = self._model(2 + len(controls))
        if follows and self.inputs is not None:
            model = learn(model, np.array(self.inputs), np.array([output]))
        return Response(
            tuple(model.weights[:, 0].tolist()), tuple(map(tuple, model.spread.tolist())), float(model.noise[0]),
            float(model.excess[0]), model.count, model.alarm and follows, inputs,
        )  # fmt: skip

    def _model(self, inputs: int) -> LinearModel:
        if not self.weights:
            return LinearModel.begin(inputs, 1, WIDE)
        return LinearModel(
            np.array(self.weights)[:, None], np.array(self.spread), np.array([self.noise]), np.array([self.excess]),
            self.count, self.alarm,
        )  # fmt: skip
