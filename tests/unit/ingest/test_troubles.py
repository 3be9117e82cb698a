"""Whoever ingests without Airflow's task fails by name where a topic was not taken."""

import json
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

import pipelines.ingest
from configs.settings import load
from pipelines.bench.fleet.batch_work import ingest_all
from pipelines.bench.site.kept import upgrade
from pipelines.ingest import refuse_troubles, run
from pipelines.ingest.columns import KINDS
from pipelines.ingest.offsets import OffsetsError
from pipelines.lake import hdfs_path
from pipelines.lake.errors import LakeError, LakeFullError, LakeOvertakenError


def between_releases():
    exec(upgrade._INGEST.format(hour=datetime(2014, 10, 22, 4, tzinfo=UTC)), {})


@pytest.mark.parametrize("caller", [ingest_all, between_releases])
def test_a_topic_in_trouble_fails_who_ingests(caller, monkeypatch):
    took, asked = {"metrics": {"read": 7, "trouble": ""}, "outcomes": {"read": 0, "trouble": ""}}, []
    monkeypatch.setattr(pipelines.ingest, "ingest", lambda partition: asked.append(partition) or (took, []))
    caller()
    took["outcomes"]["trouble"] = "offsets 1 to 2 were deleted"
    with pytest.raises(OffsetsError, match=r"^outcomes: offsets 1 to 2 were deleted$"):
        caller()
    assert len(asked) == 2


@pytest.mark.parametrize("step", ["plain_lake", "find_drift_events"])
def test_drifts_that_cannot_be_looked_for_keep_nobody_from_training_on_what_is_stored(step, monkeypatch, tmp_path):
    """Be it the log of a table, or a file that it names."""

    def damaged(*_):
        raise ValueError("forecasts/part-0.parquet: not Parquet\nand much more")

    ingesting(monkeypatch, tmp_path, {"metrics": {"stored": 7, "trouble": ""}})
    monkeypatch.setattr(run, step, damaged)
    counts, drifts = run.ingest("2014-10-22T04")
    assert (counts["metrics"]["stored"], drifts) == (7, [])
    with pytest.raises(OffsetsError, match=r"its rows are stored.*ValueError: forecasts/part-0.parquet: not Parquet$"):
        refuse_troubles(counts)


def test_jobs_whose_drifts_were_not_looked_for_are_named_beside_the_drifts_of_the_others(monkeypatch, tmp_path):
    stored, drift = {"metrics": {"stored": 7, "trouble": ""}}, {"job": "orders"}
    ingesting(monkeypatch, tmp_path, stored)
    monkeypatch.setattr(
        run, "find_drift_events", lambda *_: ([drift], {"rides": "OSError: gone\nand more", "taxis": "?"})
    )
    counts, drifts = run.ingest("2014-10-22T04")
    assert drifts == [drift]
    with pytest.raises(OffsetsError, match=r"stored; drifts of rides, taxis were not looked for, .*: OSError: gone$"):
        refuse_troubles(counts)


@pytest.mark.parametrize(("table", "troubled"), [("decisions", {"decisions"}), ("quarantine", {"metrics"})])
def test_a_table_whose_log_is_damaged_keeps_no_other_topic_from_being_taken(table, troubled, monkeypatch, tmp_path):
    lake = tmp_path / "lake"
    origin = {**ORIGIN, "quarantined": int(table == "quarantine")}  # then it is asked whether they arrived there
    written(lake / "metrics", json.dumps({"commitInfo": {"userMetadata": json.dumps({"origin": origin})}}))
    broken = written(lake / table, '{"commitInfo": {"userMeta')
    monkeypatch.setattr(run, "load", lambda: load(var=tmp_path))
    monkeypatch.setattr(run.topics, "topic_id", lambda kafka, topic: "t")
    monkeypatch.setattr(run.broker, "topic_offsets", lambda kafka, topic: {0: (0, int(topic == "metrics"))})
    counts, drifts = run.ingest("2014-10-22T04")
    assert {topic for topic, one in counts.items() if one["trouble"]} == troubled and len(counts) > 1 and drifts == []
    with pytest.raises(OffsetsError, match=rf"log of {broken}, .*JSONDecodeError.*restore FILE --only lake/{table}`"):
        refuse_troubles(counts)


def test_a_table_that_this_user_may_not_list_on_hdfs_keeps_no_other_topic_from_being_taken(monkeypatch):
    def glob(pattern):
        if "/decisions/" in pattern:
            raise LakeError("HDFS forbids to list /lake/decisions")
        return []

    client = SimpleNamespace(glob=glob, exists=lambda path: True, refuse_read_only=lambda path: None)
    monkeypatch.setattr(hdfs_path, "client_of", lambda authority: client)
    monkeypatch.setattr(run, "load", lambda: load(lake={"address": "hdfs://namenode:8020/lake"}))
    monkeypatch.setattr(run.topics, "topic_id", lambda kafka, topic: "t")
    monkeypatch.setattr(run.broker, "topic_offsets", lambda kafka, topic: {0: (0, 0)})
    counts, drifts = run.ingest("2014-10-22T04")
    assert [topic for topic, one in counts.items() if one["trouble"]] == ["decisions"] and len(counts) > 1
    assert counts["decisions"]["version"] is None and drifts == []
    with pytest.raises(OffsetsError, match=r"decisions: the log of .*HDFS forbids to list /lake/decisions"):
        refuse_troubles(counts)


