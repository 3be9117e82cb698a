"""Who competes for a job: the kinds that the settings name, a network with its epochs logged, a pupil of others."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

import torch

from configs.sections import Training
from models.adapt.target import LONG_DAYS, TransferTarget, UntaughtError, teach
from models.adapt.transfer import TransferPlan as Journey
from models.forecast.core.forecaster import Forecaster, Task
from models.forecast.core.series import Series, SeriesError
from models.forecast.neural.recurrent import Recurrent
from models.forecast.neural.training import Epoch, TrainingPlan, fit, trained
from models.forecast.neural.windows import PastWindow, season_of
from models.forecast.selection.catalogue import CATALOGUE, Fit, named
from pipelines.registry import TrackedRun
from pipelines.train.transfer import teachers


@dataclass
class Candidates:
    """The fits of one training run.

    Attributes:
        run: where they are logged.
        training: the settings in force.
        others: loads of other jobs, by name, which may teach a short history.
        asked: what came of asking them, in words; until then why nobody is asked.
        epochs: of the network that was fitted last.
        teacher: the load whose network was adapted last.
    """

    run: TrackedRun
    training: Training
    others: Mapping[str, Series]
    asked: str
    epochs: list[Epoch] = field(default_factory=list)
    teacher: str = ""

    def fits(self, task: Task, history: Series) -> dict[str, Fit]:
        """By name, simplest first; a pupil only where the history is short and there is somebody to learn from."""
        found: dict[str, Fit] = {name: CATALOGUE[name] for name in named(self.training.models)}
        if "gru" in found:
            found["gru"] = self._network
        if self.others and len(history) < LONG_DAYS * task.day:
            found[teachers.PUPIL] = self._pupil
        return found

    def _network(self, task: Task, history: Series) -> Forecaster:
        training = self.training
        torch.set_num_threads(1)  # this small a network is faster alone, and the machine has other work
        view = PastWindow(task, season_of(task, len(history)))
        generator = torch.Generator().manual_seed(training.seed)
        network = Recurrent(view, "gru", training.hidden, generator)
        plan = TrainingPlan(training.epochs, training.learning_rate, training.lanes, training.context)
        began = time.perf_counter()
        self.epochs = list(fit(network, view, history, plan, generator))
        self.run.metrics({"gru.train_s": time.perf_counter() - began})
        self.run.tags({"gru.season": str(view.season), **{f"gru.{k}": str(v) for k, v in asdict(plan).items()}})
        return trained(network, view)

    def _pupil(self, task: Task, history: Series) -> TransferTarget:
        torch.set_num_threads(1)
        try:
            lesson = teach(task, history, self.others, Journey(), self.training.seed)
        except UntaughtError as error:
            self.asked = teachers.words(error)
            self.run.metrics(teachers.figures(error))
            raise
        except SeriesError as error:
            self.asked = f"nobody was asked: {error}"
            raise
        self.teacher, self.asked = lesson.source, teachers.words(lesson)
        self.run.metrics(teachers.figures(lesson))
        return lesson.pupil


def log_epochs(run: TrackedRun, epochs: list[Epoch]) -> None:
    """The losses of every epoch, as curves in MLflow."""
    for epoch in epochs:
        losses = {
            f"{epoch.phase}.train_loss": epoch.train_loss,
            f"{epoch.phase}.validation_loss": epoch.validation_loss,
        }
        run.metrics({name: loss for name, loss in losses.items() if loss == loss}, step=epoch.index)
