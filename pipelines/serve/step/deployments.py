"""Which model serves which window: a pure function of recorded swaps, so that a replay after any crash agrees."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class Deployment(msgspec.Struct, frozen=True, array_like=True):
    """A model version put into service for a job, and from which window on; stored under `/intent` and `/active`.

    Attributes:
        number: counts up from 1 per job, also when an older model version comes back; version of the stored record.
        model, model_version: in the registry.
        digests: of weights, scaler and hyper-parameters, hexadecimal.
        first_origin: index of the first window after which it makes the forecast.
        warmed_from, warmed_to: index of the first and last window of the history it was started on, so that a replay
            starts it on the same; none where the second is less than the first.
        step_s: seconds per window; another length has other indices.
    """

    number: int
    model: str
    model_version: str
    digests: tuple[str, str, str]
    first_origin: int
    warmed_from: int
    warmed_to: int
    step_s: float


def deployment_at(deployments: Sequence[Deployment], origin: int) -> Deployment | None:
    """Return the deployment that makes the forecast after window `origin` (an index); None before the first.

    Of those whose `first_origin` is at or before the window it is the one with the highest number.
    """
    return max((d for d in deployments if d.first_origin <= origin), key=lambda d: d.number, default=None)


def choose_first_origin(deployments: Sequence[Deployment], newest: int | None, sent: int | None) -> int:
    """Return the index of the first window after which a new deployment may make the forecast.

    That is the window after the newest one with a window or a forecast; without any forecast the newest window, or 0.
    It is never below that of an earlier deployment.

    Args:
        deployments: of the job, so far.
        newest: index of the job's newest window; None without one.
        sent: index of the newest window that a forecast was made after, in the store or on the topic; None without one.
    """
    first = (newest or 0) if sent is None else 1 + max(sent, -1 if newest is None else newest)
    # Of successive deployments they never decrease: a swap before any window counts from the one before.
    return max([first, *(d.first_origin for d in deployments)])
