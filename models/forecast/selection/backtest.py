"""Rolling-origin evaluation: a forecaster is stepped through held-out steps exactly as in serving."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from models.forecast.core import scores
from models.forecast.core.forecaster import Forecaster
from models.forecast.core.series import Floats, Series, SeriesError
from models.forecast.online import Online


@dataclass(frozen=True, eq=False)
class Backtest:
    """Forecasts issued before every held-out step, each at an origin (time of issue), and the outcomes.

    Attributes:
        levels: quantile levels.
        start: epoch seconds of the first held-out step.
        step_s: seconds per step.
        actual: (origins, horizon) records/s; NaN beyond the end and where a step is missing.
        quantiles: (origins, horizon, levels) records/s.
    """

    levels: tuple[float, ...]
    start: float
    step_s: float
    actual: Floats
    quantiles: Floats

    @property
    def median(self) -> Floats:
        """(origins, horizon) records/s: the quantile at the level nearest to one half."""
        middle = int(np.argmin(np.abs(np.array(self.levels) - 0.5)))
        return self.quantiles[..., middle]

    def scores(self) -> dict[str, float]:
        """Return scores by name over all origins (times of issue) and steps ahead; NaN where no outcome is known.

        Returns:
            `pinball`, the mean over all levels, and of the median `rmse` and `mae`, in records/s; `coverage_<level>`
            the share of outcomes at or under each quantile, such as `coverage_0.9`; `rmse_h<n>` the RMSE n steps ahead,
            in records/s.
        """
        by_name = {
            "pinball": scores.pinball(self.actual, self.quantiles, self.levels),
            "rmse": scores.rmse(self.actual, self.median),
            "mae": scores.mae(self.actual, self.median),
        }
        for level, upper in zip(self.levels, np.moveaxis(self.quantiles, -1, 0), strict=True):
            by_name[f"coverage_{level:g}"] = scores.coverage(self.actual, upper)
        for h in range(1, self.actual.shape[1] + 1):
            by_name[f"rmse_h{h}"] = scores.rmse(self.actual[:, h - 1], self.median[:, h - 1])
        return by_name

    def losses(self) -> Floats:
        """Return (origins,) the mean pinball loss of each origin's forecast, records/s; NaN without an outcome."""
        pairs = zip(self.actual, self.quantiles, strict=True)
        return np.array([scores.pinball(actual, quantiles, self.levels) for actual, quantiles in pairs])

    def losses_by_step(self) -> Floats:
        """Return (origins,) the pinball losses of all forecasts of each held-out step, summed, records/s.

        They are means over the levels; NaN where the step's load is unknown. In proportion to all forecasts of all
        steps together they are `pinball`.
        """
        errors, levels = self.actual[..., None] - self.quantiles, np.array(self.levels)
        losses = np.maximum(levels * errors, (levels - 1) * errors).mean(axis=-1)
        sums = np.zeros(len(losses))
        for ahead in range(losses.shape[1]):
            sums[ahead:] += losses[: len(losses) - ahead, ahead]
        return sums

    def mean_of_medians(self, farthest: int) -> Floats:
        """Return for every held-out step the mean of the medians issued for it 1 to `farthest` steps ahead.

        Args:
            farthest: at least 1; cut to the horizon.

        Returns:
            (origins,) records/s, entry t of held-out step t. The first average the fewer forecasts that there are.
        """
        rows, sums, counts = len(self.actual), np.zeros(len(self.actual)), np.zeros(len(self.actual))
        for h in range(1, min(farthest, self.actual.shape[1]) + 1):
            sums[h - 1 :] += self.median[: rows - h + 1, h - 1]
            counts[h - 1 :] += 1
        means: Floats = sums / counts
        return means

    def central_interval(self, share: float) -> tuple[Floats, Floats]:
        """Return the ends of the central prediction interval with the given nominal coverage.

        Args:
            share: nominal coverage, 0..1, such as 0.8 for the levels 0.1 and 0.9.

        Returns:
            The lower and the upper end, each (origins, horizon) records/s, a view.

        Raises:
            SeriesError: the levels do not contain both ends.
        """
        ends = [(1 - share) / 2, (1 + share) / 2]
        at = [int(np.argmin(np.abs(np.array(self.levels) - end))) for end in ends]
        if any(abs(self.levels[i] - end) > 1e-6 for i, end in zip(at, ends, strict=True)):
            raise SeriesError(f"levels={self.levels}: the {share:.0%} interval needs {ends[0]:g} and {ends[1]:g}.")
        return self.quantiles[..., at[0]], self.quantiles[..., at[1]]

    def interval_shares(self) -> list[float]:
        """Return the nominal coverages (0..1) of the central intervals that the levels contain, narrowest first."""
        pairs = [(a, b) for a in self.levels for b in self.levels if a < b and abs(a + b - 1) < 1e-6]
        return sorted(round(b - a, 6) for a, b in pairs)

    def scores_ahead(self, h: int) -> dict[str, Any]:
        """Return scores by name of the forecasts h steps ahead, over all origins; NaN where no outcome is known.

        Args:
            h: 1 to the horizon; 0 or less counts from the farthest step ahead, unnoticed.

        Returns:
            `rmse`, `mae` of the median and `pinball`, the mean over all levels, in records/s; `wape` Σ|y − ŷ| ÷ Σ|y|, a
            share; `smape` (= `smape_half`), `smape_half`, `smape_sum` in per cent; `coverage`, a dict from nominal to
            empirical coverage of each central prediction interval, such as {"0.8": 0.79}.

        Raises:
            IndexError: `h` is beyond the horizon.
        """
        actual, median, quantiles = self.actual[:, h - 1], self.median[:, h - 1], self.quantiles[:, h - 1]
        half = scores.smape_half(actual, median)
        by_name: dict[str, Any] = {
            "rmse": scores.rmse(actual, median),
            "mae": scores.mae(actual, median),
            "wape": scores.wape(actual, median),
            "smape": half,
            "smape_half": half,
            "smape_sum": scores.smape_sum(actual, median),
            "pinball": scores.pinball(actual, quantiles, self.levels),
        }
        ends = {f"{share:g}": self.central_interval(share) for share in self.interval_shares()}
        coverage = {name: scores.covered(actual, low[:, h - 1], high[:, h - 1]) for name, (low, high) in ends.items()}
        return {**by_name, "coverage": coverage}

    def pinball_by_horizon(self) -> list[float]:
        """Return the mean pinball loss of each step ahead in records/s, nearest first."""
        horizons = range(self.actual.shape[1])
        return [scores.pinball(self.actual[:, h], self.quantiles[:, h], self.levels) for h in horizons]


