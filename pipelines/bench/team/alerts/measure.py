"""`tidecast bench team --parts alerts`: how soon planted troubles are told, and whether a quiet day is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from models.alerts.samples import samples_of
from models.alerts.standing import Key, StandingAlert, advance, due, holding, told
from pipelines.bench.team.alerts.made_up_job import BEGAN, MadeUpJob
from pipelines.bench.team.alerts.troubles import TROUBLES, PlantedTrouble

QUIET_H, QUIET_LOOK_S = 24.0, 30.0
"""Hours without a trouble, and seconds from look to look in them."""
SINCE, LOOK_S, LONG_S, AFTER_S = BEGAN + 1800, 10.0, 3600.0, 600.0
"""When a trouble begins; seconds from look to look, where its window is longer than the third `QUIET_LOOK_S`; seconds
after its window in which nothing else may be told."""
REPEAT_S = 86_400.0


class Telling(NamedTuple):
    """What webhooks would be told: when (epoch seconds), whether it is "new", "repeated" or "over", and which alert."""

    at: float
    kind: str
    alert: str


def tellings(job: MadeUpJob, begin: float, end: float, every_s: float) -> list[Telling]:
    """Return what is told of a job from look to look, as the follower does; what cannot be read of it is raised."""
    state: Mapping[Key, StandingAlert] = {}
    found: list[Telling] = []
    for look in range(round((end - begin) / every_s)):
        now = begin + look * every_s
        state = advance(state, holding(samples_of(job.look(now), now, _raise), now), now)
        notices = due(state, now, REPEAT_S)
        found += [Telling(now, notice.kind, notice.key.alert) for notice in notices]
        state = told(state, notices, now)
    return found


def plant(name: str, trouble: PlantedTrouble) -> list[Telling]:
    """Return what is told of a job that a trouble of this name is planted in at `SINCE`, until after its window."""
    every_s = QUIET_LOOK_S if trouble.within_s > LONG_S else LOOK_S
    return tellings(MadeUpJob(name, SINCE), BEGAN, SINCE + trouble.within_s + AFTER_S, every_s)


def quiet_tellings(hours: float = QUIET_H) -> list[Telling]:
    """Return what is told of a job without a trouble."""
    return tellings(MadeUpJob(), BEGAN, BEGAN + 3600 * hours, QUIET_LOOK_S)


def measure_alerts(
    report: Callable[[str], None], troubles: Mapping[str, PlantedTrouble] = TROUBLES, hours: float = QUIET_H
) -> dict[str, Any]:
    """Plant each trouble in a job of its own, and let a job without one go through a day.

    Args:
        report: called with a line per trouble.
        troubles: by the name that `MadeUpJob` knows.
        hours: of the job without a trouble.

    Returns:
        `troubles`: a row each, with the seconds until its alert was told and its window; `n` of them; `told`, of which
        their own alert was told, once, within its window, and nothing else; `slowest`, seconds until told over the
        window, the most; `quiet`, what was told in `quiet_h` hours without one.
    """
    rows, right, slowest = [], 0, 0.0
    for name, trouble in troubles.items():
        report(trouble.what)
        found = plant(name, trouble)
        own = next((one.at - SINCE for one in found if one.alert == trouble.alert), None)
        others = sorted({one.alert for one in found} - {trouble.alert})
        right += len(found) == 1 and own is not None and 0 <= own <= trouble.within_s
        slowest = max(slowest, 0.0 if own is None else own / trouble.within_s)
        rows.append({
            "what is planted": trouble.what, "alert": f"`{trouble.alert}`", "told after, s": own,
            "window, s": trouble.within_s, "told besides": ", ".join(others) or "nothing",
        })  # fmt: skip
    return {
        "troubles": rows, "n": len(rows), "told": right, "slowest": slowest, "quiet": len(quiet_tellings(hours)),
        "quiet_h": hours,
    }  # fmt: skip


def _raise(job: str, error: Exception) -> None:
    raise error
