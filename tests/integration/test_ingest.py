"""The ingest against a real broker and real Delta tables: nothing lost, nothing twice, a re-run changes nothing."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from kafka import KafkaAdminClient, TopicPartition

from configs.contract import Contract
from configs.settings import load
from models.policy.live.memory import fresh
from models.policy.live.replay import parse_contracts, replay_decision
from pipelines.ingest import run
from pipelines.ingest.columns import KINDS
from pipelines.ingest.offsets import OffsetsError
from pipelines.ingest.run import ingest_ranges, plan_ranges
from pipelines.kafka.broker import BrokerError
from pipelines.kafka.publisher import Publisher
from pipelines.kafka.topics import create_topics
from pipelines.lake import tables as lake
from pipelines.lake.folder import lake_folder
from pipelines.lake.tables import Lake
from pipelines.scale.processor import Scaler
from tests.fakes.records import NOW, bad_records, record
from tests.fakes.topics import delete_topics
from tests.unit.policy.test_processor import metric, row
from tidecast.messages import ContractText, encode

KINDS_OF_BAD = ("cut off", "NaN", "negative scale", "far future", "unknown schema")  # test_gate has all of them
pytestmark = [pytest.mark.spark, pytest.mark.integration]


@pytest.fixture
def settings(empty_topics, tmp_path):
    return load(var=tmp_path, kafka=empty_topics.model_dump())


def publish(settings, topic, values, key=None):
    publisher = Publisher(settings.kafka, linger_ms=5)
    for value in values:
        publisher.send_bytes(topic, key or (b"00ff" if topic == "contracts" else b"word_count"), value)
    publisher.close()


def ingest(spark, settings, partition, now=NOW, topics=tuple(KINDS)):
    return ingest_ranges(spark, settings, [r for r in plan_ranges(settings, partition, now) if r.topic in topics])


def contents(spark, settings):
    store = Lake(spark, lake_folder(settings))
    tables = [t for t in (*KINDS, lake.QUARANTINE) if lake.exists(lake_folder(settings), t)]
    return {t: sorted(map(str, store.read_table(t).collect())) for t in tables}


def test_bad_records_are_quarantined_and_a_rerun_changes_nothing(spark, settings):
    """Of two topics; `test_gate` judges records of each, and the ring has bad ones of all in its quarantine."""
    sent = {}
    for topic in ("metrics", "outcomes"):
        bad = [bad_records(topic)[name][0] for name in KINDS_OF_BAD]
        good = [record(topic), record(topic, time=1_413_950_399.0), record(topic, wall_time=NOW + 299)]
        publish(settings, topic, [good[0], *bad, *good[1:]])
        sent[topic] = (len(good), len(bad), bad)

    counts = ingest(spark, settings, "2014-10-22T04")
    store = Lake(spark, lake_folder(settings))
    kept_back = store.read_table("quarantine").collect()
    for topic, (good, bad, values) in sent.items():
        assert (counts[topic]["read"], counts[topic]["stored"], counts[topic]["quarantined"]) == (good + bad, good, bad)
        assert counts[topic]["offsets"] == {0: [0, good + bad]}
        rows = sorted((r for r in kept_back if r.topic == topic), key=lambda r: r.kafka_offset)
        assert [r.raw for r in rows] == values
        assert all(r.reasons for r in rows)
        hours = [r.event_hour for r in store.read_table(topic).orderBy("kafka_offset").collect()]
        assert hours == ["2014-10-22T04", "2014-10-22T03", "2014-10-22T04"]

    before = contents(spark, settings)
    publish(settings, "metrics", [record("metrics", arrival_rps=1.0)])
    # A day later the record from the near future no longer is one; the re-run must judge as the first run did.
    again = ingest(spark, settings, "2014-10-22T04", now=NOW + 86_400, topics=("metrics",))
    assert contents(spark, settings) == before
    assert all(done["again"] and done["stored"] == counts[t]["stored"] for t, done in again.items())

    read = counts["metrics"]["read"]
    assert ingest(spark, settings, "2014-10-22T05", topics=("metrics",))["metrics"]["offsets"] == {0: [read, read + 1]}
    assert store.read_table("metrics").where("arrival_rps = 1.0").count() == 1


def test_a_crash_between_table_and_quarantine_is_healed_by_the_next_run(spark, settings, monkeypatch):
    bad = [value for value, _ in bad_records("metrics").values()][:3]
    publish(settings, "metrics", [record("metrics"), *bad])
    commit = Lake.commit
    with monkeypatch.context() as patch, pytest.raises(OSError, match="no space"):
        patch.setattr(Lake, "commit", lambda *at: refuse_quarantine(commit, *at))
        ingest(spark, settings, "2014-10-22T04")
    publish(settings, "metrics", [record("metrics", arrival_rps=1.0)])
    ingest(spark, settings, "2014-10-22T05")

    store = Lake(spark, lake_folder(settings))
    rows = store.read_table("quarantine").orderBy("kafka_offset").collect()
    assert [(r.raw, r.ingest_partition) for r in rows] == [(value, "2014-10-22T04") for value in bad]
    assert store.read_table("metrics").count() == 2


@pytest.mark.parametrize(("left", "kept"), [(3, 1), (0, 0)])
def test_a_quarantine_whose_records_are_gone_stops_its_topic_alone_until_it_is_skipped(
    spark, settings, monkeypatch, caplog, left, kept
):
    """Five offsets, of which the last `left` outlive the broker's retention; the last one is of a refused record."""
    bad = [value for value, _ in bad_records("outcomes").values()][:3]
    publish(settings, "outcomes", [*bad[:2], record("outcomes"), record("outcomes"), bad[2]])
    commit = Lake.commit
    with monkeypatch.context() as patch, pytest.raises(OSError, match="no space"):
        patch.setattr(Lake, "commit", lambda *at: refuse_quarantine(commit, *at))
        ingest(spark, settings, "2014-10-22T04")
    delete_before(settings, "outcomes", 5 - left)
    publish(settings, "metrics", [record("metrics")])
    publish(settings, "outcomes", [record("outcomes")])
    with monkeypatch.context() as patch:
        patch.setattr(run, "load", lambda: settings)
        patch.setattr("pipelines.spark.query_session.query_session", lambda *_, **__: SimpleNamespace(stop=list))
        patch.setattr(run, "ingest_ranges", lambda _, *asked: ingest_ranges(spark, *asked))
        patch.setattr(run, "find_drift_events", lambda *_: [])
        counts, _ = run.ingest("2014-10-22T05")
        assert counts["metrics"]["stored"] == 1 and counts["metrics"]["trouble"] == ""
        assert "skip_lost" in counts["outcomes"]["trouble"] and counts["outcomes"]["stored"] == 0
        counts, _ = run.ingest("2014-10-22T06", skip_lost=True)
    assert (counts["outcomes"]["stored"], counts["outcomes"]["trouble"]) == (1, "")
    assert f"{kept} of 3 refused records reached the quarantine, {3 - kept} were deleted by the broker" in caplog.text
    assert plan_ranges(settings, "2014-10-22T07", NOW)  # and the next run needs nobody's leave
    store = Lake(spark, lake_folder(settings))
    assert [r.raw for r in store.read_table("quarantine").collect()] == bad[3 - kept :]
    assert store.read_table("outcomes").count() == 3


