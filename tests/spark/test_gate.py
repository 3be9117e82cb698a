"""The gate in front of the lake: every kind of bad record, on every topic, is kept back with its reason."""

from __future__ import annotations

import json

import pytest

from configs.settings import load
from pipelines.bench.borders.corpus import make_corpus
from pipelines.ingest import refuse_troubles, run
from pipelines.ingest.columns import KINDS, PLACE, QUARANTINED, spark_columns
from pipelines.ingest.offsets import OffsetsError, Range, Topic, plan_range
from pipelines.ingest.parse import parse_records, quality_rules, select_quarantined, select_stored
from pipelines.lake import tables as lake
from pipelines.lake.folder import lake_folder
from tests.fakes.lake_rows import lake_rows
from tests.fakes.records import GOOD, NOW, bad_records, record
from tests.fakes.topic_readers import READERS, ingested_verdicts

pytestmark = pytest.mark.spark
KEYS = {"contracts": GOOD["contracts"]["hash"].encode()}
IDENTITY = ("kafka_partition", "kafka_offset")
COLUMNS = "key binary, value binary, partition int, offset bigint, timestamp timestamp, timestampType int"


def judged(spark, topic, values):
    from pipelines.ingest.quality import apply_rules

    rows = [(KEYS.get(topic, b"word_count"), value, 0, offset, None, 0) for offset, value in enumerate(values)]
    frame = spark.createDataFrame(rows, COLUMNS)
    kind = KINDS[topic]
    return apply_rules(parse_records(frame, kind, NOW).localCheckpoint(), quality_rules(NOW), IDENTITY)


def test_every_bad_record_is_kept_back_with_its_reason_and_nothing_is_lost(spark):
    """Of one topic; `test_refused_records` has the reasons of all, and the whole corpus is below."""
    bad = bad_records(topic := "forecasts")
    good = [record(topic), record(topic, wall_time=NOW + 299), record(topic, time=1_413_950_400, colour="blue")]
    values = [value for value, _ in bad.values()] + good
    verdict = judged(spark, topic, values)

    assert (verdict.read, verdict.kept, verdict.refused) == (len(values), len(good), len(bad))
    kept = {row.kafka_offset for row in verdict.good.select("kafka_offset").collect()}
    assert kept == set(range(len(bad), len(values)))
    rows = {row.kafka_offset: row for row in select_quarantined(verdict.bad, topic, "2014-10-22T04").collect()}
    for offset, (name, (value, word)) in enumerate(bad.items()):
        assert any(word in reason for reason in rows[offset].reasons), (name, rows[offset].reasons)
        assert rows[offset].raw == value, name
        assert (rows[offset].topic, rows[offset].kafka_partition) == (topic, 0)


def test_good_rows_carry_their_own_hour_and_every_field(spark):
    values = [record("metrics"), record("metrics", time=1_413_950_399.0), record("metrics", without="span_s")]
    verdict = judged(spark, "metrics", values)
    stored = select_stored(verdict.good, KINDS["metrics"], "2014-10-22T04")
    rows = stored.orderBy("kafka_offset").collect()

    assert [row.event_hour for row in rows] == ["2014-10-22T04", "2014-10-22T03", "2014-10-22T04"]
    assert {row.ingest_partition for row in rows} == {"2014-10-22T04"}
    assert (rows[0].arrival_rps, rows[0].lag_records, rows[0].latency_p95_s) == (212.5, 300, None)
    assert rows[2].span_s == 1.0  # the message class's default
    assert stored.columns == [*spark_columns(KINDS["metrics"]), *PLACE]  # as docs/tables.md lists them
    assert select_quarantined(verdict.bad, "metrics", "2014-10-22T04").columns == [*QUARANTINED]


def test_what_is_too_long_for_sparks_reader_is_refused_and_leaves_no_row_without_its_fields(spark):
    long = [{"rate": 10**1001}, {"r" * 50_001: 1.0}, {"rate": 10**999}]
    values = [record("decisions", inputs=inputs) for inputs in long]
    verdict = judged(spark, "decisions", [*values, record("decisions")])
    bad = verdict.bad.orderBy("kafka_offset").collect()
    assert [(row.kafka_offset, row.raw) for row in bad] == [*enumerate(values[:2])]
    assert all("too long for the lake" in reason for row in bad for reason in row.reasons)
    good = verdict.good.orderBy("kafka_offset").collect()
    assert [json.loads(row.inputs)["rate"] for row in good] == [10**999, 212.5]
    assert json.loads(good[1].inputs) == {"rate": 212.5, "nested": {"kind": 5}}, "an object is stored as JSON text"
    assert good[1].codes == ["forecast", "up"]


