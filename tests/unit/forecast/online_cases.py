"""One forecaster of every kind, small, and loads for them to follow."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import torch

from models.adapt.network import ForecastOnly, TransferGru
from models.adapt.scale import DomainScale
from models.adapt.target import AdaptedForecaster
from models.forecast.baselines.linear import fit_linear
from models.forecast.baselines.naive import Naive
from models.forecast.blend.blend import Blend
from models.forecast.blend.networked import NetworkedBlend
from models.forecast.classical.classical import Classical, Harmonics, Recursion
from models.forecast.core.forecaster import Task
from models.forecast.core.series import Series
from models.forecast.neural.network import as_forecaster
from models.forecast.neural.recurrent import Recurrent
from models.forecast.neural.windows import PastWindow
from tests.fakes.plain_blend.blend import Blend as PlainBlend

HOUR = 3600.0
TASK = Task(HOUR, 4, (0.1, 0.5, 0.9))
BRIEF = Task(6 * HOUR, 3, (0.25, 0.5, 0.75))  # a week has 28 steps: rings are short and turn over soon
DAYS = 16


def load(steps, seed=1, day=24):
    """A daily and a weekly cycle under noise that grows with the load."""
    rng, at = np.random.default_rng(seed), np.arange(steps)
    level = 120 + 60 * np.sin(2 * np.pi * at / day) + 25 * np.sin(2 * np.pi * at / (7 * day))
    return level * rng.gamma(30, 1 / 30, steps)


def series(values, task=TASK, start=0.0):
    return Series(start, task.step_s, np.asarray(values, dtype=float))


def spoilt(values, seed):
    """With gaps, zeros, a jump for good and one spike."""
    rng, values = np.random.default_rng(seed), values.copy()
    values[rng.random(len(values)) < 0.06] = 0.0
    values[rng.random(len(values)) < 0.06] = math.nan
    jump = int(rng.integers(len(values)))
    values[jump:] *= rng.choice([0.2, 5.0])
    values[int(rng.integers(len(values)))] *= 30.0
    return values


def drawn_module(cell, season, task=TASK, hidden=8):
    """A network of torch whose weights were drawn by chance, all of them far from 0, and what it reads."""
    generator = torch.Generator().manual_seed(4)
    module = Recurrent(view := PastWindow(task, season), cell, hidden, generator)
    with torch.no_grad():
        for weight in (module.linear, module.head.weight, module.width, module.steep, module.restless, module.centre):
            weight.normal_(0.0, 0.1, generator=generator)
        module.typical.fill_(-2.0)
    return module, view


def drawn(cell, season):
    """The same as a forecaster."""
    return as_forecaster(*drawn_module(cell, season), until=0.0)


def networked(until=9 * 24 * HOUR, season=24):
    """A blend with a drawn network that was trained on the first nine days."""
    return NetworkedBlend(TASK, replace(drawn("gru", season).frozen, until=until))


def _pupil():
    generator = torch.Generator().manual_seed(2)
    network = TransferGru(TASK.horizon, 8, generator)
    torch.nn.init.normal_(network.head.weight, std=0.1, generator=generator)
    return AdaptedForecaster(TASK, ForecastOnly(network).eval(), DomainScale(20.0, 200.0))


def _classical():
    daily = Harmonics((7,), (120.0, 0.0, 60.0))
    return Classical("ets", TASK, daily, Recursion((1.0, 1.0), ((1.0, 0.9), (0.0, 0.9)), (0.4, 0.1), (0.0, 0.0)))


MAKERS = {
    "gru": lambda: drawn("gru", 24),
    "lstm": lambda: drawn("lstm", 168),
    "seasonal_naive": lambda: Naive(TASK),
    "yesterday": lambda: Naive(TASK, weekly=False),
    "last_value": lambda: Naive(TASK, seasonal=False),
    "seasonal_naive, 6 h": lambda: Naive(BRIEF),
    "last_value, 6 h": lambda: Naive(BRIEF, seasonal=False),
    "ridge": lambda: fit_linear(TASK, series(load(24 * DAYS))),
    "ridge, short": lambda: fit_linear(TASK, series(load(24 * 5))),
    "blend": lambda: Blend(TASK),
    "blend, 6 h": lambda: Blend(BRIEF),
    "networked_blend": networked,
    "ets": _classical,
    "adapted": _pupil,
}
KINDS = tuple(MAKERS)
PLAIN = tuple(name for name in KINDS if name != "networked_blend")  # it has no other form; see test_networked
NETWORKS = ("gru", "lstm")


@cache
def forecaster(name):
    """Of that kind; made once."""
    return MAKERS[name]()


def plain(name):
    """The same as a pure forecaster: of the compiled blend the one in numpy."""
    made = forecaster(name)
    return PlainBlend(made.task) if "blend" in name else made
