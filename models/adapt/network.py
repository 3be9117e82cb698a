"""The network that is transferred between loads, and its training rows."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from models.adapt.scale import CONTEXT, DomainScale
from models.forecast.core.series import Floats, SeriesError

DROPOUT = 0.2
_KERNEL = 3


@dataclass(frozen=True, eq=False)
class DomainRows:
    """Training rows of one load (domain), scaled.

    Attributes:
        x: (N, 24) inputs, newest last.
        y: (N, p) outcomes.
    """

    x: Tensor
    y: Tensor

    @staticmethod
    def cut(values: Floats, scale: DomainScale, horizon: int) -> DomainRows:
        """Cut a load into rows: every window of 24 inputs and the `horizon` outcomes after it, oldest first, scaled.

        Args:
            values: (T,) records/s without gaps, which is not checked.
            scale: the load's.
            horizon: outcomes per row, in steps.

        Raises:
            SeriesError: T is below 24 + `horizon`.
        """
        if len(values) < CONTEXT + horizon:
            raise SeriesError(
                f"{len(values)} steps: {CONTEXT} to read and {horizon} to forecast are needed for one row"
            )
        slides = scale.scaled(values).unfold(0, CONTEXT + horizon, 1)
        return DomainRows(slides[:, :CONTEXT], slides[:, CONTEXT:])

    def __len__(self) -> int:
        return len(self.x)


class TransferGru(nn.Module):
    """Forecasting network whose features can be aligned between loads.

    x (B, 24) → 2 causal Conv1d (kernel 3, left padding 2, ReLU, dropout) → z (B, 24, C) → 2 × GRU → Linear(p).

    The feature φ(x) is the mean of z over time, so that aligning it trains the convolutions. The head's output is added
    to the last value; it begins at 0, so an untrained network repeats the last value.

    Args:
        horizon: steps ahead, p.
        hidden: channels of the convolutions and units of the GRU.
        generator: draws the first weights.
    """

    def __init__(self, horizon: int, hidden: int, generator: torch.Generator) -> None:
        super().__init__()
        self.first = nn.Conv1d(1, hidden, _KERNEL)
        self.second = nn.Conv1d(hidden, hidden, _KERNEL)
        self.gru = nn.GRU(hidden, hidden, num_layers=2, batch_first=True)
        self.head = nn.Linear(hidden, horizon)
        fans = ((self.first, _KERNEL), (self.second, _KERNEL * hidden), (self.gru, hidden))
        with torch.no_grad():
            for module, fan in fans:
                for weight in module.parameters():
                    weight.uniform_(-(fan**-0.5), fan**-0.5, generator=generator)
            self.head.weight.zero_()
            self.head.bias.zero_()

    def forward(self, x: Tensor, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """Return features and forecasts of B windows.

        Args:
            x: (B, 24) scaled load, newest last.
            generator: draws the dropout (share 0.2) while training; None: no dropout.

        Returns:
            (B, hidden) features φ, without unit, and (B, p) scaled load 1 to p steps ahead.
        """
        z = x[:, None, :] - x[:, None, -1:]  # (B, 1, T); the level is the skip's business
        for convolution in (self.first, self.second):
            z = torch.relu(convolution(pad(z, (_KERNEL - 1, 0))))  # (B, C, T)
            z = _dropped(z, generator)
        states, _ = self.gru(z.transpose(1, 2))  # (B, T, hidden)
        return z.mean(dim=2), x[:, -1:] + self.head(states[:, -1])

    def convolutions(self) -> list[nn.Parameter]:
        """Return the parameters of the convolutions, which make the features and are frozen while fine-tuning."""
        return [*self.first.parameters(), *self.second.parameters()]


def _dropped(z: Tensor, generator: torch.Generator | None) -> Tensor:
    if generator is None:
        return z
    kept = torch.rand(z.shape, generator=generator) >= DROPOUT
    return z * kept / (1 - DROPOUT)


class ForecastOnly(nn.Module):
    """A `TransferGru` reduced to its forecast, without features and dropout: the form that is exported and serves."""

    def __init__(self, network: TransferGru) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        """Return the (B, p) scaled forecast for (B, 24) scaled loads, newest last."""
        forecasts: Tensor = self.network(x)[1]
        return forecasts
