"""Samples of a job's past: four steps of rate and placement, and latency and load of the fifth.

Pa-Stream paper, eq. 10 to 12. The placement of a step is the one that is in force from its end on, so that of the
fourth is the one under which the fifth is measured, and a candidate can be put in its place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from models.placement.graph import Floats

STEPS = 4
STEP_S = 60.0
TEST, HELD = 0.3, 0.15
"""Newest share of the past that is for testing, and of what is before it that says when to stop."""
OLDER = 0.2
"""Older samples to tune on, for each of the newest."""


class History(NamedTuple):
    """A job's past, by step.

    Attributes:
        rps: (T,) records/s of its sources.
        counts: (T, m, n) instances from the end of each step on.
        measured: (T, 2) latency in ms and mean load of each step.
    """

    rps: Floats
    counts: np.ndarray
    measured: Floats


class Samples(NamedTuple):
    """What a model learns from.

    Attributes:
        seen: (N, 4, 1 + m n) rates and placements.
        label: (N, 2) latency in ms and mean load of the step after.
        before: (N, 2) likewise of the last of the four steps: what the next one would be if nothing changed.
    """

    seen: Floats
    label: Floats
    before: Floats


def make_samples(history: History) -> Samples:
    """Return all samples of a past, the oldest first: T - 4 of them."""
    wide = int(np.prod(history.counts.shape[1:]))
    features = np.column_stack([history.rps, history.counts.reshape(-1, wide)]).astype(float)
    many = max(len(features) - STEPS, 0)
    seen = (
        np.stack([features[at : at + STEPS] for at in range(many)]) if many else np.zeros((0, STEPS, features.shape[1]))
    )
    measured = np.asarray(history.measured, float)
    return Samples(seen, measured[STEPS:], measured[STEPS - 1 : STEPS - 1 + many])


def parts_in_time(history: History) -> tuple[Samples, Samples, Samples]:
    """Return samples to train on, to stop by and to test on, in the order of time; no step is in two of them."""
    total = len(history.rps)
    test = round(total * (1 - TEST))
    held = round(test * (1 - HELD))
    cuts = ((0, held), (held, test), (test, total))
    train, stop, last = (make_samples(History(*(part[low:high] for part in history))) for low, high in cuts)
    return train, stop, last


def parts_to_tune(samples: Samples) -> tuple[Samples, Samples]:
    """Return samples to train on, and the newest to stop by; those between that share a step with both are left out.

    Args:
        samples: the oldest first, more than four.
    """
    held = round((len(samples.label) - STEPS) * (1 - HELD))
    return Samples(*(part[:held] for part in samples)), Samples(*(part[held + STEPS :] for part in samples))


def with_older(train: Samples, older: Samples, seed: int) -> Samples:
    """Return samples with a fifth as many older ones behind them, drawn from these; equal arguments give equal ones."""
    many = min(round(OLDER * len(train.label)), len(older.label))
    rows = np.random.default_rng(seed).permutation(len(older.label))[:many]
    return Samples(*(np.concatenate([part, old[rows]]) for part, old in zip(train, older, strict=True)))