def refuse_quarantine(commit, self, table, rows, origin):
    if table == lake.QUARANTINE:
        raise OSError("no space left on device")
    return commit(self, table, rows, origin)


def delete_before(settings, topic, offset):
    """What the broker's retention does."""
    admin = KafkaAdminClient(bootstrap_servers=settings.kafka.bootstrap)
    admin.delete_records({TopicPartition(settings.kafka.topic(topic), 0): offset})
    admin.close()


def test_an_empty_range_leaves_the_name_free_and_a_topic_created_anew_is_told_from_an_unreachable_broker(
    spark, settings
):
    counts = ingest(spark, settings, "2014-10-22T04")["metrics"]
    assert (counts["read"], counts["stored"], counts["offsets"], counts["version"]) == (0, 0, {0: [0, 0]}, None)
    assert not lake_folder(settings).exists()
    publish(settings, "metrics", [record("metrics")])
    assert ingest(spark, settings, "2014-10-22T04")["metrics"]["stored"] == 1
    delete_topics(settings.kafka)
    with pytest.raises(BrokerError, match="metrics"):
        plan_ranges(settings, "2014-10-22T04", NOW)
    create_topics(settings.kafka)
    publish(settings, "metrics", [record("metrics", arrival_rps=1.0)])
    with pytest.raises(OffsetsError, match="another topic of that name"):
        plan_ranges(settings, "2014-10-22T04", NOW)
    ingest(spark, settings, "2014-10-22T05")
    assert Lake(spark, lake_folder(settings)).read_table("metrics").count() == 2


def test_a_decision_replays_from_the_lake_by_the_contract_that_lies_beside_it(spark, settings):
    contract = Contract(job="orders", latency_target_s=7)
    scaler, now = Scaler("orders", contract, "forecast", "act"), NOW - 5
    memory, _, _ = scaler.update_memory(
        fresh(contract), [row("metrics", metric(wall_time=now, arrival_rps=900.0))], now
    )
    _, decision = scaler.decide(memory, now)
    publish(settings, "decisions", [encode(decision)], b"orders")
    text = ContractText("orders", now, now, 1.0, contract.hash, contract.text)
    publish(
        settings, "contracts", [encode(text), encode(text)], contract.hash.encode()
    )  # after a restart it is told again
    ingest(spark, settings, "2025-10-09T08")
    kept = Lake(spark, lake_folder(settings))
    contracts = parse_contracts(found.asDict() for found in kept.read_table("contracts").collect())
    (found,) = (found.asDict() for found in kept.read_table("decisions").collect())
    logged = {**found, "inputs": json.loads(found["inputs"])}
    assert replay_decision(logged, contracts) == (decision.executors, decision.reason, decision.codes)
    with pytest.raises(LookupError, match=contract.hash):
        replay_decision(logged, {})
