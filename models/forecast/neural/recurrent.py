"""The recurrent quantile network: a GRU or an LSTM on what a linear forecast leaves over, one step at a time."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from models.forecast.neural.cells import LEAST_LEVEL, SHARE, Cell, carried_by, cell_inputs
from models.forecast.neural.windows import BEHIND, BESIDE, STATES, PastWindow

FOLDS = 5
"""Stretches of the rows that are left out in turn: to choose the strength of the ridge, and for the first widths."""
_RIDGES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)  # share of the rows each squared weight counts as
_LEAST_GAP = 1e-3  # of the volatility: the least distance between two levels at the start


class Recurrent(nn.Module):
    """Recurrent quantile network: rows of `windows.input_rows` in, moves of the root rate out.

    The median is a ridge regression on the row's moves (fitted by `fit_linear_part`) plus a correction by the GRU or
    LSTM. The other levels lie at positive distances exp(width + steep · log(expected ÷ day's root rate) + cell) from
    it, so that they rise. Corrections and distances are in units of the load's volatility. At first the cell's output
    is 0, so that training starts from the linear forecast.

    The cell reads the newest moves, the linear forecast and the volatility, but no hour and no weekday.

    Args:
        view: what of the past is read; its task's levels must contain 0.5.
        cell: "gru" or "lstm".
        hidden: units of the cell.
        generator: draws the first weights of the cell.

    Raises:
        ValueError: the levels do not contain 0.5.
    """

    kept: Tensor
    typical: Tensor

    def __init__(self, view: PastWindow, cell: Cell, hidden: int, generator: torch.Generator) -> None:
        super().__init__()
        horizon, levels, moves = view.task.horizon, view.task.levels, view.moves
        self.horizon, self.levels, self.middle = horizon, len(levels), levels.index(0.5)
        self.cell, self.hidden, self.moves = cell, hidden, len(moves)
        self.read, self.look = cell_inputs(view)
        near = [
            [lag == 0 or abs(k - h) <= BESIDE or -BEHIND <= k <= 0 for lag, k in moves] for h in range(1, horizon + 1)
        ]
        self.register_buffer("kept", torch.tensor(near, dtype=torch.float32))
        self.register_buffer("typical", torch.zeros(()))
        inputs = len(self.read) + len(self.look) + STATES - 1
        kind = nn.GRU if cell == "gru" else nn.LSTM
        self.rnn = kind(inputs, hidden, batch_first=True)
        self.head = nn.Linear(hidden, horizon * len(levels))
        self.linear = nn.Parameter(torch.zeros(horizon, len(moves)))
        self.bias = nn.Parameter(torch.zeros(horizon))
        self.centre = nn.Parameter(torch.zeros(horizon))
        self.width = nn.Parameter(torch.zeros(horizon, len(levels)))
        self.steep = nn.Parameter(torch.zeros(horizon, 1))
        self.restless = nn.Parameter(torch.zeros(horizon, 1))
        bound = hidden**-0.5
        with torch.no_grad():
            for weight in self.rnn.parameters():
                weight.uniform_(-bound, bound, generator=generator)
            self.head.weight.zero_()
            self.head.bias.zero_()

    @property
    def carried(self) -> int:
        """Numbers carried from step to step, see `carried_by`."""
        return carried_by(self.cell, self.hidden)

    def forward(self, row: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Run one step.

        Args:
            row: (B, width) as `windows.input_rows` makes them.
            hidden: (B, carried) state before it; zeros at first.

        Returns:
            Moves (B, horizon, levels) as `run_rows`, and the state (B, carried) after.
        """
        moves, after = self.run_rows(row[:, None], hidden)
        return moves[:, 0], after

    def run_rows(self, rows: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Run the network over many steps and return its forecasts as moves.

        Args:
            rows: (B, T, width) as `windows.input_rows` makes them, oldest first; of another width: torch's
                RuntimeError.
            hidden: (B, carried) state before them; zeros at first.

        Returns:
            Moves (B, T, horizon, levels): root of the forecast rate minus root of the newest one, in units of the day's
            mean root rate, rising over the levels. And the state (B, carried) after.
        """
        moves, level, calm, restless = torch.split_with_sizes(rows, [self.moves, 1, 1, 1], dim=-1)
        volatility = torch.exp(calm)
        linear = moves @ (self.linear * self.kept).T + self.bias  # (B, T, horizon)
        inputs = torch.cat([moves[..., self.read], linear[..., self.look]], dim=-1) / volatility
        inputs = torch.cat([torch.asinh(inputs), calm - self.typical, restless], dim=-1)
        outputs, after = self._recur(inputs, hidden)
        outputs = self.head(outputs).unflatten(-1, (self.horizon, self.levels))
        median = linear + volatility * (self.centre + SHARE * outputs[..., self.middle])
        expected = torch.log((level + median).clamp_min(LEAST_LEVEL))[..., None]
        gaps = torch.exp(self.width + self.steep * expected + self.restless * restless[..., None] + outputs)
        gaps = gaps * volatility[..., None]
        above = median[..., None] + torch.cumsum(gaps[..., self.middle + 1 :], dim=-1)
        below = median[..., None] - torch.cumsum(gaps[..., : self.middle].flip(-1), dim=-1).flip(-1)
        return torch.cat([below, median[..., None], above], dim=-1), after

    @torch.no_grad()
    def fit_linear_part(self, rows: Tensor, targets: Tensor, levels: tuple[float, ...]) -> None:
        """Fit the medians by ridge regression, and the first widths by the quantiles of its errors, in place.

        Ridge strength and errors come from cross-validation over 5 contiguous folds. A step ahead with fewer than 2
        known outcomes keeps its zeros. The cell is not trained. Shapes that do not fit: torch's RuntimeError.

        Args:
            rows: (N, width) as `windows.input_rows` makes them, oldest first.
            targets: (N, horizon) moves that came, in units of the day's mean root rate; NaN where missing.
            levels: quantile levels, those of the network.
        """
        moves, calm = rows[:, : self.moves].double(), rows[:, self.moves + 1].double()
        self.typical.fill_(float(calm.mean()))
        for h in range(self.horizon):
            known = torch.isfinite(targets[:, h])
            if int(known.sum()) < 2:
                continue
            columns = self.kept[h] > 0
            inputs, target, unit = moves[known][:, columns], targets[known, h].double(), calm[known].exp()
            weights, bias, errors = _ridge(inputs, target)
            self.linear[h, columns], self.bias[h] = weights.float(), float(bias)
            self.centre[h] = float(((target - inputs @ weights - bias) / unit).median())
            at = torch.quantile(errors / unit, torch.tensor(levels, dtype=errors.dtype))
            gaps = torch.diff(at).clamp_min(_LEAST_GAP).log().float()
            self.width[h] = torch.cat([gaps[: self.middle], torch.zeros(1), gaps[self.middle :]])

    def _recur(self, read: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        if isinstance(self.rnn, nn.GRU):
            said, after = self.rnn(read, hidden[None])
            return said, after[0]
        first, second = torch.chunk(hidden[None], 2, dim=-1)
        said, (one, two) = self.rnn(read, (first.contiguous(), second.contiguous()))
        return said, torch.cat([one[0], two[0]], dim=-1)


def _ridge(inputs: Tensor, target: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return weights, bias and (N,) cross-validated errors of the ridge regression best over the folds."""
    centre, spread = inputs.mean(dim=0), inputs.std(dim=0, correction=0) + 1e-9
    scaled, moved = (inputs - centre) / spread, target - target.mean()
    folds = torch.arange(len(target)) * FOLDS // len(target)  # contiguous: neighbouring rows overlap
    parts = [scaled[folds == fold] for fold in range(FOLDS)]
    grams = torch.stack([part.T @ part for part in parts])
    sides = torch.stack([part.T @ moved[folds == fold] for fold, part in enumerate(parts)])
    eye, least, best, left = torch.eye(inputs.shape[1], dtype=inputs.dtype), torch.inf, _RIDGES[-1], moved
    for strength in _RIDGES:
        damping = strength * len(target) * eye
        weights = torch.linalg.solve(grams.sum(dim=0) - grams + damping, sides.sum(dim=0) - sides)  # (folds, inputs)
        errors = moved - torch.cat([part @ w for part, w in zip(parts, weights, strict=True)])
        if (error := float(errors.square().mean())) < least:
            least, best, left = error, strength, errors
    weights = torch.linalg.solve(grams.sum(dim=0) + best * len(target) * eye, sides.sum(dim=0)) / spread
    return weights, target.mean() - centre @ weights, left
