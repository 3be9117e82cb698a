"""A backfill's plan in one sentence."""

from __future__ import annotations

import math
from datetime import datetime
from itertools import groupby
from zoneinfo import ZoneInfo

import numpy as np

from models.backfill.apart import ApartPlan
from models.backfill.finish import FinishTimes
from models.backfill.plan import BackfillPlan, DeadlineError

LATE = 0.99
"""The second level whose finishing time is told."""
WORTH_TELLING = 0.05
"""Share of the records below which a stretch is not told."""
FLAT = 1.25
"""Ratio of the highest to the lowest live rate under which there is no valley to speak of."""
HOURS = ((5, "night"), (11, "morning"), (17, "afternoon"), (22, "evening"), (24, "night"))


def plan_sentence(
    plan: BackfillPlan, now_s: float, zone: str, speed: float = 1.0, apart: ApartPlan | None = None
) -> str:  # fmt: skip
    """Tell a plan: records, when they are replayed, when they are done, what it costs.

    Args:
        plan: of the backfill.
        now_s: epoch seconds of the plan's beginning; in a replay of a trace, of the trace.
        zone: IANA name, of the job.
        speed: seconds of the trace that pass in a real one; 1 where none is replayed.
        apart: what an application of its own would come to, which is dearer; None: there is none.

    Returns:
        Such as "41.2 M records; into the valley from 01:10 to 05:40 and beside the morning; done by 05:52 (90 %),
        07:00 with 99 %; live promise kept; 6.1 executor-hours more (at once: 14.3)"; in another zone than
        UTC with "; times of Europe/Berlin" behind it.
    """
    now = datetime.fromtimestamp(now_s, ZoneInfo(zone))
    promise = "live promise kept"
    if plan.live_risk > 1 - LATE:
        promise = f"live records alone are more than all executors serve with {100 * plan.live_risk:.0f} %"
    hours = f"{_hours(plan.schedule.hours)} executor-hours more (at once: {_hours(plan.at_once_hours)}"
    hours += ")" if apart is None else f", in an application of its own: {_hours(apart.hours)})"
    parts = [_when(plan, now, speed), _done(plan.finish, plan.sure, now, speed), promise, hours, *_of_zone(zone)]
    return "; ".join([f"{format_records(plan.work.records)} records", *parts])


def apart_sentence(
    plan: ApartPlan, sure: float, now_s: float, zone: str, speed: float = 1.0, beside: BackfillPlan | None = None
) -> str:  # fmt: skip
    """Tell a plan in an application of its own.

    Args:
        plan: of the backfill.
        sure: probability asked for.
        now_s: epoch seconds of now; in a replay of a trace, of the trace.
        zone: IANA name, of the job.
        speed: seconds of the trace that pass in a real one.
        beside: what it would come to beside live records, which is dearer; None: it is not in time there.

    Returns:
        Such as "41.2 M records; in an application of its own, 4 executors; done by 05:52 (90 %), 06:10 with 99 %; 9.1
        executor-hours with its driver (beside live records: 14.3)"; its zone as `plan_sentence`.
    """
    now = datetime.fromtimestamp(now_s, ZoneInfo(zone))
    other = (
        "beside live records not in time" if beside is None else f"beside live records: {_hours(beside.schedule.hours)}"
    )
    own = f"in an application of its own, {plan.executors} executor{'s' * (plan.executors > 1)}"
    hours = f"{_hours(plan.hours)} executor-hours with its driver ({other})"
    parts = [own, _done(plan.finish, sure, now, speed), hours, *_of_zone(zone)]
    return "; ".join([f"{format_records(plan.work.records)} records", *parts])


def finish_words(finish: FinishTimes, by_s: float, now_s: float, zone: str, speed: float = 1.0) -> str:
    """Tell when a backfill is done: the middle eight tenths of its distribution, and the chance of its deadline.

    Args:
        finish: seconds from now.
        by_s: seconds from now until its deadline.
        now_s: epoch seconds of now; in a replay of a trace, of the trace.
        zone: IANA name, of the job.
        speed: seconds of the trace that pass in a real one.

    Returns:
        Such as "done between 05:31 and 05:52, by 07:00 with 99 %".
    """
    now = datetime.fromtimestamp(now_s, ZoneInfo(zone))
    early, late, by = (_clock(now, s * speed) for s in (finish.quantile(0.1), finish.quantile(0.9), by_s))
    between = f"at {early}" if early == late else f"between {early} and {late}"
    return f"done {between}, by {by} with {100 * finish.chance(by_s):.0f} %"


