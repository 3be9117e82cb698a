"""Spark's options that hold for every session of a kind, each with its reason."""

from __future__ import annotations

from configs.settings import ROOT

_LOG4J = f"-Dlog4j2.configurationFile=file:{ROOT / 'pipelines' / 'stack' / 'services' / 'log4j2.properties'}"
# By default the whole heap is collected each time that the classes outgrow a few MiB more; ours come to 170 MiB.
_CLASSES = "-XX:MetaspaceSize=256m"
# A large stack: stopping inside a Python foreachBatch overflows the default one (a regex over the Py4J error).
_DRIVER_JAVA = f"-Xss64m -XX:+UseSerialGC {_CLASSES} {_LOG4J}"
# C1 alone starts in half the time and costs work that waits for others nothing.
EXECUTOR_JAVA = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {_CLASSES} {_LOG4J}"

# The same for drivers, which live for minutes: an ingest takes 19 s of CPU with it, 29 s without.
LOCAL_JAVA = f"{_DRIVER_JAVA} -XX:TieredStopAtLevel=1"

_STREAMING = "org.apache.spark.sql.execution.streaming"
# By default each file of a checkpoint starts four processes more, to look for links: a tenth of a query's CPU.
LOCAL_CHECKPOINTS = f"{_STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager"
COMMON = {
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.extraJavaOptions": _DRIVER_JAVA,
    "spark.python.daemon.module": "pipelines.spark.worker_daemon",
    "spark.sql.streaming.stateStore.providerClass": f"{_STREAMING}.state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # What Spark's pages show of the past; by default a thousand micro-batches with their plans, 100 MB of a heap.
    "spark.sql.ui.retainedExecutions": "100",
    "spark.ui.retainedJobs": "200",
    "spark.ui.retainedStages": "200",
}
# Of drivers without pages: nobody sees plans in words for them, nor, in an error of ours, where in Python a column was
# made, which is eight calls to the JVM for each.
NO_PAGES = {
    "spark.ui.enabled": "false",
    "spark.sql.ui.explainMode": "simple",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.dataFrameQueryContext.enabled": "false",
}
DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Without it every append reads its log in 50 tasks.
    "spark.databricks.delta.snapshotPartitions": "1",
    # Without it a VACUUM looks for files in 10,000 tasks: 37 s instead of 3 for a small table.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.hadoop.parquet.writer.version": "v2",  # whole numbers that rise by little take little
}
# An executor that is asked to leave hands over its shuffle files and is gone after 2-3 s; by default it lingers 31 s.
DECOMMISSION = {
    "spark.decommission.enabled": "true",
    "spark.storage.decommission.enabled": "true",
    "spark.storage.decommission.shuffleBlocks.enabled": "true",
    "spark.storage.decommission.rddBlocks.enabled": "true",
    "spark.storage.decommission.replicationReattemptInterval": "1s",
}
# A Python worker hands on what it has for the JVM once that fills a buffer, by default of 64 KiB: of a hundred jobs the
# first decision of a micro-batch waited for its end. Hadoop's buffers for files get this size, too: their default.
PROMPT = {"spark.buffer.size": "4096"}
# What replays read beside live records takes a core only where live records have no task for it.
POOLS = {
    "spark.scheduler.mode": "FAIR",
    # No URI: Hadoop takes a %40 as three letters, and a folder may be called a@2.
    "spark.scheduler.allocation.file": f"file:{ROOT / 'pipelines' / 'spark' / 'pools.xml'}",
}
# A batch waits for its slowest task, the first one of a new executor takes seconds, and a copy elsewhere less:
# on another host, for Spark runs no copy where the task runs already.
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.5",
    "spark.speculation.minTaskRuntime": "500ms",
}
