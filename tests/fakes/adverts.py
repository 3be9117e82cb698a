"""Events of the adverts job, with what they come to."""

import numpy as np

from pipelines.jobs.chains.adverts import ADVERTS, KINDS, AdvertEvent, result_keys
from pipelines.jobs.chains.feed import encode_event as encode_event
from pipelines.jobs.chains.truth import newest_counts, read_count, true_counts
from pipelines.kafka.committed import read_committed

BEGIN = 1_700_000_000.0


def advert_events(count, seed=0, first=0, step_s=0.04):
    """Events nearly in their order, `step_s` seconds apart."""
    random = np.random.default_rng([seed, first])
    at = BEGIN + (first + np.arange(count)) * step_s + random.uniform(-1, 1, count)
    ads, kinds = random.integers(0, ADVERTS, count), random.integers(0, 3, count)
    return [
        AdvertEvent(first + i, round(float(at[i]), 3), int(ads[i]), KINDS[kinds[i]]) for i in range(count)
    ]  # fmt: skip


def counted_adverts(kafka):
    """What the newest record of each key says."""
    return newest_counts(read_count(key, value) for key, value, _ in read_committed(kafka, "adverts.count"))


def true_adverts(events):
    """What it should say."""
    return true_counts(events, result_keys)
