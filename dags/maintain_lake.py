"""Merge the lake's small files and remove those that no reader can need any more; of models, versions beyond a number.

Runs every night, or by hand. Each ingest leaves a file per table; a night's run makes one of them. What was replaced
stays for `lake.versions_h`, so that whoever reads an older version goes on reading it. Where `mlflow.kept_versions` is
set, so many versions without an alias are kept of each registered model that this deployment trains; else all are.
"""

from airflow.sdk import dag, task

from dags.defaults import DEFAULTS, utc_cron


@dag(
    schedule=utc_cron("20 3 * * *"),
    tags=["lake"],
    doc_md=__doc__,
    **DEFAULTS,
)
def maintain_lake() -> None:
    """Build the DAG, two tasks: `maintain` merges and removes the lake's files, `trim_models` removes old versions."""

    @task
    def maintain() -> dict[str, int]:
        """Merge small files and remove old ones in every table; returns the number of files by table."""
        from pipelines.lake.upkeep import maintain

        return maintain()

    @task
    def trim_models() -> dict[str, int]:
        """Remove versions of registered models beyond `mlflow.kept_versions`; returns their number by model.

        Raises:
            RegistryError: MLflow does not answer, or refuses to delete.
        """
        from pipelines.registry.kept import trim_models

        return trim_models()

    maintain()
    trim_models()


maintain_lake()
