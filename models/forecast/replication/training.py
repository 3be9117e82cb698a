"""Training as the source paper states it: Adam 0.01, batches of 16, ten epochs, mean squared error."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from models.forecast.core.series import Floats, SeriesError
from models.forecast.replication.gru import CONTEXT

EPOCHS = 10
BATCH = 16
LEARNING_RATE = 0.01
TRAINING = 0.8
"""Share of the points, the oldest, that a model is fitted on."""
_ROWS = 1024  # windows per pass of `predict`: more would fill the memory and gain nothing


@dataclass(frozen=True)
class MinMaxScale:
    """Loads to [0, 1] and back, by the least and the greatest training value; test values may lie outside."""

    least: float
    greatest: float

    def shrink(self, loads: Floats) -> Tensor:
        """(...,) loads as float32 of about [0, 1]."""
        return torch.from_numpy(((loads - self.least) / (self.greatest - self.least)).astype(np.float32))

    def widen(self, scaled: Tensor) -> Floats:
        """The inverse of `shrink`."""
        loads: Floats = scaled.double().numpy() * (self.greatest - self.least) + self.least
        return loads


def cut(points: int) -> int:
    """How many of the points are for training: four fifths, rounded down."""
    return int(TRAINING * points)


def scale_of(training: Floats) -> MinMaxScale:
    """The scale of a training part.

    Raises:
        SeriesError: it is too short for one window, not finite, or constant.
    """
    if len(training) <= CONTEXT:
        raise SeriesError(f"{len(training)} training points; a window of {CONTEXT} and its target need {CONTEXT + 1}")
    if not np.isfinite(training).all():
        at = int(np.argmin(np.isfinite(training)))
        raise SeriesError(f"step {at}: {training[at]}; finite loads are expected. Fill the gaps first.")
    if not np.ptp(training) > 0:
        raise SeriesError(f"all {len(training)} training points are {training[0]:g}: there is nothing to learn")
    return MinMaxScale(float(training.min()), float(training.max()))


def windows(scaled: Tensor) -> tuple[Tensor, Tensor]:
    """(T,) points to (T − CONTEXT, CONTEXT) windows and the (T − CONTEXT,) point that follows each."""
    return scaled.unfold(0, CONTEXT, 1)[:-1], scaled[CONTEXT:]


def fit(network: nn.Module, scaled: Tensor, epochs: int, generator: torch.Generator) -> Iterator[float]:
    """Train in place on (T,) scaled points, yielding each epoch's mean loss; afterwards the network is in evaluation.

    The rows are shuffled by the generator; the same state of it gives the same weights.
    """
    inputs, targets = windows(scaled)
    inputs = inputs.contiguous()
    optimizer = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE, fused=True)
    network.train()
    for _ in range(epochs):
        total = torch.zeros(())
        for rows in torch.split(torch.randperm(len(inputs), generator=generator), BATCH):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(network(inputs[rows]), targets[rows])
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            total += loss.detach() * len(rows)
        yield float(total) / len(inputs)
    network.eval()


def predict(network: nn.Module, scaled: Tensor) -> Tensor:
    """(T,) scaled points to (T − CONTEXT,) one-step forecasts of the points from CONTEXT on."""
    inputs, _ = windows(scaled)
    with torch.no_grad():
        return torch.cat([network(part) for part in torch.split(inputs, _ROWS)])
