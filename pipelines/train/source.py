"""A job's load as the lake has it: a regular series, and what is needed to find the same data again."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass

import numpy as np
import pandas as pd

from configs.settings import Settings
from models.forecast.series import Series, regular
from pipelines.lake import Lake, exists

SERVED_S = 7 * 86_400.0
"""Trace seconds of served forecasts by which live versions are judged."""


@dataclass(frozen=True)
class Source:
    """A series and the Delta version of the table it was read from.

    Attributes:
        series: the job's load.
        delta_version: of the table `metrics`.
        served: newest forecasts that were served for the job, a row each; None where none ever was.
    """

    series: Series
    delta_version: int
    served: pd.DataFrame | None = None

    @property
    def known(self) -> int:
        """Steps that are not missing."""
        return int(np.isfinite(self.series.values).sum())

    def lineage(self) -> dict[str, str]:
        """Where the data came from, as tags; equal series have equal digests."""
        series = self.series
        digest = hashlib.sha256(np.array([series.start, series.step_s]).tobytes() + series.values.tobytes()).hexdigest()
        return {
            "data.delta_version": str(self.delta_version),
            "data.digest": digest[:16],
            "data.from": moment(series.start),
            "data.to": moment(series.end),
            "data.steps": str(len(series)),
            "data.missing": str(len(series) - self.known),
        }


def read_lake(settings: Settings, job: str, step_s: float) -> Source:
    """Read a job's load with a Spark session of its own.

    Raises:
        LakeError: nothing was ever ingested.
        SeriesError: what was ingested makes no series.
    """
    from pipelines.session import local_session

    spark = local_session("train-forecaster", delta=True, kafka=False)
    try:
        lake = Lake(spark, settings.lake_dir)
        rows, version = lake.load_history(job)
        served = lake.served(job, SERVED_S) if exists(settings.lake_dir, "forecasts") else None
    finally:
        spark.stop()
    times, rates, spans = (rows[name].to_numpy(dtype=np.float64) for name in ("time", "arrival_rps", "span_s"))
    return Source(regular(times, rates, spans, step_s), version, served)


def moment(epoch: float) -> str:
    """Epoch seconds for a person, UTC."""
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(epoch))
