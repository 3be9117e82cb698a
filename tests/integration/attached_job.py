"""A streaming job that is nobody's but the agent tests': counts by key after 3 ms per record, and one `attach` line.

Spark's own allocation starts one executor and keeps it; decisions may ask for two. What it is to read again goes to
files, `<run folder>/again/<id>`, which are read once `<id>.published` stands there.
As long as `<run folder>/beside` is there, another query runs in the driver, with an agent of its own.
"""

import argparse
import logging
import signal
import threading
from pathlib import Path

from configs.contract import Contract, Executors
from configs.settings import load
from pipelines.spark.session import cluster_session
from tidecast import attach
from tidecast.replay import Replayable, replay_stream

JOB, BESIDE = "attached", "beside"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--run-dir", type=Path, required=True)
    given = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    logging.getLogger("tidecast").setLevel(logging.INFO)
    settings = load()
    contract = Contract(job=JOB, executors=Executors(min=1, max=2))
    spark = cluster_session(JOB, settings, contract, grows=False)
    source = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", settings.kafka.bootstrap)
        .option("subscribe", settings.kafka.topic("events"))
        .option("startingOffsets", "earliest")
        .option("kafka.fetch.max.wait.ms", "20")
        .option("maxOffsetsPerTrigger", "400")
        .load()
    )
    slow = source.where("reflect('java.lang.Thread', 'sleep', 3L) = 'null'")
    query = (
        slow.selectExpr("CAST(key AS STRING) AS key")
        .groupBy("key")
        .count()
        .selectExpr("key", "to_json(struct(key, count AS n)) AS value")
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", settings.kafka.bootstrap)
        .option("topic", settings.kafka.topic("results"))
        .option("checkpointLocation", str(given.run_dir / "checkpoint"))
        .outputMode("update")
        .trigger(processingTime="2 seconds")
        .start()
    )
    again = given.run_dir / "again"

    def start_again(order):
        """Its trigger comes many times in each pause between live batches: in one of them a batch may begin."""
        stream = replay_stream(spark, order, {"kafka.bootstrap.servers": settings.kafka.bootstrap})
        return (
            stream.select("partition", "offset").writeStream.format("json").option("path", str(again / order.id))
            .option("checkpointLocation", str(again / f"{order.id}.checkpoint"))
            .trigger(processingTime="100 milliseconds").start()
        )  # fmt: skip

    replay = Replayable(start_again, publish=lambda order: (again / f"{order.id}.published").touch())
    agent = attach(query, job=JOB, mode="act", replay=replay, prefix=settings.kafka.prefix)
    print("attached", flush=True)
    ended, besides = threading.Event(), []
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    while query.isActive and not ended.wait(0.2):
        if (given.run_dir / BESIDE).exists() and not besides:
            written = source.writeStream.format("noop").trigger(processingTime="2 seconds")
            other = written.option("checkpointLocation", str(given.run_dir / f"{BESIDE}.checkpoint")).start()
            besides = [other, attach(other, job=BESIDE, mode="act", prefix=settings.kafka.prefix)]
        elif besides and not (given.run_dir / BESIDE).exists():
            besides.pop(0).stop()
            besides.pop(0).stop()
    failed = query.exception()
    query.stop()
    agent.stop()
    spark.stop()
    if failed is not None:
        raise failed


if __name__ == "__main__":
    main()
