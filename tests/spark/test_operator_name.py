"""A checkpoint of a query with state by frames of pandas, as releases of before had, gone on from by rows, and back."""

import json

import pytest

from pipelines.spark.checkpoint.files import is_sound
from pipelines.spark.checkpoint.operator_name import FRAMES, ROWS, name_for_frames, name_for_rows

pytestmark = pytest.mark.spark
SCHEMA = "word string, n long"


def counted(source, by_rows):
    """Per word, how many there have been."""
    import pandas as pd
    from pyspark.sql import Row
    from pyspark.sql.streaming import StatefulProcessor

    class Count(StatefulProcessor):  # in here, so that it is pickled as a whole
        def init(self, handle):
            self.total = handle.getValueState("total", "n long")

        def handleInputRows(self, key, rows, timerValues):
            before = self.total.get()[0] if self.total.exists() else 0
            n = before + sum(1 if by_rows else len(one) for one in rows)
            self.total.update((n,))
            yield Row(word=key[0], n=n) if by_rows else pd.DataFrame({"word": [key[0]], "n": [n]})

        def close(self):
            pass

    grouped = source.groupBy("word")
    with_state = grouped.transformWithState if by_rows else grouped.transformWithStateInPandas
    return with_state(Count(), SCHEMA, "Update", "None")


def names(checkpoint):
    files = sorted((checkpoint / "state" / "0" / "_metadata" / "v2").glob("[0-9]*"))
    return {json.loads(one.read_text().splitlines()[1])["operatorInfo"]["operatorName"] for one in files}


def test_a_query_by_rows_goes_on_from_what_one_by_frames_left_and_leaves_it_as_that_one_had_it(one_partition, tmp_path):
    words, checkpoint, told = tmp_path / "words", tmp_path / "checkpoint", []
    words.mkdir()
    name_for_rows(checkpoint)  # there is none yet

    def run(number, by_rows):
        (words / f"{number}.csv").write_text("ride\nride\n")
        query = (
            counted(one_partition.readStream.schema("word string").csv(str(words)), by_rows)
            .writeStream.foreachBatch(lambda batch, _: told.extend(row.n for row in batch.collect()))
            .option("checkpointLocation", str(checkpoint))
            .outputMode("update")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(300)

    run(1, by_rows=False)
    assert names(checkpoint) == {FRAMES}
    name_for_rows(checkpoint)
    run(2, by_rows=True)
    assert names(checkpoint) == {ROWS} and told == [2, 4]
    name_for_frames(checkpoint)
    assert names(checkpoint) == {FRAMES}
    assert all(is_sound(one) for one in checkpoint.rglob("_metadata/v2/[0-9]*"))