def test_a_warning_reports_and_keeps_nothing_back_nor_brings_a_row_here(spark, monkeypatch):
    from pipelines.ingest import quality

    results, validate = [], quality._validate
    monkeypatch.setattr(quality, "_validate", lambda *asked: results.append(found := validate(*asked)) or found)
    old = [record("metrics", wall_time=NOW - 40 * 86_400 - at) for at in range(30)]
    verdict = judged(spark, "metrics", [*old, record("metrics"), b"{"])
    assert (verdict.kept, verdict.refused, verdict.warnings) == (31, 1, {"wall_time": 30})
    counted, named = results
    assert [len(one.result["unexpected_index_list"]) for one in named] == [1], "the refused row, and no other"
    assert [one.result["unexpected_count"] for one in counted] == [1, 30]
    assert all(not one.result["partial_unexpected_list"] for one in counted)


def test_a_rule_that_cannot_run_stops_the_gate(spark):
    from pipelines.ingest.quality import QualityError, QualityRule, apply_rules

    with pytest.raises(QualityError, match="colour"):
        apply_rules(spark.range(3), [QualityRule("colour")], ("id",))


def test_a_gate_that_fails_for_a_topic_keeps_no_other_from_being_taken_and_is_said(spark, tmp_path, monkeypatch):
    """The failing one has two records under one offset, of which the gate cannot tell which it refuses."""
    bad, good = [(b"word_count", value, 0, 0) for value in (b"{", b"{")], [(b"word_count", record("outcomes"), 0, 0)]
    frames = {
        topic: spark.createDataFrame([(*row, None, 0) for row in rows], COLUMNS)
        for topic, rows in {"forecasts": bad, "outcomes": good}.items()
    }
    monkeypatch.setattr(run, "_records", lambda spark, settings, r: frames[r.topic])
    hour = "2014-10-22T04"
    begun = lake.Origin("forecasts", "id", hour, {0: 0}, {0: 1}, NOW, 0, 1, {})
    first = Range("forecasts", "id", hour, {0: 0}, {0: 1}, NOW, None, unfinished=begun)
    ranges = [first, *(Range(topic, "id", "2014-10-22T05", {0: 0}, {0: 1}, NOW, behind=-1) for topic in frames)]
    counts = run.ingest_ranges(spark, load(var=tmp_path), ranges)
    assert (counts["outcomes"]["stored"], counts["outcomes"]["trouble"], counts["forecasts"]["stored"]) == (1, "", 0)
    with pytest.raises(OffsetsError, match=r"^forecasts: .*rows were lost"):
        refuse_troubles(counts)
    assert not lake.exists(lake_folder(load(var=tmp_path)), "forecasts"), "nor what came behind the refused rows"


def test_a_rerun_for_which_a_topic_that_keeps_the_newest_of_each_key_has_fewer_records_left_changes_nothing(
    spark, tmp_path, monkeypatch, caplog
):
    key, value = b"00ff", record("contracts")
    rows = [(key, value, 0, offset, None, 0) for offset in range(3)] + [(key, b"{", 0, 3, None, 0)]
    settings = load(var=tmp_path)
    root, topic = lake_folder(settings), Topic("contracts", "contracts", "id", {0: (0, 9)})

    def taken(left):
        monkeypatch.setattr(run, "_records", lambda *_: spark.createDataFrame(left, COLUMNS))
        planned = plan_range(topic, "2014-10-22T04", lake.commit_origins(root, "contracts"), NOW)
        return run.ingest_ranges(spark, settings, [planned])["contracts"]

    def held():
        return [(r["kafka_offset"], r["wall_time"]) for r in lake_rows(root, "contracts")]

    first, before = taken(rows), held()
    assert (first["stored"], first["quarantined"]) == (3, 1)
    again = taken(rows[2:])  # as many as are left of four; `test_ingest` has a re-run for which all are there
    assert (again["read"], again["stored"], again["quarantined"], again["trouble"]) == (2, 3, 1, "")
    assert again["again"] and held() == before and len(lake_rows(root, lake.QUARANTINE)) == 1
    assert "contracts 2014-10-22T04: the topic has 2 of its 4 records left" in caplog.text


def test_a_cached_frame_whose_nan_spark_overlooks_is_found_out(spark):
    """Spark's column statistics of cached frames leave out NaN; the gate must not commit what it cannot name."""
    from pipelines.ingest.quality import QualityError, QualityRule, apply_rules

    rows = spark.range(4).selectExpr("id", "IF(id = 2, double('NaN'), double(id)) AS rate").coalesce(1).cache()
    rows.count()
    with pytest.raises(QualityError, match="1 rows break it, but 0 are named"):
        apply_rules(rows, [QualityRule("rate", (0, 1e6))], ("id",))
    verdict = apply_rules(rows.localCheckpoint(), [QualityRule("rate", (0, 1e6))], ("id",))
    assert [row.reasons for row in verdict.bad.collect()] == [["rate=nan: at least 0 and at most 1000000 is expected"]]


def test_the_lake_takes_of_the_whole_corpus_what_live_readers_take(spark):
    """As `decode` takes it; `test_borders` compares the live readers with that."""
    entries, (_, read) = make_corpus(NOW), READERS["decode"]
    verdicts = ingested_verdicts(spark, entries, NOW)
    assert {entries[place].topic for place in verdicts} == set(KINDS) and {*verdicts.values()} == {True, False}
    assert [entries[place] for place, taken in verdicts.items() if taken is not read(entries[place], NOW)] == []
