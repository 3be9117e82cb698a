"""The rate at which records arrive now: of as long a time as its newest seconds do not contradict; pure.

A mean of a few seconds is mostly noise where few records come: at a constant load it called for executors that were let
go a lead time later, up to 160 times an hour. One of a minute is late when the load changes. So the longest is taken
that agrees with all shorter ones up to chance, as Lepski chooses a bandwidth (Theory Probab. Appl. 35(3), 1991).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.policy.core.capacity import Floats

SPANS = (1, 4, 8, 16)
"""Times that are looked back on, rising, in units of the shortest."""
CHANCE = 2.5
"""Standard deviations by which the mean of a shorter time may differ from that of a longer one, as of Poisson arrivals.
In the twin, at 25 records/s an executor and 30 s of lead time, executors cost 2 to 7 % less than by the shortest mean
alone for as many late seconds, and change their number two fifths less often; with 2.0 half of that."""


def steady_rate(means: Sequence[Floats], shortest_s: float, record: float = 1.0) -> Floats:
    """Return the mean of the longest time with which those of all shorter ones agree.

    Args:
        means: records/s of the newest SPANS × `shortest_s` seconds, in that order; arrays of one shape.
        shortest_s: seconds of the shortest time, above 0.
        record: what a record counts in the unit of `means`, where loads are scaled.

    Returns:
        An array of that shape; 0 where nothing came in the shortest time, NaN where that is.
    """
    found = np.array(means[0], float)
    agree = np.ones_like(found, bool)
    for at, mean in enumerate(means):
        for span, shorter in zip(SPANS[:at], means[:at], strict=True):
            seconds = span * shortest_s
            variance = np.maximum(mean * record, record**2 / seconds) / seconds  # one record, however few come
            agree &= np.abs(mean - shorter) <= CHANCE * np.sqrt(variance)
        found = np.where(agree, mean, found)
    return np.where(means[0] == 0, 0.0, found)


def rate_of_seconds(newest: Sequence[float], shortest_s: int) -> float:
    """Return the rate now, of the newest whole seconds' records/s, oldest first, at least one.

    Of fewer than a time has seconds its mean is that of all.
    """
    means = [np.array(np.mean(newest[-span * shortest_s :])) for span in SPANS]
    return float(steady_rate(means, shortest_s))
