"""One streaming job in the twin as a Gymnasium environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from models.dqn.agent.actions import MOVES
from models.dqn.agent.observation import FEATURES
from models.dqn.environment.randomisation import drawn
from models.dqn.environment.synthetic_loads import RecordedLoad
from models.dqn.environment.vector import VectorEnvironment
from models.twin.sim.job import TwinJob


class StreamingJob(gymnasium.Env[NDArray[np.float32], np.int64]):
    """Keep a streaming job within its latency target with few executors.

    Underneath is a `VectorEnvironment` of one run, which training uses with many.

    Observation: `Box(-4, 4, (40,))`, the columns of `observation.FEATURES`, without units.

    Action: `Discrete(6)`, a change of the target by `actions.MOVES` executors. A move out of bounds stops at the bound;
    `info["action_mask"]` tells which are allowed and end near what `mpc` advises (`actions.near_advice`). The target
    never falls below `actions.floor`.

    Reward: `(reward.executor_seconds + needed * seconds) / (most * seconds)`: 1 is what all executors of the job cost
    for one decision.

    Start: a job, a load and a forecast drawn from `np_random` (`draw.drawn`); executors for the first minute.

    End: never; truncated after `decisions`.

    Args:
        traces: real loads; made ones are drawn as well.
        jobs: what to draw from, with one lead time; empty for all kinds.
        decisions: until the run is cut short.
        price, lead_s: None to draw them.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(
        self, traces: Sequence[RecordedLoad] = (), jobs: Sequence[TwinJob] = (), decisions: int = 128,
        price: float | None = None, lead_s: float | None = None,
    ) -> None:  # fmt: skip
        self._drawn_from = (traces, jobs, decisions, price, lead_s)
        self.observation_space = spaces.Box(-4.0, 4.0, (len(FEATURES),), np.float32)
        self.action_space = spaces.Discrete(len(MOVES))
        self._fleet: VectorEnvironment | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Another job and load."""
        super().reset(seed=seed)
        traces, jobs, decisions, price, lead_s = self._drawn_from
        made = drawn(1, decisions, traces, self.np_random, jobs, price, lead_s)
        self._fleet = VectorEnvironment(made, self.np_random.integers(2**62, size=1))
        return self._fleet.seen[0], {"action_mask": self._fleet.mask[0]}

    def step(self, action: np.int64) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """One decision."""
        if self._fleet is None:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        parts = self._fleet.step(np.array([int(action)]))[0]
        reward = float(parts @ self._fleet.weight[0])
        info = {"action_mask": self._fleet.mask[0], "parts": parts}
        return self._fleet.seen[0], reward, False, self._fleet.over, info
