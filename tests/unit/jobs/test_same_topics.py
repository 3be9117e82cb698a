"""A run is bound to the topics on which it began, by the ids that their broker gave them."""

import json

import pytest

from configs.sections import Kafka
from configs.settings import Settings
from pipelines import whole_file
from pipelines.jobs import launch
from pipelines.jobs.launch import RunFileError, first_offsets_file, fix_first_offsets
from pipelines.jobs.restarts import same_topics
from pipelines.jobs.restarts.same_topics import OtherTopicsError, refuse_other_topics

KAFKA = Kafka(bootstrap="broker:9092", prefix="t.")
TOPICS = ("events", "results")


@pytest.fixture
def ids(monkeypatch):
    found = {"events": "a", "results": "b"}
    monkeypatch.setattr(same_topics, "topic_id", lambda kafka, topic: found[topic])
    return found


def refuse(folder, job, topics):
    refuse_other_topics(KAFKA, folder, job, topics, folder / f"{job}.checkpoint")


def test_a_run_goes_on_at_its_own_topics_alone(tmp_path, ids):
    refuse(tmp_path, "orders", TOPICS)
    refuse(tmp_path, "orders", TOPICS)
    refuse(tmp_path, "rides", TOPICS[:1])  # of another job beside it
    ids["events"] = "c"
    with pytest.raises(OtherTopicsError, match=rf"orders: t\.events at broker:9092: .*\n  mv {tmp_path} {tmp_path}\."):
        refuse(tmp_path, "orders", TOPICS)
    (tmp_path / "orders.topics.json").unlink()
    refuse(tmp_path, "orders", TOPICS)


@pytest.mark.parametrize("name", ["orders.checkpoint", "orders.checkpoint.2"])
def test_topics_that_end_before_what_the_checkpoint_has_planned_are_refused_also_once_they_have_grown(
    tmp_path, ids, monkeypatch, name
):
    """As ones that were brought back from an older backup: Spark would read on in the middle of the new records."""
    ends = {0: (2, 7), 1: (0, 5)}
    monkeypatch.setattr(same_topics, "topic_offsets", lambda kafka, topic: ends)
    refuse(tmp_path, "orders", TOPICS)
    log = tmp_path / name / "offsets"
    log.mkdir(parents=True)
    (log / "9").write_text('v1\n{}\n{"t.events":{"0":6,"1":1}}')
    (log / "10").write_text('v1\n{}\n-\n{"t.events":{"0":7,"1":5}}')
    refuse(tmp_path, "orders", TOPICS)
    ends[1] = (0, 4)
    ids["events"] = "of another cluster, where what is planned says nothing"
    with pytest.raises(OtherTopicsError, match=r"orders: t\.events at broker:9092"):
        refuse(tmp_path, "orders", TOPICS)
    ids["events"] = "a"
    short = r"orders: t\.events \(ends at offset 4 of partition 1, and 5 was planned\) at broker:9092: .*\n  mv "
    with pytest.raises(OtherTopicsError, match=short):
        refuse(tmp_path, "orders", TOPICS)
    ends[1] = (0, 6)
    with pytest.raises(OtherTopicsError, match=r"orders: t\.events at broker:9092: .* brought back older"):
        refuse(tmp_path, "orders", TOPICS)
    (tmp_path / "orders.topics.json").unlink()
    refuse(tmp_path, "orders", TOPICS)
    (log / "10").write_text("v1\n{}")  # damaged, of which Spark tells
    refuse(tmp_path, "orders", TOPICS)


def test_a_topic_that_the_job_reads_since_is_noted_beside_the_others(tmp_path, ids):
    refuse(tmp_path, "orders", TOPICS[:1])
    refuse(tmp_path, "orders", TOPICS)
    assert json.loads((tmp_path / "orders.topics.json").read_text()) == ids


def test_a_damaged_file_of_the_first_start_is_named_with_what_to_do(tmp_path, ids):
    file = tmp_path / "orders.topics.json"
    file.write_text("")
    with pytest.raises(RunFileError, match=rf"damaged .*broker:9092 has the topics.*: rm {file}$"):
        refuse(tmp_path, "orders", TOPICS)
    start = first_offsets_file(tmp_path, "orders")
    start.write_text('{"events": {"0"')
    with pytest.raises(RunFileError, match=rf"orders\.start\.json: damaged .*anew, .*: mv {tmp_path} {tmp_path}\."):
        fix_first_offsets(Settings(kafka=KAFKA), tmp_path, "orders", TOPICS)


@pytest.mark.parametrize(("named", "there"), [("hdfs://nn:8020", True), ("file:///", False)])
def test_a_run_is_moved_away_also_where_hadoops_configuration_has_its_checkpoint(tmp_path, monkeypatch, named, there):
    core = f"<configuration><property><name>fs.defaultFS</name><value>{named}</value></property></configuration>"
    (tmp_path / "core-site.xml").write_text(core)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    run, aside = tmp_path / "run", f"mv {tmp_path}/run {tmp_path}/run.damaged-1"
    assert launch.move_away(run) == (f"{aside} && hadoop fs -{aside}" if there else aside)
    (tmp_path / "core-site.xml").unlink()
    assert launch.move_away(run) == aside


def test_a_partition_that_was_added_since_the_first_start_is_a_runs_from_its_first_record_on(tmp_path, monkeypatch):
    """Spark begins a new checkpoint only where each partition of the topic has its offset."""
    there = {"events": {0: (0, 7)}, "results": {0: (0, 3)}}
    monkeypatch.setattr(launch, "topic_offsets", lambda kafka, topic: there[topic])
    settings = Settings(kafka=KAFKA)
    assert fix_first_offsets(settings, tmp_path, "orders", TOPICS) == {"events": {0: 7}, "results": {0: 3}}
    there["events"] = {0: (2, 20), 1: (0, 9)}
    again = fix_first_offsets(settings, tmp_path, "orders", TOPICS)
    assert again == {"events": {0: 7, 1: 0}, "results": {0: 3}}
    source = launch.Launch("orders", None, settings, tmp_path, again).source("events")
    assert json.loads(source["startingOffsets"]) == {"t.events": {"0": 7, "1": 0}}


def test_a_full_disk_leaves_no_file_of_the_first_start(tmp_path, ids, monkeypatch):
    ends = {"events": {0: (0, 7)}, "results": {0: (0, 3)}}
    monkeypatch.setattr(launch, "topic_offsets", lambda kafka, topic: ends[topic])
    settings = Settings(kafka=KAFKA)
    with monkeypatch.context() as full:
        full.setattr(whole_file.os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        for begin in (
            lambda: refuse(tmp_path, "orders", TOPICS),
            lambda: fix_first_offsets(settings, tmp_path, "orders", TOPICS),
        ):
            with pytest.raises(OSError, match="No space left"):
                begin()
    assert not (tmp_path / "orders.topics.json").exists() and not first_offsets_file(tmp_path, "orders").exists()
    refuse(tmp_path, "orders", TOPICS)
    assert fix_first_offsets(settings, tmp_path, "orders", TOPICS) == {"events": {0: 7}, "results": {0: 3}}
