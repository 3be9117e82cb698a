"""A query whose checkpoint is damaged, on Spark itself: refused, repaired by the command, and right in the end."""

import json
import os
import time
from collections import Counter

import pytest
from pyspark.errors import StreamingQueryException
from typer.testing import CliRunner

from pipelines.bench.chaos.damage import spoil_middle
from pipelines.cli.app import app
from pipelines.spark.checkpoint.repair import remedy_of

pytestmark = pytest.mark.spark
WORDS = ("a b a", "b c", "a c c", "d", "a d")


@pytest.fixture
def counting(spark, tmp_path):
    """Runs the query on what lies in its folder, a file a batch; its sink replaces by key."""
    found = {}

    def replace(batch, number):
        found.update({row["word"]: row["count"] for row in batch.collect()})

    def run():
        lines = spark.readStream.schema("word STRING").option("maxFilesPerTrigger", 1).json(str(tmp_path / "lines"))
        counts = lines.groupBy("word").count()
        writer = counts.writeStream.foreachBatch(replace).outputMode("update").trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        try:
            query.awaitTermination()
        finally:
            query.stop()
        return found

    return run


def happen(folder, number):
    folder.mkdir(exist_ok=True)
    rows = "".join(json.dumps({"word": word}) + "\n" for word in WORDS[number].split())
    (folder / f"{number}.json").write_text(rows)


def test_a_damaged_state_is_refused_repaired_and_counted_right(counting, tmp_path):
    lines, checkpoint = tmp_path / "lines", tmp_path / "checkpoint"
    for number in range(4):
        happen(lines, number)
    counting()
    assert remedy_of(checkpoint) == ""
    for changed in (checkpoint / "state/0/0").glob("[34].changelog"):  # what batches 2 and 3 have left
        spoil_middle(changed)
    happen(lines, 4)
    with pytest.raises(StreamingQueryException):
        counting()
    assert f"tidecast job repair {checkpoint} --keyed-sink" in remedy_of(checkpoint, keyed=True)
    ago = time.time() - 60
    for file in checkpoint.rglob("*"):
        os.utime(file, (ago, ago))
    said = CliRunner().invoke(app, ["job", "repair", str(checkpoint), "--keyed-sink"])
    assert said.exit_code == 0 and "goes on after batch 1" in said.output, said.output
    assert counting() == Counter(" ".join(WORDS).split())
    assert remedy_of(checkpoint) == ""
