"""The ingest against a real broker and real Delta tables: nothing lost, nothing twice, a re-run changes nothing."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from kafka import KafkaAdminClient, TopicPartition

from configs.contract import Contract
from configs.settings import load
from models.policy.live.memory import fresh
from models.policy.live.recomputed import recompute_decision
from pipelines.ingest import run
from pipelines.ingest.columns import KINDS
from pipelines.ingest.offsets import OffsetsError
from pipelines.ingest.run import ingest_ranges, plan_topic
from pipelines.kafka.connection import BrokerError
from pipelines.kafka.publisher import Publisher
from pipelines.kafka.topics import create_topics
from pipelines.lake import tables as lake
from pipelines.lake.commit import commit_rows
from pipelines.lake.errors import LakeOvertakenError
from pipelines.lake.folder import lake_folder
from pipelines.scale.processor import Scaler
from tests.fakes.lake_rows import lake_rows
from tests.fakes.records import NOW, bad_records, record
from tests.fakes.topics import delete_topics
from tests.unit.policy.test_processor import metric, row
from tidecast.messages import encode

KINDS_OF_BAD = ("cut off", "NaN", "negative scale", "unknown schema", "far future")  # test_gate has all of them
JOB = "word_count"
pytestmark = [pytest.mark.spark, pytest.mark.integration]


@pytest.fixture
def settings(empty_topics, tmp_path):
    return load(var=tmp_path, kafka=empty_topics.model_dump())


def publish(settings, topic, values):
    publisher = Publisher(settings.kafka, linger_ms=5)
    for value in values:
        publisher.send_bytes(topic, JOB.encode(), value)
    publisher.close()


def ingest(spark, settings, partition, *topics, now=NOW):
    return ingest_ranges(spark, settings, plan(settings, partition, *topics, now=now))


def plan(settings, partition, *topics, now=NOW, skip_lost=False):
    return [r for topic in topics for r in plan_topic(settings, topic, partition, now, skip_lost)]


def contents(settings):
    root = lake_folder(settings)
    tables = [t for t in (*KINDS, lake.QUARANTINE) if lake.exists(root, t)]
    return {t: sorted(lake_rows(root, t), key=lambda r: (r["kafka_offset"], str(r))) for t in tables}


def test_bad_records_are_quarantined_a_rerun_changes_nothing_and_a_topic_created_anew_is_told(spark, settings):
    """Bad ones of one topic; `test_gate` judges records of others, and the ring has bad ones of all in quarantine."""
    counts = ingest(spark, settings, "2014-10-22T04", "metrics")["metrics"]  # of nothing: its name stays free
    assert (counts["read"], counts["stored"], counts["offsets"], counts["version"]) == (0, 0, {0: [0, 0]}, None)
    assert not lake_folder(settings).exists()

    contract, decision = decided()
    good = {
        "metrics": [record("metrics"), record("metrics", time=1_413_950_399.0), record("metrics", wall_time=NOW + 299)],
        "decisions": [encode(decision)],
    }
    bad = {"metrics": [bad_records("metrics")[name][0] for name in KINDS_OF_BAD], "decisions": []}
    for topic, (first, *others) in good.items():  # the newest is of the future, and of the one job that there is
        publish(settings, topic, [first, *bad[topic][:-1], *others, *bad[topic][-1:]])

    counts = ingest(spark, settings, "2014-10-22T04", *good)
    before = contents(settings)
    for topic in good:
        read, stored = len(good[topic] + bad[topic]), len(good[topic])
        assert (counts[topic]["read"], counts[topic]["stored"]) == (read, stored)
        assert counts[topic]["offsets"] == {0: [0, read]}
        rows = [r for r in before["quarantine"] if r["topic"] == topic]
        assert [r["raw"] for r in rows] == bad[topic] and counts[topic]["quarantined"] == len(rows)
    assert all(r["reasons"] for r in before["quarantine"])
    assert [r["event_hour"] for r in before["metrics"]] == ["2014-10-22T04", "2014-10-22T03", "2014-10-22T04"]

    (found,) = before["decisions"]
    logged = {**found, "inputs": json.loads(found["inputs"])}
    contracts = {contract.hash: contract}  # as the lake has them test_same_figures reads
    assert recompute_decision(logged, contracts) == (decision.executors, decision.reason, decision.codes)
    with pytest.raises(LookupError, match=contract.hash):
        recompute_decision(logged, {})

    publish(settings, "metrics", [record("metrics", arrival_rps=1.0)])
    # A day later the record from the near future no longer is one; the re-run must judge as the first run did.
    again = ingest(spark, settings, "2014-10-22T04", "metrics", now=NOW + 86_400)["metrics"]
    assert contents(settings) == before
    assert again["again"] and again["stored"] == counts["metrics"]["stored"]
    assert again["version"] > counts["metrics"]["version"], "all records are there, and written again"
    (following,) = plan(settings, "2014-10-22T05", "metrics")
    read = counts["metrics"]["read"]
    assert (following.start, following.end) == ({0: read}, {0: read + 1})

    publish(settings, "metrics", [record("metrics", arrival_rps=2.0)])
    (meanwhile,) = plan(settings, "2014-10-22T05", "metrics")  # of a first try that was taken for dead
    assert ingest_ranges(spark, settings, [following])["metrics"]["stored"] == 1
    with pytest.raises(LakeOvertakenError):
        ingest_ranges(spark, settings, [meanwhile])
    *unchanged, new = contents(settings)["metrics"]
    assert (unchanged, new["arrival_rps"]) == (before["metrics"], 1.0)

    delete_topics(settings.kafka)
    with pytest.raises(BrokerError, match="metrics"):  # not what is said of a broker that does not answer
        plan(settings, "2014-10-22T04", "metrics")
    create_topics(settings.kafka)
    publish(settings, "metrics", [record("metrics", arrival_rps=1.0)])
    with pytest.raises(OffsetsError, match="another topic of that name"):
        plan(settings, "2014-10-22T04", "metrics")
    (anew,) = plan(settings, "2014-10-22T06", "metrics")
    assert (anew.start, anew.end) == ({0: 0}, {0: 1})


def decided():
    """A contract, and a decision that was made by it."""
    contract, now = Contract(job=JOB, latency_target_s=7), NOW - 5
    scaler = Scaler(JOB, contract, "forecast", "act")
    seen = row("metrics", metric(job=JOB, wall_time=now, arrival_rps=900.0))
    memory, _, _ = scaler.update_memory(fresh(contract), [seen], now)
    return contract, scaler.decide(memory, now)[1]


def test_what_a_crash_kept_from_the_quarantine_is_healed_or_stops_its_topic_alone_until_it_is_skipped(
    spark, settings, monkeypatch, caplog
):
    """Records of one topic outlive the broker's retention, none of the other; `test_offsets` has what is between."""
    left = {"metrics": 5, "decisions": 0}
    bad = {topic: [value for value, _ in bad_records(topic).values()][:3] for topic in left}
    for topic, many in left.items():
        publish(settings, topic, [*bad[topic][:2], record(topic), record(topic), bad[topic][2]])
        with monkeypatch.context() as patch, pytest.raises(OSError, match="no space"):
            patch.setattr(run, "commit_rows", refuse_quarantine)
            ingest(spark, settings, "2014-10-22T04", topic)
        delete_before(settings, topic, 5 - many)
        publish(settings, topic, [record(topic)])
    with monkeypatch.context() as patch:
        patch.setattr(run, "load", lambda: settings)
        patch.setattr("pipelines.spark.query_session.query_session", lambda *_, **__: SimpleNamespace(stop=list))
        patch.setattr(run, "ingest_ranges", lambda _, *asked: ingest_ranges(spark, *asked))
        patch.setattr(run, "find_drift_events", lambda *_: ([], {}))
        counts, _ = run.ingest("2014-10-22T05")
        assert counts["metrics"]["stored"] == 1 and counts["metrics"]["trouble"] == ""
        assert "skip_lost" in counts["decisions"]["trouble"] and counts["decisions"]["stored"] == 0
        counts, _ = run.ingest("2014-10-22T06", skip_lost=True)
    assert (counts["decisions"]["stored"], counts["decisions"]["trouble"]) == (1, "")
    assert "0 of 3 refused records reached the quarantine, 3 were deleted by the broker" in caplog.text
    assert plan(settings, "2014-10-22T07", *left)  # and the next run needs nobody's leave
    stored = contents(settings)
    healed = [("metrics", "2014-10-22T04", value) for value in bad["metrics"]]
    assert [(r["topic"], r["ingest_partition"], r["raw"]) for r in stored["quarantine"]] == healed
    assert [len(stored[topic]) for topic in left] == [3, 3]


def refuse_quarantine(root, table, *told):
    if table == lake.QUARANTINE:
        raise OSError("no space left on device")
    return commit_rows(root, table, *told)


def delete_before(settings, topic, offset):
    """What the broker's retention does."""
    admin = KafkaAdminClient(bootstrap_servers=settings.kafka.bootstrap)
    admin.delete_records({TopicPartition(settings.kafka.topic(topic), 0): offset})
    admin.close()
