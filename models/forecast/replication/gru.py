"""The source paper's networks, exactly as it states them: 24 scaled steps in, the next step out."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from models.forecast.core.series import SeriesError

CONTEXT = 24
"""Steps a network reads."""
HIDDEN = 64
"""Units per recurrent layer, and kernels per convolution."""
DROPOUT = 0.2
NETWORKS = ("gru", "lstm", "cnn")


class SeededDropout(nn.Module):
    """Dropout whose masks come from a given generator; in evaluation it changes nothing."""

    def __init__(self, share: float, generator: torch.Generator) -> None:
        super().__init__()
        self.share, self.generator = share, generator

    def forward(self, values: Tensor) -> Tensor:
        """The values, in training each 0 with the probability `share` and else divided by 1 − share."""
        if not self.training:
            return values
        kept = torch.empty_like(values).bernoulli_(1 - self.share, generator=self.generator)
        return values * kept / (1 - self.share)


class PaperRecurrent(nn.Module):
    """Input 1 → cell of 64 → cell of 64 → last hidden state → dropout → one output; 37,889 parameters with GRU cells.

    The paper names GRU cells; LSTM cells stand beside them (50,497 parameters).
    """

    def __init__(self, cell: str, generator: torch.Generator) -> None:
        super().__init__()
        kind = {"gru": nn.GRU, "lstm": nn.LSTM}[cell]
        self.cells = kind(1, HIDDEN, num_layers=2)
        self.dropout = SeededDropout(DROPOUT, generator)
        self.head = nn.Linear(HIDDEN, 1)
        for layer, fan_in in ((self.cells, HIDDEN), (self.head, HIDDEN)):
            _draw(layer, fan_in, generator)

    def forward(self, windows: Tensor) -> Tensor:
        """(B, CONTEXT) scaled loads to (B,) the next one."""
        sequences = windows.t()[..., None].contiguous()  # (T, B, 1)
        states, _ = self.cells(sequences)
        out: Tensor = self.head(self.dropout(states[-1]))[:, 0]
        return out


class Convolutional(nn.Module):
    """Twice (64 kernels of size 3, ReLU, maximum of 2, dropout), flat, one output; 12,865 parameters."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        first, second, head = nn.Conv1d(1, HIDDEN, 3), nn.Conv1d(HIDDEN, HIDDEN, 3), nn.Linear(4 * HIDDEN, 1)
        for layer, fan_in in ((first, 3), (second, 3 * HIDDEN), (head, 4 * HIDDEN)):
            _draw(layer, fan_in, generator)
        blocks = [(c, nn.ReLU(), nn.MaxPool1d(2), SeededDropout(DROPOUT, generator)) for c in (first, second)]
        self.body = nn.Sequential(*blocks[0], *blocks[1], nn.Flatten(), head)

    def forward(self, windows: Tensor) -> Tensor:
        """(B, CONTEXT) scaled loads to (B,) the next one."""
        out: Tensor = self.body(windows[:, None])[:, 0]
        return out


def network(name: str, generator: torch.Generator) -> nn.Module:
    """An untrained network, its weights drawn as torch draws them, but from the generator.

    Raises:
        SeriesError: an unknown name.
    """
    if name not in NETWORKS:
        raise SeriesError(f"{name!r} is no network of the paper; one of {', '.join(NETWORKS)} is expected")
    return Convolutional(generator) if name == "cnn" else PaperRecurrent(name, generator)


def _draw(layer: nn.Module, fan_in: int, generator: torch.Generator) -> None:
    """All parameters uniform on ± 1/√fan_in, torch's default for these layers."""
    with torch.no_grad():
        for weight in layer.parameters():
            weight.uniform_(-(fan_in**-0.5), fan_in**-0.5, generator=generator)
