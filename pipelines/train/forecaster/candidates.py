"""The candidates of a training run: the kinds that the settings name, and a network adapted from another job."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import partial

import torch

from configs.sections import Training
from models.adapt.sources import transfer_from_sources
from models.adapt.target import LONG_DAYS, AdaptedForecaster
from models.adapt.training import TransferPlan
from models.forecast.core.forecaster import Task
from models.forecast.core.series import Series, SeriesError
from models.forecast.neural.network import Network
from models.forecast.neural.training import Epoch, TrainingPlan, fit_network
from models.forecast.selection.catalogue import CATALOGUE, fit_networked, select_kinds
from models.forecast.selection.champion import Fit
from pipelines.registry import TrackedRun
from pipelines.train.transfer import sources


@dataclass
class Candidates:
    """The forecasters that compete in one training run, as functions that fit them.

    Attributes:
        run: where fits are logged.
        training: the settings in force.
        others: loads of other jobs, by name, from which a network may be adapted where the own history is short.
        transfer_note: in words, what came of trying to adapt one; before that, why nothing was tried.
        epochs: of the network fitted last.
        source: the job from whose load the network adapted last came; "" for none.
        plan: of the adaptation.
    """

    run: TrackedRun
    training: Training
    others: Mapping[str, Series]
    transfer_note: str
    epochs: list[Epoch] = field(default_factory=list)
    source: str = ""
    plan: TransferPlan = field(default_factory=TransferPlan)

    def fit_functions(self, task: Task, history: Series) -> dict[str, Fit]:
        """Return {name: function that fits the candidate}, simplest first; nothing is fitted yet.

        They are the kinds in `training.models`, and `adapted` (a network trained on another job's load) where the
        history is shorter than `LONG_DAYS` (14) days and `others` is not empty. The functions take a task and a
        history, and raise SeriesError where the history is too short; fitting a network logs to the MLflow run
        (MlflowException where MLflow does not answer) and sets torch to one thread for the whole process.

        Raises:
            SettingsError: `training.models` names an unknown model.
        """
        found: dict[str, Fit] = {name: CATALOGUE[name] for name in select_kinds(self.training.models)}
        if "gru" in found:
            found["gru"] = self._network
        if "networked_blend" in found:
            found["networked_blend"] = partial(fit_networked, self._network)
        if self.others and len(history) < LONG_DAYS * task.day:
            found[sources.TARGET] = self._adapted
        return found

    def _network(self, task: Task, history: Series) -> Network:
        training = self.training
        torch.set_num_threads(1)  # this small a network is faster alone, and the machine has other work
        plan = TrainingPlan(training.epochs, training.learning_rate, training.lanes, training.context)
        self.epochs, began = [], time.perf_counter()
        network = fit_network("gru", task, history, plan, training.hidden, training.seed, self.epochs.append)
        self.run.metrics({"gru.train_s": time.perf_counter() - began})
        self.run.tags({f"gru.{k}": str(v) for k, v in {"season": network.view.season, **asdict(plan)}.items()})
        return network

    def _adapted(self, task: Task, history: Series) -> AdaptedForecaster:
        torch.set_num_threads(1)
        try:
            result = transfer_from_sources(task, history, self.others, self.plan, self.training.seed)
        except SeriesError as error:
            self.transfer_note = f"nobody was asked: {error}"
            raise
        self.transfer_note = sources.describe_transfers(result)
        self.run.metrics(sources.transfer_metrics(result))
        self.source = result.best()
        return result.forecasters[self.source]
