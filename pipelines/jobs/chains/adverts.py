"""Views of adverts, counted per campaign and ten seconds: the Yahoo streaming benchmark (Chintapalli et al. 2016).

Filter, project, join with a table, window. An event names an advert, of which ten at a time belong to a campaign.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipelines.jobs.chains.windowed import count_per_window, window_key

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ADVERTS, PER_CAMPAIGN = 1_000, 10
KINDS = ("view", "click", "purchase")
VIEW = KINDS[0]
SOURCES = {"events": "seq long, at timestamp, user string, page string, ad long, kind string"}


class AdvertEvent(NamedTuple):
    """An event; `at` is epoch seconds."""

    seq: int
    at: float
    ad: int
    kind: str
    user: str = "u"
    page: str = "p"


def parse(events: DataFrame) -> DataFrame:
    """Leave out what is no event of this job."""
    return events.where(f"seq IS NOT NULL AND at IS NOT NULL AND ad >= 0 AND ad < {ADVERTS}")


def views(parsed: DataFrame) -> DataFrame:
    """Keep views."""
    return parsed.where(f"kind = '{VIEW}'")


def project(viewed: DataFrame) -> DataFrame:
    """Keep what is counted; records of an advert have one partition of a topic."""
    return viewed.selectExpr("seq", "at", "ad", "CAST(ad AS STRING) AS key")


def join(projected: DataFrame) -> DataFrame:
    """Add the campaign of each advert, from a table."""
    every = projected.sparkSession.range(ADVERTS)
    table = every.selectExpr("id AS ad", f"CAST(id DIV {PER_CAMPAIGN} AS STRING) AS key")
    return projected.drop("key").join(table.hint("broadcast"), "ad").select("seq", "at", "key")


def count(joined: DataFrame) -> DataFrame:
    """Count views (`n`), and add their sequence numbers up, per campaign and window; the newest of a key holds."""
    return count_per_window(joined)


OPERATORS: dict[str, Callable[..., DataFrame]] = {
    "parse": parse, "views": views, "project": project, "join": join, "count": count,
}  # fmt: skip


def draw(seq: int, at: float, random: np.random.Generator) -> AdvertEvent:
    """Return an event of a drawn advert and kind."""
    return AdvertEvent(seq, at, int(random.integers(ADVERTS)), KINDS[int(random.integers(len(KINDS)))])


def result_keys(event: AdvertEvent) -> list[str]:
    """Return the keys of `count` at which an event counts: campaign@begin of the window."""
    if event.kind != VIEW or not 0 <= event.ad < ADVERTS:
        return []
    return [window_key(event.ad // PER_CAMPAIGN, event.at)]
