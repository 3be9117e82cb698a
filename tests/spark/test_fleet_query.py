"""The same samples through the serving loop's core and through the streaming query: the same forecasts."""

import json
import os
import time

import pytest

from configs.settings import load
from models.forecast.baselines.naive import Naive
from pipelines.serve.fast.core import Core, IncomingSample
from pipelines.serve.fast.swapping import swap_model
from pipelines.serve.models.model_set import pack_model
from pipelines.serve.models.ready import prepare_model
from pipelines.serve.stream.fleet_query import add_serving_step
from pipelines.serve.stream.fleet_step import write_model_file
from pipelines.store import Store
from tests.fakes.forecasters import STEP, TASK, network
from tests.fakes.serving import JOBS, NOW, Wire, log_of
from tidecast.messages import Forecast, MetricSample, decode

pytestmark = pytest.mark.spark
PARTITIONS = "spark.sql.shuffle.partitions"
SWAPS = {
    70: ("orders", "1", network),
    80: ("rides", "1", lambda: Naive(TASK)),
    110: ("orders", "2", lambda: Naive(TASK)),
}


def by_core(folder, log, sets):
    """Run the log through a core; what it sent after every job had a model."""
    wire = Wire()
    with Store.open(folder) as store:
        core = Core(store, STEP, JOBS, epoch=7, follows_log=True)
        for i, record in enumerate(log):
            if i in SWAPS:
                job, version, forecaster = SWAPS[i]
                made = pack_model(forecaster())
                generation = swap_model(core, prepare_model(core.windows, job, f"{job}-forecaster", version, made))
                write_model_file(sets, job, generation, dict(made.members))
            core.process([IncomingSample(record, ("metrics", 0, i), str(i).encode())], time.time())  # as the query's
            core.outbox.send(wire)
    return wire.sent


def by_query(spark, folder, log, sets, partitions):
    """The same log as two files, one micro-batch each: the state is carried over. What it said, and where each is."""
    for n, begin in enumerate(range(0, len(log), 100)):
        rows = []
        for i, record in enumerate(log[begin : begin + 100], begin):
            try:
                key = decode(MetricSample, record, NOW).job
            except ValueError:
                key = JOBS[0]  # a producer keys by job whatever it sends
            rows.append(json.dumps({"key": key, "value": record.decode(), "partition": 0, "offset": i}))
        (folder / "in").mkdir(parents=True, exist_ok=True)
        file = folder / "in" / f"{n:04}.json"
        file.write_text("\n".join(rows))
        os.utime(file, (n, n))  # Spark reads them by age
    from pyspark.sql import functions as F

    source = (
        spark.readStream.schema("key string, value string, partition int, offset bigint")
        .option("maxFilesPerTrigger", 1)
        .json(str(folder / "in"))
        .withColumn("value", F.col("value").cast("binary"))
    )
    out, before = [], spark.conf.get(PARTITIONS)
    settings = load(training={"step_s": STEP})
    spark.conf.set(PARTITIONS, partitions)
    try:
        query = (
            add_serving_step(source, settings, sets, JOBS, 7)
            .writeStream.foreachBatch(lambda frame, _: out.extend(map(tuple, frame.collect())))
            .option("checkpointLocation", str(folder / "checkpoint"))
            .outputMode("update")
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(600), "the query goes on"
    finally:
        spark.conf.set(PARTITIONS, before)
    states = spark.read.format("statestore").option("stateVarName", "kept").load(str(folder / "checkpoint"))
    return out, {row["key"]["key"]: row["partition_id"] for row in states.collect()}


def test_the_query_says_what_the_core_says_on_one_partition_and_on_several(spark, tmp_path):
    log, sets, refused = log_of(5), tmp_path / "sets", set()
    sent = by_core(tmp_path / "store", log, sets)
    for partitions in (1, 4):  # on three both would be on one
        said, placed = by_query(spark, tmp_path / f"on_{partitions}", log, sets, partitions)
        assert b"stranger" in b"".join(log) and set(placed) == {*JOBS}
        assert len(set(placed.values())) == min(partitions, len(JOBS))
        for job in JOBS:
            core = [decode(Forecast, value) for topic, key, _, value in sent if (topic, key) == ("forecasts", job)]
            query = [decode(Forecast, value) for topic, key, value in said if (topic, key) == ("forecasts", job)]
            assert len(core) > 8 and query == core
        refused |= {reason(value) for topic, _, value in said if topic == "rejects"}  # once a minute and process
    assert refused == {reason(v) for topic, _, _, v in sent if topic == "rejects" and b"is closed with" not in v}


def reason(reject):
    """Why a record was refused, without what helps."""
    return json.loads(reject)["reason"].partition(". ")[0]
