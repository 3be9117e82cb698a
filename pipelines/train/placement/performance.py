"""A model of a job's performance: trained in the twin, tuned to what the running job comes to, and registered."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from models.placement.graph import Floats
from models.placement.instances.job import Counts
from models.placement.learned.online import is_trusted
from models.placement.learned.past import twin_past
from models.placement.learned.queries import QuerySpace
from models.placement.performance.model import (
    MOST_EPOCHS,
    PerformanceModel,
    absolute_error,
    fine_tune,
    linear_regression,
    train_performance,
)
from models.placement.performance.windows import (
    History,
    Samples,
    make_samples,
    parts_in_time,
    parts_to_tune,
    with_older,
)
from pipelines.figures.written import find_commit
from pipelines.placement.observed import MeasuredMinute
from pipelines.registry.artifacts import UnreadableError
from pipelines.registry.placements import PerformanceRegistry
from pipelines.registry.runs import TrackedRun
from pipelines.train.card import describe_making

STEPS, LOWEST, HIGHEST, WAVES = 1_500, 0.5, 2.0, 10
"""Minutes of the past in the twin, whose load goes between these multiples of its rates and back so many times:
the tenth of them by which training stops, and by whose errors a model is trusted, has to hold all loads."""
EPOCHS = MOST_EPOCHS
SCATTER = 0.05
"""Standard deviation of the logarithm of that load from minute to minute."""
LEAST = 24
"""Measured samples from which on a model is tuned to them."""


_WHOSE = {
    "model": "the model", "before": "the one before it", "last": "the last minute's values",
    "linear": "a linear regression",
}  # fmt: skip
FORGOTTEN = 1.1
"""Times the errors on other placements, in the twin, of before a model was tuned, beyond which it is refused."""
TUNED_AT, TRUSTED, UNEVEN_TIMES = "tuned_at", "trusted", "uneven_times"
"""Tags of a version."""


class Tuned(NamedTuple):
    """When a model was tuned, epoch seconds, and whether it was trusted before that.

    `uneven_times`: its `uneven_error` in the twin, as a multiple of that before it was tuned at all.
    """

    at_s: float
    trusted: bool
    uneven_times: float


class LearnedPerformance(NamedTuple):
    """A job's performance model, and whether it erred on the newest minutes about as where its training had stopped.

    That is before it was tuned to these minutes, which tells nothing of others.
    """

    model: PerformanceModel
    trusted: bool


def learn_performance(
    registry: PerformanceRegistry, space: QuerySpace, counts: Counts, minutes: list[MeasuredMinute]
) -> LearnedPerformance:
    """Return the performance model of a running job, tuned to its minutes where that is better on the newest of them.

    Where none is registered for its queries one is trained in the twin first. It is tuned with minutes of the twin's
    past, too, for its own are all of one placement, and refused if it tells other placements apart worse than as it
    was trained. What is trained or tuned is registered, and serves. Runs get the errors of the model, of the last value
    and of a linear regression.

    Args:
        registry: of performance models.
        space: placements of the job's queries.
        counts: placement in force.
        minutes: that were measured with it, the oldest first.

    Raises:
        RegistryError, MlflowException: MLflow does not answer, or refuses what is written.
        NoRoomError: the clusters have no room for the queries.
    """
    name = space.measure.topology.name
    try:
        model = registry.load(name, space) if registry.champion_version(name) is not None else None
    except UnreadableError:
        model = None
    if model is None:
        with registry.training(name, f"performance of {name}") as run:
            model, found = _trained(run, space)
            where = f"last of {STEPS:,} minutes of a past in the twin"
            _register(registry, run, model, space, "trained in the twin", _errors_told(where, found))
    seen, begin_s = measured_samples(counts, minutes)
    errors = model.log_errors(seen)[:, 0] if len(seen.label) else np.zeros(0)
    tuned = _last_tuned(registry, name)
    trusted = _is_trusted(model, errors, begin_s, tuned)
    if len(seen.label) >= LEAST:
        with registry.training(name, f"performance of {name}, measured") as run:
            train, stop = parts_to_tune(seen)
            older, _, test = _twin_parts(space)
            better = fine_tune(model, with_older(train, older, seed=0), stop, seed=0)
            # Each tuning is judged in the twin of its day: the rates and the work there are those measured then.
            before = 1.0 if tuned is None else tuned.uneven_times
            times = before * better.uneven_error(test) / model.uneven_error(test)
            found = {**_errors("model", better.error(stop)), **_errors("before", model.error(stop)),
                     **_rivals(train, stop), "model_uneven": times}  # fmt: skip
            run.metrics(found)
            told = f"on other placements, in the twin, its errors are {times:.2f} times those of before it was tuned"
            if times > FORGOTTEN:
                run.tags({"outcome": f"rejected: {told} ({FORGOTTEN:g} at most)"})
            elif better.scaled_error(stop) < model.scaled_error(stop):
                how = f"tuned to what {len(seen.label)} minutes of the running job came to"
                where = f"newest {len(stop.label)} of them, where it also stopped"
                errors_told = f"{_errors_told(where, found)} Tuned so, {told}."
                _register(registry, run, better, space, how, errors_told, Tuned(time.time(), trusted, times))
                model = better
    return LearnedPerformance(model, trusted)


def measured_samples(counts: Counts, minutes: list[MeasuredMinute]) -> tuple[Samples, Floats]:
    """Return all samples of measured minutes, the oldest first; none of them goes across a minute that is missing.

    Beside them stands when the minute of each label began, epoch seconds.

    Args:
        counts: placement that was in force in all of them.
        minutes: the oldest first.
    """
    unbroken: list[list[MeasuredMinute]] = [[]]
    for one in minutes:
        if unbroken[-1] and one.number != unbroken[-1][-1].number + 1:
            unbroken.append([])
        unbroken[-1].append(one)
    parts = [make_samples(_history(counts, each)) for each in unbroken]
    labels = (each[len(each) - len(part.label) :] for each, part in zip(unbroken, parts, strict=True))
    begin_s = np.array([one.begin_s for each in labels for one in each])
    return Samples(*(np.concatenate(each) for each in zip(*parts, strict=True))), begin_s


def _errors_told(where: str, errors: Mapping[str, float]) -> str:
    """The mean absolute errors of a model beside those of others, in words."""
    told = "; ".join(
        f"{name} {errors[f'{whose}_latency_ms']:.4g} ms and {errors[f'{whose}_load']:.3g}"
        for whose, name in _WHOSE.items()
        if f"{whose}_load" in errors
    )
    return f"Mean absolute errors of latency and load on the {where}: {told}."


def _trained(run: TrackedRun, space: QuerySpace) -> tuple[PerformanceModel, dict[str, float]]:
    train, stop, test = _twin_parts(space)
    model = train_performance(train, stop, int(space.slots.max()), seed=0, epochs=EPOCHS)
    errors = {**_errors("model", model.error(test)), **_rivals(train, test)}
    run.metrics(errors)
    return model, errors


def _twin_parts(space: QuerySpace) -> tuple[Samples, Samples, Samples]:
    """Samples of a past in the twin under drawn placements: to train on, to stop by and to test on."""
    return parts_in_time(twin_past(space, past_loads(), seed=0))


def past_loads() -> Floats:
    """Return (STEPS,) loads of the past in the twin, as multiples of its rates; the same at every call."""
    random = np.random.default_rng(0)
    wave = np.sin(2 * np.pi * WAVES * np.arange(STEPS) / STEPS)
    return (LOWEST + (HIGHEST - LOWEST) * (wave + 1) / 2) * np.exp(SCATTER * random.standard_normal(STEPS))


def _is_trusted(model: PerformanceModel, errors: Floats, begin_s: Floats, tuned: Tuned | None) -> bool:
    """Whether a model erred about as in training on the minutes that it has not seen; on none, what was found before.

    Of log(latency): in ms the errors in training, at all loads, are those of placements that cannot keep up, beside
    which anything that a well placed job comes to is small.
    There are none where a run went wrong after it had tuned, and is made again, or nothing was measured since.
    """
    unseen = errors if tuned is None else errors[begin_s >= tuned.at_s]
    if tuned is not None and not len(unseen):
        return tuned.trusted
    return is_trusted(unseen.tolist(), float(model.stopped_log[0]))


def _last_tuned(registry: PerformanceRegistry, name: str) -> Tuned | None:
    """When the champion was tuned, if it was: of the minutes before that it tells what it has learned."""
    champion = registry.champion_version(name)
    tags = {} if champion is None else registry.tags(name, champion)
    if TUNED_AT not in tags:
        return None
    uneven_times = float(tags.get(UNEVEN_TIMES, 1.0))  # an earlier release has not kept it
    return Tuned(float(tags[TUNED_AT]), tags[TRUSTED] == "True", uneven_times)


def _register(
    registry: PerformanceRegistry, run: TrackedRun, model: PerformanceModel, space: QuerySpace, how: str, errors: str,
    tuned: Tuned | None = None,
) -> None:  # fmt: skip
    name = space.measure.topology.name
    card = (
        f"# Performance of {name}\n\nLatency and load of the next minute, from four minutes of records/s and executors "
        f"(LSTM, Pa-Stream paper); {how}. Queries: {'; '.join('+'.join(block) for block in space.blocks)}.\n\n"
        f"{errors}\n\n"
    ) + describe_making(
        run.id, find_commit(), "plan_placement", {"topology": name},
        "the topology's file, and the minutes that `metrics` told of the running job then (they are not kept)",
        "other queries or clusters, where it is refused, and loads beyond those it was trained or tuned on.",
    )  # fmt: skip
    tags = {}
    if tuned is not None:
        tags = {TUNED_AT: f"{tuned.at_s:.0f}", TRUSTED: str(tuned.trusted), UNEVEN_TIMES: f"{tuned.uneven_times!r}"}
    version = registry.register(run, name, model, space, card, tags)
    run.tags({"challenger": version, "outcome": f"promoted: {how}"})
    registry.set_champion(name, version)


def _history(counts: Counts, minutes: list[MeasuredMinute]) -> History:
    rps = np.array([one.rps for one in minutes])
    return History(rps, np.tile(counts, (len(minutes), 1, 1)), np.array([one.step for one in minutes]).reshape(-1, 2))


def _rivals(train: Samples, test: Samples) -> dict[str, float]:
    linear = absolute_error(linear_regression(train, test), test.label)
    return {**_errors("last", absolute_error(test.before, test.label)), **_errors("linear", linear)}


def _errors(whose: str, error: Floats) -> dict[str, float]:
    return {f"{whose}_latency_ms": float(error[0]), f"{whose}_load": float(error[1])}
