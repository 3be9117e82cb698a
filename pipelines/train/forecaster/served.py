"""How right the versions of a forecaster were that have served: their forecasts beside the load that came."""

from __future__ import annotations

import pandas as pd

from pipelines.lake.load import LakeSeries
from pipelines.registry import Registry, TrackedRun
from pipelines.report.accuracy import error_by_version, match_forecasts


def score_served_versions(
    registry: Registry, run: TrackedRun, job: str, source: LakeSeries
) -> dict[str, dict[str, float]]:
    """Score the forecasts that each registered version served against the load that followed.

    Writes each figure as tag `live.<figure>` of the version and as metric `live.v<version>.<figure>` of the run.
    Left out are versions that are not registered, those of whose forecast steps no load is known yet, forecasts in
    steps of another length than the load's, as from before `training.step_s` was changed, and those issued before their
    version was registered: they are of another one, whose model was deleted since, or its whole MLflow.

    Returns:
        By version, as text: `n` (forecast steps whose load is known), `wape` (Σ|median - load| / Σ load), `rmse` (of
        the median, records/s), `coverage_90` (share 0..1 at or under the quantile nearest to 0.9), `wape_last_value`
        (WAPE of the load before the forecast as forecast); an undefined one is missing. Empty where nothing was served.

    Raises:
        RegistryError, MlflowException: MLflow does not answer.
        MessageError: no job can have the name.
    """
    if source.served is None:
        return {}
    served = _of_registered(registry, job, source.served[source.served["step_s"] == source.series.step_s])
    found = {}
    for version, errors in error_by_version(match_forecasts(served, source.series)).items():
        figures = {k: float(v) for k, v in errors.items() if isinstance(v, int | float) and k != "level"}
        if not figures["n"]:
            continue  # nothing has come yet of what it forecast
        registry.set_version_tags(job, version, {f"live.{name}": f"{value:g}" for name, value in figures.items()})
        run.metrics({f"live.v{version}.{name}": value for name, value in figures.items()})
        found[version] = figures
    return found


def _of_registered(registry: Registry, job: str, served: pd.DataFrame) -> pd.DataFrame:
    """Forecasts by versions that are registered, issued since they are: both by the wall clock."""
    made = {version: registry.made_at(job, version) for version in served["version"].unique()}
    since = served["version"].map({version: at for version, at in made.items() if at is not None})
    return served[served["wall_time"] >= since.astype(float)]
