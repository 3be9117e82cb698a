"""What a cut costs: what the tasks take of a record that one query writes to a topic and another one reads."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import TYPE_CHECKING, Any

from configs.sections import Kafka
from configs.settings import Settings
from pipelines.kafka.committed import read_committed
from pipelines.kafka.spark import spark_options
from pipelines.kafka.topics import create_topic
from pipelines.placement.frames import decoded, encoded
from pipelines.placement.topic_sink import BlockSink, once
from pipelines.spark.session import local_session
from pipelines.stack.isolation import isolated_settings
from pipelines.stack.stack import Stack

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FEW, MANY, TURNS = 20_000, 120_000, 5
"""Records of a batch, whose difference tells what one takes, and how often each batch is run."""
COLUMNS = (
    "id AS seq", "CAST(id % 997 AS STRING) AS key", "concat('campaign-', id % 100) AS campaign",
    "timestamp_micros(1767225600000000 + id * 1000) AS at", "id % 1000 / 10.0D AS price",
)  # fmt: skip
"""Of a record, as Spark SQL over its number."""
WRITTEN = "written"


def measure_hop(settings: Settings) -> dict[str, Any]:
    """Measure how long tasks take to read records from a topic, and to write them, on one core and a broker beside it.

    Args:
        settings: without the address of a broker.

    Returns:
        `read_ms`: of a record by the tasks of the query that reads it, from the topic to its columns; `write_ms`, of
        the one that writes it, from its columns to what the broker has committed; `bytes` of a record; `n` runs, of
        which these are medians.

    Raises:
        SettingsError: the address of a service is set.
        StackError, ProcessError, PortError, JavaError: the broker or Spark does not start.
        BrokerError: the broker does not answer.
    """
    own = isolated_settings(settings, "bench")
    with Stack(own.model_copy(update={"var": own.var_dir / "hop"}), {"broker"}) as stack:
        kafka, spark = stack.settings.kafka, local_session("tidecast hop", cores=1)
        try:
            for records in (FEW, MANY):
                _fill(spark, kafka, records)
            create_topic(kafka, WRITTEN)
            sink = BlockSink("hop", 1, WRITTEN, kafka.event_partitions)
            sink.claim(kafka)
            send = once(kafka.without_signing_keys(), sink)
            read = [_record_ms(spark, kafka, _look_at) for _ in range(TURNS + 1)][1:]  # the first one compiles
            batches = iter(range(1_000))
            both = [
                _record_ms(spark, kafka, lambda frame: send(encoded(frame, WRITTEN), next(batches)))
                for _ in range(TURNS + 1)
            ][1:]
        finally:
            spark.stop()
        sizes = [len(one.key or b"") + len(one.value or b"") for one in read_committed(kafka, _topic(FEW), 100)]
    read_ms = median(read)
    return {
        "read_ms": read_ms, "write_ms": median(both) - read_ms, "bytes": sum(sizes) / len(sizes), "n": TURNS,
    }  # fmt: skip


def _look_at(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _topic(records: int) -> str:
    return f"hop-{records}"


def _made(spark: SparkSession, records: int) -> DataFrame:
    return spark.range(records).selectExpr(*COLUMNS)


def _fill(spark: SparkSession, kafka: Kafka, records: int) -> None:
    create_topic(kafka, _topic(records))
    made = encoded(_made(spark, records), kafka.topic(_topic(records)))
    made.write.format("kafka").options(**spark_options(kafka)).save()


def _record_ms(spark: SparkSession, kafka: Kafka, run: Callable[[DataFrame], None]) -> float:
    """What a record takes in all tasks of a run, ms: by how much longer they take for many records than for few."""
    took = {}
    for records in (FEW, MANY):
        options = {**spark_options(kafka), "subscribe": kafka.topic(_topic(records)), "startingOffsets": "earliest"}
        frame = decoded(spark.read.format("kafka").options(**options).load(), _made(spark, 1).schema)
        before = _run_ms(spark)
        run(frame)
        took[records] = _run_ms(spark) - before
    return (took[MANY] - took[FEW]) / (MANY - FEW)


def _run_ms(spark: SparkSession) -> float:
    """Milliseconds of all tasks that this application has run."""
    context, jvm = spark.sparkContext, spark.sparkContext._jvm
    assert jvm is not None
    context._jsc.sc().listenerBus().waitUntilEmpty()  # the store hears of what has ended a little later
    no_quantiles = context._gateway.new_array(jvm.double, 0)  # type: ignore[union-attr]
    some: Any = jvm.java.util.ArrayList
    stages = context._jsc.sc().statusStore().stageList(some(), False, False, no_quantiles, some())
    return float(sum(stages.apply(number).executorRunTime() for number in range(stages.size())))
