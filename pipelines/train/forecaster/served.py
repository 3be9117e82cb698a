"""How right the versions of a forecaster were that have served: their forecasts beside the load that came."""

from __future__ import annotations

from pipelines.lake.load import LakeSeries
from pipelines.registry import Registry, TrackedRun
from pipelines.report.accuracy import error_by_version, match_forecasts


def score_served_versions(
    registry: Registry, run: TrackedRun, job: str, source: LakeSeries
) -> dict[str, dict[str, float]]:
    """Score the forecasts that each registered version served against the load that followed.

    Writes each figure as tag `live.<figure>` of the version and as metric `live.v<version>.<figure>` of the run.
    Left out are versions that are not registered, those of whose forecast steps no load is known yet, and forecasts in
    steps of another length than the load's, as from before `training.step_s` was changed.

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
    served = source.served[source.served["step_s"] == source.series.step_s]
    found = {}
    for version, errors in error_by_version(match_forecasts(served, source.series)).items():
        figures = {k: float(v) for k, v in errors.items() if isinstance(v, int | float) and k != "level"}
        if not figures["n"] or not registry.has_version(job, version):
            continue  # a forecast that says it is of a version we never registered, or of which nothing has come
        registry.set_version_tags(job, version, {f"live.{name}": f"{value:g}" for name, value in figures.items()})
        run.metrics({f"live.v{version}.{name}": value for name, value in figures.items()})
        found[version] = figures
    return found
