"""Words of lines, counted and ranked: what Spark makes of drawn lines beside what they come to."""

import json
from collections import Counter

import numpy as np
import pytest

from configs.settings import ROOT
from configs.topology import load_topology
from models.placement.plan.applications import applications_of
from models.placement.plan.measured import Block, Placement
from pipelines.jobs.chains.truth import true_counts
from pipelines.jobs.chains.windowed import window_key
from pipelines.jobs.chains.words import ALL, OPERATORS, SOURCES, TOP, draw, rank_keys, result_keys
from pipelines.placement.code import JobCode, record_schemas
from pipelines.placement.frames import block_frame
from tidecast.spark.progress import parse_progress

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


@pytest.fixture
def run_first(one_partition, tmp_path):
    """The first query of a job over lines in a file: what it writes, and the rows that it counts."""
    ranked, code = load_topology("words_ranked", ROOT / "configs/topologies/bench"), JobCode(SOURCES, OPERATORS)

    def run(lines, *blocks):
        made = tuple(Block(names, "east", 1, 1.0, 1.0) for names in blocks)
        first, found = applications_of(ranked, Placement(made, 1.0, 1.0, True))[0], []
        (tmp_path / "lines").mkdir(exist_ok=True)
        (tmp_path / "lines" / "0.txt").write_text("\n".join(lines))

        def read(topic):
            return one_partition.readStream.text(str(tmp_path / topic))

        frame = block_frame(first, ranked, code, record_schemas(one_partition, ranked, code), read)
        write = frame.writeStream.outputMode("update").foreachBatch(lambda batch, _: found.extend(batch.collect()))
        query = write.option("checkpointLocation", str(tmp_path / first.operators[-1])).trigger(availableNow=True)
        query = query.start()
        assert query.awaitTermination(300) and query.exception() is None
        batches = [one for one in map(parse_progress, [each.json for each in query.recentProgress]) if one is not None]
        return found, [one.operator_rows for one in batches]

    return run


def test_a_query_tells_how_many_rows_each_of_its_operators_made(run_first):
    lines = drawn_lines(90)
    values = [json.dumps({**line._asdict(), "at": f"2023-11-14T22:13:{line.at % 10:09.6f}Z"}) for line in lines]
    found, rows = run_first([*values, "no line"], ("parse", "split", "count"), ("top",))  # writes two topics
    counts = [row for row in found if row.topic == "words_ranked.count"]
    assert rows == [{"lines": 91, "parse": 90, "split": 270, "count": len(counts)}]
    assert len(counts) == len({word for line in lines for word in line.line.split()}) and len(found) == 270 + len(
        counts
    )
    found, rows = run_first([*values, "no line"], ("parse", "split"), ("count",), ("top",))
    assert rows == [{"lines": 91, "parse": 90, "split": 270}] and len(found) == 270
