"""Which model serves which window: a pure function of recorded swaps, so that a replay after any crash agrees."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class Generation(msgspec.Struct, frozen=True, array_like=True):
    """One swap of a job's model; what is stored under `/intent` and `/active`, with its number as the version.

    Attributes:
        number: counts up, also when an older version comes back.
        model, model_version: in the registry.
        digests: of weights, scaler and hyper-parameters.
        first_origin: window index from which on it serves.
        warmed_from, warmed_to: first and last window of the history it was begun on, so that a replay begins it on
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
    """The newest generation whose first origin is not after this one (seed 6.2, step 3); None before the first."""
    return max((g for g in generations if g.first_origin <= origin), key=lambda g: g.number, default=None)


def first_origin(generations: Sequence[Generation], newest: int | None, sent: int | None) -> int:
    """From which window on the next generation serves: after the newest origin ever sent for the job.

    The first one also speaks for the newest window, which nobody has spoken for; else a job with long windows would
    wait for one to end. `newest` is the newest window in the store, `sent` the newest origin in the store and at the
    end of the topic.
    """
    begins = (newest or 0) if sent is None else 1 + max(sent, -1 if newest is None else newest)
    # Of successive generations they never decrease: a swap before any window counts from the one before.
    return max([begins, *(g.first_origin for g in generations)])
