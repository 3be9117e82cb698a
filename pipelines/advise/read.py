"""The messages of a job's agent, out of a recorded run's folder or the lake."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
from pydantic import ValidationError

from configs.bounds import describe_errors
from configs.contract import Contract, load_contract
from configs.settings import Settings
from models.twin.calibration.fit import UnfinishedFitError
from pipelines.advise.measured import BATCH, INTERVAL, MeasuredJob, measure_job
from pipelines.report.recorded.lines import RunError, json_lines, json_object
from tidecast.fields import job_name
from tidecast.spark.progress import Phases, parse_progress

_ACTION = (
    "wall_time", "decision_id", "status", "executors_before", "target", "decided_at", "confirmed_at", "useful_at",
    "observed",
)  # fmt: skip


DAYS = 7.0
"""Of wall time before its newest message, that are read of a job."""


def measure_in_run(folder: Path) -> tuple[str, MeasuredJob]:
    """Measure a job by a finished run's folder: the messages of its agent, and the contract it ran under.

    Returns:
        The job's name, and what was measured of it.

    Raises:
        RunError: a file is missing or broken, the contract is wrong, or the run holds no message of its job.
        UnfinishedFitError: too few batches.
        TwinError: the contract has a value that no job can have.
    """
    info = json_object(folder / "run.json")
    if missing := [key for key in ("job", "contract") if key not in info]:
        raise RunError(f"{folder / 'run.json'}: {missing[0]!r} is missing; it holds {', '.join(info)}.")
    metrics, outcomes = (
        pd.DataFrame([row for row in json_lines(folder / f"{topic}.jsonl") if row.get("job") == info["job"]])
        for topic in ("metrics", "outcomes")
    )
    if metrics.empty:
        raise RunError(f"{folder}: no metrics of job {info['job']!r} in it; run it again.")
    if "planning_s" not in metrics:  # a run of before agents told it; Spark's own report of each batch did
        metrics = metrics.join(_phases(folder / f"{info['job']}.progress.jsonl"), on="batch_id")
    try:
        contract = Contract.model_validate(info["contract"])
    except ValidationError as error:
        said = "; ".join(describe_errors(error, "configs/contract.py"))
        raise RunError(f"{folder / 'run.json'}: its contract is wrong: {said}") from None
    return str(info["job"]), measure_job(metrics, outcomes.reindex(columns=list(_ACTION)), contract)


def _phases(path: Path) -> pd.DataFrame:
    """The phases of a query's batches, by batch id, from Spark's reports."""
    batches = [parse_progress(json.dumps(report)) for report in json_lines(path)]
    known = {batch.batch_id: batch.phases for batch in batches if batch is not None}
    return pd.DataFrame.from_dict(known, orient="index", columns=list(Phases._fields))


def measure_in_lake(settings: Settings, job: str) -> MeasuredJob:
    """Measure a job by its newest week in the lake; see `read_messages`.

    Raises:
        SettingsError: the job has no contract, or a wrong one.
        LakeError: nothing was ever ingested.
        UnfinishedFitError: the lake holds no batch of the job, or too few.
        JavaError, JarsError: Spark does not start.
        MessageError, TwinError: no job may have that name, or such a contract.
    """
    contract = load_contract(job_name(job), settings.contracts_dir)
    return measure_job(*read_messages(settings, job), contract)


def read_messages(settings: Settings, job: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read a job's newest week of the lake, wall time; starts and stops a Spark session, takes seconds.

    Returns:
        Rows of metrics and of outcomes, as `measure_job` and `observe_job` take them.

    Raises:
        LakeError: nothing was ever ingested.
        UnfinishedFitError: the lake holds nothing of the job.
        JavaError, JarsError: Spark does not start.
        MessageError: no job may have that name.
    """
    from pyspark.sql import functions as F

    from pipelines.lake.folder import lake_folder
    from pipelines.lake.tables import Lake, exists
    from pipelines.spark.session import local_session

    job = job_name(job)
    spark = local_session("advise", delta=True)
    try:
        lake = Lake(spark, lake_folder(settings))
        rows = lake.read_table("metrics").where(F.col("job") == job)
        live = rows.where("kind = 'batch' OR executors IS NOT NULL")
        newest = (live.agg(F.max("wall_time")).first() or [None])[0]
        if newest is None:
            raise UnfinishedFitError(
                f"the lake holds nothing of a running job {job!r}; attach its agent and run the DAG ingest_metrics"
            )
        since = newest - DAYS * 86_400
        wanted = [name for name in dict.fromkeys((*INTERVAL, *BATCH, "cores")) if name in rows.columns]  # old: fewer
        metrics = live.where(F.col("wall_time") >= since).select(*wanted).toPandas()
        outcomes = pd.DataFrame(columns=list(_ACTION))
        if exists(lake.root, "outcomes"):
            acts = lake.read_table("outcomes").where(F.col("job") == job).where(F.col("wall_time") >= since)
            outcomes = acts.select(*_ACTION).orderBy("wall_time").toPandas()
    finally:
        spark.stop()
    return metrics, outcomes
