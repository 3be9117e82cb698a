"""One training run: a first champion where there is none, a challenger, and what they are worth on the same steps."""

from __future__ import annotations

import time
from dataclasses import asdict

import torch

from configs.settings import Training
from models.forecast.backtest import Backtest, roll
from models.forecast.forecaster import Forecaster, Task
from models.forecast.naive import Naive
from models.forecast.network import Network
from models.forecast.recurrent import Recurrent
from models.forecast.series import Series, SeriesError
from models.forecast.training import Epoch, Plan, fit, trained
from models.forecast.windows import View, season_of
from pipelines.registry import CHALLENGER, Registry, RegistryError, Run
from pipelines.train import plots
from pipelines.train.card import model_card
from pipelines.train.live import follow
from pipelines.train.source import Source, moment


def train_on(registry: Registry, job: str, training: Training, source: Source) -> str:
    """Train, evaluate and register on a series; returns the MLflow run's id.

    Where the job has no champion, the seasonal naive forecast becomes it first. With too few steps that is all; the
    run's tag `outcome` says so.
    """
    task = Task(training.step_s, training.horizon, training.levels)
    with registry.run(job, f"{job} {moment(source.series.end)}") as run:
        run.parameters(training.model_dump())
        run.tags(source.lineage())
        if registry.champion_version(job) is None:
            naive = Naive(task)
            note = "It needs no training; it is registered first, so that the job is never without a forecast."
            version = registry.register(run, job, naive, model_card(job, naive, source, {}, note), source.lineage())
            registry.set_champion(job, version)
        follow(registry, run, job, source)
        run.tags({"outcome": _challenge(registry, run, job, training, source)})
        return run.id


def _challenge(registry: Registry, run: Run, job: str, training: Training, source: Source) -> str:
    """Train on all but the newest steps, score everybody on these, register the network; says what came of it."""
    if source.known < training.minimum_steps:
        return f"no challenger: {source.known} steps in the lake, training.minimum_steps={training.minimum_steps}"
    task = Task(training.step_s, training.horizon, training.levels)
    older, held = source.series.split(training.holdout_steps)
    try:
        network, epochs = _fit(run, training, task, older)
    except SeriesError as error:
        return f"no challenger: {error}"
    champion_version, champion, remark = _champion(registry, job, task)
    rivals: dict[str, Forecaster] = {"challenger": network}
    if champion is not None:
        rivals["champion"] = champion
    rivals |= {"seasonal_naive": Naive(task), "last_value": Naive(task, seasonal=False)}
    backtests = {name: roll(rival, older, held) for name, rival in rivals.items()}
    _log(run, backtests, epochs)
    note = f"Compared with champion version {champion_version} on the newest {len(held)} steps. {remark}".strip()
    card = model_card(job, network, source, {name: b.figures() for name, b in backtests.items()}, note)
    run.text(card, "card.md")
    version = registry.register(run, job, network, card, source.lineage(), alias=CHALLENGER)
    run.tags({"challenger": version, "champion": champion_version})
    return f"challenger version {version} trained on {len(older)} steps. {remark}".strip()


def _fit(run: Run, training: Training, task: Task, older: Series) -> tuple[Network, list[Epoch]]:
    torch.set_num_threads(1)  # this small a network is faster alone, and the machine has other work
    view = View(task, season_of(task, len(older)))
    generator = torch.Generator().manual_seed(training.seed)
    network = Recurrent(view, "gru", training.hidden, generator)
    plan = Plan(training.epochs, training.learning_rate, training.lanes, training.context)
    began, epochs = time.perf_counter(), []
    for epoch in fit(network, view, older, plan, generator):
        epochs.append(epoch)
        losses = {
            f"{epoch.phase}.train_loss": epoch.train_loss,
            f"{epoch.phase}.validation_loss": epoch.validation_loss,
        }
        run.metrics({name: loss for name, loss in losses.items() if loss == loss}, step=epoch.index)
    run.parameters({"season": view.season, **{f"plan.{k}": v for k, v in asdict(plan).items()}})
    run.metrics({"train_s": time.perf_counter() - began})
    return trained(network, view), epochs


def _champion(registry: Registry, job: str, task: Task) -> tuple[str, Forecaster | None, str]:
    """The champion's version, itself if it can be compared, and a remark if not."""
    version = registry.champion_version(job)
    assert version is not None, "train_on has just seen to it"
    try:
        champion = registry.load(job, version)
    except RegistryError as error:
        return version, None, f"The champion cannot be loaded: {error}"
    if (champion.step_s, champion.horizon, champion.levels) != (task.step_s, task.horizon, task.levels):
        made_for = f"{champion.horizon} steps of {champion.step_s:g} s at {champion.levels}"
        return version, None, f"The champion forecasts {made_for}: not comparable."
    return version, champion, ""


def _log(run: Run, backtests: dict[str, Backtest], epochs: list[Epoch]) -> None:
    figures = {f"{name}.{key}": value for name, b in backtests.items() for key, value in b.figures().items()}
    run.metrics({key: value for key, value in figures.items() if value == value})
    run.figure(plots.fan(backtests["challenger"], "challenger"), "plots/fan.png")
    run.figure(plots.error_by_horizon(backtests), "plots/error_by_horizon.png")
    run.figure(plots.training_curve(epochs), "plots/training_curve.png")
