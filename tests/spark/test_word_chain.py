"""Words of lines, counted and ranked: what Spark makes of drawn lines beside what they come to."""

import json
from collections import Counter

import numpy as np
import pytest

from pipelines.jobs.chains.truth import true_counts
from pipelines.jobs.chains.windowed import window_key
from pipelines.jobs.chains.words import ALL, OPERATORS, SOURCES, TOP, draw, rank_keys, result_keys

pytestmark = pytest.mark.spark


def drawn_lines(count):
    random = np.random.default_rng(3)
    return [draw(seq, 1_700_000_000.0 + 0.1 * seq, random) for seq in range(count)]


def split_words(spark, lines):
    schema = SOURCES["lines"].replace("at timestamp", "at double")
    frame = spark.createDataFrame([tuple(one) for one in [*lines, (None, 1.0, "no number")]], schema)
    return OPERATORS["split"](OPERATORS["parse"](frame.selectExpr("seq", "timestamp_seconds(at) AS at", "line")))


def test_words_are_counted_per_window(spark):
    lines = drawn_lines(400)
    found = OPERATORS["count"](split_words(spark, lines)).collect()
    assert {row["key"]: (row["n"], row["seq_sum"]) for row in found} == true_counts(lines, result_keys)


def test_the_words_that_are_counted_most_are_ranked_per_window(spark):
    lines = drawn_lines(400)
    found = {row["key"]: row for row in OPERATORS["top"](split_words(spark, lines)).collect()}
    words = {}
    for line in lines:
        words.setdefault(window_key(ALL, line.at), Counter()).update(line.line.split(" "))
    told = {key: (row["n"], row["seq_sum"]) for key, row in found.items()}
    assert found.keys() == words.keys() and told == true_counts(lines, rank_keys)
    for key, counts in words.items():
        ranks = [(one["item"], one["count"]) for one in json.loads(found[key]["ranks"])]
        assert [count for _, count in ranks] == [count for _, count in counts.most_common(TOP)]
        assert all(counts[word] == count for word, count in ranks)
