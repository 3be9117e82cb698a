"""What the relief ladder does to all but the replay's own rate, and how origins and tenants share what there is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from models.contract.admission import OperatorRoom, find_bottleneck, operator_margin
from models.contract.fairness import Credits, divide_credits, whole_records
from models.contract.relief import ReliefStep
from models.contract.service_rate import executors_for
from models.contract.signals import SharedPlan, Signals
from models.contract.state import Controls, KnownOperator
from models.contract.terms import Terms
from tidecast.spark.shares import highest_first, water_fill


def highest_step(terms: Terms, controls: Controls) -> ReliefStep:
    """Return the highest step of relief that may be taken now.

    Records are shed only where the contract allows it, and where live records are held back as far as their box allows.
    """
    box = terms.controls.live_rps
    if box is None:
        return ReliefStep.SHED if terms.shed.allowed else ReliefStep.CAPACITY
    held = controls.live_rps is not None and controls.live_rps <= box.min
    return ReliefStep.SHED if terms.shed.allowed and held else ReliefStep.THROTTLE


def steps_without_effect(terms: Terms, seen: Signals, controls: Controls) -> frozenset[ReliefStep]:
    """Return the steps of relief on which the job has nothing to give up: each would only delay those above it.

    A replay that has nothing to read, or may not begin, is nothing to give up unless it read in this interval: then
    what comes of its stop has not been seen. Approximate operators of which no error is read take no theta.

    Args:
        terms: with the limits of errors, of approximate operators, and the box of live records.
        seen: with what waits of the replay, what maintenance asks for, and the error of approximate operators.
        controls: of this interval.
    """
    without = {
        ReliefStep.REPLAY: seen.replay_backlog == 0 == controls.replay_rps,
        ReliefStep.MAINTENANCE: not seen.maintenance_rps,
        ReliefStep.THETA: not terms.error or seen.error_rel is None,
        ReliefStep.THROTTLE: terms.controls.live_rps is None,
    }
    return frozenset(step for step, nothing in without.items() if nothing)


def divide_capacity(terms: Terms, seen: Signals, rooms: Sequence[OperatorRoom], live_rps: float, step: int) -> Credits:
    """Divide what the slowest operator serves beyond its margin between live records, maintenance and the replay.

    Args:
        terms: with priorities and the floor of maintenance, to which the ladder brings it.
        seen: with what waits of the replay, and what maintenance asks for.
        rooms: of all operators, at least one.
        live_rps: the most to expect, source records/s.
        step: of the ladder.

    Returns:
        Records/s of that operator; the replay's part in its source records/s, all it asks for where it passes none.
    """
    shared, floor = find_bottleneck(rooms, live_rps), terms.fairness.floor
    slowest = shared or min(rooms, key=lambda one: one.service_rps)
    room, maintenance = max(slowest.service_rps - slowest.margin_rps, 0.0), seen.maintenance_rps or 0.0
    if step >= ReliefStep.MAINTENANCE:
        maintenance = min(maintenance, floor * room)
    asked = 0.0 if step >= ReliefStep.REPLAY else terms.controls.replay_rps.max
    if seen.replay_backlog is not None:
        asked = min(asked, seen.replay_backlog / terms.interval_s)
    demands = Credits(slowest.live_ratio * live_rps, maintenance, asked * slowest.replay_ratio)
    divided = divide_credits(room, demands, terms.priorities, floor)
    return replace(divided, replay=asked if shared is None else divided.replay / shared.replay_ratio)


def error_share(terms: Terms, before: float, step: int) -> float:
    """Return the share of their error limits that operators use: all of it on the ladder's step for it.

    Below that step it falls by a slew per interval.

    Args:
        terms: with the box of theta.
        before: share of this interval.
        step: of the ladder.
    """
    box = terms.controls.theta
    return box.max if step >= ReliefStep.THETA else max(before - box.slew * (box.max - box.min), box.min)


def live_cap(terms: Terms, controls: Controls, step: int, worst: float | None, live_rps: float | None) -> float | None:
    """Return the most live records/s that are admitted; None: all.

    On the ladder's step for it the cap falls by a slew of what is admitted or arrives while a hard limit is violated;
    below that step it rises by a slew per interval until it ends.

    Args:
        terms: with the box of live records.
        controls: of this interval.
        step: of the ladder, for the next one.
        worst: ratio of a measured value to its hard limit; None: unread.
        live_rps: that arrive, records/s; None: unknown.
    """
    box, cap = terms.controls.live_rps, controls.live_rps
    if box is None or (step < ReliefStep.THROTTLE and cap is None):
        return None
    slew = box.slew * (box.max - box.min)
    if step < ReliefStep.THROTTLE:
        risen = max((cap or 0.0) + slew, box.min)
        return risen if risen < box.max else None
    if worst is None or worst <= 1:
        return cap
    now = min(box.max, math.inf if cap is None else cap, math.inf if live_rps is None else live_rps)
    return max(box.min, now - slew)


def executors_asked(
    terms: Terms,
    plan: SharedPlan,
    operators: Mapping[str, KnownOperator],
    live_rps: float,
    executors: int | None,
    worst: float | None,
    asked: int | None,
    starting: bool = False,
) -> int | None:
    """Return the executors with which live records alone leave every operator its margin.

    While a hard limit is violated it is at least one more than run, once those that were asked for have come and shown
    what they bring: their first tasks make live records late, which another start would not mend. Else it is at least
    as many as are asked for now.

    Args:
        terms: with the limits that the margins come from.
        plan: with the contention of executors.
        operators: what was learned, by name.
        live_rps: the most to expect, source records/s.
        executors: that run; None: unknown.
        worst: ratio of a measured value to its hard limit; None: unread.
        asked: executors that are asked for now; None: none.
        starting: whether executors are under way, or have just come.

    Returns:
        None where no number is enough.
    """
    needed = [
        executors_for(
            operator_margin(terms, plan, name).service_rps(one.live_ratio * live_rps), one.certain_rps, plan.contention
        )
        for name, one in operators.items()
    ]
    enough = [count for count in needed if count is not None]
    violated, awaited = worst is not None and worst > 1, starting or (asked or 0) > (executors or 0)
    least = (executors or 0) + 1 if violated and not awaited else asked or 0
    return max([*enough, least]) if len(enough) == len(needed) else None


def divide_tenants(
    terms: Terms, seen: Signals, cap_rps: float | None, step: int, deficits: Mapping[str, float]
) -> tuple[dict[str, int], dict[str, float]]:
    """Divide the live records of an interval between tenants: max-min, or the lowest cut first while held back.

    Args:
        terms: with the tenants' weights; 1 for one that is not named.
        seen: with what each asks for.
        cap_rps: most live records/s; None: all.
        step: of the ladder.
        deficits: records owed, by tenant.

    Returns:
        Records, and deficits, by tenant.
    """
    names = sorted(seen.tenants)
    asked = [seen.tenants[name] * terms.interval_s for name in names]
    weights = [terms.fairness.weights.get(name, 1.0) for name in names]
    most = math.fsum(asked) if cap_rps is None else min(cap_rps * terms.interval_s, math.fsum(asked))
    shares = (highest_first if step >= ReliefStep.THROTTLE else water_fill)(most, asked, weights)
    rows, owed = whole_records(shares, [math.ceil(one) for one in asked], [deficits.get(name, 0.0) for name in names])
    return dict(zip(names, rows, strict=True)), dict(zip(names, owed, strict=True))
