"""What is known of one replay of a job, and how each message changes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tidecast.orders import ReplayOrder, ReplayProgress

KEPT = 20
"""Replays of a job that are kept, those that were heard of last."""


class KnownReplay(NamedTuple):
    """A replay's newest order, and what the job's agent said of it last; None where that was not read."""

    order: ReplayOrder | None = None
    said: ReplayProgress | None = None

    @property
    def heard_at(self) -> float:
        """Wall time (epoch seconds) of the newest message of it."""
        return max((message.wall_time for message in self if message is not None), default=0.0)


def with_message(
    replays: Mapping[str, KnownReplay], message: ReplayOrder | ReplayProgress
) -> Mapping[str, KnownReplay]:
    """Return a job's replays, by id, after a message about one; an older one than is known adds nothing."""
    known = replays.get(message.id, KnownReplay())
    before: ReplayOrder | ReplayProgress | None
    if isinstance(message, ReplayOrder):
        before, after = known.order, known._replace(order=message)
    else:
        before, after = known.said, known._replace(said=message)
    if before is not None and message.wall_time < before.wall_time:
        return replays
    newest = sorted({**replays, message.id: after}.items(), key=lambda one: one[1].heard_at)
    return dict(newest[-KEPT:])
