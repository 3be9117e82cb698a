"""Merge the lake's small files and remove those that no reader can need any more.

Runs every night, or by hand. Each ingest leaves a file per table; a night's run makes one of them. What was replaced
stays for `lake.versions_h`, so that whoever reads an older version goes on reading it.
"""

from datetime import timedelta

from airflow.sdk import CronTriggerTimetable, dag, task

from dags.defaults import DEFAULTS


@dag(
    schedule=CronTriggerTimetable("20 3 * * *", timezone="UTC", run_immediately=timedelta()),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=True,
    tags=["lake"],
    doc_md=__doc__,
    default_args=DEFAULTS,
)
def maintain_lake() -> None:
    """See the module."""

    @task
    def maintain() -> dict[str, int]:
        from pipelines.lake.upkeep import maintain

        return maintain()

    maintain()


maintain_lake()
