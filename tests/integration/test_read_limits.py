"""The read limit of a query that runs, on a real broker and a real engine."""

import json
import time
from types import SimpleNamespace

import pytest

from pipelines.kafka.publisher import Publisher
from tests.fakes import driver
from tests.fakes.waiting import wait_until
from tidecast.replay.held_back import HeldBack
from tidecast.spark.admission import Admission, AdmissionError

pytestmark = pytest.mark.integration

RECORDS, PARTITIONS = 4_000, 4


@pytest.fixture
def topic(empty_topics):
    publisher = Publisher(empty_topics)
    for n in range(RECORDS):
        publisher.send_bytes("events", None, str(n).encode(), partition=n % PARTITIONS)
    publisher.close()
    return empty_topics


def _counting(spark, kafka, folder, name, limit="40"):
    """A query over the topic that counts its records in memory, 100 ms from batch to batch."""
    source = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", kafka.bootstrap)
        .option("subscribe", kafka.topic("events"))
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", limit)
        .load()
    )
    return (
        source.selectExpr("CAST(value AS STRING) AS seq").writeStream.queryName(name).format("memory")
        .option("checkpointLocation", str(folder)).trigger(processingTime="100 milliseconds").start()
    )  # fmt: skip


def _newest(query):
    progress = query.lastProgress
    return (progress["batchId"], progress["numInputRows"]) if progress else (-1, 0)


def _rows_from(query, batch):
    return [p["numInputRows"] for p in query.recentProgress if p["batchId"] > batch and p["numInputRows"]]


def _counted(spark):
    """What it has counted: records, and different ones."""
    return spark.sql("SELECT count(*) AS n, count(DISTINCT seq) AS different FROM admitted").first()


def test_a_limit_and_then_a_decided_rate_take_effect_while_the_query_runs_and_none_of_its_records_is_lost(
    spark, topic, tmp_path
):
    query = _counting(spark, topic, tmp_path / "checkpoint", "admitted")
    try:
        wait_until(lambda: _newest(query)[0] >= 2, "two batches")
        admission = Admission(query)
        assert len(admission.sources()) == 1 and "KafkaV2" in admission.sources()[0]
        assert list(admission.limits().values()) == [40] and admission.check()

        admission.admit(200)
        begun = _newest(query)[0] + 1  # the batch in flight was planned before
        wait_until(lambda: len(_rows_from(query, begun)) >= 2, "batches of the new limit")
        assert set(_rows_from(query, begun)) == {200}

        admission.admit(0)
        wait_until(lambda: not query.status["isDataAvailable"] and not query.status["isTriggerActive"], "a pause")
        paused_at, counted = _newest(query)[0], _counted(spark)["n"]
        time.sleep(0.5)  # five triggers
        assert query.isActive and not _rows_from(query, paused_at)
        assert _counted(spark)["n"] == counted < RECORDS

        admission.release()
        assert list(admission.limits().values()) == [40]
        wait_until(lambda: _newest(query)[1] == 40, "its own limit again")
        _hold_back(query)
        admission.admit(5_000)
        query.processAllAvailable()
        assert _counted(spark).asDict() == {"n": RECORDS, "different": RECORDS}
    finally:
        query.stop()
    (end,) = json.loads([p["sources"][0]["endOffset"] for p in query.recentProgress][-1]).values()
    assert sum(end.values()) == RECORDS


def _hold_back(query):
    """To a decided rate, and no longer."""
    job = driver.job()
    job.mode, job.period_s, job.heard_at = "act", 0.1, time.monotonic() + 3_600
    job.ends = {("events", part): RECORDS for part in range(PARTITIONS)}
    held = HeldBack(job, query)
    for rps, rows in ((80.0, 8), (None, 40)):
        job.admission_rps = rps
        held.poll()
        begun = _newest(query)[0] + 1
        wait_until(lambda begun=begun: len(_rows_from(query, begun)) >= 2, "batches of the rate, or of its own limit")
        assert set(_rows_from(query, begun)) == {rows}


def test_what_does_not_run_here_or_takes_no_limit_is_refused_by_name(spark, tmp_path):
    with pytest.raises(AdmissionError, match="SimpleNamespace is no streaming query of this driver"):
        Admission(SimpleNamespace())
    rate = spark.readStream.format("rate").option("rowsPerSecond", 5).load()
    query = rate.writeStream.format("memory").queryName("unlimited").start()
    try:
        wait_until(lambda: query.lastProgress is not None, "its first batch")
        with pytest.raises(ValueError, match="rows=-1"):
            Admission(query).admit(-1)
        for asked in (lambda: Admission(query).admit(10), lambda: Admission(query).check()):
            with pytest.raises(AdmissionError, match="takes no limit"):
                asked()
    finally:
        query.stop()


def test_an_execution_that_keeps_no_such_limits_is_refused_with_the_version(spark):
    rate = spark.readStream.format("rate").load()
    query = rate.writeStream.format("console").trigger(continuous="10 seconds").start()
    try:
        with pytest.raises(AdmissionError, match=r"ContinuousExecution of Spark 4.* is no micro-batch execution"):
            Admission(query)
    finally:
        query.stop()
    other = SimpleNamespace(_jsq=SimpleNamespace(streamingQuery=spark._jvm.java.lang.Object))
    with pytest.raises(AdmissionError, match=r"java.lang.Object of Spark .* uniqueSources"):
        Admission(other)
