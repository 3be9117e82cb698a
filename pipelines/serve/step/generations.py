"""Which model serves which window: a pure function of recorded swaps, so that a replay after any crash agrees."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class Generation(msgspec.Struct, frozen=True, array_like=True):
    """One loaded model of a job and since when it serves; stored under `/intent` and `/active`, its number as version.

    Attributes:
        number: counts up from 1, also when an older model version comes back.
        model, model_version: in the registry.
        digests: of weights, scaler and hyper-parameters, hexadecimal.
        first_origin: index of the first window after which it makes the forecast.
        warmed_from, warmed_to: first and last window of the history it was started on, so that a replay starts it on
            the same; none where the second is less than the first.
        step_s: seconds per window, by which windows are numbered.
    """

    number: int
    model: str
    model_version: str
    digests: tuple[str, str, str]
    first_origin: int
    warmed_from: int
    warmed_to: int
    step_s: float


def serving(generations: Sequence[Generation], origin: int) -> Generation | None:
    """Return the highest-numbered generation (loaded model) in service at window `origin`; None before the first.

    In service are those whose `first_origin` is at or before the window.
    """
    return max((g for g in generations if g.first_origin <= origin), key=lambda g: g.number, default=None)


def first_origin(generations: Sequence[Generation], newest: int | None, sent: int | None) -> int:
    """Return the index of the window from which a newly loaded model may serve: the first that has no forecast yet.

    Without any forecast it is the newest window, or 0; it is never below that of an earlier generation.

    Args:
        generations: of the job, so far.
        newest: index of the job's newest window; None without one.
        sent: newest window that a forecast was made for, in the store or on the topic; None without one.
    """
    begins = (newest or 0) if sent is None else 1 + max(sent, -1 if newest is None else newest)
    # Of successive generations they never decrease: a swap before any window counts from the one before.
    return max([begins, *(g.first_origin for g in generations)])
