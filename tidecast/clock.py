"""The job's own time: the wall clock, or a replayed trace's clock that runs faster."""

from __future__ import annotations

from dataclasses import dataclass

from tidecast.messages import Control


@dataclass(frozen=True)
class Clock:
    """Job time as a function of wall time: `trace_start + (wall - wall_start) * scale`, all in seconds."""

    wall_start: float = 0.0
    trace_start: float = 0.0
    scale: float = 1.0

    def at(self, wall: float) -> float:
        """Job time at a wall time."""
        return self.trace_start + (wall - self.wall_start) * self.scale


WALL = Clock()
"""Job time is wall time."""


def announced(control: Control) -> Clock | None:
    """The clock that a control message announces, None if it announces none."""
    if control.wall_start is None or control.trace_start is None or not control.time_scale:
        return None
    return Clock(control.wall_start, control.trace_start, control.time_scale)
