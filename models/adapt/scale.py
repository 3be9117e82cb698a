"""What the network that is transferred between loads reads: so many steps, scaled to [0, 1]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from models.forecast.core.series import Floats, SeriesError

if TYPE_CHECKING:
    from torch import Tensor

CONTEXT = 24
"""Steps the network reads."""


@dataclass(frozen=True)
class DomainScale:
    """Min-max scale of one load (domain), by its training part; later values may lie outside [0, 1].

    Attributes:
        low: records/s that become 0.
        span: records/s from 0 to 1, above 0.
    """

    low: float
    span: float

    @staticmethod
    def fit(values: Floats) -> DomainScale:
        """Return the scale by which the least of (T,) training values, records/s, becomes 0 and the greatest 1.

        Raises:
            SeriesError: they are constant or contain NaN.
            ValueError: numpy's, where there is no value.
        """
        low, high = float(values.min()), float(values.max())
        if not high > low:
            raise SeriesError(f"the training part lies between {low} and {high}: a constant load cannot be scaled")
        return DomainScale(low, high - low)

    def scaled(self, values: Floats) -> Tensor:
        """Return (T,) records/s in this scale as a single-precision tensor."""
        import torch  # takes two seconds, and whoever serves no adapted network does without

        return torch.from_numpy(((values - self.low) / self.span).astype(np.float32))
