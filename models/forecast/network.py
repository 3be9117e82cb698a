"""The GRU quantile network, and the forecaster that steps it through a series."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from models.forecast.forecaster import State, begin, push
from models.forecast.naive import Naive
from models.forecast.series import Floats, Series
from models.forecast.windows import View, pack

RECENT = 12
"""How many of the newest deviations from the season the linear start looks at."""
_SHARE = 0.1  # of a unit: how much the GRU corrects the median by, per unit of its output
_GAIN = 3.0  # deviations are small against the load; the GRU learns faster from numbers near 1
_LEAST_LOAD = 0.05  # of the scale: below it errors no longer shrink with the load
_LEAST_GAP = 1e-3  # of the scale: the least distance between two levels' starts
_RIDGE = 0.1  # weight of the ridge, in mean variances of the inputs


class GruQuantiles(nn.Module):
    """Records/s in, quantiles in records/s out; it learns what the season leaves over.

    The median is the same time last season, plus a ridge regression on the newest deviations from it (fitted in closed
    form by `start`), plus the GRU's correction. The other levels lie at distances exp(width + GRU) from the median, so
    that they rise; corrections and distances are in units of the square root of the season's load, as counts spread. At
    first the GRU says nothing: training moves away from the linear forecast only.

    The GRU reads deviations alone, no load, hour or weekday: with four weeks of history it would learn these by heart
    (on NAB nyc_taxi, eight cuts of 28 days, its pinball loss then rose by 7 % in six epochs, and falls by 4 % without).
    """

    scale: Tensor

    def __init__(self, view: View, hidden: int, scale: float, generator: torch.Generator) -> None:
        super().__init__()
        levels = view.task.levels
        self.context, self.middle = view.context, levels.index(0.5)
        self.recent = min(RECENT, view.context)
        self.register_buffer("scale", torch.tensor(float(scale)))
        self.gru = nn.GRU(3, hidden, batch_first=True)
        self.head = nn.Linear(hidden, len(levels))
        self.past = nn.Parameter(torch.zeros(view.task.horizon, self.recent + 1))
        self.ahead = nn.Parameter(torch.zeros(view.task.horizon))
        self.width = nn.Parameter(torch.zeros(view.task.horizon, len(levels)))
        bound = hidden**-0.5
        with torch.no_grad():
            for weight in self.gru.parameters():
                weight.uniform_(-bound, bound, generator=generator)
            self.head.weight.zero_()
            self.head.bias.zero_()

    def forward(self, packed: Tensor) -> Tensor:
        """(B, context + horizon, CHANNELS) as `pack` lays it out to (B, horizon, levels) records/s, rising and ≥ 0."""
        rate, season, yesterday, before = (packed / self.scale).unbind(-1)  # each (B, T)
        known = (torch.arange(packed.shape[1]) < self.context).to(packed.dtype)
        read = torch.stack([_GAIN * (rate - season) * known, yesterday - season, _GAIN * (yesterday - before)], dim=-1)
        hidden, _ = self.gru(read)  # (B, T, hidden)
        said = self.head(hidden[:, self.context :])  # (B, horizon, levels)
        past, ahead = self._linear(rate, season, yesterday, before)
        unit = self._unit(season)
        median = season[:, self.context :] + past @ self.past.T + ahead * self.ahead
        median = median + _SHARE * unit * said[..., self.middle]
        gaps = torch.exp(self.width + said) * unit[..., None]
        above = median[..., None] + torch.cumsum(gaps[..., self.middle + 1 :], dim=-1)
        below = median[..., None] - torch.cumsum(gaps[..., : self.middle].flip(-1), dim=-1).flip(-1)
        return torch.relu(torch.cat([below, median[..., None], above], dim=-1) * self.scale)

    @torch.no_grad()
    def start(self, packed: Tensor, outcomes: Tensor, levels: tuple[float, ...]) -> None:
        """Set the linear part by ridge regression on (N, ...) rows, and the widths by what it leaves over."""
        rate, season, yesterday, before = (packed / self.scale).unbind(-1)
        past, ahead = self._linear(rate, season, yesterday, before)
        unit = self._unit(season)
        left = outcomes / self.scale - season[:, self.context :]
        for h in range(left.shape[1]):
            known = torch.isfinite(left[:, h])
            inputs = torch.cat([past, ahead[:, h : h + 1]], dim=1)[known].double()
            target = left[known, h].double()
            if len(target) < 2:
                continue
            gram = inputs.T @ inputs
            ridge = _RIDGE * len(target) * inputs.var(dim=0).mean() + 1e-9
            weights = torch.linalg.solve(gram + ridge * torch.eye(len(gram), dtype=gram.dtype), inputs.T @ target)
            self.past[h], self.ahead[h] = weights[:-1].float(), weights[-1].float()
            errors = (target - inputs @ weights) / unit[known, h]
            at = torch.quantile(errors - errors.median(), torch.tensor(levels, dtype=errors.dtype))
            at[self.middle] = 0.0
            self.width[h] = _log_gaps(at, self.middle)

    def _unit(self, season: Tensor) -> Tensor:
        """(B, horizon) what errors are measured in: the root of the season's load, as a share of the scale."""
        return season[:, self.context :].clamp_min(_LEAST_LOAD).sqrt()

    def _linear(self, rate: Tensor, season: Tensor, yesterday: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
        """(B, recent + 1) newest deviations and their mean; (B, horizon) how yesterday deviated at the same time."""
        deviation = (rate - season)[:, : self.context]
        past = torch.cat([deviation[:, -self.recent :], deviation.mean(dim=1, keepdim=True)], dim=1)
        return past, (yesterday - before)[:, self.context :]


def _log_gaps(at: Tensor, middle: int) -> Tensor:
    """(levels,) logarithms of the distances from each level to the next one towards the median; 0 at the median."""
    gaps = torch.diff(at).clamp_min(_LEAST_GAP).log().float()
    return torch.cat([gaps[:middle], torch.zeros(1), gaps[middle:]])


@dataclass(frozen=True)
class Network:
    """A trained network as a forecaster; until the history is long enough the naive forecast stands in, and says so.

    Attributes:
        view: what of the past the network looks at.
        module: packed tensor to quantiles, a `GruQuantiles` or what was exported from one.
        kind: name of the architecture.
    """

    view: View
    module: Callable[[Tensor], Tensor]
    kind: str = "gru"

    @property
    def step_s(self) -> float:
        """Seconds per step."""
        return self.view.task.step_s

    @property
    def horizon(self) -> int:
        """Steps ahead."""
        return self.view.task.horizon

    @property
    def levels(self) -> tuple[float, ...]:
        """Quantile levels."""
        return self.view.task.levels

    def init(self, history: Series) -> State:
        """The state after a history, which may be empty."""
        return begin(self.view.task, history, self.view.context)

    def step(self, state: State, value: float) -> tuple[State, Floats]:
        """The state one step later (NaN: missing) and its forecast (horizon, levels)."""
        state = push(self.view.task, state, value)
        return state, self.current(state)

    def current(self, state: State) -> Floats:
        """(horizon, levels) records/s; NaN where nothing was ever seen."""
        if state.seen < self.view.needs:
            return Naive(self.view.task).current(state)
        packed = pack(self.view, state.values[None])
        with torch.no_grad():
            quantiles: Floats = self.module(torch.from_numpy(packed))[0].numpy().astype(np.float64)
        return quantiles

    def trust(self, state: State) -> str:
        """`network`, or what the naive forecast that stands in rests on."""
        return "network" if state.seen >= self.view.needs else Naive(self.view.task).trust(state)