def refusal_sentence(error: DeadlineError, earliest_s: float, now_s: float, zone: str, speed: float = 1.0) -> str:
    """Tell by the job's clock why a deadline is refused, the earliest that can be met, and what this one would take.

    Args:
        error: of the plan.
        earliest_s: seconds from now until a deadline that can be met; infinite: beyond the forecast.
        now_s: epoch seconds of now; in a replay of a trace, of the trace.
        zone: IANA name, of the job.
        speed: seconds of the trace that pass in a real one.
    """
    now = datetime.fromtimestamp(now_s, ZoneInfo(zone))
    by = _clock(now, error.by_s * speed)
    earliest = "later than the forecast reaches"
    if math.isfinite(earliest_s):
        earliest = _clock(now, earliest_s * speed + 60)  # so that the minute that is told lies behind it
    takes = "no number of executors that is known of suffices"
    if error.executors is not None:
        takes = f"it takes {error.executors} executors (executors.max in the job's contract)"
    return (
        f"--by {by} cannot be met with a probability of {error.sure:g}, not with all {error.most} executors from now "
        f"on. The earliest that can be met is {earliest}; for {by} {takes}, or a lower --sure"
    )


def apart_refusal(
    executors: int, finish: FinishTimes, sure: float, now_s: float, zone: str, speed: float = 1.0
) -> str:  # fmt: skip
    """Tell why an application of its own does not help: when the largest that there may be is done.

    Args:
        executors: that it may have.
        finish: seconds from now, with all of them.
        sure: probability asked for.
        now_s: epoch seconds of now; in a replay of a trace, of the trace.
        zone: IANA name, of the job.
        speed: seconds of the trace that pass in a real one.
    """
    now = datetime.fromtimestamp(now_s, ZoneInfo(zone))
    return (
        f"An application of its own is not in time either: with all {executors} executors (backpressure.apart in the "
        f"job's contract) it is {_done(finish, sure, now, speed)}"
    )


def format_records(records: float) -> str:
    """Format a number of records with three digits: 950, 12.3 k, 41.2 M, 1.20 G."""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if records >= 0.9995 * size:
            digits = max(2 - int(math.log10(max(records / size, 1.0)) + 1e-9), 0)
            return f"{records / size:.{digits}f}{unit}"
    return f"{records:.0f}"


def _done(finish: FinishTimes, sure: float, now: datetime, speed: float) -> str:
    told, late = (_clock(now, finish.quantile(level) * speed) for level in (sure, LATE))
    return f"done by {told} ({100 * sure:.3g} %)" + (f", {late} with {100 * LATE:.3g} %" if sure < LATE else "")


def _of_zone(zone: str) -> list[str]:
    """Whose clock it is, where it is not the one that is understood."""
    return [] if zone == "UTC" else [f"times of {zone}"]


def _hours(hours: float) -> str:
    return f"{hours:.1f}" if hours >= 1 or hours == 0 else f"{hours:.2g}"


def _when(plan: BackfillPlan, now: datetime, speed: float) -> str:
    """The stretches in which most is replayed: valleys with their times, and what they lie beside."""
    end = plan.finish.quantile(plan.sure) - plan.published_s
    steps = min(len(plan.replay_rps), math.ceil(min(end, 1e12) / plan.step_s - 1e-9))
    if steps == 0:
        return "nothing to do"
    rates, live = plan.replay_rps[:steps], plan.live_rps[:steps]
    split = (live.max() + live.min()) / 2
    flat = live.max() <= FLAT * max(live.min(), 1e-9)
    valley = np.full(steps, 0) if flat else np.where(live <= split, 1, 2)
    kinds = np.where(rates > 0, valley, -1)
    found = []
    for kind, group in groupby(range(steps), key=lambda k: int(kinds[k])):
        each = list(group)
        if kind >= 0 and rates[each].sum() >= WORTH_TELLING * rates.sum():
            begin, stop = each[0] * plan.step_s, min((each[-1] + 1) * plan.step_s, end)
            found.append(_stretch(kind, now, begin * speed, stop * speed))
    return " and ".join(dict.fromkeys(found))


def _stretch(kind: int, now: datetime, begin_s: float, end_s: float) -> str:
    times = f"from {_clock(now, begin_s)} to {_clock(now, end_s)}"
    if kind == 2:
        hour = _after(now, (begin_s + end_s) / 2).hour
        return f"beside the {next(name for below, name in HOURS if hour < below)}"
    return f"into the valley {times}" if kind else times


def _after(now: datetime, seconds: float) -> datetime:
    # Through UTC, because adding to a local time would ignore a jump of the clock in between.
    return datetime.fromtimestamp(now.timestamp() + seconds, now.tzinfo)


def _clock(now: datetime, seconds: float) -> str:
    if not math.isfinite(seconds):
        return "an unknown time"
    at = _after(now, seconds)
    days = (at.date() - now.date()).days
    return f"{at:%H:%M}" + (f" (+{days} d)" if days > 1 or (days == 1 and seconds >= 86_400) else "")
