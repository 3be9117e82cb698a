"""A domain's training rows, scaled to [0, 1] by its own training part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from models.adapt.network import CONTEXT
from models.forecast.core.series import Floats, SeriesError


@dataclass(frozen=True)
class DomainScale:
    """Maps a domain to [0, 1] by the least and the greatest load of its own training part; others may lie outside."""

    low: float
    span: float

    @staticmethod
    def of(values: Floats) -> DomainScale:
        """Of (T,) training values.

        Raises:
            SeriesError: they are constant, or not finite.
        """
        low, high = float(values.min()), float(values.max())
        if not high > low:
            raise SeriesError(f"the training part lies between {low} and {high}: a constant load cannot be scaled")
        return DomainScale(low, high - low)

    def scaled(self, values: Floats) -> Tensor:
        """(T,) load in this scale, single precision."""
        return torch.from_numpy(((values - self.low) / self.span).astype(np.float32))


@dataclass(frozen=True, eq=False)
class DomainRows:
    """Training rows of one domain, scaled.

    Attributes:
        x: (N, 24) what was seen, newest last.
        y: (N, p) what came.
    """

    x: Tensor
    y: Tensor

    @staticmethod
    def of(values: Floats, scale: DomainScale, horizon: int) -> DomainRows:
        """Every window of (T,) values.

        Raises:
            SeriesError: not even one fits.
        """
        if len(values) < CONTEXT + horizon:
            raise SeriesError(
                f"{len(values)} steps: {CONTEXT} to read and {horizon} to forecast are needed for one row"
            )
        slides = scale.scaled(values).unfold(0, CONTEXT + horizon, 1)
        return DomainRows(slides[:, :CONTEXT], slides[:, CONTEXT:])

    def __len__(self) -> int:
        return len(self.x)
