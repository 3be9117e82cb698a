"""Where the autoscaler's query runs, on how many cores, and how what it has learned is spread over more of them."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from configs.contract import Contract, Executors
from configs.errors import CorrectableError
from configs.settings import Settings
from pipelines.spark.checkpoint.files import OFFSETS, Checkpoint
from pipelines.spark.session import cluster_session, local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

APP = "autoscaler"
_PARTITIONS = "spark.sql.shuffle.partitions"


class SpreadError(CorrectableError, RuntimeError):
    """What the query has learned could not be spread over another number of cores; the message holds the remedy."""


def autoscaler_session(settings: Settings) -> SparkSession:
    """Start the session of the autoscaler's query, a partition of the jobs for each of `autoscaler.cores`.

    They are threads of this process; or, where `autoscaler.master` is set, executors of one core each, which have to
    reach the folder of the checkpoint and those beside it by the same path.

    Raises:
        JavaError, JarsError, OSError, Exception: as `local_session` and `cluster_session`.
    """
    scaling = settings.autoscaler
    if not scaling.master:
        return local_session(APP, cores=scaling.cores)
    spark = settings.spark.model_copy(update={"master": scaling.master})
    job = settings.job.model_copy(update={"state_partitions": scaling.cores})
    there = settings.model_copy(update={"spark": spark, "job": job})
    return cluster_session(APP, there, Contract(job=APP, executors=Executors(min=scaling.cores, max=scaling.cores)))


def kept_partitions(checkpoint: Path) -> int | None:
    """Return over how many partitions a checkpoint's state is spread; None where no micro-batch was planned yet.

    None, too, where its log is damaged: its query does not start then, and names what helps.

    Raises:
        OSError: it cannot be read.
    """
    kept = Checkpoint(checkpoint).offsets
    with suppress(LookupError, ValueError):
        _, told, *_ = (checkpoint / OFFSETS / str(kept[-1])).read_text().splitlines()
        return int(json.loads(told)["conf"][_PARTITIONS])
    return None


def spread_state(spark: SparkSession, checkpoint: Path, cores: int) -> list[str]:
    """Spread a checkpoint's state over so many partitions; its query must not run. Spark keeps the number otherwise.

    Returns:
        What was done, in words; empty where there was nothing to do.

    Raises:
        SpreadError: Spark refuses; what is kept is as it was.
    """
    from py4j.protocol import Py4JJavaError

    before = kept_partitions(checkpoint)
    if before in (None, cores):
        return []
    manager: Any = spark._jsparkSession.streamingCheckpointManager()
    try:
        manager.repartition(str(checkpoint), cores, False)
    except Py4JJavaError as error:
        raise SpreadError(
            f"{checkpoint} is spread over {before} partitions, and autoscaler.cores is {cores}: Spark cannot change "
            f"that: {error.java_exception}. Set autoscaler.cores={before}."
        ) from error
    return [f"what is known of the jobs is spread over {cores} partitions; it was {before}"]
