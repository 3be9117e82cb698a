"""Tuning on a trace's older part: a policy's hyper-parameters, and the range of its knob (swept parameter)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from models.policy.core.capacity import Floats
from models.twin.experiment.contenders import Contender, Sweep, Trial
from models.twin.experiment.evaluation import SweepResults, run_trials
from models.twin.experiment.scenario import Scenario

JUDGED = (0.01, 0.001)
"""Violations at which settings are compared."""
NARROW = (2e-4, 0.03)
"""Violations between which most of the knob's values should lie."""
AIMED = (*JUDGED, 0.05)
"""Violations that further values aim for."""
_LEAST, _STEEP = 1e-5, 30.0


def tune(
    contenders: Sequence[Contender], scenarios: Sequence[Scenario], knobs: int,
    report_share: Callable[[float], None] = lambda share: None,
) -> list[list[Sweep]]:  # fmt: skip
    """Choose for each scenario the hyper-parameters with the least cost at equal violation, and the knob values to run.

    The knob is the policy's one swept parameter. A contender's grids are searched one after the other, each over the
    catalogue's whole sweep of the knob, by the mean logarithm of the cost at violations of 0.01 and 0.001.

    Args:
        contenders: the policies; what they have to try next is simulated together.
        scenarios: tuning parts with the same setup, at least one.
        knobs: values of the knob per scenario.
        report_share: called now and then with the share of the work, 0 to 1, that is done.

    Returns:
        Per contender one sweep per scenario: the scenario, its setting, and (knobs,) values to run on the test part.

    Raises:
        SettingsError: the policy is unknown or cannot be built.
        KeyError: a scenario lacks the forecasts that the policy receives.
        TwinError: a scenario is shorter than one look (the interval of decisions).
        IndexError: no scenarios.
    """
    contract, rounds = scenarios[0].setup.contract, max((len(one.axes) for one in contenders), default=0) or 1
    wide = [np.sort(np.array(one.knob_values(contract), float)) for one in contenders]
    found = [
        [Trial(one, Sweep(scenario, one.setting, values)) for scenario in scenarios]
        for one, values in zip(contenders, wide, strict=True)
    ]
    results: list[list[SweepResults]] = [[] for _ in contenders]
    for number in range(rounds):
        tried = [_tries(trials, number) for trials in found]

        def report(share: float, number: int = number) -> None:
            report_share((number + share) / rounds)

        ran = iter(run_trials([trial for tries in tried for trial in tries], report))
        for at, tries in enumerate(tried):
            if came := [next(ran) for _ in tries]:
                scores = np.array([_score(result) for result in came]).reshape(len(scenarios), -1)
                best = scores.argmin(axis=1) + np.arange(0, len(tries), scores.shape[1])
                found[at], results[at] = [tries[i] for i in best], [came[i] for i in best]
    return [
        [
            trial.sweep._replace(knobs=narrow_knobs(values, result.means[0], knobs))
            for trial, result in zip(trials, came, strict=True)
        ]
        for trials, came, values in zip(found, results, wide, strict=True)
    ]


def _tries(trials: list[Trial], number: int) -> list[Trial]:
    """What a contender tries in a round: the next grid in every scenario, once without any, nothing after the last."""
    axes = trials[0].contender.axes
    if number >= len(axes):
        return [] if axes or number else trials
    choices = [dict(zip(axes[number], values, strict=True)) for values in product(*axes[number].values())]
    return [
        Trial(one, sweep._replace(setting=sweep.setting.plus(choice))) for one, sweep in trials for choice in choices
    ]


def narrow_knobs(wide: Floats, violation: Floats, count: int) -> Floats:
    """Choose knob (swept parameter) values where violations are between 0.0002 and 0.03, evenly along the sweep.

    One further value lies halfway to each end of the sweep. Violations are taken as rising or falling as a whole.

    Args:
        wide: (N,) rising values that were swept, N at least 1.
        violation: (N,) shares of the seconds over the latency target, of each.
        count: how many values.

    Returns:
        (count,) values; evenly over the whole sweep if N or `count` is below 3.

    Raises:
        IndexError: no values.
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


def refine_knobs(knobs: Floats, violation: Floats, count: int) -> Floats:
    """Choose further knob (swept parameter) values, for violations near those at which costs are compared (`AIMED`).

    Each value aims for that of 0.01, 0.001 and 0.05 whose known neighbours, below and above, are farthest from it on a
    logarithmic axis, and is assumed to meet it. Where all are met or out of reach, the widest gap is halved.

    Args:
        knobs: (N,) values that were run, at least 2.
        violation: (N,) shares of the seconds over the latency target, of each.
        count: how many values.

    Returns:
        (count,) values, in the order chosen.

    Raises:
        ValueError: fewer than 2 values were run.
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


def _score(result: SweepResults) -> float:
    """Mean logarithm of the cost at equal violation; what keeps no promise that well counts by how far it is off."""
    violation, hours = result.means
    at = int(np.argmin(violation))
    costs = [(result.hours_at(allowed), hours[at] * violation[at] / allowed) for allowed in JUDGED]
    return float(np.mean([np.log(missed if np.isnan(cost) else cost) for cost, missed in costs]))
