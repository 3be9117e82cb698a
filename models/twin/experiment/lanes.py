"""Lanes of a simulation: the runs that one policy decides for, with the load and the forecasts that each receives."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from configs.bounds import DAY_S
from configs.policies import BY_PEAKS
from models.policy.catalogue import build
from models.policy.core.capacity import Floats, Integers
from models.policy.core.paced import Paced
from models.policy.core.policy import Policy
from models.policy.received.nowcast import forecast_offsets
from models.policy.received.peaks import LEVELS as PEAK_LEVELS
from models.policy.received.peaks import stretch_ends
from models.policy.rules.fixed import SLOTS, Timetable, learn_timetable
from models.twin.experiment.contenders import TRUTH, Sweep, Trial
from models.twin.experiment.foresight import LEVELS, correct_at_looks, true_peaks, unless_refuted
from models.twin.experiment.scenario import Scenario
from models.twin.sim.given import Foresight, Load
from models.twin.sim.side_by_side import Lane

PER_RUN = ("utilisation", "hold_s", "down_delay_s")
"""Fields of a policy that may differ between the runs of a lane."""


def group_by_lane(trials: Sequence[Trial]) -> list[list[int]]:
    """Group trials that one policy can decide for at once: of the same kind, with forecasts of the same shape.

    Their hyper-parameters are the same, but for `PER_RUN`.

    Returns:
        (n,) indices per lane, rising; lanes in the order of their first trial.
    """
    lanes: dict[Any, list[int]] = {}
    for i, (contender, sweep) in enumerate(trials):
        fields = tuple((name, name in PER_RUN or value) for name, value in sweep.setting.fields)
        heard = contender.uses_forecast and (_by_peaks(trials[i]), sweep.setting.level is None)
        lanes.setdefault((contender.policy, contender.swept, id(contender.learned), fields, heard), []).append(i)
    return list(lanes.values())


def build_lane(trials: Sequence[Trial]) -> Lane:
    """Build the lane of some trials that `group_by_lane` has put together, a run per knob value and seed of each.

    Raises:
        SettingsError: the policy is unknown or cannot be built, or a past from which a timetable is learned is empty.
        KeyError, ValueError: a scenario lacks the forecasts that the policy receives, or `setting.level` of them.
    """
    sweeps, contender = [trial.sweep for trial in trials], trials[0].contender
    setup, seeds, known = sweeps[0].scenario.setup, sweeps[0].scenario.seeds, contender.learned
    each = [len(sweep.knobs) * seeds for sweep in sweeps]
    if contender.policy == "schedule":
        tables = np.stack([_timetable(sweep.scenario) for sweep in sweeps])
        known = Timetable(np.repeat(tables, each, axis=0), DAY_S / setup.speed)
    knob = np.concatenate([np.repeat(sweep.knobs, seeds) for sweep in sweeps])
    settings = [dict(sweep.setting.fields) for sweep in sweeps]
    fields: Any = settings[0]
    for name in fields.keys() & set(PER_RUN):
        fields = fields | {name: np.repeat([one[name] for one in settings], each)}
    if contender.swept:
        fields = fields | {contender.swept[0]: knob}
    policy = build(contender.policy, setup.contract, known, None if contender.swept else knob)
    return Lane(_with_fields(policy, fields), sum(each), collect_forecasts(trials) if contender.uses_forecast else None)


def _with_fields(policy: Any, fields: dict[str, Any]) -> Policy:
    if isinstance(policy, Paced):
        return replace(policy, policy=_with_fields(policy.policy, fields))
    return replace(policy, **fields) if fields else policy


def seed_rows(firsts: Iterable[int], sweeps: Sequence[Sweep]) -> Integers:
    """Return (runs,) rows, one per seed from the first of each sweep on, the same for all its knob values."""
    seeds = np.arange(sweeps[0].scenario.seeds)
    return np.concatenate(
        [np.tile(first + seeds, len(sweep.knobs)) for first, sweep in zip(firsts, sweeps, strict=True)]
    )


def collect_load(sweeps: Sequence[Sweep]) -> Load:
    """Collect the load of some scenarios' runs: of each sweep a row per seed, for every knob value."""
    scenarios = list(dict.fromkeys(sweep.scenario for sweep in sweeps))
    seeds = scenarios[0].seeds
    return load_of(scenarios, seed_rows((scenarios.index(sweep.scenario) * seeds for sweep in sweeps), sweeps))


