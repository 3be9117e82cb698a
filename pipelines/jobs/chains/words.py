"""Words of lines: each counted per ten seconds (WordCount), and the ones of these that are counted most (Top-N)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipelines.jobs.chains.windowed import count_per_window, window_key

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

VOCABULARY, LINE, TOP, TRACKED = 40, 3, 3, 1_000
"""Words that there are, of a line, and of a window's ranks; different words that these look at."""
SOURCES = {"lines": "seq long, at timestamp, line string"}
ALL = "all"
"""Key of a window's ranks."""


class LineEvent(NamedTuple):
    """A line; `at` is epoch seconds."""

    seq: int
    at: float
    line: str


def parse(lines: DataFrame) -> DataFrame:
    """Leave out what is no line."""
    return lines.where("seq IS NOT NULL AND at IS NOT NULL AND line IS NOT NULL")


def split(parsed: DataFrame) -> DataFrame:
    """Return the words of each line."""
    return parsed.selectExpr("seq", "at", "explode(split(line, ' ')) AS key")


def count(words: DataFrame) -> DataFrame:
    """Count each word (`n`), and add the lines' numbers up, per window; the newest of a key holds."""
    return count_per_window(words)


def top(words: DataFrame) -> DataFrame:
    """Return the words that are counted most in each window (`ranks`, JSON), by Spark's frequent-items sketch.

    Exact while there are fewer different words than the sketch tracks.
    """
    from pyspark.sql import functions as F

    every = words.withColumnRenamed("key", "word").withColumn("key", F.lit(ALL))
    return count_per_window(every, F.expr(f"to_json(approx_top_k(word, {TOP}, {TRACKED}))").alias("ranks"))


OPERATORS: dict[str, Callable[..., DataFrame]] = {"parse": parse, "split": split, "count": count, "top": top}


def draw(seq: int, at: float, random: np.random.Generator) -> LineEvent:
    """Return a line of drawn words, the first ones often (Zipf)."""
    ranks = np.arange(1, VOCABULARY + 1)
    words = random.choice(ranks, LINE, p=1 / ranks / (1 / ranks).sum())
    return LineEvent(seq, at, " ".join(f"word{word:02d}" for word in words))


def result_keys(event: LineEvent) -> list[str]:
    """Return the keys of `count` at which a line counts, twice for a word that it has twice."""
    return [window_key(word, event.at) for word in event.line.split(" ")]


def rank_keys(event: LineEvent) -> list[str]:
    """Return the keys of `top` at which a line counts, once for each of its words."""
    return [window_key(ALL, event.at)] * len(event.line.split(" "))
