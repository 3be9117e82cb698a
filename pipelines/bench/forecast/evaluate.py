"""Rolling-origin evaluation of forecasters on the newest fifth of one series."""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from models.forecast.blend.networked import NetworkedBlend
from models.forecast.core import scores
from models.forecast.core.forecaster import Forecaster, Task
from models.forecast.core.series import Series, SeriesError
from models.forecast.selection.backtest import Backtest, forecast_origins, pair_with_outcomes
from models.forecast.selection.catalogue import CATALOGUE, NAIVE, default_kind, select_kinds
from models.forecast.selection.champion import choose_champion
from pipelines.bench.forecast.networks import mean_share

LEVELS = (0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975)
"""Quantile levels of every evaluation; they hold the 50, 80, 90 and 95 % intervals."""
CHAMPION = "champion"
TRAINED = 0.8
"""Share of the series before the test rows."""
LEAST = 24
"""Fewer training steps than this are too few for any comparison."""


@dataclass(frozen=True, eq=False)
class EvaluatedModel:
    """One model's forecasts of the test steps.

    Attributes:
        kind: its name in the catalogue; the champion's is the name of the model that was chosen.
        backtest: actual (origins, horizon), quantiles (origins, horizon, levels), in the series' unit.
        train_s: seconds to fit and to read the training steps, the choice among kinds included.
        predict_us: microseconds for a step and its forecast, the median over the test steps.
        network_share: of a blend that carries a network, that network's mean share of the weight; None of any other.
    """

    kind: str
    backtest: Backtest
    train_s: float
    predict_us: float
    network_share: float | None = None


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What every model forecast on the test steps of one series.

    Attributes:
        name: of the series.
        unit: of its values.
        task: step, horizon and quantile levels.
        training: the oldest four fifths of the series.
        test: the newest fifth.
        contenders: models by name; always the naive forecasts, and `champion`, the one chosen on the training steps.
        skipped: by name, why a model could not be fitted.
    """

    name: str
    unit: str
    task: Task
    training: Series
    test: Series
    contenders: dict[str, EvaluatedModel]
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def champion(self) -> str:
        """Kind of the model that was chosen on the training steps."""
        return self.contenders[CHAMPION].kind

    @property
    def best_naive(self) -> str:
        """Name of the naive forecast with the lowest one-step RMSE on the test steps."""
        return min(NAIVE, key=lambda name: self.contenders[name].backtest.scores_ahead(1)["rmse"])


def evaluate(
    name: str,
    series: Series,
    horizon: int,
    models: Iterable[str] = ("all",),
    unit: str = "",
    report_progress: Callable[[str], None] = lambda line: None,
) -> Evaluation:
    """Fit models on all but the newest fifth of a series and step them through that fifth, forecasting at every step.

    The naive forecasts are always among the models. The champion is the model that does best on the newest training
    steps when fitted to those before them.

    Args:
        name: of the series, as messages and pages call it.
        series: the load; missing steps NaN.
        horizon: steps ahead, at least 1.
        models: names of the catalogue, or "all".
        unit: of the load, as pages call it.
        report_progress: called with a line of text as each model is ready or skipped.

    Returns:
        Forecasts and times of every model; one that cannot be fitted to so short a history is in `skipped`.

    Raises:
        SeriesError: four fifths of the series are under 24 steps and the horizon, or the rest is not longer than the
            horizon; or it holds negative or infinite values.
        SettingsError: an unknown model.
    """
    names = [name for name in CATALOGUE if name in {*NAIVE, *resolve_models(models)}]
    task = Task(series.step_s, horizon, LEVELS)
    training, test = split_for_test(name, series, horizon)
    contenders: dict[str, EvaluatedModel] = {}
    fitted: dict[str, Forecaster] = {}
    skipped: dict[str, str] = {}
    for model in names:
        try:
            fitted[model], contenders[model] = _evaluate_model(model, task, training, test)
        except SeriesError as error:
            skipped[model] = str(error)
            report_progress(f"{model}: skipped: {error}")
        else:
            report_progress(f"{model}: ready after {contenders[model].train_s:.1f} s")
    contenders[CHAMPION] = _evaluate_champion(task, training, fitted, contenders)
    report_progress(f"champion: {contenders[CHAMPION].kind}, chosen in {contenders[CHAMPION].train_s:.1f} s")
    return Evaluation(name, unit, task, training, test, contenders, skipped)


def resolve_models(models: Iterable[str]) -> list[str]:
    """Resolve model names to those of the catalogue, in its order; "all", `champion` alone or no name stands for all.

    Raises:
        SettingsError: an unknown model.
    """
    others = [name for name in models if name != CHAMPION]
    return select_kinds(others or ["all"])


def split_for_test(name: str, series: Series, horizon: int) -> tuple[Series, Series]:
    """Split a series into its oldest four fifths (rounded down) for training and the rest for the test.

    Args:
        name: of the series, for the message.
        series: of any length.
        horizon: steps ahead that are forecast.

    Returns:
        Training part and test part.

    Raises:
        SeriesError: the training part is shorter than the horizon and 24 steps more, or the test part not longer than
            the horizon; the message says how many steps are needed.
    """
    steps, trained = len(series), int(TRAINED * len(series))
    if trained < LEAST + horizon or steps - trained <= horizon:
        needed = max(math.ceil((LEAST + horizon) / TRAINED), math.ceil((horizon + 1) / (1 - TRAINED) - 1e-9))
        raise SeriesError(
            f"{name}: {steps} steps of {series.step_s:g} s; a horizon of {horizon} needs at least {needed}, of which "
            "the last fifth is the test. Ingest more history, choose a shorter step, or shorten the horizon."
        )
    return series.split(steps - trained)


def score_evaluation(evaluation: Evaluation) -> dict[str, Any]:
    """Score the forecasts of an evaluation; JSON values, None where a score is NaN or infinite.

    Returns:
        `series` (name), `unit`, `step_s`, `horizon` (steps), `levels`, `train_steps`, `test_steps`, `champion` and
        `best_naive` (kinds of model), `skipped` (reasons by model), and `models`: by name `kind`, `train_s` (seconds),
        `predict_us` (median µs per step), `pinball` (mean loss over all steps ahead, in `unit`) and `horizons`: by
        steps ahead, "1" to the horizon, `rmse`, `mae` and `pinball` in `unit`, `wape` (a share), `smape`, `smape_half`,
        `smape_sum` (per cent), `coverage` (by prediction interval, such as "0.8", a share 0..1) and `skill`, 1 − RMSE ÷
        that of the naive forecast that is best so many steps ahead.
    """
    models: dict[str, Any] = {}
    for name, contender in evaluation.contenders.items():
        by = {str(h): contender.backtest.scores_ahead(h) for h in range(1, evaluation.task.horizon + 1)}
        models[name] = {
            "kind": contender.kind,
            "train_s": contender.train_s,
            "predict_us": contender.predict_us,
            "pinball": statistics.fmean(scored["pinball"] for scored in by.values()),
            "horizons": by,
        }
    for h in models[CHAMPION]["horizons"]:
        naive = min(models[name]["horizons"][h]["rmse"] for name in NAIVE)
        for model in models.values():
            model["horizons"][h]["skill"] = scores.skill(model["horizons"][h]["rmse"], naive)
    whole = {
        "series": evaluation.name,
        "unit": evaluation.unit,
        "step_s": evaluation.task.step_s,
        "horizon": evaluation.task.horizon,
        "levels": list(evaluation.task.levels),
        "train_steps": len(evaluation.training),
        "test_steps": len(evaluation.test),
        "champion": evaluation.champion,
        "best_naive": evaluation.best_naive,
        "models": models,
        "skipped": evaluation.skipped,
    }
    return dict(json.loads(json.dumps(whole), parse_constant=lambda text: None))  # NaN and infinity become None


def _evaluate_model(name: str, task: Task, older: Series, held: Series) -> tuple[Forecaster, EvaluatedModel]:
    began = time.perf_counter()
    forecaster = CATALOGUE[name](task, older)
    running = forecast_origins(forecaster, older, held)
    made, spent = [next(running)], []
    train_s = time.perf_counter() - began
    for _ in range(len(held) - 1):
        began = time.perf_counter()
        made.append(next(running))
        spent.append(time.perf_counter() - began)
    share = mean_share(forecaster, older, held) if isinstance(forecaster, NetworkedBlend) else None
    return forecaster, EvaluatedModel(
        name, pair_with_outcomes(forecaster, held, made), train_s, 1e6 * statistics.median(spent), share
    )


def _evaluate_champion(
    task: Task, older: Series, fitted: dict[str, Forecaster], contenders: dict[str, EvaluatedModel]
) -> EvaluatedModel:
    """The model that does best on the newest training rows; its test rows are those of the model itself."""

    def fit(name: str, asked: Task, history: Series) -> Forecaster:
        return fitted[name] if history is older else CATALOGUE[name](asked, history)

    began = time.perf_counter()
    choice = choose_champion(task, older, {name: partial(fit, name) for name in fitted}, default=default_kind(fitted))
    chosen = contenders[choice.name]
    return replace(chosen, train_s=chosen.train_s + time.perf_counter() - began)
