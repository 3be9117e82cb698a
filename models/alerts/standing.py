"""Which alerts stand, and which of them is to be told as new, again or as over: pure steps from look to look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from models.alerts.condition import Labels
from models.alerts.metric import Sample
from models.alerts.table import ALERTS, BY_NAME, KEEP_S

LONGEST_S = 86_400.0
"""Most seconds between two tellings of an alert that stands."""
GAP_S = 30.0
"""Seconds between two messages to a webhook: what comes to stand meanwhile goes with the next."""
MOST = 40
"""Alerts in a message at most: chat systems refuse a longer text, and would each time that it is sent again."""
FIRST_TRY_S, LAST_TRY_S = 10.0, 600.0
"""Seconds until a message that was not taken is sent again: first, and most, doubled each time."""


class Key(NamedTuple):
    """Which alert, and of what: its labels."""

    alert: str
    labels: Labels


@dataclass(frozen=True)
class StandingAlert:
    """An alert whose condition holds, or that was told and is not over yet; times are seconds of one clock.

    Attributes:
        since: when its condition came to hold.
        held_at: when it was last seen to hold.
        value: that is told, of the last time that it held.
        told_at: when it was told last; None: never.
        times: how often it was told.
    """

    since: float
    held_at: float
    value: float
    told_at: float | None = None
    times: int = 0

    def moved(self, by_s: float) -> StandingAlert:
        """Return it with times of a clock that is so many seconds ahead."""
        told_at = None if self.told_at is None else self.told_at + by_s
        return replace(self, since=self.since + by_s, held_at=self.held_at + by_s, told_at=told_at)


State = Mapping[Key, StandingAlert]


class Notice(NamedTuple):
    """What is to be told of an alert: that it is new, that it still stands, or that it is over."""

    kind: Literal["new", "repeated", "over"]
    key: Key
    standing: StandingAlert


def holding(samples: Mapping[str, Sequence[Sample]], now: float) -> dict[Key, float]:
    """Return the alerts whose condition holds, with the values that are told; `now` is epoch seconds."""
    return {
        Key(alert.name, labels): value
        for alert in ALERTS
        for labels, value in alert.condition.holding(samples, now).items()
    }


def advance(state: State, held: Mapping[Key, float], now: float) -> dict[Key, StandingAlert]:
    """Return the state after a look: what was never told and holds no longer is forgotten.

    Args:
        state: after the look before; not changed.
        held: as `holding` returns it.
        now: seconds of the state's clock.
    """
    told = {key: standing for key, standing in state.items() if standing.times and key.alert in BY_NAME}
    new = {
        key: replace(state[key], held_at=now, value=value) if key in state else StandingAlert(now, now, value)
        for key, value in held.items()
    }
    return told | new


def due(state: State, now: float, repeat_s: float) -> list[Notice]:
    """Return what is to be told now, pages before tickets.

    Args:
        state: after this moment's look.
        now: seconds of the state's clock.
        repeat_s: seconds after which an alert that stands is told again; each further time takes twice as long, a day
            at most.
    """
    notices = [notice for key, standing in state.items() if (notice := _notice(key, standing, now, repeat_s))]
    return sorted(notices, key=lambda one: (BY_NAME[one.key.alert].severity, one.key))


def _notice(key: Key, standing: StandingAlert, now: float, repeat_s: float) -> Notice | None:
    if standing.told_at is None:
        waited = now - standing.since >= BY_NAME[key.alert].for_s
        return Notice("new", key, standing) if waited else None
    if now - standing.held_at >= KEEP_S:
        return Notice("over", key, standing)
    wait_s = min(repeat_s * 2.0 ** min(standing.times - 1, 32), LONGEST_S)
    return Notice("repeated", key, standing) if now - standing.told_at >= wait_s else None


def told(state: State, notices: Sequence[Notice], now: float) -> dict[Key, StandingAlert]:
    """Return the state after these were told: what is over is forgotten; `now` is of the state's clock."""
    after = dict(state)
    for kind, key, standing in notices:
        if kind == "over":
            after.pop(key, None)
        else:
            known = after.get(key, standing)
            after[key] = replace(known, told_at=now, times=known.times + 1)
    return after


def next_try_s(failures: int) -> float:
    """Return the seconds until the next message to a webhook, after so many in turn that it did not take."""
    return GAP_S if failures == 0 else min(FIRST_TRY_S * 2.0 ** min(failures - 1, 32), LAST_TRY_S)
