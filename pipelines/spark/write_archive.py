"""`python -m pipelines.spark.write_archive`: one JVM does a little of all that ours do, and archives its classes.

Once per Java, PySpark and class path; a minute. Without it everything works; a JVM starts 4 to 8 s of CPU later.
"""

from __future__ import annotations

import sys
import tempfile
import time
import zipfile
from contextlib import suppress
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.spark import class_archive
from pipelines.spark.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BATCHES, _BATCHES_S, _DUMP_S = 2, 60.0, 180.0
# What a task in this process has no use for, though executors, their drivers and Kafka's readers start with it.
_ELSEWHERE = ("org.apache.spark.executor.CoarseGrainedExecutorBackend", "org.apache.kafka.common.protocol.Errors")
_PACKAGES = (
    "org/apache/kafka/clients/admin", "org/apache/kafka/clients/admin/internals",
    "org/apache/kafka/clients/consumer/internals", "org/apache/kafka/common/errors", "org/apache/kafka/common/record",
    "org/apache/kafka/common/utils", "org/apache/spark/sql/kafka010", "org/apache/spark/sql/kafka010/consumer",
    "org/apache/commons/pool2", "org/apache/commons/pool2/impl", "org/apache/spark/deploy/client",
    "org/apache/spark/executor", "org/apache/spark/network/client", "org/apache/spark/network/protocol",
    "org/apache/spark/network/server", "org/apache/spark/network/shuffle", "org/apache/spark/network/shuffle/protocol",
    "org/apache/spark/rpc/netty", "org/apache/spark/scheduler", "org/apache/spark/scheduler/cluster",
    "org/apache/spark/storage",
)  # fmt: skip


def write_archive() -> Path:
    """Write the class archive (AppCDS) that later JVMs of Spark on this computer map; returns its path.

    Starts a JVM and ends it. Replaces an archive only by a complete one, and then removes those of other versions.

    Raises:
        JavaError, JarsError: Spark cannot start.
        TimeoutExpired: the JVM did not end within 180 s; it is killed.
        OSError: the folder cannot be written, or the JVM left no archive.
        Exception: as pyspark raises it.
    """
    archive = class_archive.archive_path()
    archive.parent.mkdir(parents=True, exist_ok=True)
    fresh = archive.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        spark = local_session("class archive", delta=True, archive_to=fresh)
        spark.sparkContext.setLogLevel("OFF")  # its complaints about clients that reach nobody concern nobody
        gateway: Any = spark.sparkContext._gateway
        _use_tables(spark, f"{folder}/table")
        _use_a_stream(spark, f"{folder}/checkpoint")
        _use_kafka(gateway.jvm)
        _load_the_rest(gateway.jvm)
        spark.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()
        try:
            status = gateway.proc.wait(_DUMP_S)
        finally:
            gateway.proc.kill()
    if status:  # it could not write all; a file that is cut short would crash whoever maps it
        fresh.unlink(missing_ok=True)
        raise OSError(f"Java ended with {status} while it wrote {fresh}. Is the disk full?")
    class_archive.replace_archive(archive, fresh)
    return archive


def _use_tables(spark: SparkSession, table: str) -> None:
    import pandas as pd

    rows = spark.createDataFrame(pd.DataFrame({"key": ["a", "b"], "value": [1.0, 2.0]}))
    for _ in range(2):  # a table that is made, and one that is there
        rows.write.format("delta").mode("append").save(table)
    spark.read.format("delta").load(table).groupBy("key").sum("value").toPandas()


def _use_a_stream(spark: SparkSession, checkpoint: str) -> None:
    """Some micro-batches with state, and a Python function that gets each."""

    def collect(batch: Any, _number: int) -> None:
        batch.mapInPandas(lambda frames: frames, batch.schema).collect()

    rows = spark.readStream.format("rate").load().withWatermark("timestamp", "1 second").groupBy("value").count()
    query = rows.writeStream.outputMode("update").option("checkpointLocation", checkpoint).foreachBatch(collect).start()
    deadline = time.monotonic() + _BATCHES_S
    while query.isActive and time.monotonic() < deadline and len(query.recentProgress) < _BATCHES:
        time.sleep(0.2)
    query.stop()


def _use_kafka(jvm: Any) -> None:
    """Clients that reach nobody: their classes are what is wanted."""
    options = jvm.java.util.Properties()
    options.put("bootstrap.servers", "127.0.0.1:9")
    for side in ("key", "value"):
        options.put(f"{side}.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer")
        options.put(f"{side}.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer")
    jvm.org.apache.kafka.clients.consumer.KafkaConsumer(options).close()
    jvm.org.apache.kafka.clients.producer.KafkaProducer(options).close()
    jvm.org.apache.kafka.clients.admin.AdminClient.create(options).close(jvm.java.time.Duration.ZERO)


def _load_the_rest(jvm: Any) -> None:
    """Whole packages, as their jars list them; what is optional and not there is passed over."""
    for name in _ELSEWHERE:
        jvm.java.lang.Class.forName(name)
    loader = jvm.java.lang.ClassLoader.getSystemClassLoader()
    spark = Path(str(distribution("pyspark").locate_file("pyspark/jars")))
    for jar in (*map(Path, class_archive.class_path()), *sorted(spark.glob("*.jar"))):
        for path in zipfile.ZipFile(jar).namelist():
            folder, _, file = path.rpartition("/")
            if folder in _PACKAGES and file.endswith(".class"):
                with suppress(Exception):
                    jvm.java.lang.Class.forName(path.removesuffix(".class").replace("/", "."), False, loader)


def main() -> int:
    """Write the archive unless it is there. Returns 0 also where none was written, because nothing depends on it."""
    try:
        if class_archive.archive_path().is_file():
            return 0
        write_archive()
    except Exception as error:  # whatever of Spark it was: a set-up that fails over this would cost more
        print(f"no class archive was written, so that Spark starts more slowly: {error}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
