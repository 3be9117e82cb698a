"""A fixed number of executors: what a job has without an autoscaler (`--num-executors`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from configs.contract import Planning
from models.policy.core.capacity import Floats
from models.policy.core.view import Choice, Memory, View
from models.policy.core.within import within


@dataclass(frozen=True, eq=False)
class Static:
    """Always the same.

    Attributes:
        name: static.
        executors: how many.
    """

    name: str
    executors: Floats | float
    knob: ClassVar[str] = "executors"

    @classmethod
    def of(cls, name: str, planning: Planning) -> Static:
        """As many as the contract says."""
        return cls(name, float(planning.static_executors))

    def fresh(self, runs: int) -> Memory:
        """Nothing to carry."""
        return {}

    def decide(self, memory: Memory, view: View) -> tuple[Memory, Choice]:
        """The number, whatever is seen."""
        return memory, within(view, np.broadcast_to(np.asarray(self.executors, float), view.target.shape))
