"""Three LSTM layers and two dense ones. Pa-Stream paper, "LSTM-based performance prediction"."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn


class LayerSizes(NamedTuple):
    """Units of the three LSTM layers and of the dense one between them and the answer; dropout after the last two."""

    first: int
    second: int
    third: int
    dense: int
    dropout: float


LARGE, SMALL = LayerSizes(256, 1024, 512, 256, 0.5), LayerSizes(64, 128, 64, 32, 0.1)
"""The paper's, and one for short pasts, for which the paper's dropout is too much."""


class PerformanceNetwork(nn.Module):
    """From steps of rate and placement to latency and load, both standardised.

    Args:
        features: of a step.
        sizes: of the layers.
    """

    def __init__(self, features: int, sizes: LayerSizes) -> None:
        super().__init__()
        self.first = nn.LSTM(features, sizes.first, batch_first=True)
        self.second = nn.LSTM(sizes.first, sizes.second, batch_first=True)
        self.third = nn.LSTM(sizes.second, sizes.third, batch_first=True)
        self.dense, self.last = nn.Linear(sizes.third, sizes.dense), nn.Linear(sizes.dense, 2)
        self.dropout = nn.Dropout(sizes.dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Evaluate (B, steps, features): (B, 2)."""
        hidden, _ = self.first(x)  # (B, steps, first)
        hidden, _ = self.second(hidden)
        hidden, _ = self.third(hidden)
        dense = torch.relu(self.dense(self.dropout(hidden[:, -1])))
        found: Tensor = self.last(self.dropout(dense))
        return found
