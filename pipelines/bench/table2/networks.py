"""The source paper's networks and their training, exactly as it states them: 24 scaled steps in, the next step out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn

from models.forecast.core.series import Floats
from models.forecast.neural.adam import Adam
from pipelines.bench.table2.loads import Cell

CONTEXT = 24
"""Steps a network reads."""
HIDDEN = 64
"""Units per recurrent layer, and kernels per convolution."""
DROPOUT, LEARNING_RATE, BATCH, EPOCHS = 0.2, 0.01, 16, 10
NETWORKS = ("gru", "lstm", "cnn")
_ROWS = 1024  # windows per pass of `forecast_test`, to bound its memory


class SeededDropout(nn.Module):
    """Dropout whose masks come from a given generator; in evaluation it changes nothing."""

    def __init__(self, share: float, generator: torch.Generator) -> None:
        super().__init__()
        self.share, self.generator = share, generator

    def forward(self, values: Tensor) -> Tensor:
        """Set values to 0 with probability `share` and divide the others by 1 − share; in evaluation change nothing.

        The shape stays; in training the generator moves on.
        """
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
        self.cells = {"gru": nn.GRU, "lstm": nn.LSTM}[cell](1, HIDDEN, num_layers=2)
        self.dropout = SeededDropout(DROPOUT, generator)
        self.head = nn.Linear(HIDDEN, 1)
        for layer in (self.cells, self.head):
            _draw(layer, HIDDEN, generator)

    def forward(self, windows: Tensor) -> Tensor:
        """Forecast the next point, (B,), of each (B, CONTEXT) window of scaled loads."""
        states, _ = self.cells(windows.t()[..., None].contiguous())  # (T, B, 1)
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
        """Forecast the next point, (B,), of each (B, CONTEXT) window of scaled loads."""
        out: Tensor = self.body(windows[:, None])[:, 0]
        return out


def build_network(name: str, generator: torch.Generator) -> nn.Module:
    """Build an untrained "gru", "lstm" or "cnn"; weights are uniform as torch draws them, but from the generator.

    Raises:
        KeyError: another name.
    """
    return Convolutional(generator) if name == "cnn" else PaperRecurrent(name, generator)


def scale_loads(cell: Cell) -> Tensor:
    """Scale a cell's loads to (T,) float32 whose training part runs from 0 to 1; not finite where that is constant."""
    least, greatest = cell.training.min(), cell.training.max()
    return torch.from_numpy(((cell.loads - least) / (greatest - least)).astype(np.float32))


def train_network(model: nn.Module, scaled: Tensor, epochs: int, generator: torch.Generator) -> Iterator[float]:
    """Train a network in place by Adam on the mean squared error; the same generator state gives the same weights.

    Lazy: an epoch (pass over the points) is trained when its loss is asked for; afterwards the network evaluates.

    Args:
        model: reads (B, 24) windows and forecasts the (B,) next points.
        scaled: (T,) training points, T above CONTEXT (24).
        epochs: how many.
        generator: shuffles the windows, and is advanced by it.

    Yields:
        Each epoch's mean squared error per window, of scaled points, dropout included.

    Raises:
        RuntimeError, ZeroDivisionError: there are fewer than 24 points, or 24.
    """
    inputs, targets = cut_windows(scaled)
    optimizer = Adam(model.parameters(), LEARNING_RATE, fused=True)
    model.train()
    for _ in range(epochs):
        total = torch.zeros(())
        for rows in torch.split(torch.randperm(len(inputs), generator=generator), BATCH):
            model.zero_grad()
            loss = nn.functional.mse_loss(model(inputs[rows]), targets[rows])
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            total += loss.detach() * len(rows)
        yield float(total) / len(inputs)
    model.eval()


def forecast_test(model: nn.Module, cell: Cell) -> Floats:
    """Forecast every test step of a series from the CONTEXT (24) loads before it, with a trained network.

    Returns:
        (N,) records per step, one per test step; without meaning where the training part is constant.
    """
    inputs, _ = cut_windows(scale_loads(cell)[cell.first - CONTEXT :])
    with torch.no_grad():
        scaled = torch.cat([model(part) for part in torch.split(inputs, _ROWS)])
    least, greatest = cell.training.min(), cell.training.max()
    loads: Floats = scaled.double().numpy() * (greatest - least) + least
    return loads


def cut_windows(scaled: Tensor) -> tuple[Tensor, Tensor]:
    """Cut (T,) points into (T − CONTEXT, CONTEXT) windows and the (T − CONTEXT,) point that follows each."""
    return scaled.unfold(0, CONTEXT, 1)[:-1].contiguous(), scaled[CONTEXT:]


def _draw(layer: nn.Module, fan_in: int, generator: torch.Generator) -> None:
    """All parameters uniform on ± 1/√fan_in, torch's default for these layers."""
    with torch.no_grad():
        for weight in layer.parameters():
            weight.uniform_(-(fan_in**-0.5), fan_in**-0.5, generator=generator)
