"""What is known of one replay of a job, and how each message changes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from models.backfill.live.said import with_known_done
from tidecast.orders import ReplayOrder, ReplayProgress, standing_order

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
    if isinstance(message, ReplayOrder):
        after = known._replace(order=standing_order(known.order, message))
    elif known.said is None or message.wall_time >= known.said.wall_time:
        after = known._replace(said=with_known_done(message, known.said))
    else:
        return replays
    if after == known:
        return replays
    newest = sorted({**replays, message.id: after}.items(), key=lambda one: one[1].heard_at)
    return dict(newest[-KEPT:])
