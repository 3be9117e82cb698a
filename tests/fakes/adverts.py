"""Events of the adverts job, with what they come to."""

import json

import numpy as np

from pipelines.jobs.chains.adverts import ADVERTS, KINDS, AdvertEvent
from pipelines.placement.demo.feed import encode_event as encode_event
from tests.fakes.committed import committed_records

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
    """What the newest record of each key says: counts of a key only grow."""
    found = {}
    for key, value in committed_records(kafka, "adverts.count"):
        said = json.loads(value)
        found[key] = max(found.get(key, (0, 0)), (said["n"], said["seq_sum"]))
    return found
