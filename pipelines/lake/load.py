"""A job's load read from the lake as a regular series, with its lineage."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from configs.bounds import DAY_S
from configs.contract import jobs_with_contract
from configs.settings import Settings
from models.adapt.target import LONG_DAYS
from models.forecast.core.series import Series
from models.policy.live.learned_lead import OUTCOMES
from pipelines.lake.file_lake import FileLake, SparkLake, opened_lake
from pipelines.lake.folder import lake_folder
from pipelines.lake.tables import exists, job_spans_s

SERVED_S = 7 * 86_400.0
"""Trace seconds of served forecasts by which live versions are judged."""
BATCHES = 20_000  # newest ones, from which capacity is fitted
BATCH = ("kind", "wall_time", "batch_s", "batch_rows", "executors", "batch_id", "task_ceiling")
"""Columns of the table `metrics` that tell of a micro-batch."""


@dataclass(frozen=True)
class LakeSeries:
    """A job's load and the Delta version of the table it was read from.

    Attributes:
        series: the job's load, records/s per step; NaN where a step is missing; empty where the lake has none.
        delta_version: of the table `metrics`.
        served: forecasts served since `SERVED_S` before the load's end, as `Lake.read_served_forecasts` returns them;
            None where there is no load, or no table `forecasts`.
        outcomes: newest outcomes of the job's decisions, as `read_outcomes` returns them.
        batches: newest micro-batches of the job, as `read_batches` returns them.
        others: loads of other jobs by name, each of `LONG_DAYS` days or more; empty where the job's own is that long.
    """

    series: Series
    delta_version: int
    served: pd.DataFrame | None = None
    others: Mapping[str, Series] = field(default_factory=dict)
    outcomes: Sequence[Mapping[str, Any]] = ()
    batches: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=list(BATCH)))

    @property
    def known(self) -> int:
        """Steps that are not missing."""
        return int(np.isfinite(self.series.values).sum())

    def lineage(self) -> dict[str, str]:
        """Describe where the data came from, as tags for MLflow, all text; equal series have equal digests.

        Returns:
            `data.delta_version`, e.g. "3"; `data.digest` (16 hex digits); `data.from` and `data.to` (begin of the first
            step and end of the last, UTC, "2014-10-22 04:20"); `data.steps`; `data.missing` (steps without a value).
        """
        series = self.series
        return {
            "data.delta_version": str(self.delta_version),
            "data.digest": series.digest,
            "data.from": format_minute(series.start),
            "data.to": format_minute(series.end),
            "data.steps": str(len(series)),
            "data.missing": str(len(series) - self.known),
        }


def read_lake(settings: Settings, job: str, step_s: float) -> LakeSeries:
    """Read a job's load, served forecasts, outcomes and batches from the lake; for a short load, others' long ones.

    A load spans from its first step to its last; short is less than `LONG_DAYS` (14) days of job time. Other jobs count
    that have a contract file and so many days of records; one whose times make no series is logged and left out. Blocks
    until read, which takes Spark where `opened_lake` says so.

    Args:
        settings: address of the lake and folder and of the contracts.
        job: name; without data its series is empty and starts at 0.
        step_s: seconds of job time per step of every series.

    Raises:
        LakeError: nothing was ever ingested.
        SeriesError: the times of the job span more than 10⁶ steps.
        SettingsError: a setting is wrong.
        JavaError, JarsError: Spark is needed, and there is no usable Java, or the jars of Delta are missing.
        OSError, ValueError: a file of a table cannot be read, or one of its log is no JSON.
    """
    long_s = LONG_DAYS * DAY_S
    with opened_lake(lake_folder(settings), "train-forecaster") as lake:
        found, version = lake.read_loads([job], step_s)
        series = found.get(job, Series(0.0, step_s, np.empty(0)))
        known = len(series) > 0 and exists(lake.root, "forecasts")
        served = lake.read_served_forecasts(job, series.end - SERVED_S) if known else None
        told = read_outcomes(lake, job, OUTCOMES) if exists(lake.root, "outcomes") else []
        batches = read_batches(lake, job, BATCHES)
        spans = {} if len(series) * step_s >= long_s else job_spans_s(lake.root)
        names = jobs_with_contract(settings.contracts_dir)
        long = [name for name in names if name != job and spans.get(name, 0.0) >= long_s]
        others = lake.read_loads(long, step_s, leave_out=True)[0] if long else {}
    return LakeSeries(series, version, served, others, told, batches)


def read_batches(lake: SparkLake | FileLake, job: str, newest: int) -> pd.DataFrame:
    """Read a job's newest micro-batches with records, columns `BATCH`, the newest first; none where one is missing.

    Raises:
        LakeError: there is no table `metrics`.
        Exception: as pyspark raises it, or an OSError, where a file cannot be read.
    """
    if not set(BATCH) <= set(lake.columns("metrics")):  # of a release that said less of a batch
        return pd.DataFrame(columns=list(BATCH))
    filters = [("job", "eq", job), ("kind", "eq", "batch"), ("batch_rows", "gt", 0)]
    return lake.newest_rows("metrics", BATCH, filters, newest).to_pandas()


def read_outcomes(lake: SparkLake | FileLake, job: str, newest: int) -> list[dict[str, Any]]:
    """Read a job's newest outcomes, the fields of `tidecast.messages.Outcome` by name, oldest first.

    Raises:
        LakeError: there is no table `outcomes`.
        Exception: as pyspark raises it, or an OSError, where a file cannot be read.
        ValueError: a row's `expected` or `observed` is no JSON.
    """
    found = lake.newest_rows("outcomes", lake.columns("outcomes"), [("job", "eq", job)], newest).to_pylist()
    return [{**row, **{name: json.loads(row[name]) for name in ("expected", "observed")}} for row in reversed(found)]


def format_minute(epoch: float) -> str:
    """Format epoch seconds as UTC, to the minute: `2014-10-22 04:20`."""
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(epoch))