def taking(monkeypatch, tmp_path, wrong):
    """Ingest a record of each topic, where some cannot be; returns the topics that were taken, and the counts."""
    taken = []

    def take(spark, settings, due):
        if due.topic in wrong:
            raise wrong[due.topic]
        taken.append(due.topic)
        return {"stored": 1, "trouble": ""}

    monkeypatch.setattr(run, "_take", take)
    ranges = [SimpleNamespace(is_due=True, topic=topic, partition="2014-10-22T04") for topic in KINDS]
    try:
        return taken, run.ingest_ranges(None, load(var=tmp_path), ranges)
    except Exception as error:
        return taken, error


def test_a_table_that_cannot_be_written_keeps_neither_later_topics_nor_the_news_of_metrics(monkeypatch, tmp_path):
    wrong = {
        "forecasts": LakeFullError("may not be written\nand more"),
        "outcomes": RuntimeError("Delta"),
    }
    taken, counts = taking(monkeypatch, tmp_path, wrong)
    assert taken == ["metrics", "decisions", "contracts"] and counts["metrics"]["stored"] == 1
    with pytest.raises(OffsetsError) as raised:
        refuse_troubles(counts)
    assert str(raised.value) == ("forecasts: LakeFullError: may not be written\noutcomes: RuntimeError: Delta")


def test_a_topic_whose_error_passes_is_taken_behind_the_others(monkeypatch, tmp_path):
    class Passing(dict):
        """What is wrong with a topic, once."""

        def __getitem__(self, topic):
            return self.pop(topic)

    wrong = Passing(forecasts=TimeoutError("the broker is restarted"), contracts=ConnectionError("a look at the lake"))
    taken, counts = taking(monkeypatch, tmp_path, wrong)
    assert taken == ["metrics", "decisions", "outcomes", "forecasts", "contracts"]
    refuse_troubles(counts)


def test_where_no_metrics_are_stored_the_task_is_tried_again_with_the_first_error(monkeypatch, tmp_path):
    wrong = {"metrics": LakeFullError("full"), "outcomes": RuntimeError("later")}
    assert taking(monkeypatch, tmp_path, wrong) == (["forecasts", "decisions", "contracts"], wrong["metrics"])


def test_an_ingest_that_another_has_overtaken_is_tried_again_at_once(monkeypatch, tmp_path):
    wrong = {"forecasts": LakeOvertakenError("by another")}
    assert taking(monkeypatch, tmp_path, wrong) == (["metrics"], wrong["forecasts"])


def test_a_person_is_told_to_delete_the_topic_by_the_name_that_the_broker_knows(monkeypatch, tmp_path):
    """Beside another deployment on the same broker the bare name would be that one's topic."""
    commit = {"origin": {**ORIGIN, "end": {"0": 9}, "quarantined": 0}}
    written(tmp_path / "lake" / "metrics", json.dumps({"commitInfo": {"userMetadata": json.dumps(commit)}}))
    monkeypatch.setattr(run.topics, "topic_id", lambda kafka, topic: "t")
    monkeypatch.setattr(run.broker, "topic_offsets", lambda kafka, topic: {0: (0, 3)})
    settings = load(var=tmp_path, kafka={"prefix": "team."})
    with pytest.raises(OffsetsError, match=r"^team\.metrics-0: .* delete the topic team\.metrics alone"):
        run.plan_topic(settings, "metrics", "2014-10-22T04", 0.0)
    assert run.plan_topic(settings, "outcomes", "2014-10-22T04", 0.0)[0].topic == "outcomes"


ORIGIN = {
    "topic": "metrics", "topic_id": "t", "partition": "2014-10-22T03", "start": {"0": 0}, "end": {"0": 1},
    "judged_at": 1.0, "stored": 0,
}  # fmt: skip


def ingesting(monkeypatch, var, stored):
    """An ingest that has stored so much."""
    due, spark = SimpleNamespace(is_due=True, topic="metrics"), SimpleNamespace(stop=lambda: None)
    monkeypatch.setattr(run, "load", lambda: load(var=var))
    monkeypatch.setattr(run, "plan_topic", lambda *_: [due])
    monkeypatch.setattr(run, "ingest_ranges", lambda *_: stored)
    monkeypatch.setattr("pipelines.spark.query_session.query_session", lambda *_, **__: spark)
    monkeypatch.setattr(run, "great_expectations", lambda: None)


def written(table, commit):
    """A table with a commit of this text."""
    log = table / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020d}.json").write_text(commit)
    return table
