"""A lake whose file system is full, or becomes read-only under an ingest: named, nothing half-written, nothing lost."""

import os
import subprocess

import pytest

from configs.settings import load
from pipelines.bench.chaos.disks import fill_disk, free_disk, small_disk
from pipelines.ingest.run import ingest_ranges, plan_topic
from pipelines.kafka.publisher import Publisher
from pipelines.lake.errors import LakeError, LakeFullError
from pipelines.lake.folder import lake_folder
from pipelines.lake.table_files import table_files
from pipelines.lake.tables import commit_origins
from pipelines.lake.writable import refuse_read_only
from tests.fakes.lake_rows import lake_rows
from tests.fakes.records import NOW, record

pytestmark = [
    pytest.mark.spark,
    pytest.mark.integration,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a file system"),
]
HOURS = ("2014-10-22T04", "2014-10-22T05")


@pytest.fixture
def settings(empty_topics, tmp_path):
    root = tmp_path / "mounted"
    with small_disk(root):
        yield load(var=tmp_path / "var", kafka=empty_topics.model_dump(), lake={"address": str(root / "lake")})


def publish(settings, *rates):
    publisher = Publisher(settings.kafka, linger_ms=5)
    for rate in rates:
        publisher.send_bytes("metrics", b"word_count", record("metrics", arrival_rps=rate))
    publisher.close()


def rates(settings):
    return sorted(row["arrival_rps"] for row in lake_rows(lake_folder(settings), "metrics"))


def test_a_full_or_read_only_file_system_is_named_and_the_next_run_takes_the_same_records(spark, settings):
    root = lake_folder(settings)

    def ingested(partition):
        return ingest_ranges(spark, settings, plan_topic(settings, "metrics", partition, NOW))["metrics"]

    def kept():
        return commit_origins(root, "metrics"), table_files(root, "metrics"), rates(settings)

    publish(settings, 1.0)
    assert ingested(HOURS[0])["stored"] == 1
    publish(settings, *(float(at) for at in range(2, 400)))
    before = kept()
    subprocess.run(["mount", "-o", "remount,ro", str(root.parent)], check=True)
    try:
        with pytest.raises(LakeError, match=f"{root} cannot be written, .* Mount it for writing"):
            refuse_read_only(root)
        with pytest.raises(LakeFullError, match="has become read-only; mount it for writing"):
            ingested(HOURS[1])
        assert kept() == before
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(root.parent)], check=True)

    fill_disk(root.parent)
    with pytest.raises(
        LakeFullError, match=rf"{root}/metrics has no room left; make some, or name another place.*ADDR"
    ):
        ingested(HOURS[1])
    assert kept() == before
    free_disk(root.parent)
    again = ingested(HOURS[1])
    assert (again["stored"], again["again"]) == (398, False)
    assert rates(settings) == [float(at) for at in range(1, 400)]
