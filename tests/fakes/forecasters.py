"""Small forecasters of every kind that is registered, the load they know, and one registration."""

import io
import warnings
from functools import cache, partial

import numpy as np
import torch

from models.adapt.network import ForecastOnly, TransferGru
from models.adapt.scale import DomainScale
from models.adapt.target import AdaptedForecaster
from models.forecast.baselines.naive import Naive
from models.forecast.blend.blend import Blend
from models.forecast.core.forecaster import Task
from models.forecast.core.series import Series
from models.forecast.neural.cells import CELLS
from models.forecast.neural.network import as_forecaster
from models.forecast.neural.recurrent import Recurrent
from models.forecast.neural.windows import PastWindow
from models.forecast.selection.catalogue import CATALOGUE
from pipelines.registry.artifacts import log_forecaster

STEP = 3600.0
TASK = Task(STEP, 3, (0.1, 0.5, 0.9))
TAGS = {"data.digest": "abc"}


def series(steps, seed=1):
    hours = np.arange(steps)
    noise = np.random.default_rng(seed).normal(0, 2, steps)
    return Series(7 * 86_400.0, STEP, 100 + 50 * np.sin(2 * np.pi * hours / 24) + np.cumsum(noise).clip(-40, 40))


def _drawn(cell):
    view = PastWindow(TASK, 24)
    made = Recurrent(view, cell, 4, torch.Generator().manual_seed(1))
    for weight in (made.head.weight, made.linear):
        torch.nn.init.normal_(weight, std=0.1, generator=torch.Generator().manual_seed(2))
    return made, view


def network(cell="gru"):
    return as_forecaster(*_drawn(cell), until=0.0)


@cache
def older_network(cell="gru"):
    """The same as releases registered it that served networks by torch: its description, and its archive."""
    made, view = _drawn(cell)
    batch, example = torch.export.Dim("batch"), (torch.zeros(2, view.width), torch.zeros(2, made.carried))
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the cell's flat weights, which are its parameters too
        torch.export.save(torch.export.export(made.eval(), example, dynamic_shapes=({0: batch}, {0: batch})), buffer)
    task = {"step_s": TASK.step_s, "horizon": TASK.horizon, "levels": list(TASK.levels)}
    return {"kind": cell, **task, "season": view.season, "carried": made.carried}, buffer.getvalue()


def pupil():
    travelled = TransferGru(3, 4, torch.Generator().manual_seed(1))
    torch.nn.init.normal_(travelled.head.weight, generator=torch.Generator().manual_seed(2))
    return AdaptedForecaster(TASK, ForecastOnly(travelled).eval(), DomainScale(10.0, 90.0))


KINDS = {
    **{cell: partial(network, cell) for cell in CELLS},
    "adapted": pupil,
    **{name: partial(CATALOGUE[name], TASK, series(400)) for name in ("ridge", "ets")},
    "blend": partial(Blend, TASK),
    "seasonal_naive": partial(Naive, TASK),
    "last_value": partial(Naive, TASK, seasonal=False),
}
"""By kind what makes one: fitting takes seconds, which only whoever asks for it is to pay."""


def put(registry, job, what, alias=None):
    with registry.run(job, "test") as run:
        return registry.register(run, job, what, "# A card", TAGS, alias=alias)


@cache
def logged_naive(registry, seasonal):
    """A naive forecast in MLflow, of which many versions are registered: to log it for each takes as long again."""
    with registry.run("made-up", "made up"):
        return log_forecaster(Naive(TASK, seasonal=seasonal), TAGS)


def put_naive(registry, job, seasonal=True, alias=None):
    """Register a version of it, as `put` does; their files are the same."""
    model_id, kind = logged_naive(registry, seasonal), "seasonal_naive" if seasonal else "last_value"
    with registry.run(job, "test") as run:
        return registry.register_version(run, job, model_id, "# A card", {**TAGS, "kind": kind}, alias)
