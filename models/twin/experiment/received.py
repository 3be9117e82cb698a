"""The forecasts that policies receive at the decisions of many lanes at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from configs.policies import BY_PEAKS
from models.policy.core.capacity import Floats
from models.policy.received.nowcast import offsets
from models.policy.received.peaks import LEVELS as PEAK_LEVELS
from models.policy.received.peaks import stretches
from models.twin.experiment.foresight import LEVELS, heard, true
from models.twin.experiment.lanes import TRUTH, Contender, Lane
from models.twin.sim.run import Foresight


def foresight(contender: Contender, lanes: list[Lane]) -> Foresight:
    """A row per seed and whatever differs in what lanes hear; shorter ones are filled up with nothing."""
    setup, seeds = lanes[0].scenario.setup, lanes[0].scenario.seeds
    ends = heard_at = offsets(*setup.planned_s)
    level = lanes[0].setting.level
    levels: tuple[float, ...] = LEVELS if level is None else (level,)
    if all(by_peaks(contender, lane) for lane in lanes):
        ends, levels = stretches(*setup.planned_s), PEAK_LEVELS
    calibrator = [(id(lane.scenario), lane.setting.memory_steps, lane.setting.level) for lane in lanes]
    first = {ear: calibrator.index(ear) for ear in calibrator}
    looks = max(len(lane.scenario.looks_s) for lane in lanes)
    rps: Any = np.full((len(first) * seeds, looks, len(ends), len(levels)), np.nan, np.float32)
    for at, i in enumerate(first.values()):
        rps[at * seeds : (at + 1) * seeds, : len(lanes[i].scenario.looks_s)] = _said(contender, lanes[i], heard_at)
    begins = [list(first).index(ear) * seeds for ear in calibrator]
    row = np.concatenate(
        [np.tile(b + np.arange(seeds), len(lane.knobs)) for b, lane in zip(begins, lanes, strict=True)]
    )
    # A single level may differ from lane to lane: the policy takes the only one there is, whatever it is called.
    return Foresight(ends, levels, rps, row)


def _said(contender: Contender, lane: Lane, ends: Floats) -> NDArray[np.floating[Any]]:
    """(seeds or 1, decisions, ends, levels)."""
    scenario, setting = lane.scenario, lane.setting
    if contender.hears == TRUTH:
        every = np.concatenate([scenario.rate, scenario.after])
        return true(every, scenario.looks_s, ends)[None, :, :, None]  # the same at every level
    if by_peaks(contender, lane):
        return scenario.foretold[contender.hears]
    said, moments = scenario.told[contender.hears], scenario.begins_s + scenario.looks_s.astype(np.float64)
    memory_s = setting.memory_steps * said.step_s
    return np.stack([heard(said, moments, now, ends, memory_s, setting.level) for now in scenario.looked_back[0]])


def by_peaks(contender: Contender, lane: Lane) -> bool:
    """Whether the policy hears the peaks whose quantiles the past has kept, instead of the forecaster's own."""
    return contender.policy in BY_PEAKS and contender.hears in lane.scenario.peaks
