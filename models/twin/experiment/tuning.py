"""What is chosen on a trace's first part: a policy's hyper-parameters, and the range in which its knob is swept."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from models.policy.catalogue import entry
from models.policy.core.capacity import Floats
from models.twin.experiment.contenders import Contender, Lane
from models.twin.experiment.evaluation import Sheet, compete
from models.twin.experiment.scenario import Scenario

JUDGED = (0.01, 0.001)
"""Violations at which settings are compared."""
NARROW = (2e-4, 0.03)
"""Violations between which most of the knob's values should lie."""
AIMED = (*JUDGED, 0.05)
"""Violations that further values aim for."""
_LEAST, _STEEP = 1e-5, 30.0


def tuned(contender: Contender, scenarios: Sequence[Scenario], knobs: int) -> list[Lane]:
    """For each scenario the setting that is cheapest there at equal violation, and so many values of the knob.

    The scenarios are tuning parts; whoever competes on the test parts takes setting and knobs of the lanes with him.
    """
    wide = np.sort(np.array(entry(contender.policy).sweep(scenarios[0].setup.contract), float))
    lanes = [Lane(scenario, contender.setting, wide) for scenario in scenarios]
    sheets = compete(contender, lanes) if not contender.axes else []
    for axes in contender.axes:
        choices = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
        tried = [Lane(lane.scenario, lane.setting.plus(choice), wide) for lane in lanes for choice in choices]
        found = compete(contender, tried)
        scores = np.array([_score(sheet) for sheet in found]).reshape(-1, len(choices))
        best = scores.argmin(axis=1) + np.arange(0, len(tried), len(choices))
        lanes, sheets = [tried[i] for i in best], [found[i] for i in best]
    return [
        lane._replace(knobs=narrowed(wide, sheet.means[0], knobs)) for lane, sheet in zip(lanes, sheets, strict=True)
    ]


def narrowed(wide: Floats, violation: Floats, count: int) -> Floats:
    """(count,) values of a knob: most of them even between the ends of `NARROW`, one each half-way to the sweep's ends.

    Values are interpolated along the sweep, whose violations are taken as rising or falling as a whole.

    Args:
        wide: (N,) values, rising.
        violation: (N,) what each came to.
        count: how many.
    """
    if len(wide) < 3 or count < 3:
        return np.linspace(wide[0], wide[-1], count)
    place = np.arange(len(wide), dtype=float)
    low, high = (_place(violation, level) for level in NARROW)
    low, high = min(low, high), max(low, high)
    middle, half = (low + high) / 2, max((high - low) / 2, 0.5)
    low, high = max(middle - half, 0.0), min(middle + half, place[-1])
    places = np.concatenate([[low / 2], np.linspace(low, high, count - 2), [(high + place[-1]) / 2]])
    return np.interp(places, place, wide)


def refined(knobs: Floats, violation: Floats, count: int) -> Floats:
    """(count,) further values of a knob, each where the cost at a violation that is compared is known worst.

    That is where the violations next below and next above it are farthest from it on a logarithmic axis. A value is
    taken to meet what it aims for, so that the next one aims elsewhere; what no value reaches is not aimed for.
    """
    order = np.argsort(knobs)
    known, share = knobs[order], np.maximum(violation[order], _LEAST)
    found: list[float] = []
    for _ in range(count):
        blind = [_blindness(share, level) for level in AIMED]
        at = int(np.argmax(blind))
        if blind[at] > 0:
            value, met = float(np.interp(_place(share, AIMED[at]), np.arange(len(known)), known)), AIMED[at]
        else:  # all are met or out of reach
            gap = int(np.argmax(np.abs(np.diff(np.log(share)))))
            value, met = float(known[gap : gap + 2].mean()), float(np.sqrt(share[gap] * share[gap + 1]))
        found.append(value)
        before = int(np.searchsorted(known, value))
        known, share = np.insert(known, before, value), np.insert(share, before, met)
    return np.array(found)


def _blindness(share: Floats, level: float) -> float:
    """How little is known of the cost at a violation: product of the logarithmic ways to those next to it."""
    below, above = share[share <= level], share[share >= level]
    if not len(below) or not len(above):
        return 0.0
    return float(np.log(level / below.max()) * np.log(above.min() / level))


def _place(violation: Floats, level: float) -> float:
    """Where along rising knob values a violation is passed."""
    falling, place = violation[0] > violation[-1], np.arange(len(violation), dtype=float)
    rising = np.maximum(np.maximum.accumulate(violation[::-1] if falling else violation), _LEAST)
    for i in range(len(rising) - 2, -1, -1):
        if rising[i] == _LEAST:  # none at all may be just none, or far from any
            rising[i] = max(_LEAST, rising[i + 1] / _STEEP)
    at = float(np.interp(np.log(level), np.log(rising) + 1e-9 * place, place))
    return place[-1] - at if falling else at


def _score(sheet: Sheet) -> float:
    """Mean logarithm of the cost at equal violation; what keeps no promise that well counts by how far it is off."""
    violation, hours = sheet.means
    at = int(np.argmin(violation))
    costs = [(sheet.hours_at(allowed), hours[at] * violation[at] / allowed) for allowed in JUDGED]
    return float(np.mean([np.log(missed if np.isnan(cost) else cost) for cost, missed in costs]))
