"""DS2: executors from their true processing rate, records per busy second.

Source: Kalavri et al., "Three steps is all you need", OSDI 2018, and strymon-system/ds2 (`policy/scaling.rs`,
`bin/manager.rs`, `config/ds2.toml`), for a dataflow of a source and one operator. DS2 knows no backlog: it scales for
the rate of the sources alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from models.policy.core.capacity import Floats, round_up
from models.policy.core.choice import Choice
from models.policy.core.policy import Rule, clipped_choice
from models.policy.core.view import Memory, View

INTERVAL_S, WARM_UP, SLACK = 10.0, 2, 1.0
"""Of the default configuration: seconds from one decision to the next (`policy_interval`), intervals without a decision
after a change (`warm_up_time`), and executors by which a decrease is no change yet (`consider_change`)."""


def instances_needed(instances: Floats, processing_rps: Floats, arriving_rps: Floats, over: Floats | float) -> Floats:
    """Return (runs,) instances that an operator needs to keep up with its source (Kalavri et al. 2018, equation 7).

    `ceil((1 + over) * arriving / (processing / instances))`; NaN where nothing runs or its true rate is 0 or NaN.

    Args:
        instances: (runs,) that run now.
        processing_rps: (runs,) true processing rate (records per busy second) of all instances together.
        arriving_rps: (runs,) output of its source, records/s.
        over: share of further instances on top.
    """
    known = (processing_rps > 0) & (instances > 0)
    share = np.where(known, arriving_rps / np.where(known, processing_rps, 1.0), np.nan)
    return round_up(share * instances * (1 + np.asarray(over)))


@dataclass(frozen=True, eq=False)
class Ds2(Rule):
    """The DS2 policy for a source and one operator, the executors.

    Every decision counts (activation time 1).

    Attributes:
        over: share of further executors on top (`scaling_factor`), a number or one per run.
    """

    over: Floats | float = 0.0
    knob: ClassVar[str] = "over"

    def decide(self, memory: Memory, view: View) -> tuple[Memory, Choice]:
        """Choose `ceil((1 + over) * executors * arrival_rps * busy / processed_rps)` executors (busy: share, 0 to 1).

        The target stays for 20 s after a change, where at most one executor fewer is needed, and while the job is idle.
        Unknown rates (NaN) give NaN.

        Returns:
            The memory as it was (empty), and the choice: (runs,) executors within the view's bounds, and reasons
            (flags).
        """
        true_rps = view.processed_rps / np.where(view.busy > 0, view.busy, np.nan)
        needed = instances_needed(view.executors, true_rps, view.arrival_rps, self.over)
        warming = view.since_change_s < WARM_UP * INTERVAL_S
        small = (needed <= view.target) & (needed >= view.target - SLACK)
        wanted = np.where(warming | small, view.target, needed)
        idle = np.isnan(needed) & np.isfinite(view.processed_rps + view.arrival_rps)
        return memory, clipped_choice(
            view, np.where(idle, view.target, wanted), cooldown=warming & (needed > view.target)
        )
