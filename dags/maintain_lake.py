"""Merge the lake's small files, and remove old files and old model versions.

Runs every night, or by hand. Each ingest leaves one file per table; a night's run merges them into one. Replaced files
stay for `lake.versions_h`, so whoever reads an older version can go on reading it. If `mlflow.kept_versions` is set,
that many of the newest versions without an alias are kept of each registered model that this deployment trains;
otherwise all are kept.
"""

from airflow.sdk import dag, task

from dags.defaults import DEFAULTS, utc_cron


@dag(
    schedule=utc_cron("20 3 * * *"),
    tags=["tidecast", "lake"],
    doc_md=__doc__,
    **DEFAULTS,
)
def maintain_lake() -> None:
    """Build the DAG: `maintain` merges and removes files of the lake, `trim_models` removes old model versions."""

    @task
    def maintain() -> dict[str, int]:
        """Merge small files and remove old ones in every table; returns the number of files by table."""
        from pipelines.lake.upkeep import maintain

        return maintain()

    @task
    def trim_models() -> dict[str, int]:
        """Remove versions of registered models beyond `mlflow.kept_versions`; returns their number by model.

        Raises:
            RegistryError: MLflow does not answer, or refuses to delete some; the others are removed.
        """
        from pipelines.registry.kept import trim_models

        return trim_models()

    maintain()
    trim_models()


maintain_lake()
