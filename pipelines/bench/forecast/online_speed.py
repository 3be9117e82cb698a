"""How long it takes to follow a load online: one job step by step, hundreds at once, for every kind of forecaster."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from models.adapt.network import TravellingGru
from models.adapt.rows import Scale
from models.adapt.target import Pupil, Voice
from models.forecast.baselines.linear import fit_linear
from models.forecast.baselines.naive import Naive
from models.forecast.blend.blend import Blend
from models.forecast.classical.fit import fit_classical
from models.forecast.core.forecaster import Forecaster, Task
from models.forecast.core.series import Floats, Series
from models.forecast.neural.training import Plan, fit_network
from models.forecast.online import Online
from pipelines.traces.shipped import find

LEVELS = (0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975)
HORIZON = 12
HELD = 2500  # newest steps of the series that are stepped through, over and over
_WARM = 200  # steps before those timed
_PLAIN = 300  # steps of the forecaster's own `step` that are timed beside
_BRIEF = Plan(epochs=1)  # how well a network forecasts says nothing about how long it takes
_SEED = 5

MAKERS: dict[str, Callable[[Task, Series], Forecaster]] = {
    "last_value": lambda task, _: Naive(task, seasonal=False),
    "yesterday": lambda task, _: Naive(task, weekly=False),
    "seasonal_naive": lambda task, _: Naive(task),
    "ridge": fit_linear,
    "gru": lambda task, history: fit_network("gru", task, history, _BRIEF),
    "lstm": lambda task, history: fit_network("lstm", task, history, _BRIEF),
    "ets": lambda task, history: fit_classical("ets", task, history),
    "adapted": lambda task, history: _pupil(task, history),
    "blend": lambda task, _: Blend(task),
}


def measure(
    kinds: Sequence[str] = tuple(MAKERS), cell: str = "elb 5min", steps: int = 4000, jobs: int = 500, batches: int = 64,
    repeats: int = 5,
) -> dict[str, Any]:  # fmt: skip
    """Wall times of every kind, fitted to the older part of a shipped series and stepped through its newest.

    Compiling and fitting are not counted. Set OMP_NUM_THREADS=1, as serving does: the blend's small matrices are slower
    on several threads, and much slower beside other work.

    Args:
        kinds: names in `MAKERS`.
        cell: the series.
        steps: of one job in every repeat; percentiles are taken over them, by nearest rank.
        jobs: that are stepped in one batch. All have seen as many steps, the worst case for the blend.
        batches: of them in every repeat; of the blend, 64 are a whole cycle of its learning.
        repeats: of both; each figure is the median over them.

    Returns:
        By kind, see `of`.

    Raises:
        SeriesError: no such series.
    """
    import torch

    torch.set_num_threads(1)
    whole = find(cell).series()
    older, held = whole.split(HELD)
    task = Task(whole.step_s, HORIZON, LEVELS)
    found = {kind: of(MAKERS[kind](task, older), older, held.values, steps, jobs, batches, repeats) for kind in kinds}
    return {"cell": cell, "horizon": HORIZON, "levels": len(LEVELS), "jobs": jobs, "repeats": repeats, "kinds": found}


def of(
    forecaster: Forecaster, older: Series, values: Floats, steps: int, jobs: int, batches: int, repeats: int
) -> dict[str, float]:
    """Figures of one forecaster.

    Returns:
        `step_us_p50`, `step_us_p99`, `step_us_max` of one job; `plain_us_p50` of the forecaster's own `step`;
        `admit_ms`; `state_us` and `state_bytes`; `batch_ms_p50`, `batch_ms_max` of all jobs, and the mean of
        the processor's time, which other work on the machine disturbs less; `times_real_time`: how much faster than
        one metric per job and second they are stepped.
    """
    online = Online(forecaster)
    online.admit("one", older)
    began = time.perf_counter()
    online.admit("one", older)
    admitted = time.perf_counter() - began
    _timed(lambda value: online.step("one", value), _cycled(values, _WARM))
    singles = [_timed(lambda value: online.step("one", value), _cycled(values, steps)) for _ in range(repeats)]
    states = _timed(lambda _: online.state("one"), _cycled(values, 100 if online.reach else 20))
    state = forecaster.init(older)

    def plain(value: float) -> None:
        nonlocal state
        state, _ = forecaster.step(state, value)

    own = _timed(plain, _cycled(values, _PLAIN))
    many, busy = _batches(forecaster, older, values, jobs, batches, repeats)
    return {
        **{f"step_us_{name}": 1e6 * _middle(singles, share) for name, share in _SHARES.items()},
        "plain_us_p50": 1e6 * _at(own, 0.5), "admit_ms": 1e3 * admitted,
        "state_us": 1e6 * _at(states, 0.5), "state_bytes": float(len(online.state("one"))),
        "batch_ms_p50": 1e3 * _middle(many, 0.5), "batch_ms_max": 1e3 * _middle(many, 1.0),
        "batch_cpu_ms": 1e3 * statistics.median(busy) / batches,
        "times_real_time": 1 / _middle(many, 0.5),
    }  # fmt: skip


_SHARES = {"p50": 0.5, "p99": 0.99, "max": 1.0}


def _batches(
    forecaster: Forecaster, older: Series, values: Floats, jobs: int, batches: int, repeats: int
) -> tuple[list[list[float]], list[float]]:
    """Wall seconds of each batch in every repeat, and the processor's of each repeat."""
    online, names = Online(forecaster), [f"job {i}" for i in range(jobs)]
    online.admit(names[0], older)
    state = online.state(names[0])
    for name in names[1:]:
        online.restore(name, state, older)
    factors = np.random.default_rng(_SEED).uniform(0.5, 2.0, jobs)
    columns = [value * factors for value in _cycled(values, batches)]
    _timed(lambda column: online.step_all(names, column), columns[:3])
    walls, busy = [], []
    for _ in range(repeats):
        with _no_collection():
            cpu = time.process_time()
            walls.append(_walls(lambda column: online.step_all(names, column), columns))
            busy.append(time.process_time() - cpu)
    return walls, busy


def _timed(act: Callable[[Any], Any], inputs: Sequence[Any]) -> list[float]:
    """Wall seconds of each, while no garbage is collected."""
    with _no_collection():
        return _walls(act, inputs)


def _walls(act: Callable[[Any], Any], inputs: Sequence[Any]) -> list[float]:
    walls, clock = [], time.perf_counter
    for one in inputs:
        began = clock()
        act(one)
        walls.append(clock() - began)
    return walls


@contextmanager
def _no_collection() -> Iterator[None]:
    """As in serving, nothing is collected while a step is made."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _cycled(values: Floats, count: int) -> list[float]:
    found: list[float] = np.resize(values, count).tolist()
    return found


def _middle(repeats: list[list[float]], share: float) -> float:
    return statistics.median(_at(walls, share) for walls in repeats)


def _at(walls: list[float], share: float) -> float:
    return float(np.quantile(walls, share, method="inverted_cdf"))


def _pupil(task: Task, history: Series) -> Pupil:
    import torch

    network = TravellingGru(task.horizon, 32, torch.Generator().manual_seed(_SEED))
    known = history.values[np.isfinite(history.values)]
    return Pupil(task, Voice(network).eval(), Scale.of(known))
