"""What raises took in the twin, as the agent in a job's driver tells it: by its own code."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from models.policy.core.capacity import Floats
from models.twin.sim.state import SimState
from tidecast.control import WALL
from tidecast.messages import Decision, Outcome
from tidecast.outcomes import Tracker
from tidecast.spark.progress import Batch


@dataclass
class _Run:
    """One run's agent, and the ids of its executors that run and stay, the oldest first."""

    tracker: Tracker = field(default_factory=Tracker)
    live: deque[str] = field(default_factory=deque)
    coming: list[float] = field(default_factory=list)
    named: int = 0
    used_at: float = -np.inf
    busy: bool = False

    def staff(self, many: int) -> None:
        """So many executors run and stay: those that leave are the oldest."""
        while len(self.live) > many:
            self.live.popleft()
        while len(self.live) < many:
            self.named += 1
            self.live.append(str(self.named))


class Agents:
    """The agents of simulated runs: each follows its raises until executors have come and a batch has used them.

    Times are seconds since the runs began. What happened between two looks (decisions) is told at the second of them:
    executors at the moment they came, a batch that used new ones at its end.
    """

    def __init__(self, runs: int) -> None:
        self._runs = [_Run() for _ in range(runs)]

    def hear(self, state: SimState, now: float, next_s: float, busy: Floats) -> list[tuple[int, dict[str, Any]]]:
        """Follow the decisions of second `now`, whose targets were just set, and those before.

        Args:
            state: of the runs; not changed.
            now: of this look.
            next_s: of the next one.
            busy: (runs,) shares, 0 to 1, of the executors' time that was work, as expected by the decisions.

        Returns:
            Outcomes since the last look: (run, fields of `tidecast.messages.Outcome`), rising by run.
        """
        x = state.x
        ready, raised = x["executors"] - x["leaving"], (x["changed_at"] == now)
        raised &= x["target"] > ready
        found: list[tuple[int, dict[str, Any]]] = []
        for run, one in enumerate(self._runs):
            if not (one.busy or raised[run]):
                continue
            told = self._happened(one, float(x["used_at"][run]), now) if one.busy else []
            one.staff(int(ready[run]))
            if x["changed_at"][run] == now:
                decided = _decision(f"{run}-{now:g}", now, int(x["target"][run]), float(busy[run]))
                told += one.tracker.track(decided, one.live, None, now, WALL)
            one.coming = sorted(at for at in state.ready_at[run].tolist() if at < next_s)
            one.used_at, one.busy = float(x["used_at"][run]), one.tracker.awaits_use()
            found += [(run, vars(outcome)) for outcome in told]
        return found

    @staticmethod
    def _happened(one: _Run, used_at: float, now: float) -> list[Outcome]:
        told: list[Outcome] = []
        for at in one.coming:
            one.staff(len(one.live) + 1)
            told += one.tracker.observe_executors(one.live, (), at, WALL)
        if used_at > one.used_at:
            batch = Batch(0, "", used_at, 0.0, 0, {}, {}, {}, used_at)
            one.tracker.observe_batch(batch, one.live, None)
        return told + one.tracker.observe_executors(one.live, (), now, WALL)


def _decision(name: str, at: float, executors: int, busy: float) -> Decision:
    expected = {"busy": busy if np.isfinite(busy) else None}
    return Decision(name, "twin", at, at, 1.0, "act", "mpc", executors, "", [], {}, expected)
