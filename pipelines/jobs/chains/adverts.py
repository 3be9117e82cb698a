"""Views of adverts, counted per campaign and ten seconds: the Yahoo streaming benchmark (Chintapalli et al. 2016).

Filter, project, join with a table, window. An event names an advert, of which ten at a time belong to a campaign.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ADVERTS, PER_CAMPAIGN, WINDOW_S, DELAY_S = 1_000, 10, 10, 20
KINDS = ("view", "click", "purchase")
VIEW = KINDS[0]
SOURCES = {"events": "seq long, at timestamp, user string, page string, ad long, kind string"}


class AdvertEvent(NamedTuple):
    """An event; `at` is epoch seconds."""

    seq: int
    at: float
    ad: int
    kind: str


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
    from pyspark.sql import functions as F

    windowed = joined.withWatermark("at", f"{DELAY_S} seconds").groupBy(F.window("at", f"{WINDOW_S} seconds"), "key")
    counts = windowed.agg(F.count(F.lit(1)).alias("n"), F.sum("seq").alias("seq_sum"))
    begin = F.col("window.start").cast("long")
    key = F.concat_ws("@", "key", begin.cast("string")).alias("key")
    return counts.select(key, F.col("key").alias("campaign"), begin.alias("begin"), "n", "seq_sum")


OPERATORS: dict[str, Callable[..., DataFrame]] = {
    "parse": parse, "views": views, "project": project, "join": join, "count": count,
}  # fmt: skip


def true_counts(events: Iterable[AdvertEvent]) -> dict[str, tuple[int, int]]:
    """Return what the job's last records say of some events: by key, views and the sum of their sequence numbers."""
    found: dict[str, tuple[int, int]] = {}
    for one in events:
        if one.kind == VIEW and 0 <= one.ad < ADVERTS:
            key = f"{one.ad // PER_CAMPAIGN}@{int(one.at // WINDOW_S) * WINDOW_S}"
            n, total = found.get(key, (0, 0))
            found[key] = n + 1, total + one.seq
    return found
