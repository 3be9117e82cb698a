"""What the backtest DAG calls: what every policy would have cost on a job's last days, as the lake has them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from configs.contract import Contract, load_contract
from configs.settings import Settings, load
from models.forecast.core.series import Series
from models.twin.experiment.setup import NOISE, Setup
from models.twin.sim.job import TwinJob
from pipelines.backtest.job_file import read_job
from pipelines.backtest.load import NamedLoad
from pipelines.backtest.page import render_page
from pipelines.backtest.report import backtest
from pipelines.backtest.text import verdict_sentence
from pipelines.lake import tables as lake
from pipelines.lake.folder import lake_folder
from pipelines.lake.load import format_minute, read_lake
from pipelines.registry import Registry
from pipelines.report.fit_input import configured_twin

LEAST_STEPS = 60
"""Least known steps of a load for a backtest."""


def jobs_with_enough_load(jobs: Iterable[str]) -> list[str]:
    """Return those jobs whose records in the lake span at least LEAST_STEPS (60) steps of the training; without Spark.

    Raises:
        SettingsError: the settings are wrong.
        OSError, ValueError: the table's log cannot be read.
    """
    settings = load()
    spans, least_s = lake.job_spans_s(lake_folder(settings)), LEAST_STEPS * settings.training.step_s
    return [job for job in jobs if spans.get(job, 0.0) >= least_s]


def backtest_job(job: str, policies: str = "all", days: float | None = None) -> dict[str, Any]:
    """Backtest a job's load from the lake in its twin (simulator), and log the result as an MLflow run; takes minutes.

    The run gets parameters, the costs as metrics (see `cost_metrics`),
    `backtest.html`, `backtest.json` and the verdict as tag `outcome`; it ends as failed if anything is raised after its
    start.

    Args:
        job: whose load.
        policies: names separated by commas, or all.
        days: of the trace, the newest; None for all that the lake has.

    Returns:
        `job`, `run` (the MLflow run's id) and `verdict` (sentences).

    Raises:
        ShortLoadError: the load is too short or has gaps.
        TwinError: the stored fit cannot be read or is unfinished, or the load has steps under a second.
        SettingsError: no such policy, no contract (the job's YAML of latency target and executor bounds), wrong
            settings.
        LakeError, SeriesError: nothing was ever ingested, or it makes no series.
        RegistryError, MlflowException: MLflow does not answer, or the run is gone.
        JavaError, JarsError, OSError: no Java or jars where Spark is needed; a file cannot be read or written.
    """
    settings = load()
    source = read_lake(settings, job, settings.training.step_s)
    names = [part.strip() for part in policies.split(",") if part.strip()]
    series, setup = take_newest(source.series, days), build_setup(settings, job)
    with Registry(settings).run(job, f"backtest of {job} {format_minute(series.end)}") as run:
        run.tags({**source.lineage(), "kind": "backtest"})
        run.parameters({
            "lead_s": setup.lead_s, "policies": policies, "steps": len(series), "step_s": series.step_s,
            "speed": setup.speed, "fitted": _fit(settings, job).is_file(),
        })  # fmt: skip
        (figures,) = backtest([NamedLoad(job, "records/s", series)], setup, names)
        run.metrics(cost_metrics(figures))
        run.text(render_page([figures]), "backtest.html")
        run.text(json.dumps(figures, indent=1), "backtest.json")
        run.tags({"outcome": verdict_sentence(figures)})
        return {"job": job, "run": run.id, "verdict": verdict_sentence(figures)}


def build_setup(settings: Settings, job: str) -> Setup:
    """Build the setup of a job's backtest: its stored fit `var/twins/JOB.json`, or without one its contract's guesses.

    The lead time is the median start-up of an executor, at least 1 s. The contract is the job's YAML of latency target,
    executor bounds and first guesses; the clock's speed is the job's.

    Raises:
        SettingsError: the job has no contract, or a wrong one.
        TwinError: the stored fit is unfinished or wrong, or the lead time is above a day.
    """
    contract, path = load_contract(job, settings.contracts_dir), _fit(settings, job)
    fitted = read_job(path) if path.is_file() else twin_from_contract(contract)
    lead_s = max(float(np.median(fitted.startup_s)), 1.0)
    return Setup(lead_s=lead_s, job=fitted, as_is=True, speed=settings.speed(job), contract_of_job=contract)


def twin_from_contract(contract: Contract) -> TwinJob:
    """Make the twin of a job that was never measured from its contract's guesses; start-up takes its lead time, >= 1 s.

    Raises:
        TwinError: a value that no job can have.
    """
    planning = contract.planning
    startup_s = (max(planning.lead_s, 1.0),)
    return replace(configured_twin(contract), scaling=planning.scaling, startup_s=startup_s, noise=NOISE)


def take_newest(series: Series, days: float | None) -> Series:
    """Cut out the newest days of a series, in job time, rounded up to whole steps; all of it for None or more days."""
    if days is None:
        return series
    steps = min(len(series), math.ceil(days * 86400 / series.step_s))
    return series.split(steps)[1]


def cost_metrics(figures: dict[str, Any]) -> dict[str, float]:
    """Return a backtest's known costs in executor-hours as MLflow metrics, named `hours.<violation>.<policy>`.

    Args:
        figures: as from `report.backtest_to_json`.
    """
    return {
        f"hours.{level}.{policy}": hours
        for level, costs in figures["cheapest_at_violation"].items()
        for policy, hours in costs.items()
        if hours is not None
    }


def _fit(settings: Settings, job: str) -> Any:
    return settings.var_dir / "twins" / f"{job}.json"
