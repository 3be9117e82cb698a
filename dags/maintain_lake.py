"""Merge the lake's small files and remove those that no reader can need any more.

Runs every night, or by hand. Each ingest leaves a file per table; a night's run makes one of them. What was replaced
stays for `lake.versions_h`, so that whoever reads an older version goes on reading it.
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
    """Build the DAG, one task: `maintain` merges small files of the lake's tables and removes replaced ones."""

    @task
    def maintain() -> dict[str, int]:
        """Merge small files and remove old ones in every table; returns the number of files by table."""
        from pipelines.lake.upkeep import maintain

        return maintain()

    maintain()


maintain_lake()