def load_of(scenarios: Sequence[Scenario], row: Integers) -> Load:
    """Return the load of runs: `row` (runs,) is an index into the draws of all scenarios, one behind the other's."""
    longest = max(one.seconds for one in scenarios)
    arrived = [np.pad(one.arrived, ((0, 0), (0, longest - one.seconds)), mode="edge") for one in scenarios]
    lasts, counts = np.repeat([(one.seconds, one.warm_s) for one in scenarios], scenarios[0].seeds, axis=0).T
    return Load(np.concatenate(arrived), row, lasts, counts)


def _timetable(scenario: Scenario) -> Floats:
    """(slots,) rates of the day's slots in the past, the first of which begins with the scenario."""
    past, day_s = scenario.past, DAY_S / scenario.setup.speed
    many = math.ceil(past.step_s / (day_s / SLOTS))  # a long step says something of every slot that it covers
    since = past.start + past.step_s / many * np.arange(len(past) * many, dtype=np.float64) - scenario.begins_s
    return learn_timetable(since % day_s, np.repeat(past.values, many), slots=SLOTS, day_s=day_s).rps


def collect_forecasts(trials: Sequence[Trial]) -> Foresight:
    """Collect the forecasts of a lane, a row per forecaster, scenario, hyper-parameters of the forecast and seed.

    Args:
        trials: at least one, as `group_by_lane` has put them together, that listen to a forecaster or the truth.

    Returns:
        `rps` (rows, D, K, Q) records/s at the D decisions of the longest scenario; NaN after shorter ones end.

    Raises:
        KeyError, ValueError: a scenario lacks the forecasts of `contender.forecaster`, or the setting's level of them.
    """
    sweeps = [trial.sweep for trial in trials]
    setup, seeds, level = sweeps[0].scenario.setup, sweeps[0].scenario.seeds, sweeps[0].setting.level
    ends = asked_at = forecast_offsets(*setup.planned_s)
    levels: tuple[float, ...] = LEVELS if level is None else (level,)
    if _by_peaks(trials[0]):
        ends, levels = stretch_ends(*setup.planned_s), PEAK_LEVELS
    kinds = [
        (contender.forecaster, id(sweep.scenario), sweep.setting.memory_steps, sweep.setting.level)
        for contender, sweep in trials
    ]
    first = dict(zip(kinds, trials, strict=True))
    looks = max(len(sweep.scenario.looks_s) for sweep in sweeps)
    rps: Any = np.full((len(first) * seeds, looks, len(ends), len(levels)), np.nan, np.float32)
    for at, trial in enumerate(first.values()):
        rps[at * seeds : (at + 1) * seeds, : len(trial.sweep.scenario.looks_s)] = _received(trial, asked_at)
    # Sweeps may differ in a single level: the policy takes the only one there is, whatever its value.
    return Foresight(ends, levels, rps, seed_rows((list(first).index(kind) * seeds for kind in kinds), sweeps))


def _received(trial: Trial, ends: Floats) -> NDArray[np.floating[Any]]:
    scenario, setting, forecaster = trial.sweep.scenario, trial.sweep.setting, trial.contender.forecaster
    if forecaster == TRUTH:
        every = np.concatenate([scenario.rate, scenario.after])
        return true_peaks(every, scenario.looks_s, ends)[None, :, :, None]  # the same at every level
    if _by_peaks(trial):
        return scenario.forecast_peaks[forecaster]
    issued, moments = scenario.issued[forecaster], scenario.begins_s + scenario.looks_s.astype(np.float64)
    memory_s = setting.memory_steps * issued.step_s
    every = scenario.looked_back[0]
    rps = np.stack([correct_at_looks(issued, moments, now, ends, memory_s, setting.level) for now in every])
    return unless_refuted(rps, issued, moments, every)


def _by_peaks(trial: Trial) -> bool:
    """Whether the policy receives the peaks whose quantiles the past has kept, instead of the forecaster's own."""
    return trial.contender.policy in BY_PEAKS and trial.contender.forecaster in trial.sweep.scenario.peaks
