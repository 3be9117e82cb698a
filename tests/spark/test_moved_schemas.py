"""A query with a state of its own (`transformWithState`) goes on from move to move, on the real engine."""

import pytest

from configs.settings import ROOT
from models.placement.plan.applications import applications_of
from models.placement.plan.measured import Block, Placement
from pipelines.placement.job_folder import KEPT, JobFolder, checkpoint_of

pytestmark = pytest.mark.spark
FILE = ROOT / "configs" / "topologies" / "adverts.yaml"
ONE = Placement((Block(("parse", "views", "project", "join", "count"), "east", 1, 1.0, 1.0),), 3.0, 2.0, True)


def totals(source):
    """Per word, how many there have been."""
    import pandas as pd
    from pyspark.sql.streaming import StatefulProcessor

    class Total(StatefulProcessor):  # in here, so that it is pickled as a whole
        def init(self, handle):
            self.total = handle.getValueState("total", "n long")

        def handleInputRows(self, key, rows, timerValues):
            before = self.total.get()[0] if self.total.exists() else 0
            self.total.update((before + sum(map(len, rows)),))
            yield pd.DataFrame({"word": [key[0]], "n": [self.total.get()[0]]})

        def close(self):
            pass

    return source.groupBy("word").transformWithStateInPandas(Total(), "word string, n long", "Update", "None")


def test_a_state_of_its_own_moves_more_often_than_epochs_are_kept(one_partition, tmp_path):
    """Where Spark notes that a state's schema is, it asks for it: by the path in the first epoch, once only copied."""
    job, words, told = JobFolder(tmp_path / "adverts"), tmp_path / "words", []
    job.begin(FILE, ONE)
    words.mkdir()
    (block,) = applications_of(job.topology(), ONE)
    for moves in (1, KEPT):
        epoch = [job.begin_epoch(block) for _ in range(moves)][-1]
        (words / f"{epoch.number}.csv").write_text("ride\n")
        query = (
            totals(one_partition.readStream.schema("word string").csv(str(words)))
            .writeStream.foreachBatch(lambda batch, _: told.extend(row.n for row in batch.collect()))
            .option("checkpointLocation", str(checkpoint_of(epoch)))
            .outputMode("update")
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(300)
    assert told == [1, 2]
    assert sorted(one.name for one in epoch.folder.parent.iterdir()) == ["2", "3", "4", "5"]
