"""Where the state of a block lies, on the real engine."""

import pytest

from configs.settings import ROOT, load
from models.placement.plan.applications import applications_of
from models.placement.plan.measured import Block, Placement
from pipelines.jobs.launch import Launch
from pipelines.placement import block
from pipelines.placement.code import load_code
from pipelines.placement.job_folder import JobFolder, checkpoint_of

pytestmark = pytest.mark.spark
FILE = ROOT / "configs" / "topologies" / "adverts.yaml"
ONE = Placement((Block(("parse", "views", "project", "join", "count"), "east", 1, 1.0, 1.0),), 3.0, 2.0, True)


def test_a_checkpoint_is_in_the_epoch_s_folder_also_where_hadoop_s_files_are_elsewhere(spark, tmp_path, monkeypatch):
    folder = JobFolder(tmp_path / "of a person" / "adverts")
    folder.begin(FILE, ONE)
    topology = folder.topology()
    epoch = folder.begin_epoch(applications_of(topology, ONE)[0])
    monkeypatch.setattr(block, "claim_sink", lambda *_: None)
    monkeypatch.setattr(block, "once", lambda kafka, sink: lambda batch, number: None)
    monkeypatch.setattr(block, "block_frame", lambda *_: spark.readStream.format("rate").load())
    launch = Launch(epoch.block.name, spark, load(), epoch.folder, {})
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    before = hadoop.get("fs.defaultFS")
    hadoop.set("fs.defaultFS", "elsewhere://cluster")  # whoever asks that for a file is told that there is no such one
    try:
        block.start_block(launch, topology, load_code(topology), epoch, folder, {}).stop()
    finally:
        hadoop.set("fs.defaultFS", before)
    assert (checkpoint_of(epoch) / "metadata").is_file()
