"""How right every served version has been on the running job, kept with the version in the registry."""

from __future__ import annotations

from pipelines.lake.load import LakeSeries
from pipelines.registry import Registry, TrackedRun
from pipelines.report.accuracy import against, by_version


def follow(registry: Registry, run: TrackedRun, job: str, source: LakeSeries) -> dict[str, dict[str, float]]:
    """Score what was served against what came; noted as tags `live.*` of each version and figures of the run.

    Returns:
        Per version: `n` forecast steps that have come, `wape`, `rmse` (records/s), `coverage_90`, `wape_last_value`.
    """
    if source.served is None or source.served.empty:
        return {}
    known = {str(version.version) for version in registry.versions(job)}
    found = {}
    for version, errors in by_version(against(source.served, source.series)).items():
        figures = {k: float(v) for k, v in errors.items() if isinstance(v, int | float)}
        if version not in known or not figures["n"]:
            continue  # a forecast that says it is of a version we never registered, or of which nothing has come
        registry.note(job, version, {f"live.{name}": f"{value:g}" for name, value in figures.items()})
        run.metrics({f"live.v{version}.{name}": value for name, value in figures.items()})
        found[version] = figures
    return found