def roll(forecaster: Forecaster, history: Series, held: Series) -> Backtest:
    """Forecast from every origin as `forecast_origins` does, and pair the forecasts with their outcomes.

    Args:
        forecaster: already fitted.
        history: what it sees before the first origin.
        held: the steps that follow, NaN: missing.

    Raises:
        SeriesError: `held` is empty or does not follow the history, the history has another step than the forecaster,
            or a load is negative or infinite.
    """
    return pair_with_outcomes(forecaster, held, list(forecast_origins(forecaster, history, held)))


def forecast_origins(forecaster: Forecaster, history: Series, held: Series) -> Iterator[Floats]:
    """Forecast before the first step of `held`, then after each of its steps but the last, one forecast per `next`.

    The first `next` reads the whole history and takes longer.

    Args:
        forecaster: already fitted.
        history: what it sees before the first forecast, records/s; NaN: missing.
        held: the steps that follow; NaN: missing.

    Yields:
        (horizon, levels) records/s, a copy; as many as `held` has steps.

    Raises:
        SeriesError: at a `next`: `held` is empty or does not begin within a thousandth of a step of the history's end,
            the history has another step than the forecaster, or a load is negative or infinite.
    """
    if not len(held) or abs(held.start - history.end) > 1e-3 * held.step_s:
        raise SeriesError(
            f"{len(held)} held-out steps from {held.start}; the history ends at {history.end}. Split one series in two."
        )
    online = Online(forecaster)
    online.admit("", history)
    yield online.current("")
    for value in held.values[:-1]:
        yield online.step("", float(value))


def pair_with_outcomes(forecaster: Forecaster, held: Series, made: Sequence[Floats]) -> Backtest:
    """Pair forecasts with the outcomes of the held-out steps.

    Args:
        forecaster: gives horizon and levels.
        held: the held-out steps.
        made: one (horizon, levels) forecast per held-out step, records/s, as `forecast_origins` yields them.

    Raises:
        ValueError: numpy's, where `made` is empty or its shapes differ.
    """
    padded = np.append(held.values, np.full(forecaster.horizon - 1, np.nan))
    actual = np.lib.stride_tricks.sliding_window_view(padded, forecaster.horizon)[: len(held)]
    return Backtest(forecaster.levels, held.start, held.step_s, actual.copy(), np.stack(made))
