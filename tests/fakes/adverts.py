"""Events of the adverts job, with what they come to."""

import json
from datetime import UTC, datetime

import numpy as np

from pipelines.jobs.chains.adverts import ADVERTS, KINDS, AdvertEvent

BEGIN = 1_700_000_000.0


def advert_events(count, seed=0, first=0):
    """Events of about 40 seconds, nearly in their order."""
    random = np.random.default_rng([seed, first])
    at = BEGIN + (first + np.arange(count)) * 40 / 1_000 + random.uniform(-1, 1, count)
    ads, kinds = random.integers(0, ADVERTS, count), random.integers(0, 3, count)
    return [
        AdvertEvent(first + i, round(float(at[i]), 3), int(ads[i]), KINDS[kinds[i]]) for i in range(count)
    ]  # fmt: skip


def encoded_event(event):
    """An event as it stands on the topic."""
    at = datetime.fromtimestamp(event.at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return json.dumps({**event._asdict(), "at": at, "user": "u", "page": "p"}).encode()
