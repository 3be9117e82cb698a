"""What the jobs of a server have in common: where windows and models are found, and how long a job may be silent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from models.forecast.online import Online
from pipelines.serve.step.deployments import Deployment
from pipelines.serve.step.windows import Windows

SILENT_S = 10.0
"""Wall seconds. A job without metrics for this long gets no more heartbeats: they would hide that it is silent."""


@dataclass(frozen=True)
class ServerContext:
    """What all jobs of a server have in common.

    Attributes:
        windows: where closed windows are kept.
        find_model: returns the model of a job's deployment; ModelSetError where it is no longer there.
        epoch: number of the server's claim, in every forecast.
    """

    windows: Windows
    find_model: Callable[[str, Deployment], Online]
    epoch: int
