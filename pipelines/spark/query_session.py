"""Where a query of the pipeline or an ingest runs, and how a query's state is spread over another number of cores."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from configs.contract import Contract, Executors
from configs.errors import CorrectableError
from configs.settings import Settings
from pipelines.spark.checkpoint.files import OFFSETS, Checkpoint
from pipelines.spark.options import LOCAL_CHECKPOINTS
from pipelines.spark.session import cluster_session, local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PARTITIONS = "spark.sql.shuffle.partitions"


class SpreadError(CorrectableError, RuntimeError):
    """A query's state could not be spread over another number of cores; the message holds the remedy."""


def query_session(
    app: str, settings: Settings, cores: int, master: str, *, delta: bool = False, python_state: bool = False
) -> SparkSession:  # fmt: skip
    """Start the session of a query of the pipeline, or of an ingest, with a partition of a shuffle for each core.

    It has no pages: on a cluster they would listen to the network without a login, with links that end its work.

    Args:
        app: its name, as "autoscaler" or "serving".
        settings: Spark's memory sizes, and `var`.
        cores: threads of this process; or, on a cluster, executors of one core each, which have to reach the folder of
            the checkpoint, and those beside it, by the same path.
        master: address of the cluster, or `yarn`; empty: this process.
        delta: with Delta's catalogue.
        python_state: whether it keeps state in Python, whose workers hand on what they make in small parts then: what
            is made of the first jobs of a micro-batch does not wait for that of the last ones.

    Raises:
        JavaError, JarsError, OSError, Exception: as `local_session` and `cluster_session`.
    """
    if not master:
        return local_session(app, cores=cores, delta=delta, prompt=python_state)
    spark = settings.spark.model_copy(update={"master": master})
    job = settings.job.model_copy(update={"state_partitions": cores})
    there = settings.model_copy(update={"spark": spark, "job": job})
    bounds = Executors(min=cores, max=cores)
    contract = Contract(job=app, executors=bounds)
    session = cluster_session(app, there, contract, delta=delta, prompt=python_state, pages=False)
    # Paths of ours are of a mounted file system, and HADOOP_CONF_DIR may name another one, to which YARN's client has
    # brought by now what the executors need.
    context: Any = session.sparkContext
    context._jsc.hadoopConfiguration().set("fs.defaultFS", "file:///")
    session.conf.set("spark.sql.streaming.checkpointFileManagerClass", LOCAL_CHECKPOINTS)
    return session


def kept_partitions(checkpoint: Path) -> int | None:
    """Return over how many partitions a checkpoint's state is spread; None where no micro-batch was planned yet.

    None, too, where its log is damaged: its query does not start then, and names what helps.

    Raises:
        OSError: it cannot be read.
    """
    kept = Checkpoint(checkpoint).offsets
    with suppress(LookupError, ValueError, TypeError):
        _, told, *_ = (checkpoint / OFFSETS / str(kept[-1])).read_text().splitlines()
        return int(json.loads(told)["conf"][_PARTITIONS])
    return None


def refuse_spread(checkpoint: Path, cores: int, setting: str) -> None:
    """Refuse another number of cores while Spark surely does: before the query that runs there is asked to leave.

    Args:
        checkpoint: of the query, which may run.
        cores: partitions.
        setting: which one says so, for the error.

    Raises:
        SpreadError: no micro-batch has ended there, so that there is no state yet that could be spread.
        OSError: it cannot be read.
    """
    before = kept_partitions(checkpoint)
    if before not in (None, cores) and not Checkpoint(checkpoint).commits:
        raise SpreadError(
            f"{checkpoint} is planned for {before} partitions, and {setting} is {cores}: Spark cannot change that "
            f"before its first micro-batch has ended. Set {setting}={before} until then."
        )


def spread_state(spark: SparkSession, checkpoint: Path, cores: int, setting: str) -> list[str]:
    """Spread a checkpoint's state over so many partitions; its query must not run. Spark keeps the number otherwise.

    Args:
        spark: a session.
        checkpoint: of the query; where none is there yet, or it is damaged, nothing is done.
        cores: partitions.
        setting: which one says so, for the error.

    Returns:
        What was done, in words; empty where there was nothing to do.

    Raises:
        SpreadError: Spark refuses; what is kept is as it was.
    """
    from py4j.protocol import Py4JJavaError

    before = kept_partitions(checkpoint)
    if before in (None, cores):
        return []
    _ = spark.streams  # with which Spark starts what knows where state is, else with the first query
    manager: Any = spark._jsparkSession.streamingCheckpointManager()
    try:
        manager.repartition(str(checkpoint), cores, False)
    except Py4JJavaError as error:
        raise SpreadError(
            f"{checkpoint} is spread over {before} partitions, and {setting} is {cores}: Spark cannot change "
            f"that: {error.java_exception}. Set {setting}={before}."
        ) from error
    return [f"what is known of the jobs is spread over {cores} partitions; it was {before}"]
